// Package thousand writes the records of many nodes for tests, as one plan on each node
// creates them. Times are random; all other lines are as written by a tare lifecycle run.
package thousand

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tare-bench/tare/internal/instrument/lifecycle"
	"github.com/tare-bench/tare/internal/subject/setting"
	"github.com/tare-bench/tare/record"
)

// Fleet is the number of nodes and the amount of measurements per node.
type Fleet struct {
	Nodes  int
	Lanes  []int
	Rounds int
	Slower float64 // factor for all times; 0 means 1
	Name   string  // prefix of the run ids
}

// Samples returns the samples of a record: two targets with four operations each.
func (f *Fleet) Samples() (n int) {
	for _, lanes := range f.Lanes {
		n += len(targets) * len(ops) * f.Rounds * lanes
	}
	return n
}

var (
	targets = []string{"runc", "crun"}
	ops     = []setting.Op{setting.Create, setting.Start, setting.Stop, setting.Remove}
)

// Unlike maps each of the five nodes with planted differences to a word that a report must
// contain about it.
func (f *Fleet) Unlike() map[string]string {
	return map[string]string{
		f.node(1): "governor powersave", f.node(f.Nodes / 4): "clock source hpet", f.node(f.Nodes / 2): "steal",
		f.node(f.Nodes * 3 / 4): "version 1.0.0", f.node(f.Nodes - 2): "nothing in its record",
	}
}

func (*Fleet) node(i int) string { return fmt.Sprintf("node-%04d", i) }

