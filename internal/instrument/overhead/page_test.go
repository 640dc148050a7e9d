package overhead

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/finding"
	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

func text(t *testing.T, j *Judgement, format string) string {
	t.Helper()
	var out bytes.Buffer
	must.OK(t, page.Write(&out, format, []*page.Page{j.Page(page.Options{})}, page.Options{Verbose: true}))
	return out.String()
}

// section returns the Markdown below the heading with a given prefix.
func section(t *testing.T, j *Judgement, heading string) string {
	t.Helper()
	_, part, ok := strings.Cut(text(t, j, "md"), "### "+heading)
	must.That(t, ok, "no heading %s", heading)
	part, _, _ = strings.Cut(part, "\n### ")
	return part
}

// many returns a record of Kata, gVisor and runc with engine-reported usage, at two
// counts and under known loads.
func many(change func(*oversight)) *record.Record {
	return oversee(func(o *oversight) {
		seed(false)(o)
		o.names, o.kinds = append(o.names, "containerd/runsc"), append(o.kinds, "containerd")
		o.plan.Phases, o.plan.Sandboxes = []string{"idle", "1G", "hold 64MiB", "spin 0.5cpu"}, []int{2, 4}
		box0 := o.box
		o.box = func(name, phase string, n, round int) box {
			b := box0(name, map[string]string{"1G": "1G"}[phase], n, round)
			switch {
			case name == "containerd/runsc":
				b = box{sentry: true, memory: 30 * mi, shim: 10 * mi, kernel: mi, limit: 1 << 30}
			case phase != "1G":
				b = box0(name, "idle", n, round)
			}
			if b.cpu = 0; phase == "spin 0.5cpu" {
				b.cpu = 0.5
			}
			if phase == "hold 64MiB" {
				b.memory += 64 * mi
			}
			return b
		}
		o.reading = func(r *record.Reading) {
			r.Host.HavePSI, r.Host.PSICPU = true, r.Time/100
			if r.Moment == record.MomentEnd {
				r.Work = map[string]*record.Work{"1G": {Command: "fio --size=1G"}, "hold 64MiB": {Hold: 64 * mi}, "spin 0.5cpu": {Spin: 0.5, Spun: 0.5}}[r.Phase]
			}
			for lane := range r.Sandboxes {
				r.Engine = append(r.Engine, record.Statistic{Lane: lane, Source: "ctr task metrics", Memory: 12 * mi, CPU: int64(lane), Time: r.Time})
			}
		}
		if change != nil {
			change(o)
		}
	})
}

// broken returns a record of three targets: one is partly unreadable, one fails sometimes
// and one always fails.
func broken() *record.Record {
	return many(func(o *oversight) {
		reading := o.reading
		o.reading = func(r *record.Reading) {
			reading(r)
			switch {
			case r.Moment != record.MomentEnd:
			case r.Target == "containerd/runc" && r.Round > 0, r.Target == "containerd/runsc":
				r.Failure = &record.Failure{Kind: record.FailError, Detail: "create task: not enough memory\nfor the guest", Command: "containerd: CreateTask", Exit: 1}
			case r.Target == "containerd/kata":
				r.Problems = record.Problems{Denied: 3, Gone: 1, Examples: []string{"/proc/7/smaps_rollup: permission denied"}}
			}
		}
	})
}

func TestUnusedRolesHaveNoColumn(t *testing.T) {
	t.Parallel()
	check.Contains(t, "page", section(t, weighed(t, many(nil)), "idle, 2 sandboxes: memory by role"), "| target | workload | shim | vmm | sentry | kernel | sum | residual |")
}

func TestRolesOfLaterVersionsAreLast(t *testing.T) {
	t.Parallel()
	j := weighed(t, oversee(func(o *oversight) {
		o.reading = func(r *record.Reading) {
			if r.Sandboxes > 0 {
				r.Processes = append(r.Processes, record.Process{Pid: 7, Start: 7, Name: "pager", Role: "pager", Rule: "made up", Lane: 0, Read: true, PSSAnon: mi})
			}
		}
	}))
	check.Contains(t, "page", text(t, j, "md"), "| kernel | pager | sum |", "| pager | sum |")
}

