package report

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/tare-bench/tare/internal/instrument/overhead/ledger"
	"github.com/tare-bench/tare/internal/judge"
	"github.com/tare-bench/tare/internal/plan"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/record"
)

// weighed is a judgement made by hand, with figures that are easy to check.
type weighed struct {
	rec *record.Record
	v   judge.Overhead
}

func newWeighed(targets ...string) *weighed {
	w := &weighed{rec: newRun(nil).rec}
	w.rec.Header.Experiment, w.rec.Header.Command = "overhead", []string{"tare", "overhead"}
	w.rec.End.Elapsed = 312_000_000_000
	w.v.Plan = plan.DefaultsOfOverhead()
	w.v.Plan.Seed, w.v.Plan.Sandboxes, w.v.Plan.Targets = 42, []int{1, 5}, targets
	versions := map[string]string{"runc": "1.2.4", "docker/runc": "27.5.1", "containerd/runsc": "2.1.0", "containerd/kata": "2.1.0"}
	for _, name := range targets {
		w.v.Targets = append(w.v.Targets, record.Target{Type: record.TypeTarget, Name: name, Version: versions[name]})
	}
	return w
}

func mebi(v float64) int64 { return int64(v * (1 << 20)) }

// role is a row of so many MiB of anonymous memory and milli-CPUs.
func role(r record.Role, processes int, anon, kernel, milli float64, rule string) ledger.Row {
	row := ledger.Row{Role: r, Processes: processes, Memory: ledger.Memory{Anon: mebi(anon), Kernel: mebi(kernel)}, CPU: milli / 1000, CPUKnown: true}
	if rule != "" {
		row.Rules = []string{rule}
	}
	return row
}

// booked closes the books of rows: what is not theirs is 1.5 MiB of others and
// a residual.
func booked(target string, residual float64, rows []ledger.Row, groups ...ledger.GroupRow) judge.OverheadCell {
	c := judge.OverheadCell{Target: target, Rounds: 3}
	l := &c.Ledger
	l.Rows, l.Groups, l.Complete = rows, groups, true
	l.Places = placesOf(rows, groups)
	cpu := 0.0
	for _, r := range rows {
		if r.Role != record.RoleOthers {
			l.Sum += r.Memory.Sum()
			cpu += r.CPU
		}
	}
	l.Others, l.Uncharged, l.Residual, l.Uncertainty = mebi(1.5), mebi(0.3), mebi(residual), mebi(1.2)
	l.Node = l.Sum + l.Others + l.Uncharged + l.Residual
	l.ResidualBy = ledger.Memory{Kernel: mebi(residual / 2)}
	l.Cache = ledger.CacheBooks{Node: mebi(9), Charged: mebi(6.5), Mapped: mebi(4.25)}
	l.NodeCPU, l.NodeIO, l.Load1 = cpu+0.021, ledger.IO{Write: 40960}, 0.31
	l.Available, l.AvailableChange = 28<<30, -l.Node-mebi(3)
	l.PSI = ledger.Pressure{Known: true, CPU: 0.004}
	c.Sum = judge.Interval{N: 3, Median: float64(l.Sum)}
	c.Residual = judge.Interval{N: 3, Median: float64(l.Residual)}
	c.CPU = judge.Interval{N: 3, Median: cpu}
	return c
}

// placesOf puts the processes of each role into the last path of their groups.
func placesOf(rows []ledger.Row, groups []ledger.GroupRow) (out []ledger.Place) {
	for _, g := range groups {
		for _, r := range rows {
			if r.Processes > 0 && r.Role != record.RoleDaemon && slices.Contains(g.Roles, r.Role) {
				out = append(out, ledger.Place{Role: r.Role, Charge: g.Charge, Path: g.Paths[len(g.Paths)-1], Count: g.Count, Processes: r.Processes, Memory: r.Memory.Anon})
			}
		}
	}
	return out
}

func group(charge record.Charge, count int, usage, limit, milli float64, path string, roles ...record.Role) ledger.GroupRow {
	return ledger.GroupRow{
		Charge: charge, Paths: []string{path}, Count: count, Usage: mebi(usage), Peak: mebi(usage * 1.05), Limit: mebi(limit),
		Memory: ledger.Memory{Anon: mebi(usage * 0.8), Cache: mebi(usage * 0.1), Kernel: mebi(usage * 0.1)}, CPU: milli / 1000, Roles: roles,
	}
}

// traced gives a cell series of a hundred ticks.
func traced(c judge.OverheadCell, memory, overhead, cpus func(at float64) float64) judge.OverheadCell {
	series := func(name, unit string, of func(float64) float64) {
		if of == nil {
			return
		}
		t := judge.Trace{Name: name, Unit: unit, Missed: 2}
		for i := range 98 {
			at := float64(i) / 10
			t.Times, t.Values = append(t.Times, at), append(t.Values, of(at))
		}
		c.Trace = append(c.Trace, t)
	}
	series(record.SeriesPodMemory, "bytes", memory)
	series(record.SeriesOverheadMemory, "bytes", overhead)
	series(record.SeriesPodCPU, "cpus", cpus)
	return c
}

