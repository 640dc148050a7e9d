package bpf

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/core/finding"
	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/record"
)

// held is a point under a limit, in shares of one core over three seconds; ticks
// and throttled below 0 are not there.
type held struct {
	heavy                        int64
	free                         bool // without the limit
	usage, ticks, bpf, throttled float64
	rate                         float64 // requests per second; 0: 1000 of light programs, 20 of others
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

// What programs take that count against a limit of 1 CPU, and that do not.
var (
	shared = []held{{usage: 0.6, ticks: 0.6, bpf: 0.01}, {heavy: 9, usage: 1, ticks: 1, bpf: 0.9, throttled: 0.9}}
	beside = []held{shared[0], {heavy: 9, usage: 1, ticks: 1, bpf: 1.6, throttled: 0.9, rate: 1600}}
)

func TestTheVerdictOnALimit(t *testing.T) {
	light := shared[0]
	free := held{heavy: 400_000, free: true, usage: 1.9, ticks: 1.9, bpf: 1.8}
	tests := []struct {
		name    string
		limit   float64
		points  []held
		want    QuotaVerdict
		because string
	}{
		{"programs that fill the limit and stay within it are within it", 1,
			[]held{light, {heavy: 400_000, usage: 0.99, ticks: 1.0, bpf: 0.95, throttled: 0.9}, free},
			QuotaShared, "without a limit the same load took 1.9 CPUs, 1.90 times as much"},
		{"what they are charged shows it without a control", 1,
			[]held{light, {heavy: 400_000, usage: 0.99, ticks: 1.0, bpf: 0.95, throttled: 0.9}},
			QuotaShared, "the clients' own work is about 0.012 CPUs"},
		{"and where the machine has no more to give", 1,
			[]held{light, {heavy: 400_000, usage: 0.99, ticks: 0.99, bpf: 0.95, throttled: 0.9}, {heavy: 400_000, free: true, usage: 1.01, ticks: 1.01, bpf: 1}},
			QuotaShared, "used the quota up in 90 % of its periods"},
		{"and where others leave less than the limit in most periods", 1,
			[]held{light, {heavy: 400_000, usage: 0.72, ticks: 0.72, bpf: 0.7, throttled: 0.2}, {heavy: 400_000, free: true, usage: 1.01, ticks: 1.01, bpf: 1}},
			QuotaShared, "used the quota up in 20 % of its periods"},
		{"a lighter step shows it, too", 1,
			[]held{light, {heavy: 65_535, usage: 0.9, ticks: 0.9, bpf: 0.85, throttled: 0.5}, {heavy: 400_000, usage: 0.4, ticks: 0.4, bpf: 0.35}},
			QuotaShared, "with 65535 rounds of the loop the programs ran for 0.85 CPUs"},
		{"a quota that was used up in a period or two shows nothing", 1,
			[]held{light, {heavy: 400_000, usage: 0.72, ticks: 0.72, bpf: 0.7, throttled: 0.05}, {heavy: 400_000, free: true, usage: 1.01, ticks: 1.01, bpf: 1}},
			QuotaUndecided, "not clearly above the limit"},
		{"a charge that can be the clients' own work shows nothing, whatever a control took", 1,
			[]held{light, {heavy: 400_000, usage: 1, ticks: 1, bpf: 0.95, throttled: 0.9, rate: 1500}, free},
			QuotaUndecided, "of the 1 CPU that the cgroup was charged, 0.9 CPUs can be the clients' own work"},
		{"without a lighter step a control has to be above the limit", 1,
			[]held{{heavy: 400_000, usage: 0.7, ticks: 0.7, bpf: 0.65, throttled: 0.3}, {heavy: 400_000, free: true, usage: 1.01, ticks: 1.01, bpf: 1}},
			QuotaUndecided, "without a limit the same load took 1.01 CPUs, 1.44 times as much, on a node that was nobody knows how busy: not clearly above the limit of 1 CPU. More connections"},
		{"and where it is, that decides", 1,
			[]held{{heavy: 400_000, usage: 0.99, ticks: 1, bpf: 0.95, throttled: 0.9}, free},
			QuotaShared, "clearly above the limit"},
		{"without both nothing is decided", 1,
			[]held{{heavy: 400_000, usage: 0.99, ticks: 1, bpf: 0.95, throttled: 0.9}},
			QuotaUndecided, "was not measured"},
		{"and with a small limit", 0.2,
			[]held{light, {heavy: 400_000, usage: 0.2, ticks: -1, bpf: 0.19, throttled: 1}, free},
			QuotaShared, "0.2 CPUs"},
		{"one period at the edges of the window is no breach", 1,
			[]held{light, {heavy: 400_000, usage: 1.12, ticks: 1.12, bpf: 1.1, throttled: 0.9}, free},
			QuotaShared, "3.3 %"},
		{"cpuacct that books programs' time to others does not hide what they took", 1,
			[]held{light, {heavy: 400_000, usage: 0.53, ticks: 0.98, bpf: 0.99, throttled: 0.9}, free},
			QuotaShared, "charged 0.53 CPUs by its own account, 0.98 CPUs by the tick"},
		{"programs that run beyond the limit are not limited", 1,
			[]held{light, {heavy: 400_000, usage: 1.0, ticks: 1.0, bpf: 1.9, throttled: 0.9, rate: 900}, free},
			QuotaBeside, "the programs alone ran for 1.9 CPUs in the clients' own calls, 190 % of the limit of 1 CPU"},
		{"run time beyond the limit does not show it where the charge is theirs", 1,
			[]held{light, {heavy: 400_000, usage: 1.0, ticks: 1.0, bpf: 1.9, throttled: 0.9}, free},
			QuotaUndecided, "the clock goes on while a program waits"},
		{"at a lighter step, too", 1,
			[]held{light, {heavy: 100, usage: 0.5, ticks: 0.5, bpf: 1.5, rate: 900}, {heavy: 400_000, usage: 1, ticks: 1, bpf: 0.9, throttled: 1}, free},
			QuotaBeside, "with 100 rounds of the loop"},
		{"a cgroup full of programs beyond the limit is not limited", 1,
			[]held{light, {heavy: 400_000, usage: 1.9, ticks: 1.9, bpf: 1.1, throttled: 0.5}, free},
			QuotaBeside, "the cgroup took 1.9 CPUs, most of it in programs"},
		{"nor are they called so where the clients' own work is not known", 1,
			[]held{{heavy: 400_000, usage: 1.9, ticks: 1.9, bpf: 1.1, throttled: 0.5}, free},
			QuotaUndecided, "the limit itself was not kept"},
		{"nor where their clock alone speaks of it", 1,
			[]held{{heavy: 100, usage: 1, ticks: 1, bpf: 1.9, throttled: 0.9, rate: 900}, {heavy: 400_000, usage: 1, ticks: 1, bpf: 0.9, throttled: 1}, free},
			QuotaUndecided, "the clients' own work is not known, so nothing shows that this is beyond the limit: a step with lighter programs"},
		{"a limit that is not kept at all says nothing of programs", 1,
			[]held{{heavy: 400_000, usage: 1.9, ticks: 1.9, bpf: 0.3}, free},
			QuotaUndecided, "the limit itself was not kept"},
		{"light programs fit in the limit either way", 1,
			[]held{light, {heavy: 400_000, usage: 1, ticks: 1, bpf: 0.13, throttled: 0.9}, free},
			QuotaUndecided, "only 13 % of the limit, with which they fit in it either way: heavier programs (--heavy)"},
		{"a quota that never held anybody back was not reached", 1,
			[]held{light, {heavy: 400_000, usage: 0.8, ticks: 0.8, bpf: 0.7}, free},
			QuotaUndecided, "the limit was not reached"},
		{"between within and beyond nothing is said", 1,
			[]held{light, {heavy: 400_000, usage: 1.18, ticks: 1.18, bpf: 1.18, throttled: 0.9}, free},
			QuotaUndecided, "too much to be within"},
		{"a load that takes no more without the limit shows nothing", 1,
			[]held{{heavy: 400_000, usage: 0.99, ticks: 0.99, bpf: 0.95, throttled: 0.9}, {heavy: 400_000, free: true, usage: 1.1, ticks: 1.1, bpf: 1}},
			QuotaUndecided, "or a lower --cpus, such as 0.5"},
		{"a control of other programs' weight is none", 1,
			[]held{{heavy: 400_000, usage: 0.99, ticks: 0.99, bpf: 0.95, throttled: 0.9}, {heavy: 0, free: true, usage: 1.9, ticks: 1.9, bpf: 0.1}},
			QuotaUndecided, "was not measured"},
		{"no points are no verdict", 1, nil, QuotaUndecided, "no point under the limit gave figures"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			q := quotaOf(tt.limit, tt.points, tt.points, tt.points).judge(t).Quota
			if q.Verdict != tt.want {
				t.Fatalf("%q, want %q; because %q", q.Verdict, tt.want, q.Because)
			}
			if !strings.Contains(strings.Join(q.Because, "\n"), tt.because) {
				t.Errorf("because %q", q.Because)
			}
			if tt.points != nil && (q.Rounds != 3 || q.Agree != 3) {
				t.Errorf("%d of %d rounds agree", q.Agree, q.Rounds)
			}
		})
	}
}

