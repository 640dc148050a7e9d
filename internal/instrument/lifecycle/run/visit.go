package run

import (
	"context"
	"fmt"
	"slices"

	"github.com/tare-bench/tare/internal/core/run"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/record"
)

// visit is one target's turn in a round.
type visit struct {
	*schedule
	turn
	tried     bool
	succeeded bool
}

func (s *schedule) visit(ctx context.Context, t turn) error {
	v := visit{schedule: s, turn: t}
	s.companions.visits[t.Target.Info.Name]++
	err := v.do(ctx)
	s.companions.look(ctx, &t, false)
	s.companions.prune()
	return err
}

// do runs the lifecycle up to the last requested operation, then run. Operations that
// are needed but not requested are also executed and recorded. Remaining containers are
// discarded.
func (v *visit) do(ctx context.Context) error {
	chain := v.chain()
	if len(chain) > 0 {
		if err := v.sequence(ctx, chain); err != nil {
			return err
		}
	}
	if v.asked(subject.Run) && v.has(subject.Run) && !slices.Contains(chain, subject.Run) && ctx.Err() == nil && !v.Target.Gone {
		if err := v.sequence(ctx, []subject.Op{subject.Run}); err != nil {
			return err
		}
	}
	if ctx.Err() != nil || v.Target.Gone {
		return nil
	}
	// A target without any of the operations has not failed.
	if v.Target.Hopeless(v.succeeded || !v.tried) {
		return v.giveUp(fmt.Sprintf("nothing succeeded in %d rounds in a row", run.FailedRounds))
	}
	return nil
}

// sequence runs operations one after the other on all lanes. A lane with a failure is
// skipped afterwards.
func (v *visit) sequence(ctx context.Context, ops []subject.Op) error {
	all := make([]int, v.lanes)
	for i := range all {
		all[i] = i
	}
	left := all
	var unsaved error
	for _, op := range ops {
		if len(left) == 0 || ctx.Err() != nil || v.Target.Gone || unsaved != nil {
			break
		}
		v.tried = true
		starts := op == subject.Start || op == subject.Run
		if starts {
			v.companions.start(ctx, &v.turn)
		}
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
		if starts {
			v.companions.look(ctx, &v.turn, true)
		}
	}
	clean, cancel := run.CleaningUp(ctx, v.plan.Timeout)
	defer cancel()
	if err := v.Target.Session.Discard(clean, all); err != nil && !v.Target.Gone {
		return run.Together(unsaved, v.giveUp("what it made could not be removed: "+err.Error()))
	}
	return unsaved
}

// batch runs one operation on the given lanes and records it.
func (v *visit) batch(ctx context.Context, op subject.Op, lanes []int) (*record.Batch, error) {
	v.Step(fmt.Sprintf("%d at once", v.lanes), v.Target.Info.Name, string(op))
	b := record.Batch{
		Phase: v.Phase, Round: v.Number, Order: v.Order,
		Target: v.Target.Info.Name, Op: string(op), Lanes: v.lanes, Lost: v.lanes - len(lanes),
	}
	armed, err := v.Target.Session.Prepare(ctx, op, lanes)
	if err == nil {
		if b.Dropped, err = v.Cold(ctx); err == nil { // after Prepare, whose work is not part of the operation
			staff := newStaff(ctx, v.Target.Session) // meters the target's own processes
			b.Released, b.Samples, err = subject.StartBetween(ctx, armed, staff.begin, staff.end)
			b.Roles = staff.finish(ctx)
		} else if subject.Disarm(ctx, armed); ctx.Err() == nil {
			return nil, err
		}
	}
	if m, ok := armed.(subject.Metered); ok {
		b.OwnCPU = max(m.OwnCPU(), 0)
	}
	if err != nil {
		// The lanes themselves are broken: this batch has no results, and the
		// next one would fail too.
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
	if v.Phase == record.PhaseMeasure {
		v.intervals.Add(&b)
	}
	return &b, v.Line(b)
}

func (v *visit) giveUp(why string) error {
	return v.GiveUp(v.Target, record.Finding{Lanes: v.lanes,
		Message: fmt.Sprintf("given up in round %d (%s): %s", v.Number+1, v.Phase, why)})
}
