package run

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/instrument"
	"github.com/tare-bench/tare/internal/instrument/lifecycle"
	"github.com/tare-bench/tare/internal/node/snapshot"
	"github.com/tare-bench/tare/internal/perform"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/record"
)

// Perform runs a lifecycle plan.
func Perform(ctx context.Context, p *lifecycle.Options, weigh perform.Weigh) error {
	return weigh(ctx, &perform.Measure{
		Steady: true, Lanes: slices.Max(p.Lanes), Workload: &p.Workload, Cache: p.Cache, Named: []*string{&p.Baseline, &p.Subject},
		Suits: func(targets []subject.Target, skipped bool) error {
			return cmp.Or(checkOps(targets, p.Ops, skipped), checkNames(targets, p.Baseline, "--baseline"), checkNames(targets, p.Subject, "--subject"))
		},
		Run: func(s *perform.Session) (*record.Record, instrument.Judgement, error) {
			o := Options{Plan: *p, Options: s.Options, Targets: s.Targets, Workload: s.Workload}
			if meter, err := snapshot.New(); err == nil {
				defer meter.Close()
				o.Meter = meter
			}
			return perform.Outcome(Run(ctx, o))
		},
	})
}

// checkOps rejects operations that no target supports. A skipped target may support them.
func checkOps(targets []subject.Target, ops []subject.Op, skipped bool) error {
	var names []string
	for _, op := range ops {
		names = append(names, string(op))
		for _, t := range targets {
			if info := t.Info(); lifecycle.Absent(&info, op) == "" {
				return nil
			}
		}
	}
	err := fmt.Errorf("--ops: no target supports %s", strings.Join(names, ","))
	if skipped {
		return perform.Missing(err)
	}
	return err
}

func checkNames(targets []subject.Target, name, flag string) error {
	var names []string
	for _, t := range targets {
		names = append(names, t.Info().Name)
	}
	if name == "" || slices.Contains(names, name) {
		return nil
	}
	return fmt.Errorf("%s: %q is not a measured target: %s", flag, name, strings.Join(names, ", "))
}