func steady(v float64) func(float64) float64 { return func(float64) float64 { return v } }

// four are runc, Docker, gVisor and Kata, idle at two counts and under load.
func four() *weighed {
	const runc, docker, runsc, kata = "runc", "docker/runc", "containerd/runsc", "containerd/kata"
	w := newWeighed(runc, docker, runsc, kata)
	w.v.Plan.Phases = []string{"idle", "1G", "hold 64MiB", "spin 0.5cpu"}
	w.v.Plan.Limits = subject.Limits{CPU: 1, Memory: 2 << 30}
	podOf := func(id string) string {
		return "/kubepods/besteffort/pod6f1b7b1c-0a0e-4f7e-9a53-55c8c8a6e1d2/" + id
	}
	cells := func(n, load, told float64) []judge.OverheadCell {
		k := int(n)
		writes := func(at float64) float64 { return load / 1000 * (0.6 + 0.4*math.Sin(at)) }
		grows := func(from, by float64) func(float64) float64 {
			return func(at float64) float64 { return (from + by*math.Min(at/5, 1)) * (1 << 20) }
		}
		return []judge.OverheadCell{
			traced(booked(runc, 0.1, []ledger.Row{
				role(record.RoleWorkload, k, 0.3*n+told, 0, load, "the container's first process and its children"),
				role(record.RoleKernel, 0, 0, 0.9*n, 0, "the sandboxes' cgroups"),
			}, group(record.ChargePod, k, 1.4*n+told, 2048, load, "/tare-run-k3v9x2/runc/c-0", record.RoleWorkload)),
				grows(1.4*n, told), nil, writes),
			func() judge.OverheadCell {
				c := traced(booked(docker, 0.6, []ledger.Row{
					role(record.RoleWorkload, k, 0.3*n+told, 0, load, "the container's first process and its children"),
					role(record.RoleShim, k, 3.9*n, 0.1*n, 0.2*n, "containerd-shim-runc-v2 with the container's id"),
					role(record.RoleDaemon, 2, 2.2*n, 0.2, 1.6*n, "answers the engine's socket"),
					role(record.RoleKernel, 0, 0, 1.1*n, 0, "the sandboxes' cgroups"),
				}, group(record.ChargePod, k, 2.1*n+told, 2048, load, "/docker/9f2b4c0d7e518a6673b1c2d3e4f5061728394a5b6c7d8e9f", record.RoleWorkload),
					group(record.ChargeShared, 2, 184, 0, 2, "/system.slice/docker.service", record.RoleDaemon, record.RoleShim)),
					grows(2.1*n, told), nil, writes)
				c.Ledger.Groups[1].Paths = []string{"/", "/system.slice/docker.service"}
				c.Ledger.Engine = []ledger.EngineRow{{Source: "docker stats", Reported: mebi(1.1*n + told), Truth: mebi(5.4*n + told), CPU: load / 1000, CPUTruth: (load + 0.2) / 1000}}
				return c
			}(),
			func() judge.OverheadCell {
				c := traced(booked(runsc, 0.8, []ledger.Row{
					role(record.RolePause, k, 0.1*n, 0, 0, "the pod's first process"),
					role(record.RoleShim, k, 9.6*n, 0.2*n, 0.4*n, "containerd-shim-runsc-v1 with the pod's id"),
					role(record.RoleSentry, 2*k, 18.4*n+told, 0.4*n, load+1.9*n, "runsc-sandbox with the pod's id"),
					role(record.RoleGofer, 2*k, 7.7*n, 0.2*n, 0.1*n, "runsc-gofer with the container's id"),
					role(record.RoleDaemon, 1, 0.8*n, 0, 0.9*n, "answers the engine's socket"),
					role(record.RoleKernel, 0, 0, 1.9*n, 0, "the sandboxes' cgroups"),
				}, group(record.ChargePod, k, 31*n+told, 2048, load+2, podOf("crio-1"), record.RoleSentry, record.RoleGofer),
					group(record.ChargeShared, 1, 96, 0, 2, "/system.slice/containerd.service", record.RoleDaemon, record.RoleShim)),
					grows(31*n, told), nil, writes)
				c.Ledger.Engine = []ledger.EngineRow{{Source: "ctr task metrics", Reported: -1, Truth: mebi(38.5*n + told), CPU: -1, CPUTruth: load / 1000}}
				return c
			}(),
			func() judge.OverheadCell {
				c := traced(booked(kata, 2.6, []ledger.Row{
					role(record.RoleShim, k, 24.6*n, 0.4*n, 0.8*n, "containerd-shim-kata-v2 with the pod's id"),
					role(record.RoleVMM, k, 336*n+told, 3.1*n, 4.2*n+load/10, "qemu-system-x86_64 with the pod's id"),
					{Role: record.RoleVCPU, CPU: load / 1000, CPUKnown: true, Rules: []string{"threads named CPU n/KVM"}},
					role(record.RoleVirtiofs, 2*k, 4.4*n, 0.3*n, load/4, "virtiofsd with the pod's id"),
					role(record.RoleDaemon, 1, 0.9*n, 0, 0.9*n, "answers the engine's socket"),
					role(record.RoleKernel, 0, 0, 6.2*n, 0, "the sandboxes' cgroups"),
				}, group(record.ChargePod, k, 3.2*n, 2048, load, podOf("kata-1"), record.RoleVCPU),
					group(record.ChargeOverhead, k, 371*n+told, 0, load/3, "/kata_overhead/6f1b7b1c0a0e4f7e9a5355c8c8a6e1d2", record.RoleVMM, record.RoleVirtiofs, record.RoleShim)),
					steady(3.2*n*(1<<20)), grows(360*n, 11*n+told), writes)
				c.Ledger.Engine = []ledger.EngineRow{
					{Source: "ctr task metrics", Reported: mebi(12 * n), Truth: mebi(375*n + told), CPU: load / 2000, CPUTruth: load * 1.3 / 1000},
					{Source: "crictl stats", Reported: mebi(11.4 * n), Truth: mebi(375*n + told), CPU: load / 2000, CPUTruth: load * 1.3 / 1000},
				}
				return c
			}(),
		}
	}
	w.v.Tables = []judge.OverheadTable{
		{Phase: "idle", Sandboxes: 1, Cells: cells(1, 0, 0)},
		{Phase: "idle", Sandboxes: 5, Cells: cells(5, 0, 0)},
		{Phase: "1G", Sandboxes: 1, Command: "/bin/fio --name=tare --directory=/data --rw=randwrite --bs=512k --numjobs=8 --size=1G --direct=1 --ioengine=psync", Cells: cells(1, 812, 96)},
		{Phase: "hold 64MiB", Sandboxes: 1, Command: "/probe hold 64MiB", Cells: cells(1, 0, 64)},
		{Phase: "spin 0.5cpu", Sandboxes: 1, Command: "/probe spin 0.5cpu", Cells: cells(1, 500, 0)},
	}
	for i := range 4 {
		w.v.Tables[3].Cells[i].Told, w.v.Tables[3].Cells[i].Found = 64<<20, (64+0.04*float64(i))*(1<<20)
		w.v.Tables[4].Cells[i].Told, w.v.Tables[4].Cells[i].Found = 0.5, 0.5-0.0008*float64(i)
	}
	for i, per := range []float64{1.2, 7.7, 40.2, 375.8} {
		slope := func(v, margin float64) judge.Slope {
			return judge.Slope{Value: v, Lo: v - margin, Hi: v + margin, Known: true, Fixed: v / 10}
		}
		s := judge.Scaling{Target: w.v.Targets[i].Name, Counts: []int{1, 5}, Points: 6,
			Memory: slope(per*(1<<20), 0.04*per*(1<<20)), Cache: slope(float64(mebi(6.5)), float64(mebi(0.5))), FitKnown: true}
		s.Fit, s.FitLo, s.FitHi = int(28*1024/per), int(27*1024/per), int(29*1024/per)
		if i > 0 {
			s.DaemonMemory, s.DaemonCPU = slope(float64(mebi(0.9)), float64(mebi(0.2))), slope(0.0009, 0.0001)
		}
		w.v.Scaling = append(w.v.Scaling, s)
	}
	for _, c := range []judge.RuntimeClass{
		{Target: runsc, Handler: "runsc", Memory: 48 << 20, CPU: 10, Rule: []string{"memory: 39.4 MiB a sandbox beside its workload in the worst phase (hold 64MiB), a tenth more, rounded up to 16 MiB", "cpu: 4 m in the worst phase, rounded up to 10 m"}},
		{Target: kata, Handler: "kata", Memory: 416 << 20, CPU: 250, Rule: []string{"memory: 376 MiB a sandbox beside its workload in the worst phase (1G), a tenth more, rounded up to 16 MiB", "cpu: 244 m in the worst phase (1G), rounded up to 10 m"}},
	} {
		c.YAML = fmt.Sprintf("apiVersion: node.k8s.io/v1\nkind: RuntimeClass\nmetadata:\n  name: %s\nhandler: %s\noverhead:\n  podFixed:\n    memory: %dMi\n    cpu: %dm\n", c.Handler, c.Handler, c.Memory>>20, c.CPU)
		w.v.Classes = append(w.v.Classes, c)
	}
	w.v.Plan.Check = &plan.PodFixed{CPU: 250, Memory: 160 << 20}
	w.v.Check = []judge.Check{
		{Target: runsc, Memory: 160 << 20, CPU: 250, Enough: true, Phases: []judge.CheckPhase{
			{Measured: true, Phase: "idle", Sandboxes: 1, Memory: mebi(38.5), CPU: 2.4, MemoryEnough: true, CPUEnough: true}, {Measured: true, Phase: "1G", Sandboxes: 1, Memory: mebi(39.4), CPU: 3.9, MemoryEnough: true, CPUEnough: true}}},
		{Target: kata, Memory: 160 << 20, CPU: 250, Phases: []judge.CheckPhase{
			{Measured: true, Phase: "idle", Sandboxes: 1, Memory: mebi(375), CPU: 5, CPUEnough: true}, {Measured: true, Phase: "1G", Sandboxes: 1, Memory: mebi(376), CPU: 289, MemoryEnough: false}}},
	}
	w.v.Total = 48
	w.v.Findings = []record.Finding{{
		Code: "overhead-unlimited", Level: "warning", Target: kata,
		Message: "374 MiB of each sandbox are charged to /kata_overhead, which has no limit", Advice: "set sandbox_cgroup_only=true, or give the overhead cgroup a limit",
	}}
	return w
}