func TestTheClientsOwnWorkIsThatOfTheRoundInWhichARequestTookMost(t *testing.T) {
	heavy := held{heavy: 400_000, usage: 0.99, ticks: 1, bpf: 0.95, throttled: 0.9}
	q := quotaOf(1, []held{{usage: 0.6, ticks: 0.6, bpf: 0.01}, heavy}, []held{{usage: 0.5, ticks: 0.5, bpf: 0.01, rate: 500}, heavy}).judge(t).Quota
	if because := strings.Join(q.Because, "\n"); !strings.Contains(because, "about 0.02 CPUs, by the most that a request takes") {
		t.Errorf("because %s", because)
	}
}

func TestStepsAreUnderTheLimitAndTheLightestFirst(t *testing.T) {
	q := quotaOf(1, []held{{heavy: 400_000, usage: 1, ticks: 1.02, bpf: 0.9, throttled: 0.9}, {heavy: 400_000, free: true, usage: 1.9, ticks: 1.9, bpf: 1.8},
		{heavy: 0, usage: 0.6, ticks: -1, bpf: 0.1}}).judge(t).Quota
	if len(q.Steps) != 2 || q.Steps[0].Heavy != 0 || q.Steps[1].Heavy != 400_000 {
		t.Fatalf("%+v", q.Steps)
	}
	near(t, "usage", q.Steps[1].Usage, 1)
	near(t, "ticks", q.Steps[1].Ticks, 1.02)
	near(t, "programs", q.Steps[1].BPF, 0.9)
	near(t, "workload", q.Steps[1].Workload, 0.1)
	near(t, "throttled", q.Steps[1].Throttled, 0.9)
	near(t, "QPS", q.Steps[1].QPS, 20)
	if q.Steps[0].Ticks.Known() {
		t.Error("ticks are known that were not read")
	}
}

