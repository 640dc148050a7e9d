package run_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tare-bench/tare/internal/core/finding"
	"github.com/tare-bench/tare/internal/core/run"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

func TestRunOpensWarmsUpMeasuresAndCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(2, 3, "a", "b", "c")
		f.After = func() []record.Finding { f.note("after"); return nil }
		rec := f.must(t)
		e := f.events
		check.Equal(t, "first events", e[:3], []string{"open a fake data/a state/a", "open b fake data/b state/b", "open c fake data/c state/c"})
		check.Equal(t, "last events", e[len(e)-4:], []string{"close a", "close b", "close c", "after"})
		for i, b := range rec.Batches {
			phase, number := record.PhaseWarmup, i/3
			if number >= 2 {
				phase, number = record.PhaseMeasure, number-2
			}
			check.That(t, b.Phase == phase && b.Round == number && b.Order == i%3, "visit %d is %+v", i, b)
			check.That(t, i%3 != 2 || len(map[string]bool{rec.Batches[i-2].Target: true, rec.Batches[i-1].Target: true, b.Target: true}) == 3,
				"round %d did not visit everyone", i/3)
		}
		check.That(t, len(rec.Batches) == 15 && rec.End.Status == "done" && rec.End.Why == run.WhyRounds && rec.End.Batches == 15,
			"%d visits, end %+v", len(rec.Batches), rec.End)
	})
}

// orders returns the targets of each measured round.
func orders(rec *record.Record) []string {
	var out []string
	for _, b := range rec.Batches {
		if b.Order == 0 {
			out = append(out, "")
		}
		out[len(out)-1] += b.Target
	}
	return out
}

// A repeated run must have the same order as the stored record.
func TestEqualSeedsGiveEqualOrders(t *testing.T) {
	order := func(seed, salt uint64) (text string) {
		turns := make([]run.Turn[*session], 6)
		for i := range turns {
			turns[i].Part = i
		}
		for i, turn := range run.Shuffled(seed, salt, turns) {
			check.Equal(t, fmt.Sprintf("positions: %+v", turn), turn.Order, i)
			text += string(rune('a' + turn.Part))
		}
		return text
	}
	for _, c := range []struct {
		seed, salt uint64
		want       string
	}{{1, 8589934592, "cdbefa"}, {1, 12884901888, "dcbeaf"}, {77, 34359738370, "dcfaeb"}, {77, 0, "edcfab"}, {77, 3, "efabdc"}, {42, 8589934593, "bcdfea"}} {
		check.Equal(t, c, order(c.seed, c.salt), c.want)
	}
}

func TestTargetOrderIsBalanced(t *testing.T) {
	t.Parallel()
	const seeds, rounds = 20, 100
	var all [4]int
	for seed := range uint64(seeds) {
		f := newFake(0, rounds, "a", "b", "c", "d")
		f.seed, f.takes = seed+1, 0
		var places [4][4]int
		got := orders(f.must(t))
		for _, o := range got {
			for place, name := range o {
				places[name-'a'][place]++
			}
		}
		n := len(slices.Compact(slices.Sorted(slices.Values(got))))
		check.That(t, n >= 20, "seed %d: 100 rounds had only %d orders", seed+1, n) // of 24 possible orders
		for name, n := range places {
			all[name] += n[0]
			for place, times := range n {
				if times < 8 || times > 42 { // the mean of 25 plus four standard deviations for 320 counts
					t.Errorf("seed %d: %c at position %d in %d of %d rounds", seed+1, 'a'+name, place, times, rounds)
				}
			}
		}
	}
	for name, n := range all {
		check.That(t, n >= 430 && n <= 570, "%c first in %d of %d rounds", 'a'+name, n, seeds*rounds) // 500 plus or minus 3.5 standard deviations
	}
}

func TestSeedIsTheRequestedOneOrFitsJSON(t *testing.T) {
	check.Equal(t, "seed", run.Seed(7), 7)
	s := run.Seed(0)
	check.That(t, s != 0 && s < 1<<53, "by chance %d", s)
}