func TestRowsAddUpToTheTotal(t *testing.T) {
	t.Parallel()
	for line := range strings.Lines(section(t, weighed(t, many(nil)), "1G, 2 sandboxes: memory by role")) {
		cells := strings.Split(line, " | ")
		if cells[0] != "| containerd/kata" {
			continue
		}
		sum := 0.0
		for _, c := range cells[1 : len(cells)-2] {
			if v, err := strconv.ParseFloat(c, 64); err == nil {
				sum += v
			}
		}
		got := cells[len(cells)-2]
		check.That(t, strings.HasPrefix(got, page.MiB(sum*(1<<20))), "the roles are %.1f and the sum %s: %s", sum, got, line)
		return
	}
	t.Error("no row of Kata")
}

func TestSummaryIsPerSandboxAtTheSmallestCount(t *testing.T) {
	t.Parallel()
	j := weighed(t, many(nil))
	check.Contains(t, "page", section(t, j, "in short\n"),
		"| target | one idle MiB | outside pod | CPU m | MiB per extra | engine-reported | podFixed |",
		"| containerd/kata | 111 | 111 | 30.0 | 111 ±0.0 | 12.0 |",
		"| containerd/runc | 5.7 | 5.0 | 0.0 | 5.7 ±0.0 | 12.0 | 8Mi 0m |",
		"with 2 sandboxes")
	out := text(t, j, "md")
	check.That(t, strings.HasPrefix(out[strings.Index(out, "### "):], "### in short"), "unexpected text before the table")
	check.Contains(t, "page", section(t, weighed(t, broken()), "in short\n"), "| containerd/kata | ≥ 111 | ≥ 111 |", "| failed |", "| containerd/runsc |  |  |  |  |  |  | create task: not enough memory", "too small")
}

func TestAbandonedTargetHasReasonAndCountsAsFailed(t *testing.T) {
	t.Parallel()
	rec := oversee(nil)
	before := weighed(t, rec)
	rec.Targets = append(rec.Targets, record.Target{Name: "bad", Kind: "oci"})
	rec.Findings = append(rec.Findings, record.Finding{Code: finding.GivenUp, Level: "error", Target: "bad", Message: "given up in round 1: a sandbox did not start: exit status 1; tried: /bad run"})
	j := weighed(t, rec)
	check.That(t, j.Failed == before.Failed+len(before.Tables) && j.Total == before.Total+len(before.Tables), "%d of %d failed, before %d of %d", j.Failed, j.Total, before.Failed, before.Total)
	check.Contains(t, "answer", strings.Join(j.answer(), " "), "bad: failed: given up in round 1: a sandbox did not start: exit status 1.")
	check.Contains(t, "page", section(t, j, "in short\n"), "| given up in round 1: a sandbox did not start: exit status 1 |")
}

func TestSwappedMemoryIsInTheDefaultTable(t *testing.T) {
	t.Parallel()
	j := weighed(t, oversee(func(o *oversight) {
		o.reading = func(r *record.Reading) {
			for i := range r.Processes {
				r.Processes[i].Swap = 3 * mi
			}
		}
	}))
	check.Contains(t, "page", section(t, j, "idle, 1 sandbox: memory by role"), "| sum | swapped | residual |", "| 8.0 | 6.0 |", "swapped: memory of the sandboxes")
	c := j.Classes[0]
	check.That(t, c.Memory == 12*mi, "%d MiB are recommended", c.Memory/mi) // 5 MiB of the shim, 1 MiB of the kernel, 3 MiB swapped, plus a tenth
}