// books is one phase of two targets, which is as small as a report gets.
func books() *weighed {
	w := four()
	w.v.Targets = w.v.Targets[:2]
	w.v.Tables = w.v.Tables[:1]
	w.v.Tables[0].Cells = w.v.Tables[0].Cells[:2]
	w.v.Scaling, w.v.Classes, w.v.Check, w.v.Findings = nil, nil, nil, nil
	w.v.Plan.Phases, w.v.Plan.Sandboxes, w.v.Plan.Limits, w.v.Total = []string{"idle"}, []int{1}, subject.Limits{}, 6
	return w
}

// broken has a target that failed now and then, one that failed always, one
// that is not there, and one that could not all be read.
func broken() *weighed {
	w := four()
	w.v.Tables = w.v.Tables[1:2]
	cells := w.v.Tables[0].Cells
	failure := &record.Failure{Kind: record.FailError, Detail: "create task: not enough memory\nfor the guest", Command: "containerd: CreateTask", Exit: 1}
	cells[0].Ledger.Complete = false
	cells[0].Ledger.Problems = record.Problems{Denied: 3, Gone: 1, Examples: []string{"/proc/7/smaps_rollup: permission denied"}}
	cells[0].Ledger.Rows[0].CPUKnown = false
	cells[1].Rounds, cells[1].Failed, cells[1].Failure = 2, 1, failure
	cells[2] = judge.OverheadCell{Target: cells[2].Target, Failed: 3, Failure: failure}
	w.v.Tables[0].Cells = cells[:3]
	w.v.Scaling, w.v.Classes, w.v.Check = nil, nil, nil
	w.v.Failed, w.v.Total = 7, 12
	w.rec.End = nil
	return w
}

