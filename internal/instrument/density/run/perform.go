package run

import (
	"context"

	"github.com/tare-bench/tare/internal/instrument"
	"github.com/tare-bench/tare/internal/instrument/density"
	"github.com/tare-bench/tare/internal/perform"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/record"
)

// Perform runs a density plan. The instrument itself checks the machine's free memory.
func Perform(ctx context.Context, p *density.Options, weigh perform.Weigh) error {
	return weigh(ctx, &perform.Measure{
		Metered: true, Lanes: 1, Workload: &p.Workload,
		Suits: func(targets []subject.Target, _ bool) error { return perform.OnThisNode(targets) },
		Run: func(s *perform.Session) (*record.Record, instrument.Judgement, error) {
			dir, _, err := s.Dirs("-density")
			if err != nil {
				return nil, nil, err
			}
			return perform.Outcome(Run(ctx, Options{Plan: *p, Options: s.Options, Targets: s.Targets, Meter: s.Meter, Workload: s.Workload,
				Node: &Machine{Floor: p.Floor, Dir: dir, Roots: Roots(s.Targets)}}))
		},
	})
}
