package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/tare-bench/tare/internal/core/finding"
	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/core/run"
	"github.com/tare-bench/tare/internal/instrument/overhead"
	"github.com/tare-bench/tare/internal/instrument/overhead/ledger"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/record"
)

// visit is one target's turn in a round.
type visit struct {
	*schedule
	turn
	made  int             // running sandboxes
	last  *record.Reading // the reading with the most sandboxes; its groups are looked up after the visit
	first *record.Reading // the reading before
	ids   []string        // of all sandboxes of the visit
}

// warmUp starts and removes one sandbox to measure its memory.
func (v *visit) warmUp(ctx context.Context) error {
	v.tell("warming up", 1)
	before := v.host(ctx)
	err := v.grow(ctx, 1)
	if err == nil && ctx.Err() == nil {
		v.options.Meter.Settle(ctx, time.Second)
		with := v.read(ctx, "", record.MomentEnd, false, true) // also shows the parent groups
		v.takes[v.Target.Info.Name] = max(with.Host.Used()-before.Used(), 0)
	}
	return v.giveUpOn(ctx, errors.Join(err, v.shrink(ctx)))
}

// do performs a visit. It removes all sandboxes, even after an error.
func (v *visit) do(ctx context.Context) error {
	err := errors.Join(v.phasesOf(ctx), v.shrink(ctx))
	if ctx.Err() != nil {
		return nil
	}
	if err == nil && v.first != nil {
		err = v.after(ctx)
	}
	return v.giveUpOn(ctx, err)
}

// giveUpOn gives up the target if the error is the target's own.
func (v *visit) giveUpOn(ctx context.Context, err error) error {
	var own *targetError
	switch {
	case ctx.Err() != nil:
		return nil
	case errors.As(err, &own):
		return v.GiveUp(v.Target, record.Finding{Message: fmt.Sprintf("given up in round %d: %s", v.Number+1, own.Error())})
	}
	return err
}

// targetError is an error of one target; the run continues with the others.
type targetError struct{ error }

func (v *visit) phasesOf(ctx context.Context) error {
	v.tell("reading the node before", 0)
	before := v.read(ctx, "", record.MomentBefore, true, v.settle(ctx))
	v.first = &before
	if err := v.Line(before); err != nil || ctx.Err() != nil {
		return err
	}
	for i, count := range v.options.Plan.Sandboxes {
		if room, err := v.roomFor(ctx, count); err != nil || !room {
			return err
		}
		v.tell("starting sandboxes", count)
		if err := v.grow(ctx, count); err != nil || ctx.Err() != nil {
			return err
		}
		for _, phase := range v.phases {
			if i > 0 && phase.Kind != overhead.PhaseIdle {
				continue // loads run with the smallest number of sandboxes
			}
			if err := v.phase(ctx, phase); err != nil || ctx.Err() != nil {
				return err
			}
		}
	}
	return nil
}

// grow starts sandboxes up to count.
func (v *visit) grow(ctx context.Context, count int) error {
	batch, err := v.Target.Session.Prepare(ctx, subject.Run, lanes(v.made, count))
	if err != nil {
		return &targetError{err}
	}
	v.made = count // even if some fail to start
	_, samples, err := batch.Start(ctx)
	if err != nil {
		return &targetError{err}
	}
	for _, s := range samples {
		if f := s.Failure; f != nil && ctx.Err() == nil {
			why := "a sandbox did not start: " + f.Detail
			for _, more := range [][2]string{{"; tried: ", f.Command}, {"; it said: ", f.Output}} {
				if more[1] != "" {
					why += more[0] + more[1]
				}
			}
			return &targetError{errors.New(why)}
		}
	}
	return nil
}

// lanes returns the lanes in [from, to).
func lanes(from, to int) (all []int) {
	for n := from; n < to; n++ {
		all = append(all, n)
	}
	return all
}

// shrink stops and removes all sandboxes the way users do, then everything left over.
func (v *visit) shrink(ctx context.Context) error {
	if v.made == 0 {
		return nil
	}
	clean, cancel := run.CleaningUp(ctx, v.options.Plan.Timeout)
	defer cancel()
	all := lanes(0, v.made)
	v.made = 0
	var soft error // the sandboxes are removed all the same
	if ctx.Err() == nil {
		v.tell("removing sandboxes", len(all))
		failed, err := subject.Retire(clean, v.Target.Session, v.Target.Info.Operations, all)
		if err != nil {
			soft = &targetError{err}
		}
		for _, r := range failed {
			soft = errors.Join(soft, v.Finding(finding.Retired(v.Target.Info.Name, string(r.Op), r.Failed, r.Of, r.First)))
		}
	}
	if err := v.Target.Session.Discard(clean, all); err != nil {
		return &targetError{fmt.Errorf("cleanup failed: %w", err)}
	}
	if dir := v.options.Workload.Volume; dir != "" { // the next target starts with a new file, too
		for _, n := range all {
			os.Remove(filepath.Join(dir, strconv.Itoa(n), fioFile))
		}
	}
	return soft
}

