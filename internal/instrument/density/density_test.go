package density

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/finding"
	"github.com/tare-bench/tare/internal/core/option"
	"github.com/tare-bench/tare/internal/core/stat"
	"github.com/tare-bench/tare/internal/instrument/overhead/ledger"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/record"
)

func TestIndistinguishableStepsAreRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		until      string
		step, most int
		wrong      string // "" for accepted options
	}{
		"steps of three":                      {"latency=2x", 3, 200, "step: 3 sandboxes a step are too few"},
		"steps of four":                       {"latency=2x", 4, 200, ""},
		"doubling steps":                      {"latency=2x", 0, 200, ""},
		"second step truncated to three":      {"latency=2x", 0, 7, "most: 7 sandboxes hold no second step"},
		"second step of four":                 {"latency=2x", 0, 8, ""},
		"no second step":                      {"latency=2x", 50, 50, "most: 50 sandboxes hold no second step"},
		"steps of three without a comparison": {"memory", 3, 200, ""},
		"maximum without a comparison":        {"memory", 0, 3, ""},
	} {
		o := Defaults()
		o.Targets, o.Until, o.Step, o.Most = []string{"runc"}, c.until, c.step, c.most
		err := option.Check(&o)
		check.That(t, (err == nil) == (c.wrong == "") && (err == nil || strings.Contains(err.Error(), c.wrong)), "%s: %v", name, err)
	}
	three := []float64{1, 2, 3}
	e := Slower(stat.Samples{Old: three, New: []float64{10, 20, 30}})
	check.That(t, e.Known() && !e.Bounded, "three and three starts have an interval: %+v", e)
	e = Slower(stat.Samples{Old: append(three, 4), New: []float64{10, 20, 30, 40}})
	check.That(t, e.Bounded, "four and four starts have no interval: %+v", e)
}

func TestUndecidedStepIsReported(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		times figure.Estimate
		says  string
	}{
		"without an interval":       {figure.Estimate{N: 6, Value: 3}, "3.00 times, of too few starts for an interval"},
		"interval across the bound": {figure.Estimate{N: 8, Value: 2, Bounded: true, Lo: 1.5, Hi: 3}, "2.00 times, 1.5…3.0"},
		"interval below the bound":  {figure.Estimate{N: 8, Value: 1.5, Bounded: true, Lo: 1.2, Hi: 1.9}, ""},
		"no starts":                 {figure.Estimate{}, ""},
	} {
		j, l := Judgement{Until: Until{Latency: 2}}, finding.List{}
		j.findLatency(&l, &Target{Steps: []Step{{Sandboxes: 4}, {Sandboxes: 8, All: figure.Set{Quantities.New("start-latency-times", c.times, nil)}}}})
		if c.says == "" && len(l) > 0 || c.says != "" && (len(l) != 1 || l[0].Code != codeNotDecided || !strings.HasSuffix(l[0].Message, c.says)) {
			t.Errorf("%s: %+v", name, l)
		}
	}
}

func TestUnreclaimedRoundsAreCounted(t *testing.T) {
	t.Parallel()
	end := func(round int, back time.Duration) record.Density {
		return record.Density{Round: round, Target: "runc", Why: record.EndAsked, Removed: int64(time.Second), Back: int64(back)}
	}
	j := Judgement{Record: &record.Record{Density: []record.Density{end(0, 2*time.Second), end(1, -1), end(2, -1)}}}
	target := Target{Info: record.Target{Name: "runc"}}
	j.ends(&target)
	removal, memory := target.All.Of("recovery", "of", "removal"), target.All.Of("recovery", "of", "memory")
	check.That(t, removal.Failed == 0 && removal.Total == 3 && memory.Failed == 2 && memory.Total == 3 && len(memory.Rounds) == 1,
		"removal %+v, memory %+v", removal, memory)
	c := recovered(memory)
	check.That(t, c.Head == "2.00 s" && c.Tail == "(2 not back)" && recovered(removal).Tail == "", "%+v", c)
}

func TestUpperBoundStartIsMarked(t *testing.T) {
	t.Parallel()
	polled := func(unready int64) record.Sample {
		return record.Sample{Start: 1e9, Returned: 2e9, Ready: 3e9, Polls: 2, Unready: unready}
	}
	known, first := polled(3e9-4e6), polled(0)
	for name, c := range map[string]struct {
		samples    []record.Sample
		cell, says string
	}{
		"all polled before ready":      {[]record.Sample{known, known, known}, "2.00 s", "start: until the workload was ready, known to 4.00 ms at worst; median"},
		"most ready at the first poll": {[]record.Sample{first, known, first}, "≤ 2.00 s", "start: until the workload was ready, known to 4.00 ms at worst, at most (≤) in 2 of 3: ready when first asked; median"},
		"some ready at the first poll": {[]record.Sample{first, known, known}, "2.00 s", "known to 4.00 ms at worst, at most (≤) in 1 of 3: ready when first asked; median"},
		"no polls":                     {[]record.Sample{{Start: 1e9, Returned: 3e9}}, "2.00 s", "start: median"},
		"one failed start":             {[]record.Sample{known, {Start: 1e9, Polls: 9, Failure: &record.Failure{Kind: record.FailTimeout}}}, "1/2 failed, 2.00 s", "known to 4.00 ms at worst; median"},
	} {
		info := record.Target{Name: "runc", Operations: map[string]record.Operation{"run": {Done: record.StampReturned}}}
		j := Judgement{Record: &record.Record{Batches: []record.Batch{{Target: "runc", Phase: record.PhaseMeasure, Lanes: len(c.samples), Samples: c.samples}}}}
		target := Target{Info: info}
		j.steps(&target, nil)
		s := j.bySteps(&target)
		cell := s.Table.Rows[0][1]
		check.That(t, cell.Head == c.cell && strings.Contains(s.Notes[0], c.says), "%s: %q, %q", name, cell.Head, s.Notes[0])
	}
}

