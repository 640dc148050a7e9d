package run

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tare-bench/tare/internal/instrument/density"
	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/record"
)

// fill starts sandboxes until there are as many as requested, in bursts of at most a
// quarter of what fits. Usage that appears late can then still be noticed in time.
func (v *visit) fill(ctx context.Context, to int, b *record.Batch) error {
	going := func() bool { return v.end.Why == "" && ctx.Err() == nil }
	for v.there < to && going() {
		fit, by := v.guard.fits()
		if fit < 1 && v.guard.there > v.guard.rooms[0].at { // late usage may still be settling
			if err := v.wait(ctx); err != nil {
				return err
			}
			fit, by = v.guard.fits()
		}
		if fit < 1 {
			v.stop(record.EndResource, by, v.guard.because(by)) // possibly the requested end
			return nil
		}
		for burst := min(max(fit/4, 1), to-v.there); burst > 0 && going(); {
			n := min(burst, v.options.Plan.AtOnce)
			if err := v.start(ctx, n, b); err != nil {
				return err
			}
			if burst -= n; burst > 0 {
				if more, _ := v.guard.fits(); more < 1 {
					break
				}
			}
		}
		if v.there < to && going() {
			if err := v.wait(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// wait waits for late usage and updates the guard.
func (v *visit) wait(ctx context.Context) error {
	_ = machine.Sleep(ctx, v.options.Plan.Settle)
	levels, err := v.options.Node.Levels()
	if err == nil {
		v.guard.waitedFor(levels)
		v.trip(levels)
	}
	return err
}

// trip ends a visit if a resource is below its floor.
func (v *visit) trip(levels []Level) {
	for _, l := range levels {
		if l.Left < l.Floor {
			v.stop(record.EndTripped, l.Name, fmt.Sprintf("%s fell to %s, below the reserve of %s", l.Name, amount(l.Name, float64(l.Left)), amount(l.Name, float64(l.Floor))))
		}
	}
}

// start releases n starts together and watches the node until they finish. They are
// aborted if a resource falls below its floor.
func (v *visit) start(ctx context.Context, n int, b *record.Batch) error {
	lanes := make([]int, n)
	for i := range lanes {
		lanes[i] = v.used + i
	}
	before, err := v.options.Node.Levels()
	if err != nil {
		return err
	}
	if v.trip(before); v.end.Why != "" {
		return nil
	}
	v.used += n // even if the starts fail
	batch, err := v.Target.Session.Prepare(ctx, subject.Run, lanes)
	if err != nil {
		v.broken = append(v.broken, lanes...)
		v.failed(ctx, &record.Failure{Kind: record.FailError, Detail: err.Error()})
		return nil
	}
	var released int64
	var samples []record.Sample
	least, after, err := v.watched(ctx, before, func(ctx context.Context) error {
		var err error
		released, samples, err = batch.Start(ctx)
		return err
	})
	if err != nil {
		v.broken = append(v.broken, lanes...)
	}
	if err != nil && v.end.Why == "" {
		v.failed(ctx, &record.Failure{Kind: record.FailError, Detail: err.Error()})
		return nil
	}
	if b.Released == 0 {
		b.Released = released
	}
	for i := range samples {
		if f := samples[i].Failure; f != nil {
			v.broken = append(v.broken, samples[i].Lane)
			if v.end.Why != "" || ctx.Err() != nil {
				continue // aborted; the target is not at fault
			}
			v.failed(ctx, f)
		} else {
			v.there++
		}
		b.Samples = append(b.Samples, samples[i])
	}
	v.guard.started(n, before, least, after)
	return nil
}

// look is the interval of readings during a start.
const look = 50 * time.Millisecond

// watched calls do and reads the node while it runs. It returns the minimum of each
// resource, and the levels afterwards. It cancels do if the guard trips or the node
// becomes unreadable.
func (v *visit) watched(ctx context.Context, before []Level, do func(context.Context) error) (least, after []Level, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- do(ctx) }()
	least = slices.Clone(before)
	var blind error
	see := func() (levels []Level) {
		levels, err := v.options.Node.Levels()
		if err != nil {
			blind = err
			cancel()
			return nil
		}
		for i := range least {
			least[i].Left = min(least[i].Left, left(levels, least[i].Name))
		}
		if v.trip(levels); v.end.Why == record.EndTripped {
			cancel()
		}
		return levels
	}
	for {
		select {
		case err = <-done:
			after = see()
			if blind != nil {
				v.stop(record.EndTripped, density.Memory, "what the node has left could not be read any more: "+blind.Error())
				after = least
			}
			return least, after, err
		case <-time.After(look):
			see()
		}
	}
}

// failed ends a visit because of a failure. That may be the requested end.
func (v *visit) failed(ctx context.Context, f *record.Failure) {
	if ctx.Err() == nil && v.end.Why == "" {
		v.end.Failure = f
		v.stop(record.EndFailure, "", f.Detail)
	}
}
