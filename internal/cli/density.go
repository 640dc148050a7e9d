package cli

import (
	"context"

	"github.com/tare-bench/tare/internal/instrument"
	"github.com/tare-bench/tare/internal/instrument/density"
	densityrun "github.com/tare-bench/tare/internal/instrument/density/run"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/record"
)

// weighDensity runs a density plan. The instrument itself checks the machine's free memory.
func weighDensity(ctx context.Context, s *app, p density.Options, out outputFlags) error {
	return weigh(ctx, s, &out, weighing{
		experiment: density.Name, engines: p.Engines, metered: true, lanes: 1, workload: &p.Workload,
		targets: func() (targets []subject.Target, skipped []record.Finding, err error) {
			if targets, skipped, err = choose(ctx, s, selection{Whom: &p.Whom, workload: &p.Workload}, out.quiet); err == nil {
				err = onThisNode(targets)
			}
			return targets, skipped, err
		},
		run: func(o *session) (*record.Record, instrument.Judgement, error) {
			dir, _, err := o.run.Dirs("-density")
			if err != nil {
				return nil, nil, err
			}
			return outcome(densityrun.Run(ctx, densityrun.Options{Plan: p, Options: o.options, Targets: o.targets, Meter: o.meter,
				Workload: subject.Workload{Cargo: o.cargo},
				Node:     &densityrun.Machine{Floor: p.Floor, Dir: dir, Roots: densityrun.Roots(o.targets)}}))
		},
	})
}
