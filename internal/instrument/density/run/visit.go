package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/core/stat"
	"github.com/tare-bench/tare/internal/instrument/density"
	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/record"
)

// visit is one target's turn in a round.
type visit struct {
	*schedule
	turn
	guard  *guard
	used   int                     // lanes that may hold something
	there  int                     // sandboxes that started completely
	first  []float64               // start latencies of the first step, ns
	latest bool                    // latencies are only upper bounds
	unsaid error                   // why the target could not list the sandboxes at their removal
	broken []int                   // lanes with a failed or interrupted start
	asked  int                     // number of lanes whose sandboxes the target has listed
	boxes  map[int]subject.Sandbox // by lane, as last listed by the target
	before record.Reading          // reading without sandboxes
	last   *record.Reading         // reading with the most sandboxes
	end    record.Density
}

// trial starts and removes a few sandboxes to learn their cost and how many fit.
func (v *visit) trial(ctx context.Context) error {
	v.end.Trial = true
	err := v.perform(ctx, func() error {
		if err := v.step(ctx, min(trialBoxes, v.lanes)); err != nil || v.end.Why != "" || ctx.Err() != nil {
			return err
		}
		v.trials[v.Target.Info.Name] = v.guard
		fit, by := v.guard.fits()
		v.stop(record.EndTrial, by, "")
		v.end.Fit = min(v.there+fit, v.options.Plan.Top())
		if v.end.Fit < v.there+fit {
			v.end.Resource = "" // limited by the request, not by a resource
		}
		return nil
	})
	if err != nil || ctx.Err() != nil || v.end.Why == record.EndTrial || v.Target.Gone {
		return err
	}
	return v.GiveUp(v.Target, record.Finding{Message: fmt.Sprintf("given up in a trial of %s: %s", page.Sandboxes(trialBoxes), v.end.Detail)})
}

// do adds sandboxes until an end is reached, and removes them.
func (v *visit) do(ctx context.Context) error {
	return v.perform(ctx, func() error {
		for v.end.Why == "" && ctx.Err() == nil {
			if why, detail := v.over(); why != "" {
				v.stop(why, "", detail)
				return nil
			}
			if err := v.step(ctx, min(v.options.Plan.Next(v.there), v.lanes)); err != nil {
				return err
			}
		}
		return nil
	})
}

// perform adds sandboxes between two readings of the node, always removes them, and
// records the result.
func (v *visit) perform(ctx context.Context, add func() error) error {
	v.end.Round, v.end.Order, v.end.Target = v.Number, v.Order, v.Target.Info.Name
	v.tell("reading the node before", 0)
	v.before = v.read(ctx, record.MomentBefore, true, v.options.Meter.Settle(ctx, v.options.Plan.Settle))
	levels, err := v.options.Node.Levels()
	if err != nil {
		return err
	}
	v.guard = newGuard(levels, v.trials[v.Target.Info.Name])
	if err := v.line(v.before); err != nil || ctx.Err() != nil {
		return err
	}
	err = add()
	if ctx.Err() != nil {
		v.stop(record.EndInterrupted, "", "")
	}
	err = errors.Join(err, v.remove(ctx))
	v.end.Sandboxes, v.end.Rooms = v.there, v.guard.said()
	if ctx.Err() == nil && err == nil && !v.end.Trial {
		err = v.line(v.after(ctx))
	}
	return errors.Join(err, v.Line(v.end))
}

// line stores a reading, except in a trial, which does not count as a round.
func (v *visit) line(x record.Reading) error {
	if v.end.Trial {
		return nil
	}
	return v.Line(x)
}

// stop records why no more sandboxes are added. Only the first reason is kept.
func (v *visit) stop(why, resource, detail string) {
	if v.end.Why == "" {
		v.end.Why, v.end.Resource, v.end.Detail = why, resource, detail
	}
}

// over reports whether the visit ends before the next step, and why.
func (v *visit) over() (why, detail string) {
	p := &v.options.Plan
	switch {
	case v.until.Count > 0 && v.there >= v.until.Count:
		return record.EndAsked, fmt.Sprintf("%s were requested", page.Sandboxes(v.until.Count))
	case v.there >= p.Most:
		return record.EndMost, fmt.Sprintf("%s are never exceeded (--most)", page.Sandboxes(p.Most))
	case v.there >= v.lanes:
		return record.EndMost, fmt.Sprintf("the node had room for the lanes of %s when it began", page.Sandboxes(v.lanes))
	case time.Since(v.Began) > p.Budget:
		return record.EndBudget, fmt.Sprintf("the budget of %v was spent", p.Budget)
	}
	return "", ""
}

// step adds sandboxes up to a number and observes them idle. After an early end it
// observes those that exist, unless the guard was tripped.
func (v *visit) step(ctx context.Context, to int) error {
	from := v.there
	v.tell("starting sandboxes", to)
	b := record.Batch{Phase: record.PhaseMeasure, Round: v.Number, Order: v.Order, Target: v.Target.Info.Name, Op: string(subject.Run), Lanes: to, Samples: []record.Sample{}}
	if v.end.Trial {
		b.Phase = record.PhaseWarmup
	}
	err := v.fill(ctx, to, &b)
	if len(b.Samples) > 0 {
		err = errors.Join(err, v.Line(b))
	}
	if err != nil || ctx.Err() != nil || v.there == from || v.end.Why == record.EndTripped {
		return err
	}
	if err := v.idle(ctx); err != nil || ctx.Err() != nil {
		return err
	}
	v.slower(&b)
	return nil
}

