package lifecycle_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/tare-bench/tare/internal/instrument/lifecycle"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

const ms = 1_000_000

// written makes records by hand.
type written struct {
	plan    lifecycle.Options
	targets []string // kinds; the name of each is its kind and place
	rounds  int
	latency func(target string, op subject.Op, lane, round int) int64 // ns
	// What is made of that may be changed at every step.
	sample func(target string, op subject.Op, round int, s *record.Sample)
	batch  func(b *record.Batch)
	change func(rec *record.Record)
}

func write(change func(*written)) *record.Record {
	w := written{plan: lifecycle.Defaults(), targets: []string{"oci", "oci"}, rounds: 10}
	w.plan.Ops = []subject.Op{subject.Run}
	w.latency = func(_ string, _ subject.Op, _, round int) int64 { return 100*ms + int64(round%3)*ms }
	if change != nil {
		change(&w)
	}
	return w.record()
}

func (w *written) record() *record.Record {
	p, err := json.Marshal(w.plan)
	if err != nil {
		panic(err)
	}
	rec := &record.Record{Header: record.Header{Type: record.TypeHeader, Schema: record.Schema, Experiment: "lifecycle", Plan: p,
		Environment: record.Environment{CPUs: 4}}}
	for i, kind := range w.targets {
		ops := map[string]record.Operation{}
		for _, op := range subject.Ops {
			ops[string(op)] = record.Operation{Command: "do " + string(op), Done: record.StampReturned, Means: "it returned"}
		}
		rec.Targets = append(rec.Targets, record.Target{Type: record.TypeTarget, Name: name(kind, i), Kind: kind, Clock: "host", Operations: ops})
	}
	clock := int64(ms)
	for _, lanes := range w.plan.Lanes {
		for round := range w.rounds {
			for i, kind := range w.targets {
				for _, op := range w.plan.Ops {
					b := record.Batch{Type: record.TypeBatch, Phase: record.PhaseMeasure, Round: round, Order: i, Target: name(kind, i), Op: string(op), Lanes: lanes, Released: clock}
					for lane := range lanes {
						s := record.Sample{Lane: lane, Start: clock + 1000}
						s.Returned = s.Start + w.latency(b.Target, op, lane, round)
						if w.sample != nil {
							w.sample(b.Target, op, round, &s)
						}
						b.Samples = append(b.Samples, s)
					}
					if w.batch != nil {
						w.batch(&b)
					}
					if err := record.Validate(&b); err != nil {
						panic(err)
					}
					rec.Batches = append(rec.Batches, b)
					clock += 1000 * ms
				}
			}
			rec.Nodes = append(rec.Nodes, record.Node{Type: record.TypeNode, Time: clock, Round: round, Phase: record.PhaseMeasure, Lanes: lanes,
				Known: true, HavePSI: true, Busy: 0.1, Steal: 0.001, PSICPU: 0.02, PSIIO: 0.01})
		}
	}
	rec.End = &record.End{Type: record.TypeEnd, Status: "done", Why: "rounds", Batches: len(rec.Batches)}
	if w.change != nil {
		w.change(rec)
	}
	return rec
}

func name(kind string, place int) string { return kind + string(rune('0'+place)) }

// judged judges a record. Any judgement can be written as JSON, so it has no
// NaN and no infinity.
func judged(t *testing.T, rec *record.Record) *lifecycle.Judgement {
	t.Helper()
	l, err := lifecycle.Judge(rec)
	must.OK(t, err)
	if _, err := json.Marshal(l.Figures()); err != nil {
		t.Fatal(err)
	}
	return l
}

func codes(l *lifecycle.Judgement) []string {
	var out []string
	for _, f := range l.Found {
		out = append(out, f.Code)
	}
	slices.Sort(out)
	return slices.Compact(out)
}