func TestSlopeExclusionsAreReported(t *testing.T) {
	t.Parallel()
	j := weighed(t, many(nil))
	out := section(t, j, "cost of one more sandbox")
	check.That(t, !strings.Contains(out, "not shown") && !strings.Contains(out, "| bound by |"), "note on a target limited by memory")
	j.Scaling[1].Fit.Reasons = []string{boundByTasks}
	j.Scaling[2].Fit = figure.Figure{Reasons: []string{"not shown: it may be nothing"}}
	s := &j.Scaling[0]
	s.slope("memory").Reasons, s.slope("cache").Reasons = []string{"2 of 6 values left out"}, []string{"2 of 6 values left out", "\x1b[2Jfew"}
	check.Contains(t, "page", section(t, j, "cost of one more sandbox"), "| processes |", "containerd/runsc, additional sandboxes: not shown: it may be nothing", "total: one line through memory plus uncharged",
		"containerd/kata, memory, cache: 2 of 6 values left out<", `containerd/kata, cache: \\x1b\[2Jfew<`)
}

func TestCheckReportsUnmeasuredPhases(t *testing.T) {
	t.Parallel()
	j := weighed(t, oversee(func(o *oversight) {
		o.plan.Check, o.plan.Phases = &PodFixed{CPU: 250, Memory: 160 * mi}, []string{"idle", "1G"}
		o.reading = func(r *record.Reading) {
			if r.Phase == "1G" && r.Moment == record.MomentEnd {
				r.Failure = &record.Failure{Kind: record.FailExit, Detail: "exit status 1"}
			}
		}
	}))
	check.Contains(t, "page", text(t, j, "md"), "for containerd/runc: not shown, first in 1G, 1 sandbox", "| idle, 1 sandbox | 6.0 ✓ | 0.0 ✓ | 3 |", "| 1G, 1 sandbox | not measured | not measured | 0 |")
	f := figure.Find(j.Figures(), "needed", "target", "containerd/runc", "phase", "1G")
	check.That(t, !f.Known() && f.Verdict == "not measured", "unmeasured figure: %+v", f)
	j.Check[0].Answer, j.Check[0].Phases[0].MemoryAnswer = NotEnough, NotEnough
	check.Contains(t, "page", text(t, j, "md"), "not enough, first in idle, 1 sandbox")
}

func TestSharedGroupShowsOnlyNameAndPath(t *testing.T) {
	t.Parallel()
	table := section(t, weighed(t, many(nil)), "idle, 2 sandboxes: charged cgroups")
	check.Contains(t, "page", table,
		"| containerd/runc | pod | 2 | 1.4 | 1.4 | · | none | 0.0 | workload | /pod/0 |",
		"| containerd/runc | shared | 1 | 10.0 | · | · | · | · | shim | /system/containerd |",
		"| containerd/kata | overhead | 2 | 217 | 221 | · | none | 60.0 | shim vmm | /kata\\_overhead/0 |")
}

func TestFailedPhasesAreCountedAndReported(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"text", "md"} {
		check.Contains(t, "page", text(t, weighed(t, broken()), format), "failed 25/45 phases", "containerd/runc: 2/3 rounds failed", "containerd/runsc: 3/3 rounds failed", "≥ 221")
		check.Contains(t, "page", text(t, weighed(t, many(nil)), format), "failed 0/45 phases")
	}
	j := weighed(t, oversee(func(o *oversight) {
		o.change = func(rec *record.Record) {
			rec.Targets = append(rec.Targets, record.Target{Type: record.TypeTarget, Name: "containerd/kata", Kind: "containerd"})
		}
	}))
	check.Contains(t, "page", text(t, j, "text"), "no figures: containerd/kata")
}

