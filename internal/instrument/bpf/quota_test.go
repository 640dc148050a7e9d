package bpf

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/core/finding"
	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/golden"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

// held is a point under a CPU limit. Times are shares of one core over three seconds. A
// negative value of ticks or throttled is missing.
type held struct {
	heavy                        int64
	free                         bool // no limit
	usage, ticks, bpf, throttled float64
	rate                         float64 // requests per second; 0 means 1000 for light programs and 20 for others
}

func quotaOf(limit float64, rounds ...[]held) *weighing {
	p := DefaultsOfQuota()
	p.CPUs = limit
	w := newWeighing(p)
	w.rec.Programs = w.rec.Programs[:1] // no softirq
	for round, all := range rounds {
		for _, h := range all {
			asked := record.Asked{Connections: 64, Heavy: h.heavy, CPUs: limit, Statistics: true}
			if h.free {
				asked.CPUs = 0
			}
			load := w.phase(round, asked, record.PhaseLoad)
			load.Ended = load.Begun + 3*second
			ns := func(share float64) int64 { return int64(share * float64(3*second)) }
			if h.rate == 0 && h.heavy == 0 {
				h.rate = 1000
			} else if h.rate == 0 {
				h.rate = 20
			}
			load.Sent = &record.Sent{Requests: int64(3 * h.rate), QPS: h.rate, P50: 1, P90: 1, P99: 1, P999: 1, Max: 1, Mean: 1}
			load.ClientCPU = ns(h.usage)
			load.Runs = []record.ProgramRun{{ID: 11, Name: "connect4", Count: 3000, Time: ns(h.bpf)}}
			load.Group = &record.GroupCPU{Version: 1, Limit: asked.CPUs, Usage: ns(h.usage), Ticks: -1, Periods: 30}
			if h.ticks >= 0 {
				load.Group.Ticks = ns(h.ticks)
			}
			if h.throttled > 0 {
				load.Group.Throttled = int64(30 * h.throttled)
			}
		}
	}
	return w
}

// The programs of the points in shared are charged to the limit of 1 CPU. Those in `beside`
// are not.
var (
	shared = []held{{usage: 0.6, ticks: 0.6, bpf: 0.01}, {heavy: 9, usage: 1, ticks: 1, bpf: 0.9, throttled: 0.9}}
	beside = []held{shared[0], {heavy: 9, usage: 1, ticks: 1, bpf: 1.6, throttled: 0.9, rate: 1600}}
)

// pointOf parses a point such as "free, heavy 9, usage 1.9, ticks 1.9, bpf 1.8, throttled
// 0.5, rate 20".
func pointOf(t *testing.T, text string) held {
	t.Helper()
	h := held{ticks: -1}
	for field := range strings.SplitSeq(text, ", ") {
		name, value, _ := strings.Cut(field, " ")
		n, err := strconv.ParseFloat(value, 64)
		must.That(t, err == nil || name == "free", "invalid point %q", field)
		switch name {
		case "free":
			h.free = true
		case "heavy":
			h.heavy = int64(n)
		case "usage":
			h.usage = n
		case "ticks":
			h.ticks = n
		case "bpf":
			h.bpf = n
		case "throttled":
			h.throttled = n
		case "rate":
			h.rate = n
		}
	}
	return h
}

// Before its points, a case may have options: the limit (default 1), the node's usage at
// the first point, and "chosen" for programs other than those of the reference datapath.
func TestQuotaVerdict(t *testing.T) {
	golden.Cases(t, "testdata/quota.txt", func(t *testing.T, text string) string {
		limit, busy, chosen := 1.0, 0.0, false
		var points []held
		for line := range strings.Lines(text) {
			line = strings.TrimSpace(line)
			if _, err := fmt.Sscanf(line, "limit %g", &limit); err == nil {
				continue
			}
			if _, err := fmt.Sscanf(line, "busy %g", &busy); err == nil {
				continue
			}
			if line == "chosen" {
				chosen = true
			} else {
				points = append(points, pointOf(t, line))
			}
		}
		w := quotaOf(limit, points, points, points)
		for i := range w.rec.Points {
			if i%len(points) == 0 && busy > 0 {
				w.rec.Points[i].NodeCPU = int64(busy * float64(8*3*second))
			}
		}
		if chosen {
			w.plan.Datapath, w.plan.Names, w.plan.Heavy = "", []string{"cgroup_*"}, []int64{0}
		}
		b := w.judge(t)
		lines := []string{fmt.Sprintf("%s, %d of %d rounds agree", b.Quota.Verdict, b.Quota.Agree, b.Quota.Rounds)}
		for _, why := range b.Quota.Because {
			lines = append(lines, "because "+why)
		}
		for _, s := range b.Quota.Steps {
			if !s.Workload.Known() {
				lines = append(lines, fmt.Sprintf("the workload's time with %d rounds of the loop is not known", s.Heavy))
			}
		}
		if slices.Contains(codes(b), foundDiffer) {
			lines = append(lines, "found: "+messageOf(t, b, foundDiffer))
		}
		return strings.Join(lines, "\n")
	})
}

