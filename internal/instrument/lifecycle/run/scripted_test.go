package run_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/run"
	"github.com/tare-bench/tare/internal/instrument/lifecycle"
	lifecyclerun "github.com/tare-bench/tare/internal/instrument/lifecycle/run"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/testing/fake"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

const ms = float64(time.Millisecond)

// truth is the scripted median latency of each operation, in ns.
var truth = map[subject.Op]float64{
	subject.Create: 100 * ms, subject.Start: 40 * ms, subject.Stop: 25 * ms, subject.Remove: 60 * ms, subject.Run: 150 * ms,
}

// podTruth is the scripted median latency of each pod operation.
var podTruth = map[subject.Op]float64{subject.RunPod: 200 * ms, subject.StopPod: 80 * ms, subject.RemovePod: 30 * ms}

// planned returns the default plan with a seed, a budget that tests do not reach by
// accident, and the test's changes.
func planned(change func(*lifecycle.Options)) lifecycle.Options {
	p := lifecycle.Defaults()
	p.Seed, p.Budget, p.Rounds = 1, time.Hour, 10
	if change != nil {
		change(&p)
	}
	return p
}

func seeded(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0x7461_7265)) }

// constant returns exactly the truth, multiplied by a factor.
func constant(factor float64) fake.Script {
	return func(op subject.Op, _, _ int) (int64, *record.Failure) {
		return int64((truth[op] + podTruth[op]) * factor), nil
	}
}

// noisy returns the truth multiplied by a factor and by lognormal noise. The noise has
// median 1 and an sd of about sigma.
func noisy(r *rand.Rand, factor, sigma float64) fake.Script {
	return func(op subject.Op, _, _ int) (int64, *record.Failure) {
		return int64(truth[op] * factor * math.Exp(sigma*r.NormFloat64())), nil
	}
}

// failing wraps a script and fails where when returns true.
func failing(s fake.Script, when func(op subject.Op, lane, n int) bool) fake.Script {
	return func(op subject.Op, lane, n int) (int64, *record.Failure) {
		if when(op, lane, n) {
			return 0, &record.Failure{Kind: record.FailExit, Exit: 1, Detail: "exit status 1", Command: "fake " + string(op), Output: "no such device"}
		}
		return s(op, lane, n)
	}
}

func always(subject.Op, int, int) bool { return true }

// pair returns two targets on one virtual clock.
func pair(a, b fake.Script) []subject.Target {
	clock := int64(1)
	return []subject.Target{
		&fake.Target{Name: "a", Script: a, Clock: &clock},
		&fake.Target{Name: "b", Script: b, Clock: &clock},
	}
}

// options returns the options of a run on a simulated machine.
func options(p lifecycle.Options, targets []subject.Target) lifecyclerun.Options {
	return lifecyclerun.Options{
		Plan: p, Targets: targets,
		Options: run.Options{
			RunID:  "test",
			Header: record.Header{Environment: record.Environment{CPUs: 8}},
			Dirs:   func(string) (string, string, error) { return "", "", nil },
		},
	}
}

// weigh runs the plan, stores the record and judges it. The stored record must be
// identical to the record in memory.
func weigh(t *testing.T, p lifecycle.Options, targets ...subject.Target) (*record.Record, *lifecycle.Judgement) {
	t.Helper()
	return weighWith(t.Context(), t, options(p, targets))
}

func weighWith(ctx context.Context, t *testing.T, o lifecyclerun.Options) (*record.Record, *lifecycle.Judgement) {
	t.Helper()
	var file bytes.Buffer
	o.Write = record.NewWriter(&file).Write
	rec, shown, err := lifecyclerun.Run(ctx, o)
	must.OK(t, err)
	stored := must.Get(record.Read(&file))(t)
	if stored.ProblemCount > 0 {
		t.Fatalf("unreadable lines in the record: %v", stored.Problems)
	}
	l := judged(t, stored)
	if encoded(t, shown) != encoded(t, l) {
		t.Fatal("the judgement at the end differs from that of the stored record")
	}
	inMemory, inFile := codes(rec.Findings), codes(stored.Findings)
	slices.Sort(inMemory) // findings of the run are stored as they occur
	slices.Sort(inFile)
	if !slices.Equal(inMemory, inFile) {
		t.Fatalf("findings in memory %v, stored %v", inMemory, inFile)
	}
	return stored, l
}