func TestRoundsThatLeadElsewhereAreCounted(t *testing.T) {
	b := quotaOf(1, shared, beside, shared).judge(t)
	if q := b.Quota; q.Verdict != QuotaShared || q.Rounds != 3 || q.Agree != 2 {
		t.Errorf("%s, %d of %d agree", q.Verdict, q.Agree, q.Rounds)
	}
	if m := messageOf(t, b, "rounds-disagree"); !strings.HasPrefix(m, "only 2 of 3 rounds") {
		t.Error(m)
	}
}

func TestAnAccountThatCannotBeIsAFindingOfItsOwn(t *testing.T) {
	tests := []struct {
		name string
		h    held
		says string // "": nothing
	}{
		{"less than the programs' run time", held{heavy: 9, usage: 0.53, ticks: -1, bpf: 0.99, throttled: 1}, "with 9 rounds of the loop the programs ran for 0.99 CPUs, and the cgroup was charged 0.53 CPUs"},
		{"another time by the tick", held{heavy: 9, usage: 0.7, ticks: 1, bpf: 0.6, throttled: 1}, "charged 0.7 CPUs, and by the tick 1 CPU"},
		{"within a tenth", held{heavy: 9, usage: 0.95, ticks: 1, bpf: 0.99, throttled: 1}, ""},
		{"no ticks", held{heavy: 9, usage: 1, ticks: -1, bpf: 0.9, throttled: 1}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := quotaOf(1, []held{tt.h}).judge(t)
			switch has := slices.Contains(codes(b), foundDiffer); {
			case tt.says == "" && has:
				t.Error("a finding: " + messageOf(t, b, foundDiffer))
			case tt.says != "" && !strings.Contains(messageOf(t, b, foundDiffer), tt.says):
				t.Error(messageOf(t, b, foundDiffer))
			}
			if tt.h.usage < tt.h.bpf && b.Quota.Steps[0].Workload.Known() {
				t.Error("a workload of less than nothing")
			}
		})
	}
}

func TestWhatWeakensAVerdictIsSaid(t *testing.T) {
	w := quotaOf(1, []held{{heavy: 0, usage: 1, ticks: 1, bpf: 0.9, throttled: 1}})
	w.plan.Datapath, w.plan.Kmesh, w.plan.Heavy = "", true, []int64{0}
	w.rec.Programs[0].Kind = "sched_cls"
	b := w.judge(t)
	messageOf(t, b, foundOthersRuns)
	for _, f := range b.Found {
		if f.Code == foundOthersRuns && f.Level != finding.Warning {
			t.Errorf("it is a %s", f.Level)
		}
	}
	messageOf(t, b, foundSoftirq)
}