func TestFiguresMatchTheLedger(t *testing.T) {
	t.Parallel()
	rec := many(func(o *oversight) {
		reading := o.reading
		o.reading = func(r *record.Reading) {
			reading(r)
			r.Problems.Gone = 1
			grouped(r)
			if r.Phase == "1G" && r.Moment == record.MomentEnd && r.Target == "containerd/runc" {
				r.Failure = &record.Failure{Kind: record.FailExit, Detail: "exit status 1"}
			}
		}
	})
	j := weighed(t, rec)
	all := j.Figures()
	units := map[string]string{
		"memory": "bytes", "residual": "bytes", "cpu": "cpus",
		"role-memory": "bytes", "role-memory-of-kind": "bytes", "role-processes": "count", "role-cpu": "cpus",
		"groups": "count", "group-usage": "bytes", "group-usage-of-kind": "bytes", "group-peak": "bytes", "group-highest": "bytes", "group-limit": "bytes", "group-cpu": "cpus", "group-throttled": "ns",
		"charged-memory": "bytes", "charged-groups": "count", "charged-processes": "count", "reconciled-memory": "bytes",
		"engine-memory": "bytes", "engine-cpu": "cpus",
		"node-change": "bytes", "residual-of-kind": "bytes", "page-cache": "bytes", "node-available": "bytes", "node-busy": "cpus", "node-steal": "cpus",
		"node-io": "bytes/s", "node-load": "load", "node-pressure": "ratio", "not-read": "count",
		"load": "bytes cpus", "over-time": "cpus bytes bytes/s load",
		"per-sandbox": "bytes cpus count", "fixed": "bytes cpus count", "more-fit": "count", "pod-fixed": "bytes cpus", "checked": "bytes cpus", "needed": "bytes cpus",
		"node-iowait": "cpus", "cgroups": "count", "cgroup-tasks": "count", "cgroup-cpu": "cpus", "cgroup-memory": "bytes", "cgroup-io": "bytes/s",
		"memory-ratio": "ratio", "charged-ratio": "ratio", "cpu-ratio": "ratio", "request": "cpus bytes", "request-share": "ratio",
		"left": "count", "left-on-node": "count bytes", "restarts": "count", "ended": "count", "oom-kills": "count", "around-usage": "bytes", "around-usage-of-kind": "bytes",
	}
	seen := map[string]bool{}
	for _, f := range all {
		seen[f.Quantity] = true
		check.That(t, f.Experiment == Name && f.Labels.Get("target") != "" && slices.Contains(strings.Fields(units[f.Quantity]), string(f.Unit)),
			"%+v", f)
	}
	for quantity := range units {
		check.That(t, seen[quantity], "there is no %s", quantity)
	}
	mib := float64(mi)
	for _, tt := range []struct {
		quantity string
		labels   []string
		want     float64
	}{
		{"role-memory-of-kind", []string{"target", "containerd/kata", "phase", "idle", "sandboxes", "2", "role", "shim", "kind", "anon"}, 36 * mib},
		{"role-cpu", []string{"target", "containerd/kata", "phase", "spin 0.5cpu", "role", "vcpu"}, 1},
		{"engine-memory", []string{"target", "containerd/runc", "phase", "idle", "sandboxes", "2", "source", "ctr task metrics", "of", "reported"}, 24 * mib},
		{"node-change", []string{"target", "containerd/runc", "phase", "idle", "of", "residual"}, 0},
		{"load", []string{"target", "containerd/runc", "phase", "hold 64MiB", "of", "expected"}, 64 * mib},
		{"load", []string{"target", "containerd/runc", "phase", "spin 0.5cpu", "of", "measured"}, 0.5},
		{"pod-fixed", []string{"target", "containerd/runc", "resource", "memory"}, 8 * mib},
		{"checked", []string{"target", "containerd/runc", "resource", "cpu"}, 0.25},
	} {
		f := figure.Find(all, tt.quantity, tt.labels...)
		check.Equal(t, fmt.Sprintf("%s %v", tt.quantity, tt.labels), f.Value, tt.want)
		check.That(t, !strings.HasPrefix(tt.quantity, "role-") || len(f.Rounds) == 3 && f.Rounds[2] == figure.Round{Round: 2, Value: tt.want},
			"%s %v in every round: %v", tt.quantity, tt.labels, f.Rounds)
	}
	sum := figure.Find(all, "memory")
	check.That(t, len(sum.Rounds) == 3 && sum.Total == 3 && sum.Better == figure.Less, "%+v", sum)
	f := figure.Find(all, "memory", "target", "containerd/runc", "phase", "1G")
	check.That(t, !f.Known() && f.Failed == 3 && f.Total == 3, "phase that always failed: %+v", f)
}