// batch returns the step of a round that ends at the given number of sandboxes. each has
// the duration of each start in ms. A negative duration is a failed start.
func batch(round, to int, each ...int64) record.Batch {
	b := record.Batch{Round: round, Target: "runc", Phase: record.PhaseMeasure, Lanes: to}
	for _, ms := range each {
		s := record.Sample{Start: 1e9, Returned: 1e9 + ms*1e6}
		if ms < 0 {
			s = record.Sample{Start: 1e9, Failure: &record.Failure{Kind: record.FailExit, Exit: 1}}
		}
		b.Samples = append(b.Samples, s)
	}
	return b
}

func of(n int, ms int64) []int64 { return slices.Repeat([]int64{ms}, n) }

// judged returns the steps of the given batches.
func judged(readings []record.Reading, batches ...record.Batch) *Target {
	j := Judgement{Until: Until{Failure: true}, Record: &record.Record{Batches: batches}}
	t := &Target{Info: record.Target{Name: "runc", Operations: map[string]record.Operation{"run": {Done: record.StampReturned}}}}
	j.steps(t, ledger.Visits(readings, nil))
	return t
}

func TestStartIsComparedWithinItsRound(t *testing.T) {
	t.Parallel()
	type rounds = []record.Batch
	for name, c := range map[string]struct {
		batches rounds
		times   []float64 // of every step except the first
	}{
		"slowest round gets furthest": {rounds{
			batch(0, 4, of(4, 20)...), batch(0, 8, of(4, 20)...),
			batch(1, 4, of(4, 20)...), batch(1, 8, of(4, 20)...),
			batch(2, 4, of(4, 50)...), batch(2, 8, of(4, 50)...), batch(2, 16, of(8, 50)...),
		}, []float64{1, 1}},
		"rounds end with different numbers of starts": {rounds{
			batch(0, 4, of(4, 20)...), batch(0, 64, append(of(4, 20), -1)...),
			batch(1, 4, of(4, 20)...), batch(1, 64, append(of(4, 20), -1)...),
			batch(2, 4, of(4, 50)...), batch(2, 64, append(of(50, 50), -1)...),
		}, []float64{1}},
		"all rounds slow down by 50 %": {rounds{
			batch(0, 4, of(4, 20)...), batch(0, 8, of(4, 30)...),
			batch(1, 4, of(4, 60)...), batch(1, 8, of(4, 90)...),
		}, []float64{1.5}},
	} {
		target := judged(nil, c.batches...)
		for i, want := range c.times {
			e := target.Steps[i+1].All.Of("start-latency-times").Estimate
			check.That(t, e.Bounded && math.Abs(e.Value-want) <= 1e-9 && math.Abs(e.Lo-want) <= 1e-9 && math.Abs(e.Hi-want) <= 1e-9,
				"%s: %+v, want %g", name, e, want)
		}
	}
}

func TestStartIntervalUsesRounds(t *testing.T) {
	t.Parallel()
	spread := []int64{46, 47, 48, 49, 50, 51, 52, 53}
	for name, c := range map[string]struct {
		rounds  int
		n       int
		bounded bool
		says    string
	}{
		"single round uses its starts":  {1, 8, true, "start: median of the one round's starts, with"},
		"single round reached the step": {3, 1, false, "start: median of the rounds' medians, with"},
	} {
		var all []record.Batch
		for r := range c.rounds {
			all = append(all, batch(r, 8, of(8, 20)...))
		}
		target := judged(nil, append(all, batch(0, 16, spread...))...)
		s := target.Steps[1].start()
		note := new(Judgement).bySteps(target).Notes[0]
		check.That(t, s.N == c.n && s.Bounded == c.bounded && s.Value == 49.5e6 && strings.HasPrefix(note, c.says),
			"%s: %+v, %s", name, s.Estimate, note)
	}
}