func TestAVerdictNeedsTheProgramsRunTime(t *testing.T) {
	w := quotaOf(1, []held{{heavy: 9, usage: 1, ticks: 1, bpf: 0.9, throttled: 1}})
	w.rec.Points[0].Runs = nil
	if q := w.judge(t).Quota; q.Verdict != QuotaUndecided || !strings.Contains(q.Because[0], "not known") {
		t.Errorf("%s, %q", q.Verdict, q.Because)
	}
}

func TestQuotasOfFailuresOnlyAreNotDecided(t *testing.T) {
	w := quotaOf(1, []held{{heavy: 9}}, []held{{heavy: 9}})
	for i := range w.rec.Points {
		w.rec.Points[i].Failure = &record.Failure{Kind: record.FailError, Detail: fmt.Sprintf("cgroup: read-only, round %d", i)}
	}
	b := w.judge(t)
	if b.Quota.Verdict != QuotaUndecided || b.Failed != 2 || b.Quota.Rounds != 0 || len(b.Rows) != 1 {
		t.Errorf("%+v, %d failed", b.Quota, b.Failed)
	}
}

func TestTimeThatIsNotChargedAtAllIsNotMisbooked(t *testing.T) {
	b := quotaOf(1, []held{{usage: 0.6, ticks: 0.6}, {heavy: 9, usage: 1, ticks: 1, bpf: 2, throttled: 1, rate: 900}}).judge(t)
	if b.Quota.Verdict != QuotaBeside || slices.Contains(codes(b), foundDiffer) {
		t.Errorf("%s, %v", b.Quota.Verdict, codes(b))
	}
}

func TestOnABusyNodeRunTimeBeyondTheChargeShowsNothing(t *testing.T) {
	tests := []struct {
		name string
		busy float64
		h    held
		want QuotaVerdict
	}{
		{"the clock goes on while others have the CPU", 0.99, held{heavy: 9, usage: 1, ticks: 1, bpf: 1.4, throttled: 1}, QuotaUndecided},
		{"a little beyond, too", 0.99, held{heavy: 9, usage: 1, ticks: 1, bpf: 1.17, throttled: 1}, QuotaUndecided},
		{"what they are charged decides where the clock went on for less than half of it", 0.99, held{heavy: 400_000, usage: 1, ticks: 1, bpf: 1.4, throttled: 1}, QuotaShared},
		{"and not where it went on for more", 0.99, held{heavy: 400_000, usage: 1, ticks: 1, bpf: 1.7, throttled: 1}, QuotaUndecided},
		{"on a quiet node they ran", 0.3, held{heavy: 9, usage: 1, ticks: 1, bpf: 1.4, throttled: 1}, QuotaBeside},
		{"what is charged, too, was run", 0.99, held{heavy: 9, usage: 1.4, ticks: 1.4, bpf: 1.4, throttled: 1}, QuotaBeside},
		{"within the limit nothing speaks against it", 0.99, held{heavy: 9, usage: 1, ticks: 1, bpf: 1.05, throttled: 1}, QuotaShared},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			points := []held{tt.h, {heavy: 9, free: true, usage: 1.9, ticks: 1.9, bpf: 1.8}}
			light := held{usage: 0.6, ticks: 0.6, bpf: 0.01}
			switch {
			case tt.h.heavy == 400_000:
				points = []held{tt.h, light}
			case tt.want == QuotaBeside:
				points[0].rate = 900
				points = append(points, light)
			}
			w := quotaOf(1, points)
			w.rec.Points[0].NodeCPU = int64(tt.busy * float64(8*3*second))
			q := w.judge(t).Quota
			if q.Verdict != tt.want {
				t.Errorf("%s, because %q", q.Verdict, q.Because)
			}
			if busy := strings.Contains(q.Because[0], "99 % busy"); busy != (tt.want == QuotaUndecided) {
				t.Errorf("because %q", q.Because)
			}
		})
	}
}

func TestRunTimeOfChosenProgramsIsNotThatOfTheClients(t *testing.T) {
	for name, h := range map[string]held{
		"programs that ran for the server only":       {usage: 0.085, ticks: 0.08, bpf: 0.896, rate: 1000},
		"clients that fill their limit by themselves": {usage: 0.2, ticks: 0.2, bpf: 0.15, throttled: 0.9},
		"a cgroup beyond its limit":                   {usage: 0.9, ticks: 0.9, bpf: 0.8, throttled: 0.9},
		"a limit that nobody keeps":                   {usage: 0.9, ticks: 0.9, bpf: 0.8},
	} {
		w := quotaOf(0.2, []held{h, {free: true, usage: 1.9, ticks: 1.9, bpf: 1.8}})
		w.plan.Datapath, w.plan.Names, w.plan.Heavy = "", []string{"cgroup_*"}, []int64{0}
		b := w.judge(t)
		if q := b.Quota; q.Verdict != QuotaUndecided || !strings.Contains(q.Because[0], "programs ran for others, too") {
			t.Errorf("%s: %s, because %q", name, q.Verdict, q.Because)
		}
		if b.Quota.Steps[0].Workload.Known() || slices.Contains(codes(b), foundDiffer) {
			t.Errorf("%s: the clients' part is told: %+v, %v", name, b.Quota.Steps[0].Workload, codes(b))
		}
	}
}

