package run_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/core/finding"
	"github.com/tare-bench/tare/internal/core/run"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

// fake is an instrument with visits that only take time and are written as batches. It
// logs every call.
type fake struct {
	run.Options
	targets []named
	rounds  run.Rounds[*session]
	seed    uint64
	takes   time.Duration // duration of a visit
	fails   func(target string, visit int) bool
	opening func(target string) error
	closing func(target string) error
	visit   func(n int) // called in every visit, with its index from 0

	events   []string
	reported []run.Progress
	file     bytes.Buffer
	done     int
	run      *run.Run[*session]
}

type named string

func (n named) Info() record.Target { return record.Target{Name: string(n)} }

type session struct {
	*fake
	name   string
	visits int
}

func (s *session) Close(ctx context.Context) error {
	s.note("close " + s.name)
	if ctx.Err() != nil {
		return errors.New("there is no time to clean up")
	}
	if s.closing != nil {
		return s.closing(s.name)
	}
	return nil
}

func newFake(warmup, rounds int, targets ...named) *fake {
	f := &fake{targets: targets, seed: 1, takes: time.Second}
	f.rounds = run.Rounds[*session]{Warmup: warmup, Rounds: rounds, Budget: time.Hour, Fewer: " or targets"}
	return f
}

func (f *fake) note(event string) { f.events = append(f.events, event) }

// judgement counts failures and copies the findings of the run.
type judgement struct {
	failed int
	found  []record.Finding
}

func (j *judgement) Result() (failed, total int, findings []record.Finding) {
	return j.failed, 0, j.found
}

func judge(rec *record.Record) (*judgement, error) {
	j := &judgement{found: rec.Findings}
	for _, b := range rec.Batches {
		if b.Lost > 0 {
			j.failed++
		}
	}
	if j.failed > 0 {
		j.found = append(j.found, record.Finding{Type: record.TypeFinding, Code: finding.Failed, Level: "error"})
	}
	return j, nil
}

func (f *fake) perform(ctx context.Context) (*record.Record, *judgement, error) {
	if f.Write == nil {
		f.Write = record.NewWriter(&f.file).Write
	}
	f.RunID, f.Progress = "fake", func(p run.Progress) { f.reported = append(f.reported, p) }
	f.Dirs = func(name string) (string, string, error) { return "data/" + name, "state/" + name, nil }
	r, err := run.Begin[*session](f.Options, "fake", struct{}{}, f.targets)
	f.run = r
	why := ""
	if err == nil {
		why, err = f.all(ctx)
	}
	return run.Finish(ctx, r, why, err, judge)
}

func (f *fake) all(ctx context.Context) (string, error) {
	err := f.run.OpenAll(ctx, func(_ context.Context, i int, runID, dir, stateDir string) (*session, error) {
		name := string(f.targets[i])
		f.note(fmt.Sprintf("open %s %s %s %s", name, runID, dir, stateDir))
		if f.opening != nil {
			if err := f.opening(name); err != nil {
				return nil, err
			}
		}
		return &session{fake: f, name: name}, nil
	})
	if err != nil {
		return "", err
	}
	p := f.rounds
	p.Turns = func(at run.Round) []run.Turn[*session] {
		return run.Shuffled(f.seed, uint64(len(at.Phase))<<32|uint64(at.Number), f.run.Each(at, 0))
	}
	p.Visit = f.do
	return f.run.Perform(ctx, p)
}

func (f *fake) do(ctx context.Context, t run.Turn[*session]) error {
	s := t.Target.Session
	f.run.Step("", t.Target.Info.Name, "weighing")
	f.note(fmt.Sprintf("%s %s %d %d", t.Phase, s.name, t.Number, t.Order))
	if f.visit != nil {
		f.visit(f.done)
	}
	f.done++
	time.Sleep(f.takes)
	if ctx.Err() != nil {
		return nil
	}
	b := record.Batch{Phase: t.Phase, Round: t.Number, Order: t.Order, Target: s.name, Op: "run", Lanes: 1}
	failed := f.fails != nil && f.fails(s.name, s.visits)
	if s.visits++; failed {
		b.Lost = 1
	}
	if err := f.run.Line(b); err != nil {
		return err
	}
	if t.Target.Hopeless(!failed) {
		return f.run.GiveUp(t.Target, record.Finding{Message: "nothing succeeded"})
	}
	return nil
}

// must performs a run without an error and checks that the stored record equals the
// returned one.
func (f *fake) must(t *testing.T) *record.Record {
	t.Helper()
	return f.mustUntil(t.Context(), t)
}

func (f *fake) mustUntil(ctx context.Context, t *testing.T) *record.Record {
	t.Helper()
	rec, j, err := f.perform(ctx)
	must.That(t, err == nil && j != nil, "got %v, judged as %v", err, j)
	stored, err := record.Read(bytes.NewReader(f.file.Bytes()))
	must.That(t, err == nil && stored.End != nil && *stored.End == *rec.End && len(stored.Findings) == len(rec.Findings) &&
		len(stored.Targets) == len(f.targets) && stored.ProblemCount == 0, "%v: stored are %+v of %+v", err, stored, rec)
	return rec
}

// count returns the number of events with a prefix.
func (f *fake) count(prefix string) (n int) {
	for _, e := range f.events {
		if strings.HasPrefix(e, prefix) {
			n++
		}
	}
	return n
}

// said formats findings as "level code target: message".
func said(rec *record.Record) (all []string) {
	for _, f := range rec.Findings {
		all = append(all, strings.TrimSpace(fmt.Sprintf("%s %s %s", f.Level, f.Code, f.Target))+": "+f.Message)
	}
	return all
}
