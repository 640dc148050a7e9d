package run

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tare-bench/tare/internal/core/run"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/record"
)

// barrenRounds is how many rounds in a row may pass without one success before
// a target is given up: with a time-out of a minute each, a runtime that hangs
// would otherwise eat the whole budget of the others.
const barrenRounds = 2

// visit is one target's turn in a round.
type visit struct {
	*schedule
	w         *run.Weighed
	phase     record.Phase
	lanes     int
	round     int
	order     int
	tried     bool
	succeeded bool
}

// do goes through the operations of a life as far as they are asked for, and
// then run. What the plan does not ask for but a later operation needs is done
// and recorded all the same. Whatever the lanes still hold is discarded.
func (v *visit) do(ctx context.Context) error {
	if chain := v.chain(); len(chain) > 0 {
		if err := v.sequence(ctx, chain); err != nil {
			return err
		}
	}
	if slices.Contains(v.Plan.Ops, subject.Run) && v.has(subject.Run) && ctx.Err() == nil && !v.w.Gone {
		if err := v.sequence(ctx, []subject.Op{subject.Run}); err != nil {
			return err
		}
	}
	if ctx.Err() != nil || v.w.Gone {
		return nil
	}
	if v.succeeded || !v.tried { // what has none of the operations does not fail at them
		v.barren[v.w] = 0
		return nil
	}
	if v.barren[v.w]++; v.barren[v.w] < barrenRounds {
		return nil
	}
	return v.giveUp(fmt.Sprintf("nothing succeeded in %d rounds in a row", barrenRounds))
}

// sequence does operations one after the other on all lanes. A lane on which
// one failed takes no part in the next.
func (v *visit) sequence(ctx context.Context, ops []subject.Op) error {
	all := make([]int, v.lanes)
	for i := range all {
		all[i] = i
	}
	left := all
	var unsaved error
	for _, op := range ops {
		if len(left) == 0 || ctx.Err() != nil || v.w.Gone || unsaved != nil {
			break
		}
		v.tried = true
		var b *record.Batch
		if b, unsaved = v.batch(ctx, op, left); unsaved != nil {
			break
		}
		left = left[:0:0]
		for i := range b.Samples {
			if b.Samples[i].Failure == nil {
				left = append(left, b.Samples[i].Lane)
				v.succeeded = true
			}
		}
	}
	clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute+v.Plan.Timeout)
	defer cancel()
	if err := v.w.Discard(clean, all); err != nil && !v.w.Gone {
		return run.Together(unsaved, v.giveUp("what it made could not be removed: "+err.Error()))
	}
	return unsaved
}

// batch does one operation on the given lanes and records it.
func (v *visit) batch(ctx context.Context, op subject.Op, lanes []int) (*record.Batch, error) {
	v.tell(op)
	b := record.Batch{
		Type: record.TypeBatch, Phase: v.phase, Round: v.round, Order: v.order,
		Target: v.w.Info.Name, Op: string(op), Lanes: v.lanes, Lost: v.lanes - len(lanes),
	}
	armed, err := v.w.Prepare(ctx, op, lanes)
	if err == nil {
		b.Released, b.Samples, b.Roles, err = v.release(ctx, armed)
	}
	if m, ok := armed.(subject.Metered); ok {
		b.OwnCPU = max(m.OwnCPU(), 0)
	}
	if err != nil {
		// The lanes themselves are broken: nothing of this batch is known,
		// and the next one would fare no better.
		kind := record.FailError
		if ctx.Err() != nil {
			kind = record.FailInterrupted
		}
		b.Released, b.Samples = 0, nil
		for _, n := range lanes {
			b.Samples = append(b.Samples, record.Sample{Lane: n, Failure: &record.Failure{Kind: kind, Detail: err.Error()}})
		}
		if ctx.Err() == nil {
			if err := v.giveUp(err.Error()); err != nil {
				return nil, err
			}
		}
	}
	v.Record.Batches = append(v.Record.Batches, b)
	return &v.Record.Batches[len(v.Record.Batches)-1], v.Line(b)
}

// release lets the lanes go, and meters the target's own processes meanwhile.
func (v *visit) release(ctx context.Context, armed subject.Batch) (int64, []record.Sample, []record.Usage, error) {
	staff := newStaff(ctx, v.w.Session)
	begin, end := staff.begin, staff.end
	if e, ok := armed.(subject.Hooks); ok {
		e.Hook(begin, end)
		begin, end = func() {}, func() {}
	}
	begin()
	released, samples, err := armed.Start(ctx)
	end()
	return released, samples, staff.finish(ctx), err
}

func (v *visit) tell(op subject.Op) {
	if v.Progress == nil {
		return
	}
	p := Progress{Phase: v.phase, Lanes: v.lanes, Round: v.round, Rounds: v.Plan.Rounds, Target: v.w.Info.Name, Op: op, Elapsed: time.Since(v.Began)}
	if v.phase == record.PhaseWarmup {
		p.Rounds = v.Plan.Warmup
	}
	if v.done > 0 {
		p.Left = v.left()
	}
	v.Progress(p)
}

// left estimates the time to the end from the rounds so far, by the lanes in
// them; a precision may add to it, and the budget bounds it.
func (v *visit) left() time.Duration {
	work, done, round := 0, 0, 0
	for _, n := range v.Plan.Lanes {
		for range v.Plan.Warmup + v.Plan.Rounds {
			cost := 3 + n // a fixed part, and one for each lane
			work += cost
			if round < v.done {
				done += cost
			}
			round++
		}
	}
	left := time.Duration(float64(v.spent) * float64(work-done) / float64(max(done, 1)))
	return min(left, max(v.Plan.Budget-time.Since(v.Began), 0))
}

func (v *visit) giveUp(why string) error {
	return v.GiveUp(v.w, record.Finding{Lanes: v.lanes,
		Message: fmt.Sprintf("given up in round %d (%s): %s", v.round+1, v.phase, why)})
}