func TestEndOfARunHasAReasonAndFindings(t *testing.T) {
	always := func(string, int) bool { return true }
	of := func(name string) func(string, int) bool { return func(n string, _ int) bool { return n == name } }
	// There are two targets. A visit takes one second, so a round takes two.
	for name, c := range map[string]struct {
		change func(f *fake, stop func())
		visits int
		status string
		why    string
		said   []string
	}{
		"rounds done": {func(*fake, func()) {}, 12, "done", run.WhyRounds, nil},
		"no budget": {func(f *fake, _ func()) { f.rounds.Budget = -1 }, 0, "done", run.WhyBudget,
			[]string{"error budget-spent: the budget of -1ns was spent after 0 of 5 rounds"}},
		"budget spent in the warm-up": {func(f *fake, _ func()) { f.rounds.Budget = time.Second }, 2, "done", run.WhyBudget,
			[]string{"error budget-spent: the budget of 1s was spent after 0 of 5 rounds"}},
		"budget spent in a round, which is completed": {func(f *fake, _ func()) { f.rounds.Budget = 7500 * time.Millisecond }, 8, "done", run.WhyBudget,
			[]string{"warning budget-spent: the budget of 7.5s was spent after 3 of 5 rounds"}},
		"budget checked before each long visit": {func(f *fake, _ func()) {
			f.rounds.Budget, f.rounds.EachVisit, f.rounds.On = 6500*time.Millisecond, true, "on bind "
		}, 7, "done", run.WhyBudget, []string{"warning budget-spent: the budget of 6.5s was spent on bind in round 3 of 5"}},
		"budget spent in a warm-up of long visits": {func(f *fake, _ func()) { f.rounds.Budget, f.rounds.EachVisit = 500*time.Millisecond, true }, 1, "done", run.WhyBudget,
			[]string{"error budget-spent: the budget of 500ms was spent in round 1 of 5"}},
		"budget spent before the first long visit": {func(f *fake, _ func()) { f.rounds.Budget, f.rounds.EachVisit, f.rounds.Warmup = -1, true, 0 }, 0, "done", run.WhyBudget,
			[]string{"error budget-spent: the budget of -1ns was spent in round 1 of 5"}},
		"precise after the rounds": {func(f *fake, _ func()) {
			f.rounds.Precision, f.rounds.Widest = 0.05, func() (float64, string) { return 0.05, "a" }
		}, 12, "done", run.WhyPrecise, nil},
		"precise after additional rounds": {func(f *fake, _ func()) {
			f.rounds.Precision, f.rounds.Widest = 0.05, func() (float64, string) { return 1 / float64(f.done), "a" }
		}, 20, "done", run.WhyPrecise, nil},
		"precision not reached": {func(f *fake, _ func()) {
			f.rounds.Precision, f.rounds.Budget, f.rounds.Lanes = 0.001, 19*time.Second, 3
			f.rounds.Widest = func() (float64, string) { return 0.25, "a run" }
		}, 20, "done", run.WhyBudget, []string{"warning precision-not-reached: ±0.1 % was not reached in 19s (9 rounds): the widest interval is ±25.0 %, of a run"}},
		"precision not reached in the time left by later points": {func(f *fake, _ func()) {
			f.rounds.Precision, f.rounds.Budget, f.rounds.Later = 0.001, 19*time.Second, 4
			f.rounds.Widest = func() (float64, string) { return 0.25, "a run" }
		}, 16, "done", run.WhyBudget, []string{"warning precision-not-reached: ±0.1 % was not reached in 19s less the 4s that what follows takes (7 rounds): the widest interval is ±25.0 %, of a run"}},
		"no interval": {func(f *fake, _ func()) {
			f.rounds.Precision, f.rounds.Budget = 0.05, 13*time.Second
			f.rounds.Widest = func() (float64, string) { return math.Inf(1), "a run" }
		}, 14, "done", run.WhyBudget, []string{"warning precision-not-reached: ±5.0 % was not reached in 13s (6 rounds): there is no interval yet of a run"}},
		"one target always fails": {func(f *fake, _ func()) { f.fails = of("b") }, 8, "done", run.WhyRounds,
			[]string{"error target-given-up b: nothing succeeded", "error failed-operations: "}},
		"target that fails sometimes is kept": {func(f *fake, _ func()) { f.fails = func(_ string, n int) bool { return n%2 == 0 } }, 12, "done", run.WhyRounds,
			[]string{"error failed-operations: "}},
		"all targets fail": {func(f *fake, _ func()) { f.fails = always }, 4, "done", run.WhyGivenUp,
			[]string{"error target-given-up a: nothing succeeded", "error target-given-up b: nothing succeeded", "error failed-operations: "}},
		"target cannot be opened": {func(f *fake, _ func()) { f.opening = refuse("b") }, 6, "done", run.WhyRounds,
			[]string{"error target-not-opened b: no such runtime"}},
		"target that cannot be opened leaves something behind": {func(f *fake, _ func()) {
			f.opening = func(name string) error {
				if name == "a" {
					return nil
				}
				return errors.Join(errors.New("no answer"), leftError{errors.New("an image")})
			}
		}, 6, "done", run.WhyRounds, []string{"error left-behind b: could not remove everything: an image", "error target-not-opened b: no answer\nan image"}},
		"target leaves something behind": {func(f *fake, _ func()) { f.closing = refuse("b") }, 12, "done", run.WhyRounds,
			[]string{"error left-behind b: could not remove everything: no such runtime"}},
		"interrupted before the begin":     {func(_ *fake, stop func()) { stop() }, 0, "interrupted", "", nil},
		"interrupted while a target opens": {func(f *fake, stop func()) { f.opening = func(string) error { stop(); return context.Canceled } }, 0, "interrupted", "", nil},
		"interrupted in a visit":           {func(f *fake, stop func()) { f.visit = at(5, stop) }, 5, "interrupted", "", nil},
		"interrupted in the last visit":    {func(f *fake, stop func()) { f.visit = at(11, stop) }, 11, "interrupted", "", nil},
		"interrupted in the warm-up":       {func(f *fake, stop func()) { f.visit = at(1, stop) }, 1, "interrupted", "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				f := newFake(1, 5, "a", "b")
				c.change(f, stop)
				rec := f.mustUntil(ctx, t)
				check.That(t, len(rec.Batches) == c.visits && rec.End.Status == c.status && rec.End.Why == c.why,
					"%d visits, end %+v; want %d, %s, %s", len(rec.Batches), rec.End, c.visits, c.status, c.why)
				got := said(rec)
				slices.Sort(got)
				check.Equal(t, "findings", got, slices.Sorted(slices.Values(c.said)))
				if f.count("open ")-strings.Count(strings.Join(got, " "), "not-opened") != f.count("close ") && c.status == "done" {
					t.Errorf("not everything was closed: %q", f.events)
				}
				for _, x := range rec.Findings {
					check.That(t, x.Code == "failed-operations" || x.Advice != "", "no advice: %+v", x)
				}
			})
		})
	}
}