func TestClientWorkUsesTheSlowestRound(t *testing.T) {
	heavy := held{heavy: 400_000, usage: 0.99, ticks: 1, bpf: 0.95, throttled: 0.9}
	q := quotaOf(1, []held{{usage: 0.6, ticks: 0.6, bpf: 0.01}, heavy}, []held{{usage: 0.5, ticks: 0.5, bpf: 0.01, rate: 500}, heavy}).judge(t).Quota
	check.Contains(t, "because", strings.Join(q.Because, "\n"), "about 0.02 CPUs, by the most that a request takes")
}

func TestStepsAreLimitedAndSortedByLoad(t *testing.T) {
	q := quotaOf(1, []held{{heavy: 400_000, usage: 1, ticks: 1.02, bpf: 0.9, throttled: 0.9}, {heavy: 400_000, free: true, usage: 1.9, ticks: 1.9, bpf: 1.8},
		{heavy: 0, usage: 0.6, ticks: -1, bpf: 0.1}}).judge(t).Quota
	must.That(t, len(q.Steps) == 2 && q.Steps[0].Heavy == 0 && q.Steps[1].Heavy == 400_000, "%+v", q.Steps)
	near(t, "usage", q.Steps[1].Usage, 1)
	near(t, "ticks", q.Steps[1].Ticks, 1.02)
	near(t, "programs", q.Steps[1].BPF, 0.9)
	near(t, "workload", q.Steps[1].Workload, 0.1)
	near(t, "throttled", q.Steps[1].Throttled, 0.9)
	near(t, "QPS", q.Steps[1].QPS, 20)
	check.That(t, !q.Steps[0].Ticks.Known(), "ticks that were not read are known")
}

func TestDisagreeingRoundsAreCounted(t *testing.T) {
	b := quotaOf(1, shared, beside, shared).judge(t)
	q := b.Quota
	check.That(t, q.Verdict == QuotaShared && q.Rounds == 3 && q.Agree == 2, "%s, %d of %d agree", q.Verdict, q.Agree, q.Rounds)
	m := messageOf(t, b, "rounds-disagree")
	check.That(t, strings.HasPrefix(m, "only 2 of 3 rounds"), "%v", m)
}

func TestVerdictCaveatsAreReported(t *testing.T) {
	w := quotaOf(1, []held{{heavy: 0, usage: 1, ticks: 1, bpf: 0.9, throttled: 1}})
	w.plan.Datapath, w.plan.Kmesh, w.plan.Heavy = "", true, []int64{0}
	w.rec.Programs[0].Kind = "sched_cls"
	b := w.judge(t)
	messageOf(t, b, foundOthersRuns)
	for _, f := range b.Found {
		check.That(t, f.Code != foundOthersRuns || f.Level == finding.Warning, "level %s", f.Level)
	}
	messageOf(t, b, foundSoftirq)
}

func TestVerdictNeedsProgramRunTime(t *testing.T) {
	w := quotaOf(1, []held{{heavy: 9, usage: 1, ticks: 1, bpf: 0.9, throttled: 1}})
	w.rec.Points[0].Runs = nil
	q := w.judge(t).Quota
	check.That(t, q.Verdict == QuotaUndecided && strings.Contains(q.Because[0], "CPU time is unknown"), "%s, %q", q.Verdict, q.Because)
}

func TestQuotaWithOnlyFailuresIsUndecided(t *testing.T) {
	w := quotaOf(1, []held{{heavy: 9}}, []held{{heavy: 9}})
	for i := range w.rec.Points {
		w.rec.Points[i].Failure = &record.Failure{Kind: record.FailError, Detail: fmt.Sprintf("cgroup: read-only, round %d", i)}
	}
	b := w.judge(t)
	check.That(t, b.Quota.Verdict == QuotaUndecided && b.Failed == 2 && b.Quota.Rounds == 0 && len(b.Rows) == 1,
		"%+v, %d failed", b.Quota, b.Failed)
}

func TestUnchargedTimeIsNotMisattributed(t *testing.T) {
	b := quotaOf(1, []held{{usage: 0.6, ticks: 0.6}, {heavy: 9, usage: 1, ticks: 1, bpf: 2, throttled: 1, rate: 900}}).judge(t)
	check.That(t, b.Quota.Verdict == QuotaBeside && !slices.Contains(codes(b), foundDiffer), "%s, %v", b.Quota.Verdict, codes(b))
}