func judged(t *testing.T, rec *record.Record) *lifecycle.Judgement {
	t.Helper()
	l := must.Get(lifecycle.Judge(rec))(t)
	return l
}

// encoded returns a judgement as JSON. It fails if a value is NaN, which JSON does not support.
func encoded(t *testing.T, l *lifecycle.Judgement) string {
	t.Helper()
	text, err := json.Marshal(struct {
		Figures  []figure.Figure
		Findings []record.Finding
	}{l.Figures(), l.Found})
	must.OK(t, err)
	return string(text)
}

func cellOf(t *testing.T, l *lifecycle.Judgement, lanes int, op subject.Op, name string) figure.Set {
	t.Helper()
	c := l.All.Part("lanes", strconv.Itoa(lanes)).Part("op", string(op)).Part("target", name)
	must.That(t, c[0].Quantity != "", "no cell of %s %s at %d lanes", name, op, lanes)
	return c
}

// lost returns the number of lanes lost before this operation.
func lost(c figure.Set) int { return int(c.Of("lanes-lost").Value) }

func codes(findings []record.Finding) []string {
	var out []string
	for _, f := range findings {
		out = append(out, f.Code)
	}
	return out
}

// found returns the findings with a code and checks that each is complete.
func found(t *testing.T, l *lifecycle.Judgement, code string) []record.Finding {
	t.Helper()
	var out []record.Finding
	for _, f := range l.Found {
		if f.Message == "" || f.Advice == "" {
			t.Errorf("finding without a message or advice: %+v", f)
		}
		if f.Code == code {
			out = append(out, f)
		}
	}
	return out
}

// events collects the log of the fakes.
type events []string

func (e *events) log(s string) { *e = append(*e, s) }

func (e events) count(prefix string) (n int) {
	for _, s := range e {
		if strings.HasPrefix(s, prefix) {
			n++
		}
	}
	return n
}

// watched is a target with a session that can fail where fakes cannot.
type watched struct {
	subject.Target
	opening    func() error
	arming     func(op subject.Op, lanes []int) error
	disarming  func() // called when an armed batch is disarmed
	discarding func(ctx context.Context) error
	closing    func() error
}

func (w *watched) Open(ctx context.Context, env subject.Env) (subject.Session, error) {
	if w.opening != nil {
		if err := w.opening(); err != nil {
			return nil, err
		}
	}
	s, err := w.Target.Open(ctx, env)
	return &watchedSession{s, w}, err
}

type watchedSession struct {
	subject.Session
	w *watched
}

func (s *watchedSession) Unwrap() subject.Session { return s.Session }

func (s *watchedSession) Prepare(ctx context.Context, op subject.Op, lanes []int) (subject.Batch, error) {
	if s.w.arming != nil {
		if err := s.w.arming(op, lanes); err != nil {
			return nil, err
		}
	}
	b, err := s.Session.Prepare(ctx, op, lanes)
	if s.w.disarming != nil {
		b = watchedBatch{b, s.w}
	}
	return b, err
}

type watchedBatch struct {
	subject.Batch
	w *watched
}

func (b watchedBatch) Start(ctx context.Context) (int64, []record.Sample, error) {
	if ctx.Err() != nil {
		b.w.disarming()
		return 0, nil, ctx.Err()
	}
	return b.Batch.Start(ctx)
}

func (s *watchedSession) Discard(ctx context.Context, lanes []int) error {
	err := s.Session.Discard(ctx, lanes)
	if s.w.discarding != nil {
		err = errors.Join(err, s.w.discarding(ctx))
	}
	return err
}

func (s *watchedSession) Close(ctx context.Context) error {
	err := s.Session.Close(ctx)
	if s.w.closing != nil {
		err = errors.Join(err, s.w.closing())
	}
	return err
}

// lane returns a figure of a cell's lanes: "p50", or a quantity such as "parallelism".
func lane(c figure.Set, name string) float64 {
	f := c.Of(name)
	if f.Quantity == "" {
		f = c.Of("lane-latency", "quantile", name)
	}
	return f.Value
}

// laneCount returns the number of lane latencies.
func laneCount(c figure.Set) int { return c.Of("lane-latency").N }

// skewMax returns the release skew of the worst round.
func skewMax(c figure.Set) float64 { return c.Of("release-skew", "quantile", "max").Value }
