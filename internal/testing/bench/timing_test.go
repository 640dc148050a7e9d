package bench

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/lane"
	"github.com/tare-bench/tare/internal/node/disk"
	"github.com/tare-bench/tare/internal/probe"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/oci"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

// bareLoop runs src/loop.c with a command.
type bareLoop struct {
	in  io.Writer
	out *bufio.Reader
}

func loop(b *testing.B, args ...string) *bareLoop {
	b.Helper()
	program := filepath.Join(b.TempDir(), "loop")
	output(b, exec.Command("cc", "-O2", "-static", "-o", program, "src/loop.c"))
	command := exec.Command(program, args...)
	command.Stderr = os.Stderr
	// Use a separate session, as the lanes do. If the scheduler divides the CPUs by
	// session (autogroup), both sides get the same share.
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	in := must.Get(command.StdinPipe())(b)
	out := must.Get(command.StdoutPipe())(b)
	must.OK(b, command.Start())
	b.Cleanup(func() { in.Close(); _ = command.Wait() })
	return &bareLoop{in: in, out: bufio.NewReader(out)}
}

// once returns the time of one execution of the command.
func (l *bareLoop) once(b *testing.B) float64 {
	b.Helper()
	_, err := l.in.Write([]byte{'\n'})
	must.OK(b, err)
	var ns float64
	status := -1
	_, err = fmt.Fscan(l.out, &ns, &status)
	must.That(b, err == nil && status == 0, "the bare loop's command exited with %d: %v", status, err)
	return ns
}

// pool returns a lane on tare's own CPU.
func pool(b *testing.B) *lane.Pool {
	b.Helper()
	p := must.Get(lane.NewPool(lane.Options{Lanes: 1}))(b)
	b.Cleanup(p.Close)
	return p
}

// BenchmarkStopwatch times a static program that exits immediately, with tare and with a
// bare loop. tare uses vfork; fork copies page tables first. The medians must be within
// 50 µs of each other.
func BenchmarkStopwatch(b *testing.B) {
	dir := b.TempDir()
	must.OK(b, probe.Install(dir))
	command := []string{filepath.Join(dir, probe.Name), "--exit", "x"}
	defer lane.Settle()()
	bare := func(how string) func() float64 {
		l := loop(b, append([]string{how}, command...)...)
		return func() float64 { return l.once(b) }
	}
	timed := func() func() float64 {
		p := pool(b)
		return func() float64 {
			r, err := p.Do(b.Context(), 0, lane.Order{Kind: lane.Exec, Args: command, Timeout: 10 * time.Second})
			if err != nil || r.Err != nil || r.Status != 0 {
				b.Fatal(err, r.Err, r.Status)
			}
			return float64(r.Returned - r.Start)
		}
	}
	compare(b, side{"vfork, exec, wait in C", bare("vfork")}, side{"the same again (A/A)", bare("vfork")}, side{"fork, exec, wait in C", bare("fork")},
		side{"tare", timed()}, side{"tare again (A/A)", timed()})
}

// BenchmarkContainer times runc run --detach, with tare lifecycle and with the bare loop.
func BenchmarkContainer(b *testing.B) {
	runc, err := exec.LookPath("runc")
	if err != nil {
		b.Skip(err)
	}
	run := owned(b)
	bundle, state, err := run.Dirs("bare")
	must.OK(b, err)
	must.OK(b, oci.WriteBundle(bundle, run.ID, subject.DefaultLimits))
	bare := func(id string) func() float64 {
		l := loop(b, "vfork", runc, "--root", state, "run", "--detach", "--bundle", bundle, "--pid-file", filepath.Join(bundle, "pid"), id)
		return func() float64 {
			defer output(b, exec.Command(runc, "--root", state, "delete", "--force", id))
			return l.once(b)
		}
	}
	timed := func() float64 {
		r := recorded(b, "lifecycle", "runc", "--ops", "run", "--rounds", "1")
		took, _ := r.Batches[len(r.Batches)-1].Samples[0].Latency(record.StampReturned)
		return float64(took)
	}
	compare(b, side{"runc by a loop in C", bare(run.ID + "-a")}, side{"the same again (A/A)", bare(run.ID + "-b")},
		side{"runc by tare", timed}, side{"tare again (A/A)", timed})
}

// BenchmarkBatch starts runc run on a hundred lanes. The start times may spread over at
// most 150 ms, and tare may use at most 5 % of the total CPU time.
func BenchmarkBatch(b *testing.B) {
	if _, err := exec.LookPath("runc"); err != nil || os.Geteuid() != 0 {
		b.Skip("wants root and runc: ", err)
	}
	var skews, shares, makespans []float64
	for b.Loop() {
		r := recorded(b, "lifecycle", "runc", "--ops", "run", "--rounds", "1", "--lanes", "100")
		batch := r.Batches[len(r.Batches)-1]
		first, last, ended := batch.Samples[0].Start, batch.Released, batch.Released
		for _, s := range batch.Samples {
			first, last, ended = min(first, s.Start), max(last, s.Start), max(ended, s.Returned)
		}
		makespan := float64(ended - batch.Released)
		makespans, skews = append(makespans, makespan/1e6), append(skews, float64(last-first)/1e6)
		shares = append(shares, 100*float64(batch.OwnCPU)/makespan/cpus)
	}
	middle(b, "makespan-ms", makespans)
	middle(b, "skew-ms", skews)
	middle(b, "own-CPU-%", shares)
}