func TestEmptyStepHasNoMemory(t *testing.T) {
	t.Parallel()
	reading := func(moment record.Moment, sandboxes int) record.Reading {
		x := record.Reading{Target: "runc", Moment: moment, Sandboxes: sandboxes, Time: int64(sandboxes*10 + 1)}
		x.Host.Total, x.Host.Free = 8<<30, 4<<30-int64(sandboxes)<<20
		if moment == record.MomentBegin || moment == record.MomentEnd {
			x.Phase = PhaseIdle
		}
		if moment == record.MomentEnd {
			x.Time += 5
		}
		return x
	}
	readings := []record.Reading{reading(record.MomentBefore, 0)}
	for _, n := range []int{4, 8} {
		readings = append(readings, reading(record.MomentBegin, n), reading(record.MomentEnd, n))
	}
	for name, c := range map[string]struct {
		last   record.Batch
		memory bool
		more   []record.Reading
		to     int
	}{
		"the first start failed":  {batch(0, 16, -1), false, nil, 8},
		"the second start failed": {batch(0, 16, 20, -1), true, []record.Reading{reading(record.MomentBegin, 9), reading(record.MomentEnd, 9)}, 9},
	} {
		target := judged(append(slices.Clone(readings), c.more...), batch(0, 4, of(4, 20)...), batch(0, 8, of(4, 20)...), c.last)
		last, before := target.Steps[2], target.Steps[1].All.Of("memory-per-sandbox")
		check.That(t, before.Known() && last.Last && last.All.Of("memory-per-sandbox").Known() == c.memory && last.start().Failed == 1,
			"%s: %+v, %+v", name, before, last)
		slopes := target.such("memory-of-one-more")
		check.That(t, len(slopes) == 1 && slopes[0].Labels.Get("to") == strconv.Itoa(c.to) && math.Abs(slopes[0].Value-1<<20) <= 1 && !slopes[0].Bounded, // from one round
			"%s: %+v", name, slopes)
	}
}

func TestBoundsHaveNoRatio(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		first, later bool // most were ready at the first poll
		known        bool
	}{
		"neither": {false, false, true}, "the first step's": {true, false, false}, "the later step's": {false, true, false}, "both": {true, true, false},
	} {
		asked := func(b record.Batch, atMost bool) record.Batch {
			for i := range b.Samples {
				s := &b.Samples[i]
				s.Ready, s.Polls = s.Returned, 2
				if !atMost {
					s.Unready = s.Ready - 1e6
				}
			}
			return b
		}
		batches := []record.Batch{asked(batch(0, 4, of(4, 20)...), c.first), asked(batch(0, 8, of(4, 30)...), c.later)}
		target := judged(nil, batches...)
		for i, atMost := range []bool{c.first, c.later} {
			if got := target.Steps[i].start().AtMost; got != atMost || AtMost(batches[i].Samples) != atMost {
				t.Errorf("%s: step %d: %q", name, i, target.Steps[i].start().Verdict)
			}
		}
		j, l := Judgement{Until: Until{Latency: 2}}, finding.List{}
		j.findLatency(&l, target)
		times := target.Steps[1].All.Of("start-latency-times")
		if times.Known() != c.known || (len(l) == 1 && strings.HasSuffix(l[0].Message, "are only upper bounds")) == c.known {
			t.Errorf("%s: %+v, %+v", name, times, l)
		}
	}
}

func TestRemovedCgroupsAreReportedOnce(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before []record.Finding
		want   int
	}{
		"left by the runtime":                 {nil, 1},
		"removed by the run":                  {[]record.Finding{{Code: finding.RuntimeLeft, Target: "kata"}}, 1},
		"another target's removed by the run": {[]record.Finding{{Code: finding.RuntimeLeft, Target: "runsc"}}, 2},
	} {
		l := finding.List(c.before)
		findRecovery(&l, &Target{Info: record.Target{Name: "kata"}, All: figure.Set{Quantities.New("left", figure.Exactly(3), figure.Of("of", "cgroups"))}})
		check.That(t, len(l) == c.want, "%s: %+v", name, l)
	}
}

func TestUnreadableMountsAreUnknown(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		beside     []*record.LeftBeside // per round
		head, tail string
	}{
		"read":                          {[]*record.LeftBeside{{Mounts: []string{}}, {Mounts: []string{}}}, "0", ""},
		"mounts not read":               {[]*record.LeftBeside{{}, {}}, "0", "(mounts unknown)"},
		"mounts not read in a round":    {[]*record.LeftBeside{{Mounts: []string{"/m"}}, {}}, "1", "(mounts unknown)"},
		"mounts not read, process left": {[]*record.LeftBeside{{Processes: []string{"shim (7)"}}}, "1", "(mounts unknown)"},
		"not checked":                   {[]*record.LeftBeside{nil}, "–", ""},
		"one round not checked":         {[]*record.LeftBeside{nil, {Mounts: []string{}}}, "0", ""},
	} {
		var readings []record.Reading
		for round, beside := range c.beside {
			readings = append(readings, record.Reading{Target: "runc", Round: round, Moment: record.MomentBefore, Time: 1}, record.Reading{Target: "runc", Round: round, Moment: record.MomentAfter, Time: 2, LeftBeside: beside})
		}
		target := Target{Info: record.Target{Name: "runc"}}
		leavings(&target, ledger.Visits(readings, nil))
		cell := leftOver(target.such("left"))
		check.That(t, cell.Head == c.head && cell.Tail == c.tail, "%s: %+v", name, cell)
	}
}