// Write writes a record for each node into its own folder.
func (f *Fleet) Write(dir string) error {
	lines, err := record.NewLines()
	if err != nil {
		return err
	}
	var all sync.WaitGroup
	var next atomic.Int64
	errs := make([]error, runtime.GOMAXPROCS(0))
	for w := range errs {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < f.Nodes; i = int(next.Add(1)) - 1 {
				path := filepath.Join(dir, f.node(i), "lifecycle.jsonl")
				errs[w] = errors.Join(errs[w], f.write(path, i), lines.AddLabels(path, []record.Label{{Key: "node", Value: f.node(i)}}))
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

const (
	ms  = 1_000_000
	gib = 1 << 30
)

func (f *Fleet) write(path string, i int) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	w, err := record.Create(path)
	if err != nil {
		return err
	}
	r := &run{Fleet: f, Writer: w, node: i, word: f.Unlike()[f.node(i)], random: rand.New(rand.NewPCG(19, uint64(i))), now: 1_000_000 * ms}
	return errors.Join(r.write(), w.Close())
}

// run is a record being written.
type run struct {
	*Fleet
	*record.Writer
	node   int
	word   string // describes its difference
	random *rand.Rand
	speed  float64
	now    int64
	err    error
}

func (r *run) line(line any) { r.err = errors.Join(r.err, r.Writer.Write(line)) }

func (r *run) write() error {
	plan := lifecycle.Defaults()
	plan.Title, plan.Lanes, plan.Ops, plan.Rounds, plan.Warmup, plan.Seed = "starts on every node", r.Lanes, ops, r.Rounds, 0, uint64(r.node+1)
	plan.Targets = targets
	text, err := json.Marshal(plan)
	if err != nil {
		return err
	}
	env := r.environment()
	r.line(record.Header{RunID: fmt.Sprintf("%sr%d", r.Name, r.node), Experiment: lifecycle.Name, Started: time.Date(2026, 3, 1, 12, 0, r.node, 0, time.UTC),
		Command: []string{"tare", "run", "plan.yaml"}, Version: "v0.1.0", Plan: text, Environment: env})
	for _, name := range targets {
		r.line(r.target(name))
	}
	for _, lanes := range r.Lanes {
		for round := range r.Rounds {
			for order, at := range r.random.Perm(len(targets)) {
				for k, op := range ops {
					r.batch(targets[at], op, float64(k+2), lanes, round, order)
				}
			}
			n := record.Node{Time: r.now, Round: round, Phase: record.PhaseMeasure, Lanes: lanes, Load1: 0.4, Known: true, Busy: 0.3, PSICPU: 0.02, HavePSI: true}
			if r.word == "steal" {
				n.Steal = 0.2
			}
			r.line(n)
		}
	}
	r.line(record.End{Status: "done", Why: "rounds", Batches: len(r.Lanes) * r.Rounds * len(targets) * len(ops), Elapsed: r.now})
	return r.err
}

// environment returns one of two machines with one of three kernels. They determine part
// of the times, as does the node itself.
func (r *run) environment() record.Environment {
	env := record.Environment{Kernel: "6.1.0-31-amd64", KernelBuild: "#1 SMP Debian", OS: "Debian GNU/Linux 12", Arch: "x86_64", CPUModel: "AMD EPYC 9R14", CPUs: 8,
		Governor: "performance", Memory: 31*gib + int64(r.random.IntN(64))<<20, Virtual: "kvm", Cgroup: "v2", RootFS: "ext4", ClockSource: "tsc", Lanes: "SCHED_FIFO",
		Controllers: []string{"cpuset", "cpu", "io", "memory", "pids"}, Mitigations: map[string]string{"spectre_v2": "Mitigation: Enhanced IBRS", "meltdown": "Not affected"}}
	r.speed = math.Exp(0.02 * r.random.NormFloat64())
	if r.Slower > 0 {
		r.speed *= r.Slower
	}
	if r.node%3 == 2 {
		env.CPUModel, env.CPUs, env.Memory = "Intel Xeon 8488C", 16, 2*env.Memory
		r.speed *= 1.15
	}
	switch r.node / 3 % 10 {
	case 5, 6, 7:
		env.Kernel, env.KernelBuild = "6.8.0-55-generic", "#57 SMP Ubuntu"
		r.speed *= 0.97
	case 8, 9:
		env.Kernel, env.KernelBuild = "6.12.9-1-amd64", "#2 SMP Debian"
		r.speed *= 1.04
	}
	switch r.word {
	case "governor powersave":
		env.Governor = "powersave"
		r.speed *= 1.45
	case "clock source hpet":
		env.ClockSource = "hpet"
		r.speed *= 1.4
	case "steal":
		r.speed *= 1.5
	case "nothing in its record":
		r.speed *= 0.65
	}
	return env
}

func (r *run) target(name string) record.Target {
	t := record.Target{Name: name, Kind: "oci", Version: map[string]string{"runc": "1.1.12", "crun": "1.14.4"}[name], Path: "/usr/sbin/" + name, Clock: "host", Operations: map[string]record.Operation{}}
	if name == "runc" && r.word == "version 1.0.0" {
		t.Version = "1.0.0"
	}
	for _, op := range ops {
		t.Operations[string(op)] = record.Operation{Command: name + " " + string(op) + " ID", Done: record.StampReturned, Means: "the command has exited with 0"}
	}
	return t
}

// batch takes a multiple of 10 ms, more with more lanes.
func (r *run) batch(target string, op setting.Op, tens float64, lanes, round, order int) {
	took := 10 * ms * tens * r.speed * math.Sqrt(float64(lanes)) * math.Exp(0.03*r.random.NormFloat64())
	if target == "crun" {
		took /= 2
	} else if r.word == "version 1.0.0" {
		took *= 2.2
	}
	b := record.Batch{Phase: record.PhaseMeasure, Round: round, Order: order, Target: target, Op: string(op), Lanes: lanes, Released: r.now, OwnCPU: ms}
	for lane := range lanes {
		s := record.Sample{Lane: lane, Start: r.now + 20_000 + int64(r.random.IntN(20_000))}
		part := int64(took * (0.6 + 0.4*r.random.Float64()))
		s.Spawned, s.Returned = s.Start+part/20, s.Start+part
		if slices.Contains([]setting.Op{setting.Start, setting.Create}, op) {
			s.First, s.Seen = s.Start+part*8/10, s.Start+part*9/10
		}
		s.UserCPU, s.SysCPU, s.MaxRSS = part/8000*1000, part/4000*1000, 9<<20+int64(r.random.IntN(64))<<12
		b.Samples = append(b.Samples, s)
	}
	r.line(b)
	r.now += 2 * int64(took)
}
