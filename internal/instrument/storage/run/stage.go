package run

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/tare-bench/tare/internal/core/finding"
	"github.com/tare-bench/tare/internal/core/run"
	"github.com/tare-bench/tare/internal/instrument/storage/run/volume"
	"github.com/tare-bench/tare/internal/instrument/storage/tool"
	"github.com/tare-bench/tare/internal/plan"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/record"
)

// stage is one volume with the targets that are open on it.
type stage struct {
	*schedule
	volume *volume.Volume
	pairs  []pair
	round  int
	placed map[string]bool          // targets whose places are recorded
	looked map[string]*record.Place // what was found of the others
	laid   []tool.File              // that are on a volume which outlives sandboxes, by their paths in them
}

// lasts says whether files on the volume are the same for every sandbox.
func (s *stage) lasts() bool {
	return s.volume.Workload.Volume != "" || s.volume.Workload.Device != ""
}

// at is where a job's files are in a sandbox of a kind of target.
func (r *schedule) at(p pair, kind, of string) tool.Place {
	program := r.Options.Programs[p.job.Tool]
	if of == "host" && r.Options.Plan.Programs[p.job.Tool] != "" {
		// Its own, whatever containers have. Two slashes, so that a file that is
		// carried to the same path elsewhere is not taken for it.
		program = "/" + r.Options.OnHost[p.job.Tool]
	}
	at := tool.Place{Program: program, Dir: subject.VolumePath, Direct: p.cache == record.CacheDirect, Limit: r.Options.Plan.RuntimeLimit}
	if kind == record.VolumeDevice {
		at.Device = subject.DevicePath
	}
	return at
}

// open opens the targets. One that cannot have the volume is told of and left
// out.
func (s *stage) open(ctx context.Context) error {
	w := s.volume.Workload
	w.Files = s.Options.Files
	for _, t := range s.Options.Targets {
		if ctx.Err() != nil {
			return nil
		}
		err := s.OpenOne(ctx, t, subject.Env{Lanes: 1, Timeout: s.Options.Plan.Timeout, Limits: s.Options.Plan.Limits, Workload: w})
		if err == nil || ctx.Err() != nil {
			continue
		}
		s.work.done += len(s.pairs) * s.Options.Plan.Rounds
		if errors.Is(err, subject.ErrUnsupported) {
			err = s.absent(s.volume.Volume, t.Info().Name, err)
		} else {
			err = s.NotOpened(t, fmt.Errorf("on %s: %w", s.volume.Name, err))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// rounds goes through the rounds. spent says that the budget is.
func (s *stage) rounds(ctx context.Context) (spent bool, err error) {
	s.looked = map[string]*record.Place{}
	spent, err = s.visits(ctx)
	return spent, errors.Join(err, s.restOfPlaces())
}

func (s *stage) visits(ctx context.Context) (spent bool, err error) {
	for s.round = range s.Options.Plan.Rounds {
		for i, p := range s.pairs {
			for place, w := range s.order(i) {
				switch {
				case ctx.Err() != nil:
					return false, nil
				case w.Gone:
					s.work.done++
					continue
				case time.Since(s.Began) > s.Options.Plan.Budget:
					return true, s.budgetSpent()
				}
				v := &visit{stage: s, w: w, pair: p, order: place}
				if err := v.do(ctx); err != nil {
					return false, err
				}
				s.work.done++
			}
		}
	}
	return false, nil
}

// order is that of the targets for one job in this round: its own, whatever
// other volumes there are.
func (s *stage) order(i int) []*run.Weighed {
	random := rand.New(rand.NewPCG(s.Options.Plan.Seed, uint64(s.round)<<32|uint64(i)))
	order := slices.Clone(s.Open)
	random.Shuffle(len(order), func(a, b int) { order[a], order[b] = order[b], order[a] })
	return order
}

func (s *stage) budgetSpent() error {
	level := "warning"
	if len(s.Record.Cells) == 0 {
		level = "error" // nothing was weighed
	}
	return s.Finding(record.Finding{Code: finding.Budget, Level: level,
		Message: fmt.Sprintf("the budget of %v was spent on %s in round %d of %d", s.Options.Plan.Budget, s.volume.Name, s.round+1, s.Options.Plan.Rounds),
		Advice:  "raise --budget, or use fewer --rounds, targets, volumes or jobs, or a smaller --scale"})
}

// needs is how much room a job's files take.
func needs(j plan.Job, at tool.Place) (int64, error) {
	files, err := tool.Files(j, at)
	if err != nil {
		return 0, err
	}
	var sum int64
	for _, f := range files {
		sum += f.Size
	}
	return max(sum, written(j)), nil
}

// written is what a job that makes its own files writes at most.
func written(j plan.Job) int64 {
	switch {
	case j.Count > 0:
		return j.Count * j.BS
	case j.FileSize > 0:
		return j.FileSize * int64(max(j.Files, 1))
	}
	return j.Size
}