// after reads the node after removal, and what was left over.
func (v *visit) after(ctx context.Context) error {
	v.tell("reading the node after", 0)
	after := v.read(ctx, "", record.MomentAfter, true, v.settle(ctx))
	if v.last != nil {
		after.Left = v.options.Meter.Left(v.last, v.ids)
		after.LeftBeside = v.options.Meter.LeftBeside(&after, v.ids)
	}
	return v.Line(after)
}

// read takes a reading of the target in its current state.
func (v *visit) read(ctx context.Context, phase string, moment record.Moment, memory, settled bool) record.Reading {
	var boxes []subject.Sandbox
	var problem error
	if v.made > 0 {
		boxes, problem = subject.SandboxesOf(ctx, v.Target.Session)
	}
	x := v.options.Meter.Read(ctx, boxes, subject.DaemonsOf(ctx, v.Target.Session), memory)
	if s, ok := subject.As[subject.PodReporter](v.Target.Session); ok && v.made > 0 {
		var err error
		if x.Pods, err = s.PodStates(ctx); err != nil && problem == nil {
			problem = fmt.Errorf("the state of the target's sandboxes is unknown: %w", err)
		}
	}
	for _, b := range boxes {
		v.ids = append(v.ids, b.IDs...)
	}
	slices.Sort(v.ids)
	v.ids = slices.Compact(v.ids)
	v.learnAround(&x)
	x.Around = v.options.Meter.Around(v.around[v.Target.Info.Name])
	x.Round, x.Order, x.Target, x.Phase, x.Sandboxes, x.Moment, x.Settled = v.Number, v.Order, v.Target.Info.Name, phase, v.made, moment, settled
	if problem != nil {
		x.Problems.Broken++
		x.Problems.Examples = append(x.Problems.Examples, problem.Error())
	}
	if len(boxes) != v.made && problem == nil {
		x.Problems.Gone += v.made - len(boxes)
		x.Problems.Examples = append(x.Problems.Examples, fmt.Sprintf("the target knows of %d of %d sandboxes", len(boxes), v.made))
	}
	return x
}

// learnAround stores the parent groups of the sandboxes' groups. What they are charged
// for before the first and after the last sandbox belongs to no sandbox.
func (v *visit) learnAround(x *record.Reading) {
	known := v.around[v.Target.Info.Name]
	for g := range ledger.Each(x.Groups) {
		dir := path.Dir(g.Path)
		if g.Charge != record.ChargeShared && !g.Nested && dir != "/" && !slices.Contains(known, dir) && len(known) < maxAround {
			known = append(known, dir)
		}
	}
	v.around[v.Target.Info.Name] = known
}

// maxAround limits the parent groups: an engine may create a parent group for each
// sandbox.
const maxAround = 16

// host returns a reading of the node.
func (v *visit) host(ctx context.Context) record.Host {
	x := v.options.Meter.Read(ctx, nil, nil, false)
	return x.Host
}

// maxOfRoom is the share of available memory that the run may use. A node in use must not
// run out of memory.
const maxOfRoom = 0.8

// roomFor reports whether the node has memory for count sandboxes, based on what
// earlier ones took. If not, it adds a finding, and the visit ends.
func (v *visit) roomFor(ctx context.Context, count int) (bool, error) {
	each := v.takes[v.Target.Info.Name]
	need, available := each*int64(count-v.made), v.host(ctx).Available
	if float64(need) <= maxOfRoom*float64(available) {
		return true, nil
	}
	return false, v.Finding(record.Finding{Code: finding.NotReached, Level: "warning", Target: v.Target.Info.Name,
		Message: fmt.Sprintf("%d sandboxes were not started: %d more of %d MiB each would take more than 80 %% of the %d MiB that are available",
			count, count-v.made, each>>20, available>>20),
		Advice: "use smaller --sandboxes, or a node with more memory"})
}

// learn updates the memory usage per sandbox.
func (v *visit) learn(x *record.Reading) {
	if v.last == nil || x.Sandboxes >= v.last.Sandboxes {
		v.last = x
	}
	if x.Sandboxes > 0 {
		each := max(x.Host.Used()-v.first.Host.Used(), 0) / int64(x.Sandboxes)
		v.takes[v.Target.Info.Name] = max(each, v.takes[v.Target.Info.Name])
	}
}

// tell reports progress: the next step and the number of sandboxes.
func (v *visit) tell(what string, sandboxes int) {
	v.Step(page.Sandboxes(sandboxes), v.Target.Info.Name, what)
}