func TestTimeOfChosenProgramsIsTheClientsWhereTheyRanOnceForEachConnectOfTheirs(t *testing.T) {
	within := held{usage: 0.2, ticks: 0.2, bpf: 0.15, throttled: 0.9, rate: 1000}
	for name, c := range map[string]struct {
		h      held
		change func(p *record.Point)
		kind   string
		want   QuotaVerdict
		says   string
	}{
		"once each":               {within, nil, kindSockAddr, QuotaShared, "clearly above the limit"},
		"once less":               {within, func(p *record.Point) { p.Runs[0].Count = max(0, p.Runs[0].Count-1) }, kindSockAddr, QuotaUndecided, "ran for others, too"},
		"and while it was idle":   {within, func(p *record.Point) { p.Runs[0].Count += int64(map[string]int{record.PhaseIdle: 1}[p.Phase]) }, kindSockAddr, QuotaUndecided, "ran for others, too"},
		"of another kind":         {within, nil, kindSockOps, QuotaUndecided, "ran for others, too"},
		"longer than their limit": {held{usage: 0.2, ticks: 0.2, bpf: 0.9, throttled: 0.9, rate: 1000}, nil, kindSockAddr, QuotaUndecided, "the clients' own work is not known"},
		"for too little of it":    {held{usage: 0.2, ticks: 0.2, bpf: 0.05, throttled: 0.9, rate: 1000}, nil, kindSockAddr, QuotaUndecided, "the reference datapath, whose programs can be made heavier"},
		"for less than the limit": {held{usage: 0.15, ticks: 0.15, bpf: 0.12, rate: 1000}, nil, kindSockAddr, QuotaUndecided, "the limit was not reached"},
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
			if b.Quota.Verdict != c.want || !strings.Contains(because, c.says) {
				t.Errorf("%s, because %s", b.Quota.Verdict, because)
			}
			if text := w.report(t, "md", page.Options{}); strings.Contains(because, "loop") || strings.Contains(text, "loop rounds") {
				t.Errorf("a loop that chosen programs do not have:\n%s", text)
			}
			if slices.Contains(codes(b), foundOthersRuns) != strings.Contains(c.says, "others") {
				t.Errorf("%v", codes(b))
			}
		})
	}
}

func TestRunsInSoftirqMayBeOnTheAccountOfOthers(t *testing.T) {
	// Of five runs of a sock_ops for a connection one may be elsewhere.
	of := func(sockops float64) *Quota {
		w := quotaOf(0.2, []held{{usage: 0.6 / 5, ticks: 0.6 / 5}, {heavy: 9, usage: 0.2, ticks: 0.2, throttled: 0.9, rate: 900}})
		w.rec.Programs = append(w.rec.Programs, record.Program{ID: 12, Kind: "sock_ops", Name: "sockops"})
		p := &w.rec.Points[1]
		p.Runs = []record.ProgramRun{{ID: 11, Name: "connect4", Count: 100}, {ID: 12, Name: "sockops", Count: 500, Time: int64(sockops * float64(3*second))}}
		return w.judge(t).Quota
	}
	if q := of(0.3); q.Verdict == QuotaBeside { // 0.24 in the clients' calls: less than 0.2 × (1 + 0.2 + 1/30)
		t.Errorf("%s, because %q", q.Verdict, q.Because)
	}
	if q := of(0.4); q.Verdict != QuotaBeside || !strings.Contains(q.Because[0], "0.32 CPUs in the clients' own calls") {
		t.Errorf("%s, because %q", q.Verdict, q.Because)
	}
}

func TestEBPFIsNoPartOfALowerUsage(t *testing.T) {
	t.Parallel()
	for claim, c := range map[string]struct {
		usage, bpf float64
		title      string
		notes      int
	}{
		"below it, it is":                         {0.5, 0.4, "of it eBPF core %", 1},
		"above it, it is not, and it is said why": {0.5, 0.6, "eBPF by its clock core %", 2},
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