// dozen are twelve targets of long names with all roles.
func dozen() *weighed {
	var names []string
	for i := range 12 {
		names = append(names, fmt.Sprintf("cri+containerd/runtime-number-%d", i+1))
	}
	w := newWeighed(names...)
	for _, n := range []int{1, 20} {
		t := judge.OverheadTable{Phase: "idle", Sandboxes: n}
		for i, name := range names {
			var rows []ledger.Row
			for j, r := range ledger.Roles[:12] {
				if (i+j)%3 > 0 {
					rows = append(rows, role(r, n, float64(n*(i+1)*(j+1)), 0.5, float64(3*i+j), "a fact"))
				}
			}
			c := booked(name, float64(i)/3-2, rows, group(record.ChargePod, n, float64(30*n), 512, 4, "/kubepods/besteffort/pod6f1b7b1c-0a0e-4f7e-9a53-55c8c8a6e1d2", record.RoleWorkload, record.RoleSentry))
			c.Sum = judge.Interval{N: 10, Median: float64(c.Ledger.Sum), Lo: 0.99 * float64(c.Ledger.Sum), Hi: 1.02 * float64(c.Ledger.Sum), Known: true}
			t.Cells = append(t.Cells, traced(c, func(at float64) float64 { return float64(mebi(30)) + at*1e6 }, nil, func(at float64) float64 { return at / 100 }))
		}
		w.v.Tables = append(w.v.Tables, t)
	}
	w.v.Total = 72
	return w
}

// vile is text of others wherever there can be some.
func vile() *weighed {
	w := four()
	w.rec.Header.Version, w.rec.Header.RunID = hostileVersion, hostileVersion
	w.v.Plan.Title = hostileVersion
	w.v.Plan.Phases = []string{hostileVersion}
	w.v.Tables = w.v.Tables[:1]
	w.v.Tables[0].Phase, w.v.Tables[0].Command = hostileVersion, hostileName
	for i := range w.v.Targets {
		w.v.Targets[i].Version, w.v.Targets[i].Notes = hostileVersion, []string{hostileName}
	}
	w.v.Targets[0].Name = hostileName
	c := &w.v.Tables[0].Cells[0]
	c.Target, c.Failed, c.Failure = hostileName, 1, &record.Failure{Kind: hostileVersion, Detail: hostileVersion}
	for i := range w.v.Tables[0].Cells {
		c := &w.v.Tables[0].Cells[i]
		c.Ledger.Rows[0].Role, c.Ledger.Rows[0].Rules = hostileName, []string{hostileVersion}
		c.Ledger.Groups[0].Charge, c.Ledger.Groups[0].Paths, c.Ledger.Groups[0].Roles = hostileName, []string{"/" + hostileVersion}, []record.Role{hostileName}
		c.Ledger.Engine = append(c.Ledger.Engine, ledger.EngineRow{Source: hostileName})
		c.Ledger.Problems = record.Problems{Gone: 1, Examples: []string{hostileVersion}}
		c.Trace[0].Name, c.Trace[0].Unit = hostileName, hostileVersion
	}
	w.v.Scaling[0].Target, w.v.Classes[0].Target, w.v.Check[0].Target = hostileName, hostileName, hostileName
	w.v.Classes[0].Handler, w.v.Classes[0].Rule = hostileName, []string{hostileVersion}
	w.v.Classes[0].YAML = "a: b\n```\n" + hostileVersion
	w.v.Check[1].Phases[0].Phase = hostileName
	w.v.Findings = []record.Finding{{Code: hostileName, Level: hostileVersion, Target: hostileName, Message: hostileVersion, Advice: hostileVersion, Tried: hostileName}}
	return w
}

