package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tare-bench/tare/internal/core/finding"
	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/record"
)

// remove stops and removes all sandboxes, and waits until the machine has recovered.
func (v *visit) remove(ctx context.Context) error {
	if v.used == 0 {
		return nil
	}
	limit := 2*time.Minute + v.options.Plan.Timeout + time.Duration(v.used)*perRemoval
	clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	v.tell("removing sandboxes", v.used)
	began := time.Now()
	broken := slices.Compact(slices.Sorted(slices.Values(v.broken)))
	// Remove aborted starts first, because the engine may not know them. If the guard
	// tripped, first remove the sandboxes known to hold memory.
	tripped := v.end.Why == record.EndTripped
	var errs []error
	if !tripped {
		errs = append(errs, v.discard(clean, broken))
	}
	// If a whole chunk fails to stop in time, skip stopping the others. List the
	// sandboxes only once, even if that fails.
	stubborn, asked := false, false
	for some := range slices.Chunk(v.whole(), removedAtOnce) {
		if ctx.Err() == nil && !asked && slices.Max(some) >= v.asked {
			asked = true
			if tripped {
				limit = patience
			}
			asking, stop := context.WithTimeout(clean, limit)
			_, v.unsaid = v.ask(asking)
			stop()
		}
		if ctx.Err() == nil && !tripped && !stubborn {
			var err error
			stubborn, err = v.retire(clean, some)
			errs = append(errs, err)
		}
		errs = append(errs, v.discard(clean, some))
	}
	if tripped {
		errs = append(errs, v.discard(clean, broken))
	}
	v.used = 0
	v.end.Removed = time.Since(began).Nanoseconds()
	if err := errors.Join(errs...); err != nil && ctx.Err() == nil {
		return v.GiveUp(v.Target, record.Finding{Message: fmt.Sprintf("given up in round %d: what it made could not be removed: %v", v.Number+1, err)})
	}
	if ctx.Err() == nil {
		v.back(ctx, began)
	}
	return nil
}

const (
	removedAtOnce = 8
	perRemoval    = 2 * time.Second
	patience      = time.Second // timeout for listing sandboxes while memory is short
)

// discard removes a few lanes at a time, because removal also needs memory, which may
// be short.
func (v *visit) discard(ctx context.Context, lanes []int) error {
	var errs []error
	for some := range slices.Chunk(lanes, removedAtOnce) {
		errs = append(errs, v.Target.Session.Discard(ctx, some))
	}
	return errors.Join(errs...)
}

// retire runs the operations that end a lifecycle. It reports whether one of them
// failed on all lanes. Sandboxes that fail are removed by force anyway.
func (v *visit) retire(ctx context.Context, lanes []int) (all bool, err error) {
	failed, err := subject.Retire(ctx, v.Target.Session, v.Target.Info.Operations, lanes)
	for _, r := range failed {
		all = all || r.Failed == len(lanes)
		err = errors.Join(err, v.Finding(finding.Retired(v.Target.Info.Name, string(r.Op), r.Failed, r.Of, r.First)))
	}
	return all, err
}

// Memory has recovered when the node uses as much as before plus this margin: a
// twentieth of the sandboxes' usage, but at least the fluctuation of an idle node.
const (
	withinShare = 20
	withinLeast = 16 << 20
)

// back waits until the node's memory has recovered, not counting changes by other
// processes.
func (v *visit) back(ctx context.Context, began time.Time) {
	v.tell("waiting for the machine to come back", 0)
	own := func(h *record.Host) int64 { return h.Used() - h.Others }
	took := int64(0)
	if v.last != nil {
		took = own(&v.last.Host) - own(&v.before.Host)
	}
	v.end.Within, v.end.Back = max(took/withinShare, withinLeast), -1
	daemons := subject.DaemonsOf(ctx, v.Target.Session) // their memory does not count as other processes'
	// Leftovers of the sandboxes do not count either. Pids are cleared, since they may have been reused.
	var boxes []subject.Sandbox
	for _, b := range v.boxes {
		b.Workload, b.Pause, b.More = 0, 0, nil
		boxes = append(boxes, b)
	}
	for ctx.Err() == nil {
		x := v.options.Meter.Read(ctx, boxes, daemons, false)
		v.end.Remaining = own(&x.Host) - own(&v.before.Host)
		if v.end.Remaining <= v.end.Within {
			v.end.Back = time.Since(began).Nanoseconds()
			return
		}
		if time.Since(began)-time.Duration(v.end.Removed) > v.options.Plan.Recover {
			return
		}
		_ = machine.Sleep(ctx, 4*look)
	}
}

// after reads the node after the removal, and records leftovers.
func (v *visit) after(ctx context.Context) record.Reading {
	v.tell("reading the node after", 0)
	x := v.read(ctx, record.MomentAfter, true, v.options.Meter.Settle(ctx, v.options.Plan.Settle))
	x.Sandboxes = 0
	if v.last != nil {
		x.Left = v.options.Meter.Left(v.last, v.ids())
		x.LeftBeside = v.options.Meter.LeftBeside(&x, v.ids())
	}
	return x
}