// slower ends a visit if starts take the requested multiple of the first step's starts.
func (v *visit) slower(b *record.Batch) {
	if v.end.Trial {
		return
	}
	latencies, latest := density.Latencies(&v.Target.Info, b.Samples), density.AtMost(b.Samples)
	if v.first == nil {
		v.first, v.latest = latencies, latest
		return
	}
	if v.latest || latest { // bounds have no ratio
		return
	}
	if times := density.Slower(stat.Samples{Old: v.first, New: latencies}); v.until.Latency > 0 && times.Bounded && times.Lo >= v.until.Latency {
		v.stop(record.EndAsked, "", fmt.Sprintf("a start took %s times as long as one of the first %d, by its interval at least %s", page.Significant(times.Value), len(v.first), page.Significant(times.Lo)))
	}
}

// idle observes the idle sandboxes and reads their usage.
func (v *visit) idle(ctx context.Context) error {
	v.tell("watching them idle", v.there)
	began := time.Now()
	settled := v.options.Meter.Settle(ctx, v.options.Plan.Settle)
	_ = machine.Sleep(ctx, v.options.Plan.Settle-time.Since(began))
	levels, err := v.options.Node.Levels()
	if err != nil {
		return err
	}
	v.guard.waitedFor(levels)
	begin := v.read(ctx, record.MomentBegin, false, settled)
	if err := v.line(begin); err != nil {
		return err
	}
	_ = machine.Sleep(ctx, v.options.Plan.Hold)
	now, err := v.options.Node.Levels()
	if err != nil || ctx.Err() != nil {
		return err
	}
	if gone := v.guard.lost(levels, now); gone > 0 {
		v.stop(record.EndOthers, density.Memory, fmt.Sprintf("%s of memory was used in %v without a start: other processes use it, or a workload leaks", page.Memory(float64(gone)), v.options.Plan.Hold))
	}
	v.trip(now)
	end := v.read(ctx, record.MomentEnd, true, settled)
	v.last = &end
	if v.ended(ctx) {
		return nil // ended sandboxes use nothing and distort the average
	}
	v.guard.held(levels, now, density.Charged(&v.before, &end))
	return v.line(end)
}

// whole returns the lanes that are not broken.
func (v *visit) whole() (lanes []int) {
	for n := range v.used {
		if !slices.Contains(v.broken, n) {
			lanes = append(lanes, n)
		}
	}
	return lanes
}

// ended ends a visit if workloads ended on their own.
func (v *visit) ended(ctx context.Context) bool {
	whole := v.whole()
	over, first := subject.Over(ctx, v.Target.Session, whole)
	if first == nil {
		return false
	}
	v.there, v.broken = v.there-len(over), append(v.broken, over...)
	first.Detail = fmt.Sprintf("%d of %d: %s", len(over), len(whole), first.Detail)
	if why := v.end.Why; why != record.EndTripped && why != record.EndFailure {
		v.end.Why = "" // sandboxes that ended do not count, so the earlier end was not reached
	}
	v.failed(ctx, first)
	return true
}

// mostRead is the maximum number of processes and cgroups in a reading, which must fit
// in one line of a record. Larger readings cover only the node.
const mostRead = 6000

// ask lists the target's sandboxes and remembers them.
func (v *visit) ask(ctx context.Context) ([]subject.Sandbox, error) {
	boxes, err := subject.SandboxesOf(ctx, v.Target.Session)
	if err == nil {
		v.asked = v.used
	}
	for _, b := range boxes {
		v.boxes[b.Lane] = b
	}
	return boxes, err
}

// ids returns the ids of all sandboxes ever listed.
func (v *visit) ids() (all []string) {
	for _, b := range v.boxes {
		all = append(all, b.IDs...)
	}
	return all
}

// read takes a reading of the target.
func (v *visit) read(ctx context.Context, moment record.Moment, memory, settled bool) record.Reading {
	var boxes []subject.Sandbox
	var problem error
	if v.there > 0 {
		boxes, problem = v.ask(ctx)
	}
	problem = cmp.Or(problem, v.unsaid)
	x := v.options.Meter.Read(ctx, boxes, subject.DaemonsOf(ctx, v.Target.Session), memory)
	x.Round, x.Order, x.Target, x.Sandboxes, x.Moment, x.Settled = v.Number, v.Order, v.Target.Info.Name, v.there, moment, settled
	if moment == record.MomentBegin || moment == record.MomentEnd {
		x.Phase = density.PhaseIdle
	}
	if n := len(x.Processes) + len(x.Groups); n > mostRead && problem == nil {
		x.Processes, x.Groups = nil, nil
		problem = fmt.Errorf("%d processes and cgroups exceed the limit of a record's reading: there are only figures of the node, without roles", n)
	}
	if problem != nil {
		x.Problems.Broken++
		x.Problems.Examples = append(x.Problems.Examples, problem.Error())
	}
	return x
}