func TestProgramsRunOncePerConnectAreChargedToClients(t *testing.T) {
	within := held{usage: 0.2, ticks: 0.2, bpf: 0.15, throttled: 0.9, rate: 1000}
	for name, c := range map[string]struct {
		h      held
		change func(p *record.Point)
		kind   string
		want   QuotaVerdict
		says   string
	}{
		"one run per connection":    {within, nil, kindSockAddr, QuotaShared, "clearly above the limit"},
		"one run missing":           {within, func(p *record.Point) { p.Runs[0].Count = max(0, p.Runs[0].Count-1) }, kindSockAddr, QuotaUndecided, "also ran for other processes"},
		"additional run while idle": {within, func(p *record.Point) { p.Runs[0].Count += int64(map[string]int{record.PhaseIdle: 1}[p.Phase]) }, kindSockAddr, QuotaUndecided, "also ran for other processes"},
		"one run per connection, other program below the noise": {within, func(p *record.Point) {
			p.Runs = append(p.Runs, record.ProgramRun{ID: 12, Name: "others", Count: 7, Time: p.Runs[0].Time / 1000})
		}, kindSockAddr, QuotaShared, "clearly above the limit"},
		"one run per connection, other program above the noise": {within, func(p *record.Point) {
			p.Runs = append(p.Runs, record.ProgramRun{ID: 12, Name: "others", Count: 7, Time: p.Runs[0].Time / 10})
		}, kindSockAddr, QuotaUndecided, "also ran for other processes"},
		"other program type":       {within, nil, kindSockOps, QuotaUndecided, "also ran for other processes"},
		"run time above the limit": {held{usage: 0.2, ticks: 0.2, bpf: 0.9, throttled: 0.9, rate: 1000}, nil, kindSockAddr, QuotaUndecided, "the clients' own work is unknown"},
		"run time too short":       {held{usage: 0.2, ticks: 0.2, bpf: 0.05, throttled: 0.9, rate: 1000}, nil, kindSockAddr, QuotaUndecided, "the reference datapath, whose programs can be made heavier"},
		"limit not reached":        {held{usage: 0.15, ticks: 0.15, bpf: 0.12, rate: 1000}, nil, kindSockAddr, QuotaUndecided, "the limit was not reached"},
	} {
		t.Run(name, func(t *testing.T) {
			w := quotaOf(0.2, []held{c.h, {free: true, usage: 1.9, ticks: 1.9, bpf: 1.8, rate: 1000}})
			w.plan.Datapath, w.plan.Cgroups, w.plan.Heavy = "", []string{"/a"}, []int64{0}
			w.rec.Programs[0].Kind = c.kind
			for _, asked := range []record.Asked{w.rec.Points[0].Asked, w.rec.Points[1].Asked} {
				w.phase(0, asked, record.PhaseIdle).Runs = []record.ProgramRun{{ID: 11, Name: "connect4"}}
			}
			for i := range w.rec.Points {
				if c.change != nil {
					c.change(&w.rec.Points[i])
				}
			}
			b := w.judge(t)
			because := strings.Join(b.Quota.Because, "\n")
			check.That(t, b.Quota.Verdict == c.want && strings.Contains(because, c.says), "%s, because %s", b.Quota.Verdict, because)
			text := w.report(t, "md", page.Options{})
			check.That(t, !strings.Contains(because, "loop") && !strings.Contains(text, "loop rounds"), "a loop of the reference datapath is mentioned:\n%s", text)
			check.Equal(t, "finding on other runs", slices.Contains(codes(b), foundOthersRuns), strings.Contains(c.says, "other processes"))
		})
	}
}

func TestSoftirqRunsMayBeChargedToOthers(t *testing.T) {
	// One of five runs of sock_ops per connection may be charged elsewhere.
	of := func(sockops float64) *Quota {
		w := quotaOf(0.2, []held{{usage: 0.6 / 5, ticks: 0.6 / 5}, {heavy: 9, usage: 0.2, ticks: 0.2, throttled: 0.9, rate: 900}})
		w.rec.Programs = append(w.rec.Programs, record.Program{ID: 12, Kind: "sock_ops", Name: "sockops"})
		p := &w.rec.Points[1]
		p.Runs = []record.ProgramRun{{ID: 11, Name: "connect4", Count: 100}, {ID: 12, Name: "sockops", Count: 500, Time: int64(sockops * float64(3*second))}}
		return w.judge(t).Quota
	}
	q := of(0.3)
	check.That(t, q.Verdict != QuotaBeside, "%s, because %q", q.Verdict, q.Because) // 0.24 in the clients' calls is less than 0.2 × (1 + 0.2 + 1/30)
	q = of(0.4)
	check.That(t, q.Verdict == QuotaBeside && strings.Contains(q.Because[0], "0.32 CPUs in the clients' own calls"), "%s, because %q", q.Verdict, q.Because)
}

func TestEBPFTimeExceedingUsageIsExcluded(t *testing.T) {
	t.Parallel()
	for claim, c := range map[string]struct {
		usage, bpf float64
		title      string
		notes      int
	}{
		"eBPF time below the usage is part of it":           {0.5, 0.4, "of it eBPF core %", 1},
		"eBPF time above the usage is separate with a note": {0.5, 0.6, "eBPF by its clock core %", 2},
	} {
		step := QuotaStep{facts: []quotaFacts{{usage: c.usage, bpf: c.bpf}}}
		step.figures(0.5)
		v := &Judgement{CPUs: 2, Quota: &Quota{Limit: 0.5, Steps: []QuotaStep{step}}}
		s := quotaTable(v)
		there := slices.ContainsFunc(s.Table.Columns, func(column page.Column) bool { return column.Title == c.title })
		if !there || len(s.Notes) != c.notes {
			t.Errorf("%s: %+v, %q", claim, s.Table.Columns, s.Notes)
		}
	}
}
