package overhead

import (
	"fmt"
	"math"
	"slices"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/instrument/overhead/ledger"
	"github.com/tare-bench/tare/internal/subject/setting"
	"github.com/tare-bench/tare/record"
)

// newJudgement is one made by hand, with figures that are easy to check.
func newJudgement(targets ...string) *Judgement {
	w := &Judgement{Record: &record.Record{Header: record.Header{Experiment: Name}, End: &record.End{Status: "done"}}, Plan: Defaults()}
	w.Plan.Sandboxes, w.Plan.Targets = []int{1, 5}, targets
	for _, name := range targets {
		w.Targets = append(w.Targets, record.Target{Type: record.TypeTarget, Name: name})
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
func booked(target string, residual float64, rows []ledger.Row, groups ...ledger.GroupRow) Cell {
	c := Cell{Target: target, Rounds: 3}
	labels := figure.Of("target", target)
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
	c.Sum = newFigure("memory", figure.Bytes, labels, figure.Estimate{N: 3, Value: float64(l.Sum)})
	c.Residual = newFigure("residual", figure.Bytes, labels, figure.Estimate{N: 3, Value: float64(l.Residual)})
	c.CPU = newFigure("cpu", figure.CPUs, labels, figure.Estimate{N: 3, Value: cpu})
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
func traced(c Cell, memory, overhead, cpus func(at float64) float64) Cell {
	series := func(name string, unit figure.Unit, of func(float64) float64) {
		if of == nil {
			return
		}
		s := &figure.Series{Missed: 2}
		for i := range 98 {
			at := float64(i) / 10
			s.Times, s.Values = append(s.Times, at), append(s.Values, of(at))
		}
		c.Series = append(c.Series, figure.Figure{Experiment: Name, Quantity: "over-time", Unit: unit, Labels: figure.Of("target", c.Target, "series", name), Series: s})
	}
	series(record.SeriesPodMemory, "bytes", memory)
	series(record.SeriesOverheadMemory, "bytes", overhead)
	series(record.SeriesPodCPU, "cpus", cpus)
	return c
}

func steady(v float64) func(float64) float64 { return func(float64) float64 { return v } }

// four are runc, Docker, gVisor and Kata, idle at two counts and under load.
func four() *Judgement {
	const runc, docker, runsc, kata = "runc", "docker/runc", "containerd/runsc", "containerd/kata"
	w := newJudgement(runc, docker, runsc, kata)
	w.Plan.Phases = []string{"idle", "1G", "hold 64MiB", "spin 0.5cpu"}
	w.Plan.Limits = setting.Limits{CPU: 1, Memory: 2 << 30}
	podOf := func(id string) string {
		return "/kubepods/besteffort/pod6f1b7b1c-0a0e-4f7e-9a53-55c8c8a6e1d2/" + id
	}
	cells := func(n, load, told float64) []Cell {
		k := int(n)
		writes := func(at float64) float64 { return load / 1000 * (0.6 + 0.4*math.Sin(at)) }
		grows := func(from, by float64) func(float64) float64 {
			return func(at float64) float64 { return (from + by*math.Min(at/5, 1)) * (1 << 20) }
		}
		return []Cell{
			traced(booked(runc, 0.1, []ledger.Row{
				role(record.RoleWorkload, k, 0.3*n+told, 0, load, "the container's first process and its children"),
				role(record.RoleKernel, 0, 0, 0.9*n, 0, "the sandboxes' cgroups"),
			}, group(record.ChargePod, k, 1.4*n+told, 2048, load, "/tare-run-k3v9x2/runc/c-0", record.RoleWorkload)),
				grows(1.4*n, told), nil, writes),
			func() Cell {
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
			func() Cell {
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
			func() Cell {
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
	w.Tables = []Table{
		{Phase: "idle", Sandboxes: 1, Cells: cells(1, 0, 0)},
		{Phase: "idle", Sandboxes: 5, Cells: cells(5, 0, 0)},
		{Phase: "1G", Sandboxes: 1, Command: "/bin/fio --name=tare --directory=/data --rw=randwrite --bs=512k --numjobs=8 --size=1G --direct=1 --ioengine=psync", Cells: cells(1, 812, 96)},
		{Phase: "hold 64MiB", Sandboxes: 1, Command: "/probe hold 64MiB", Cells: cells(1, 0, 64)},
		{Phase: "spin 0.5cpu", Sandboxes: 1, Command: "/probe spin 0.5cpu", Cells: cells(1, 500, 0)},
	}
	for i := range 4 {
		w.Tables[3].Cells[i].Expected, w.Tables[3].Cells[i].Measured = 64<<20, (64+0.04*float64(i))*(1<<20)
		w.Tables[4].Cells[i].Expected, w.Tables[4].Cells[i].Measured = 0.5, 0.5-0.0008*float64(i)
	}
	for i, per := range []float64{1.2, 7.7, 40.2, 375.8} {
		s := Scaling{Target: w.Targets[i].Name, Counts: []int{1, 5}, Slopes: make([]Slope, len(perSandbox))}
		slope := func(of int, v, margin float64) {
			s.Slopes[of] = Slope{Fixed: v / 10}
			s.Slopes[of].Figure = newFigure("per-sandbox", perSandbox[of].unit, figure.Of("target", s.Target, "of", perSandbox[of].of), figure.Estimate{N: 6, Value: v, Lo: v - margin, Hi: v + margin, Bounded: true})
		}
		for of := range perSandbox {
			slope(of, 0, 0)
			s.Slopes[of].Estimate = figure.Estimate{}
		}
		slope(ofMemory, per*(1<<20), 0.04*per*(1<<20))
		slope(ofCache, float64(mebi(6.5)), float64(mebi(0.5)))
		if i > 0 {
			slope(ofDaemon, float64(mebi(0.9)), float64(mebi(0.2)))
			slope(ofDaemonCPU, 0.0009, 0.0001)
		}
		s.Fit = newFigure("more-fit", figure.Count, figure.Of("target", s.Target), figure.Estimate{N: 6, Value: math.Trunc(28 * 1024 / per), Lo: math.Trunc(27 * 1024 / per), Hi: math.Trunc(29 * 1024 / per), Bounded: true})
		w.Scaling = append(w.Scaling, s)
	}
	for _, c := range []RuntimeClass{
		{Target: runsc, Handler: "runsc", Memory: 48 << 20, CPU: 10, Rule: []string{"memory: 39.4 MiB a sandbox beside its workload in the worst phase (hold 64MiB), a tenth more, rounded up to 16 MiB", "cpu: 4 m in the worst phase, rounded up to 10 m"}},
		{Target: kata, Handler: "kata", Memory: 416 << 20, CPU: 250, Rule: []string{"memory: 376 MiB a sandbox beside its workload in the worst phase (1G), a tenth more, rounded up to 16 MiB", "cpu: 244 m in the worst phase (1G), rounded up to 10 m"}},
	} {
		c.YAML = fmt.Sprintf("apiVersion: node.k8s.io/v1\nkind: RuntimeClass\nmetadata:\n  name: %s\nhandler: %s\noverhead:\n  podFixed:\n    memory: %dMi\n    cpu: %dm\n", c.Handler, c.Handler, c.Memory>>20, c.CPU)
		w.Classes = append(w.Classes, c)
	}
	w.Plan.Check = &PodFixed{CPU: 250, Memory: 160 << 20}
	w.Check = []Check{
		{Target: runsc, Memory: 160 << 20, CPU: 250, Enough: true, Phases: []CheckPhase{
			{Measured: true, Phase: "idle", Sandboxes: 1, Memory: mebi(38.5), CPU: 2.4, MemoryEnough: true, CPUEnough: true}, {Measured: true, Phase: "1G", Sandboxes: 1, Memory: mebi(39.4), CPU: 3.9, MemoryEnough: true, CPUEnough: true}}},
		{Target: kata, Memory: 160 << 20, CPU: 250, Phases: []CheckPhase{
			{Measured: true, Phase: "idle", Sandboxes: 1, Memory: mebi(375), CPU: 5, CPUEnough: true}, {Measured: true, Phase: "1G", Sandboxes: 1, Memory: mebi(376), CPU: 289, MemoryEnough: false}}},
	}
	w.Total = 48
	w.Findings = []record.Finding{{
		Code: "overhead-unlimited", Level: "warning", Target: kata,
		Message: "374 MiB of each sandbox are charged to /kata_overhead, which has no limit", Advice: "set sandbox_cgroup_only=true, or give the overhead cgroup a limit",
	}}
	return w
}

// broken has a target that failed now and then, one that failed always, one
// that is not there, and one that could not all be read.
func broken() *Judgement {
	w := four()
	w.Tables = w.Tables[1:2]
	cells := w.Tables[0].Cells
	failure := &record.Failure{Kind: record.FailError, Detail: "create task: not enough memory\nfor the guest", Command: "containerd: CreateTask", Exit: 1}
	cells[0].Ledger.Complete = false
	cells[0].Ledger.Problems = record.Problems{Denied: 3, Gone: 1, Examples: []string{"/proc/7/smaps_rollup: permission denied"}}
	cells[0].Ledger.Rows[0].CPUKnown = false
	cells[1].Rounds, cells[1].Failed, cells[1].Failure = 2, 1, failure
	cells[2] = Cell{Target: cells[2].Target, Failed: 3, Failure: failure}
	w.Tables[0].Cells = cells[:3]
	w.Scaling, w.Classes, w.Check = nil, nil, nil
	w.Failed, w.Total = 7, 12
	w.Record.End = nil
	return w
}