func (w *weighed) report(t *testing.T, format Format, o Options) string {
	t.Helper()
	var out bytes.Buffer
	if err := Overhead(&out, format, w.rec, &w.v, o); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestOverheadReportsAreAsTheGoldenFilesHaveThem(t *testing.T) {
	tests := []struct {
		file   string
		of     func() *weighed
		format Format
		o      Options
	}{
		{"overhead.txt", four, Text, Options{Width: 120}},
		{"overhead-80.txt", four, Text, Options{Width: 80}},
		{"overhead-explain.txt", books, Text, Options{Width: 100, Explain: true}},
		{"overhead-verbose.txt", books, Text, Options{Width: 100, Verbose: true}},
		{"overhead-broken.txt", broken, Text, Options{Width: 100, Colour: true, Explain: true}},
		{"overhead-dozen-80.txt", dozen, Text, Options{Width: 80}},
		{"overhead-dozen-120.txt", dozen, Text, Options{Width: 120}},
		{"overhead-vile.txt", vile, Text, Options{Width: 120, Explain: true}},
		{"overhead-empty.txt", func() *weighed { return newWeighed("runc") }, Text, Options{Width: 80}},
		{"overhead.md", four, Markdown, Options{}},
		{"overhead-vile.md", vile, Markdown, Options{Explain: true}},
		{"overhead.csv", books, CSV, Options{}},
		{"overhead.json", books, JSON, Options{}},
	}
	for _, tt := range tests {
		t.Run(tt.file, func(t *testing.T) {
			got := tt.of().report(t, tt.format, tt.o)
			path := filepath.Join("testdata", tt.file)
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("%s differs (go test ./report -update writes it anew); got:\n%s", path, got)
			}
		})
	}
}

func TestTablesOfOverheadStayWithinTheWidth(t *testing.T) {
	for _, width := range []int{80, 100, 120, 200} {
		for name, w := range map[string]*weighed{"four": four(), "books": books(), "dozen": dozen(), "broken": broken()} {
			for line := range strings.Lines(w.report(t, Text, Options{Width: width})) {
				if n := term.Width(strings.TrimSuffix(line, "\n")); n > width {
					t.Errorf("%s at %d: %d columns: %s", name, width, n, line)
				}
			}
		}
	}
}

func TestTheSameOverheadGivesTheSameReport(t *testing.T) {
	for _, format := range formats {
		first := vile().report(t, format, Options{Width: 100, Verbose: true})
		for range 5 {
			if vile().report(t, format, Options{Width: 100, Verbose: true}) != first {
				t.Fatalf("%s differs from one time to the next", format)
			}
		}
	}
}

func TestNoFormatOfOverheadPassesOnWhatATerminalObeys(t *testing.T) {
	for _, format := range formats {
		for _, o := range []Options{{Width: 80}, {Width: 80, Explain: true}, {Verbose: true}} {
			for _, r := range vile().report(t, format, o) {
				if r != '\n' && !unicode.IsGraphic(r) {
					t.Errorf("%s: %U is passed on", format, r)
				}
			}
		}
	}
}

func TestMarkdownOfOverheadShowsTextOfOthersAndDoesNotObeyIt(t *testing.T) {
	out := vile().report(t, Markdown, Options{Verbose: true})
	text, yaml, ok := strings.Cut(out, "````yaml\n")
	if !ok {
		t.Fatalf("no fence that is longer than the one in the YAML:\n%s", out)
	}
	_, after, ok := strings.Cut(yaml, "\n````\n")
	if !ok {
		t.Fatal("the fence is not closed")
	}
	for _, bad := range []string{"<b>", "`x`", "[link]", "\n# heading", "cmd|"} {
		if strings.Contains(text+after, bad) {
			t.Errorf("%q stands in it as it came", bad)
		}
	}
	columns := 0
	for line := range strings.Lines(text + after) {
		if !strings.HasPrefix(line, "|") {
			columns = 0
			continue
		}
		n := strings.Count(line, "|") - strings.Count(line, `\|`)
		if columns != 0 && n != columns {
			t.Errorf("a row of %d bars in a table of %d: %s", n, columns, line)
		}
		columns = n
	}
}