// BenchmarkProbe measures the time from the start to the workload's first instruction,
// which may be at most 1 ms. The probe may use at most 400 KiB of memory.
func BenchmarkProbe(b *testing.B) {
	dir := b.TempDir()
	must.OK(b, probe.Install(dir))
	p := pool(b)
	var first []float64
	n, held := 0, 0.0
	for b.Loop() {
		n++
		token := "probe-" + strconv.Itoa(n)
		r, err := p.Do(b.Context(), 0, lane.Order{Kind: lane.Spawn, Args: []string{filepath.Join(dir, probe.Name), token},
			Need: lane.NeedReady, Token: token, Timeout: 10 * time.Second})
		ns, told := r.ProbeTime(token)
		if err != nil || r.Err != nil || !told {
			b.Fatal(err, r.Err, r.Stdout)
		}
		// The time begins before the fork and includes exec, so it is an upper bound.
		first = append(first, float64(ns-r.Start)/1e3)
		held = resident(b, r.Pid)
		_, err = p.Do(b.Context(), 0, lane.Order{Kind: lane.Kill, Watch: r.Pid, Need: lane.NeedExit, Timeout: 10 * time.Second})
		must.OK(b, err)
	}
	middle(b, "µs-to-first", first)
	b.ReportMetric(held, "KiB")
	b.ReportMetric(float64(len(probe.Program())), "B-on-disk")
}

// BenchmarkStart measures the CPU time of a command before it does anything, most of it
// in linked packages. The limit is 5 ms.
func BenchmarkStart(b *testing.B) {
	bpftool, err := exec.LookPath("bpftool")
	if err != nil {
		b.Skip(err)
	}
	version := func() float64 { return cpu(b, exec.Command(bpftool, "version")) }
	compare(b, side{"bpftool version", version}, side{"the same again (A/A)", version},
		side{"tare version", func() float64 { return cpu(b, tare(b, "version")) }})
}

// cpu returns the CPU time in ns of a command that must succeed.
func cpu(b *testing.B, c *exec.Cmd) float64 {
	b.Helper()
	output(b, c)
	return float64(c.ProcessState.UserTime() + c.ProcessState.SystemTime())
}

// BenchmarkStorage compares fio's time per MiB in tare storage with plain fio. Both use
// the same command line, file size and disk, after dropping the same caches. The set-up
// of a cell without layout and job must take at most 1.5 s. tare may use at most 1 % of a
// core while a job runs.
func BenchmarkStorage(b *testing.B) {
	if _, err := exec.LookPath("fio"); err != nil {
		b.Skip(err)
	}
	dir, _, err := owned(b).Dirs("bare")
	must.OK(b, err)
	for _, job := range []string{"randread", "write"} {
		b.Run(job, func(b *testing.B) {
			var setUps, own []float64
			var command string
			byTare := func() float64 {
				r := recorded(b, "storage", "host", "--volume", "bind", "--size", "256M", "--jobs", job, "--rounds", "1", "--ceiling", "0")
				c := r.Cells[0]
				command = c.Command
				setUps, own = append(setUps, float64(c.SetUp)/1e6), append(own, 100*float64(c.Observed.OwnCPU)/float64(c.Ended-c.Begun))
				return (1 << 20) / (c.Reported.Read.Bandwidth + c.Reported.Write.Bandwidth) * 1e9
			}
			byTare()
			var args []string
			for arg := range strings.FieldsSeq(command) {
				if strings.HasPrefix(arg, "--filename=") {
					arg = "--filename=" + filepath.Join(dir, "file")
				}
				args = append(args, arg)
			}
			plain := func() float64 {
				must.OK(b, disk.DropCaches(b.Context()))
				var said struct {
					Jobs []struct {
						Read, Write struct {
							BW float64 `json:"bw_bytes"`
						}
					}
				}
				must.OK(b, json.Unmarshal(output(b, exec.Command(args[0], args[1:]...)), &said))
				return (1 << 20) / (said.Jobs[0].Read.BW + said.Jobs[0].Write.BW) * 1e9
			}
			plain() // creates the file
			compare(b, side{"fio, for a MiB", plain}, side{"the same again (A/A)", plain}, side{"fio by tare storage", byTare})
			middle(b, "set-up-ms", setUps)
			middle(b, "own-CPU-%", own)
		})
	}
}
