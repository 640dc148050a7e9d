package run

import (
	"context"
	"errors"
	"fmt"

	"github.com/tare-bench/tare/internal/core/run"
	"github.com/tare-bench/tare/internal/instrument/storage"
	"github.com/tare-bench/tare/internal/instrument/storage/run/volume"
	"github.com/tare-bench/tare/internal/instrument/storage/tool"
	"github.com/tare-bench/tare/internal/probe"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/record"
)

// stage is one volume with the targets that are open on it.
type stage struct {
	*schedule
	volume *volume.Volume
	pairs  []storage.Pair
	needs  int64                    // bytes that the largest job needs
	placed map[string]bool          // targets whose places are recorded
	looked map[string]*record.Place // places that are not recorded yet, by target
	laid   []tool.File              // files on a volume that outlives sandboxes, by their paths in sandboxes
}

// lasts reports whether all sandboxes share the files on the volume.
func (s *stage) lasts() bool {
	return s.volume.Workload.Volume != "" || s.volume.Workload.Device != ""
}

// at returns the location of a job's files and of its program in a sandbox.
func (r *schedule) at(p storage.Pair, kind string) tool.Place {
	at := tool.Place{Program: r.options.Programs[p.Job.Tool], Dir: subject.VolumePath, Direct: p.Cache == record.CacheDirect, Limit: r.options.Plan.RuntimeLimit, In: probe.InArgs}
	if kind == record.VolumeDevice {
		at.Device = subject.DevicePath
	}
	return at
}

// open opens the targets. A target that cannot use the volume is recorded as absent.
func (s *stage) open(ctx context.Context) error {
	w := s.volume.Workload
	w.Files = s.options.Files
	p := &s.options.Plan
	open := subject.Opener(s.options.Targets, subject.Env{Lanes: 1, Timeout: p.Timeout, Limits: p.Limits, Workload: w})
	return s.OpenEach(ctx, open, func(name string, why error) error {
		if errors.Is(why, subject.ErrUnsupported) {
			return s.absent(s.volume.Volume, name, why)
		}
		return s.NotOpened(name, fmt.Errorf("on %s: %w", s.volume.Name, why))
	})
}

// rounds performs the rounds.
func (s *stage) rounds(ctx context.Context) (why string, err error) {
	p := &s.options.Plan
	why, err = s.Perform(ctx, run.Rounds[subject.Session]{
		Rounds: p.Rounds, Budget: p.Budget, EachVisit: true, Turns: s.turns,
		On: "on " + s.volume.Name + " ", Fewer: ", targets, volumes or jobs, or a smaller --scale", Later: float64(s.later),
		Need: p.RoundsFor(p.Comparisons(len(s.Open))),
		Visit: func(ctx context.Context, t turn) error {
			v := &visit{stage: s, turn: t, pair: s.pairs[t.Part]}
			return v.do(ctx)
		},
	})
	return why, errors.Join(err, s.restOfPlaces())
}

// turns returns the turns of all jobs, one job after another. The order of the targets
// depends on the job and not on other volumes.
func (s *stage) turns(at run.Round) (turns []turn) {
	for i := range s.pairs {
		salt := uint64(at.Number)<<32 | uint64(i)
		turns = append(turns, run.Shuffled(s.options.Plan.Seed, salt, s.Each(at, i))...)
	}
	return turns
}

// tell reports the next step of a job.
func (s *stage) tell(job, cache, target, what string) {
	s.Step(fmt.Sprintf("%s, %s %s", s.volume.Name, job, cache), target, what)
}

// execute runs a command on the host or in a sandbox.
type execute func(context.Context, []string) (subject.Executed, error)

// inTime runs a command that is not measured, within the timeout of a step.
func (r *schedule) inTime(ctx context.Context, run execute, args []string) (subject.Executed, error) {
	ctx, cancel := context.WithTimeout(ctx, r.options.Plan.Timeout)
	defer cancel()
	return run(ctx, args)
}

// probed runs the probe and parses its output.
func probed[T any](ctx context.Context, r *schedule, run execute, args []string, read func(string) (T, error)) (said T, e subject.Executed, err error) {
	if e, err = r.inTime(ctx, run, args); err == nil {
		said, err = read(e.Output)
	}
	return said, e, err
}