func TestOnlyRolesThatSomeTargetHasAreColumns(t *testing.T) {
	out := four().report(t, Text, Options{})
	_, table, _ := strings.Cut(out, "idle, 1 sandbox: memory by role")
	heading, _, _ := strings.Cut(strings.SplitN(table, "\n", 2)[1], "\n")
	got := strings.Fields(heading)
	want := []string{"target", "workload", "pause", "shim", "vmm", "virtiofs", "sentry", "gofer", "daemon", "kernel", "sum", "residual"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

func TestRolesOfALaterVersionAreShownBehindThoseOfThis(t *testing.T) {
	w := books()
	w.v.Tables[0].Cells[0].Ledger.Rows = append(w.v.Tables[0].Cells[0].Ledger.Rows, role("pager", 1, 12, 0, 7, ""))
	if out := w.report(t, Markdown, Options{}); !strings.Contains(out, "| kernel | pager | sum |") || !strings.Contains(out, "| pager | sum |") {
		t.Errorf("no such column in:\n%s", out)
	}
}

func TestTheRowsOfATargetAddUpToItsSum(t *testing.T) {
	for line := range strings.Lines(four().report(t, Markdown, Options{})) {
		if !strings.HasPrefix(line, "| containerd/kata | · | · | 25.0 |") {
			continue
		}
		cells := strings.Split(line, " | ")
		sum := 0.0
		for _, c := range cells[1:10] {
			if v, err := strconv.ParseFloat(c, 64); err == nil {
				sum += v
			}
		}
		if got := cells[10]; got != mib(sum*(1<<20)) {
			t.Errorf("the roles are %.1f and the sum %s: %s", sum, got, line)
		}
		return
	}
	t.Error("no row of Kata, idle")
}

func TestInShortIsPerSandboxAtTheFewest(t *testing.T) {
	w := four()
	w.v.Tables = w.v.Tables[1:] // 5 sandboxes are the fewest
	out := w.report(t, Markdown, Options{})
	_, table, ok := strings.Cut(out, "### in short\n")
	if !ok {
		t.Fatal("there is none")
	}
	table, _, _ = strings.Cut(table, "\n### ")
	for _, want := range []string{
		"| target | one idle MiB | outside pod | CPU m | one more MiB | engine says | podFixed |",
		"| runc | 1.2 | 0.8 | 0.0 | 1.2 ±0.0 | · | · |",
		"| containerd/runsc | 39.3 | 10.1 | 3.3 | 40.2 ±1.6 | · | 48Mi 10m |",
		"| containerd/kata | 376 | 376 | 5.9 | 376 ±15.0 | 12.0 | 416Mi 250m |",
		"with 5 sandboxes",
	} {
		if !strings.Contains(table, want) {
			t.Errorf("no %q in:\n%s", want, table)
		}
	}
	if !strings.HasPrefix(out[strings.Index(out, "### "):], "### in short") {
		t.Error("something stands before it")
	}
}

func TestInShortSaysWhereAFigureIsTooSmall(t *testing.T) {
	out := broken().report(t, Markdown, Options{})
	_, table, _ := strings.Cut(out, "### in short\n")
	table, _, _ = strings.Cut(table, "\n### ")
	for _, want := range []string{"| ≥ 1.2 |", "| ≥ 0.0 |", "| containerd/runsc | · | · | · | · |", "too small"} {
		if !strings.Contains(table, want) {
			t.Errorf("no %q in:\n%s", want, table)
		}
	}
}

func TestWhatASlopeDoesNotCountIsSaid(t *testing.T) {
	w := four()
	if out := w.report(t, Markdown, Options{}); strings.Contains(out, "charged memory only") || strings.Contains(out, "| counting |") {
		t.Error("said of what counts all")
	}
	w.v.Scaling[1].FitChargedOnly = true
	w.v.Scaling[3].Total = judge.Slope{Value: float64(mebi(380)), Lo: float64(mebi(370)), Hi: float64(mebi(390)), Known: true}
	w.v.Scaling[3].Memory.Warnings, w.v.Scaling[3].Cache.Warnings = []string{"2 of 6 values left out"}, []string{"2 of 6 values left out", "\x1b[2Jfew"}
	out := w.report(t, Markdown, Options{})
	for _, want := range []string{
		"| 3723 3590…3856 | charged memory only |", "| 76 73…79 | · |", "fewer may fit", "| 380 370…390 |", "total: memory and uncharged as one line",
		"containerd/kata, memory, cache: 2 of 6 values left out<", `containerd/kata, cache: \\x1b\[2Jfew<`,
	} {
		if !strings.Contains(out, want) {
			_, part, _ := strings.Cut(out, "### one more")
			t.Errorf("no %q in:\n%.2000s", want, part)
		}
	}
	for line := range strings.Lines(w.report(t, Text, Options{Width: 80})) {
		if n := term.Width(strings.TrimSuffix(line, "\n")); n > 80 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}

func TestACheckSaysWhatWasNotMeasured(t *testing.T) {
	w := four()
	w.v.Check = w.v.Check[:1]
	w.v.Check[0].Enough = false
	w.v.Check[0].Phases[1] = judge.CheckPhase{Phase: "1G", Sandboxes: 1}
	out := w.report(t, Markdown, Options{})
	for _, want := range []string{"for containerd/runsc: not proven, not measured: 1G, 1 sandbox", "| 1G, 1 sandbox | not measured | not measured |"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in:\n%s", want, out)
		}
	}
	w.v.Check[0].Phases[0].MemoryEnough = false
	if out := w.report(t, Markdown, Options{}); !strings.Contains(out, "not enough, first in idle, 1 sandbox") {
		t.Error("what was found wanting does not come before what was not measured")
	}
	if out := w.report(t, CSV, Options{}); strings.Contains(out, "containerd/runsc,1G,1,worst") {
		t.Error("a figure of what was not measured")
	}
}

func TestOfASharedGroupOnlyWhoAndWhereIsShown(t *testing.T) {
	w := four()
	out := w.report(t, Markdown, Options{})
	_, table, _ := strings.Cut(out, "### idle, 1 sandbox: where it is charged")
	table, _, _ = strings.Cut(table, "\n### ")
	for _, want := range []string{
		"| docker/runc | pod | 1 | 0.3 | 2.1 | 2.2 | 2048 | 0.0 | workload |",
		"| docker/runc | shared | 2 | 3.9 | · | · | · | · | shim | /system.slice/docker.service |",
		"| containerd/kata | overhead | 1 | 365 | 371 | 390 | none | 0.0 | vmm virtiofs shim |",
	} {
		if !strings.Contains(table, want) {
			t.Errorf("no line %q in:%s", want, table)
		}
	}
	if strings.Contains(table, "184") || strings.Contains(table, "| / |") || strings.Contains(table, "daemon shim") {
		t.Errorf("figures of all the node are shown:%s", table)
	}
}

func TestFailedPhasesAreCountedAndSaid(t *testing.T) {
	for _, format := range []Format{Text, Markdown} {
		out := broken().report(t, format, Options{})
		for _, want := range []string{"failed 7/12 phases", "no figures: containerd/kata", "docker/runc: 1/3 rounds failed", "containerd/runsc: 3/3 rounds failed", "≥ 6.0"} {
			if !strings.Contains(out, want) {
				t.Errorf("%s: %q is not in:\n%s", format, want, out)
			}
		}
		if out := four().report(t, format, Options{}); !strings.Contains(out, "failed 0/48 phases") {
			t.Errorf("%s: nothing failed, and it does not say so", format)
		}
	}
}

func TestACSVOfOverheadIsOneLongTable(t *testing.T) {
	w := four()
	rows, err := csv.NewReader(strings.NewReader(w.report(t, CSV, Options{}))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(rows[0], overheadColumns) {
		t.Errorf("the columns are %q", rows[0])
	}
	seen := map[string]bool{}
	for _, row := range rows[1:] {
		if _, err := strconv.ParseFloat(row[8], 64); err != nil {
			t.Fatalf("no number: %q", row)
		}
		key := strings.Join(slices.Concat(row[:7], row[9:]), "\x00")
		if seen[key] {
			t.Fatalf("two figures of the same: %q", row)
		}
		seen[key] = true
	}
	for _, want := range [][]string{
		{"containerd/kata", "idle", "1", medianRound, "role", "vmm", "anon", "bytes", strconv.FormatInt(mebi(336), 10), ""},
		{"containerd/kata", "1G", "1", medianRound, "role", "vcpu", "cpu", "cpus", "0.812000", ""},
		{"containerd/kata", "idle", "5", medianRound, "group", "overhead", "usage", "bytes", strconv.FormatInt(mebi(1855), 10), ""},
		{"docker/runc", "idle", "1", medianRound, "engine", "docker stats", "memory", "bytes", strconv.FormatInt(mebi(1.1), 10), ""},
		{"runc", "idle", "1", medianRound, "node", "", "residual", "bytes", strconv.FormatInt(mebi(0.1), 10), ""},
		{"runc", "hold 64MiB", "1", "told", "calibration", "", "per_sandbox", "bytes", "67108864", ""},
		{"runc", "spin 0.5cpu", "1", "found", "calibration", "", "per_sandbox", "cpus", "0.500000", ""},
		{"containerd/kata", "idle", "", "slope", "scaling", "fit", "sandboxes", "1", "76", ""},
		{"containerd/kata", "idle", "1", medianRound, "series", "pod_memory", "value", "bytes", "3355443.200000", "9.700"},
		{"containerd/kata", "", "", "rule", "runtime_class", "kata", "cpu", "cpus", "0.250", ""},
		{"containerd/kata", "1G", "1", "worst", "check", "", "cpu", "cpus", "0.289000", ""},
	} {
		if !slices.ContainsFunc(rows, func(row []string) bool { return slices.Equal(row, want) }) {
			t.Errorf("no row %q", want)
		}
	}
}

func TestTheCSVOfOverheadHoldsNoFormula(t *testing.T) {
	rows, err := csv.NewReader(strings.NewReader(vile().report(t, CSV, Options{}))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows[1:] {
		for i, text := range row {
			if i != 8 && text != "" && strings.ContainsAny(text[:1], "=+-@") {
				t.Fatalf("a formula: %q", row)
			}
		}
	}
}

func TestTheJSONOfOverheadIsTheJudgement(t *testing.T) {
	w := four()
	var d struct {
		Experiment string `json:"experiment"`
		Elapsed    int64  `json:"elapsed"`
		Overhead   struct {
			Tables  []judge.OverheadTable `json:"tables"`
			Scaling []judge.Scaling       `json:"scaling"`
			Classes []judge.RuntimeClass  `json:"runtime_classes"`
			Check   []judge.Check         `json:"check"`
		} `json:"overhead"`
	}
	if err := json.Unmarshal([]byte(w.report(t, JSON, Options{})), &d); err != nil {
		t.Fatal(err)
	}
	if d.Experiment != "overhead" || d.Elapsed != int64(312*time.Second) {
		t.Errorf("head %q, %d", d.Experiment, d.Elapsed)
	}
	for name, pair := range map[string][2]any{
		"tables": {d.Overhead.Tables, w.v.Tables}, "scaling": {d.Overhead.Scaling, w.v.Scaling},
		"classes": {d.Overhead.Classes, w.v.Classes}, "check": {d.Overhead.Check, w.v.Check},
	} {
		got, err := json.Marshal(pair[0])
		if err != nil {
			t.Fatal(err)
		}
		want, err := json.Marshal(pair[1])
		if err != nil {
			t.Fatal(err)
		}
		// A list without elements is one in the report.
		if a, b := strings.ReplaceAll(string(got), "[]", "null"), strings.ReplaceAll(string(want), "[]", "null"); a != b {
			t.Errorf("%s: got\n%s\nwant\n%s", name, a, b)
		}
	}
}

func TestEveryMemberOfTheJSONHasAName(t *testing.T) {
	if out := four().report(t, JSON, Options{}); strings.Contains(out, `"":`) {
		t.Error("one has none")
	}
}

// nans makes a float of the value no number at all, wherever there is one.
func nans(v reflect.Value) {
	switch v.Kind() {
	case reflect.Float64:
		v.SetFloat(math.NaN())
	case reflect.Pointer:
		if !v.IsNil() {
			nans(v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			nans(v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				nans(v.Field(i))
			}
		}
	}
}

func TestWhatIsNoNumberInOverheadIsNeverShownAsOne(t *testing.T) {
	w := four()
	for _, part := range []any{&w.v.Tables, &w.v.Scaling, &w.v.Check} {
		nans(reflect.ValueOf(part).Elem())
	}
	for _, format := range formats {
		out := w.report(t, format, Options{Width: 100, Verbose: true})
		if strings.Contains(out, "NaN") || strings.Contains(out, "Inf") {
			t.Errorf("%s holds what is no number", format)
		}
		if format == JSON && !json.Valid([]byte(out)) {
			t.Error("no JSON")
		}
	}
}

func TestAWriteOfOverheadThatFailsIsNotLost(t *testing.T) {
	w := four()
	for _, format := range formats {
		for _, left := range []int{0, 300, 5000} {
			if err := Overhead(&full{left}, format, w.rec, &w.v, Options{Width: 80}); !errors.Is(err, errFull) {
				t.Errorf("%s after %d bytes: got %v", format, left, err)
			}
		}
	}
	if err := Overhead(&bytes.Buffer{}, "html", w.rec, &w.v, Options{}); err == nil || !strings.Contains(err.Error(), "text, json, md, csv") {
		t.Errorf("an unknown format: %v", err)
	}
}

func TestFiguresOfATableHaveATenthBelowAHundred(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0.0", 0.04: "0.0", -0.04: "0.0", 0.06: "0.1", 1.25: "1.2", 99.94: "99.9", 99.96: "100", 371.4: "371", -12.34: "-12.3", -371: "-371",
		math.NaN(): "?", math.Inf(-1): "?",
	} {
		if got := tenths(v); got != want {
			t.Errorf("%v: got %s, want %s", v, got, want)
		}
	}
}

func TestAPathIsCutInItsMiddle(t *testing.T) {
	for in, want := range map[string]string{"/a": "/a", "/docker/0123456789": "/docker/0123456789", "/docker/0123456789abcdef/x": "/docker/0…bcdef/x"} {
		got := middle(in, 18)
		if len([]rune(got)) > 18 || len(in) <= 18 && got != want || len(in) > 18 && (!strings.HasPrefix(got, "/docker/") || !strings.HasSuffix(got, "def/x")) {
			t.Errorf("%s: got %s", in, got)
		}
	}
}