type leftError struct{ error }

func (leftError) Left() {}

func refuse(name string) func(string) error {
	return func(n string) error {
		if n == name {
			return errors.New("no such runtime")
		}
		return nil
	}
}

// at returns a hook that calls f in visit n only.
func at(n int, f func()) func(int) {
	return func(visit int) {
		if visit == n {
			f()
		}
	}
}

func TestRunWithoutOpenTargetsIsAnError(t *testing.T) {
	f := newFake(1, 5, "a")
	f.opening = refuse("a")
	rec, _, err := f.perform(t.Context())
	check.That(t, err != nil && rec.End.Status == "failed" && strings.Contains(rec.End.Why, "no target could be opened") && len(said(rec)) == 1,
		"%v, end %+v, findings %q", err, rec.End, said(rec))
}

func TestClosersRunLastFirstAndBeforeTheTargets(t *testing.T) {
	f := newFake(0, 1, "a")
	f.takes = 0
	f.visit = func(int) {
		f.run.OnClose(func() error { f.note("first"); return errors.New("first is busy") })
		f.run.OnClose(func() error { f.note("last"); return errors.New("last is busy") })
	}
	rec := f.must(t)
	e := f.events
	check.That(t, slices.Equal(e[len(e)-3:], []string{"last", "first", "close a"}), "%q", e)
	got := said(rec)
	check.That(t, len(got) == 1 && got[0] == "error left-behind: could not remove everything: last is busy\nfirst is busy", "%q", got)
}

// chatty is a session that implements every report at its end; plain wraps it.
type chatty struct{}

func (chatty) Close(context.Context) error { return nil }
func (chatty) Throttled() int64            { return 3 }
func (chatty) Leaks() []string             { return []string{"/left"} }
func (chatty) Emulated() string            { return "accel=tcg" }

type plain struct{ run.Session }

func (p plain) Unwrap() run.Session { return p.Session }

func TestFindingsOfAWrappedSessionAreRecorded(t *testing.T) {
	for _, s := range []run.Session{chatty{}, plain{chatty{}}, plain{plain{chatty{}}}} {
		r := must.Get(run.Begin[run.Session](run.Options{RunID: "r", Write: func(any) error { return nil }}, "fake", struct{}{}, []named{"a"}))(t)
		r.Open = []*run.Target[run.Session]{{Session: s, Info: record.Target{Name: "a"}}}
		r.CloseOpen()
		var reported []string
		for _, f := range r.Record.Findings {
			reported = append(reported, f.Code)
		}
		check.Equal(t, s, reported, []string{finding.RuntimeLeft, finding.Emulated, finding.Throttled})
	}
}

// disk is a writer that is full after n bytes.
type disk struct {
	bytes.Buffer
	left int
}

func (d *disk) Write(p []byte) (int, error) {
	if len(p) > d.left {
		n, _ := d.Buffer.Write(p[:d.left])
		d.left = 0
		return n, syscall.ENOSPC
	}
	d.left -= len(p)
	return d.Buffer.Write(p)
}

func TestFullDiskEndsTheRunAndKeepsTheRecordInMemory(t *testing.T) {
	t.Parallel()
	whole := newFake(1, 3, "a", "b")
	whole.takes, whole.fails = 0, func(name string, n int) bool { return name == "b" && n == 1 }
	whole.must(t)
	for size := range whole.file.Len() - 20 { // the duration has a varying number of digits
		d := &disk{left: size}
		f := newFake(1, 3, "a", "b")
		f.takes, f.fails, f.Write = 0, whole.fails, record.NewWriter(d).Write
		rec, _, err := f.perform(t.Context())
		must.That(t, errors.Is(err, syscall.ENOSPC) && strings.Count(err.Error(), "no space left") == 1, "full at %d: error %v", size, err)
		must.That(t, f.count("open ") == f.count("close ") && len(rec.Batches) == f.done,
			"full at %d: %d visits in memory of %d, %q", size, len(rec.Batches), f.done, f.events)
		stored, err := record.Read(&d.Buffer)
		if errors.Is(err, record.ErrNotRecord) && f.done == 0 {
			continue
		}
		must.That(t, err == nil && len(stored.Batches) <= f.done && len(stored.Batches) >= f.done-1 && stored.ProblemCount == 0,
			"full at %d: %d of %d visits stored, %v", size, len(stored.Batches), f.done, err)
	}
}

func TestProgressHasTheStateAndTheTimeLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(1, 4, "a", "b")
		f.rounds.Later = 3
		f.must(t)
		must.That(t, len(f.reported) == 10 && f.reported[0].Left == 0, "reported %+v", f.reported)
		for i, p := range f.reported {
			// Each of the ten visits takes one second. Later points take three seconds more.
			want := time.Duration(13-i) * time.Second
			check.That(t, (i == 0 || p.Left == want) && p.Elapsed == time.Duration(i)*time.Second, "visit %d: %+v, want %v left", i, p, want)
		}
	})
	for want, p := range map[string]run.Progress{
		"warm-up 1/2, 5 at once: runc create":                {Round: run.Round{Phase: record.PhaseWarmup}, Rounds: 2, Point: "5 at once", Target: "runc", Step: "create"},
		"round 3/3, 5 at once: runc create":                  {Round: run.Round{Phase: record.PhaseMeasure, Number: 2}, Rounds: 3, Point: "5 at once", Target: "runc", Step: "create"},
		"round 4, for the precision, 5 at once: runc create": {Round: run.Round{Phase: record.PhaseMeasure, Number: 3}, Rounds: 3, Point: "5 at once", Target: "runc", Step: "create"},
		"round 1/1: runc":                                    {Round: run.Round{Phase: record.PhaseMeasure}, Rounds: 1, Target: "runc"},
		"bind, ceiling direct: host measuring the device":    {Point: "bind, ceiling direct", Target: "host", Step: "measuring the device"},
	} {
		check.Equal(t, "text", p.String(), want)
	}
}
