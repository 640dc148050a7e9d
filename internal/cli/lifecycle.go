package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/instrument"
	"github.com/tare-bench/tare/internal/instrument/lifecycle"
	lifecyclerun "github.com/tare-bench/tare/internal/instrument/lifecycle/run"
	"github.com/tare-bench/tare/internal/node/nodestat"
	"github.com/tare-bench/tare/internal/node/snapshot"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/record"
)

// weighLifecycle runs a lifecycle plan.
func weighLifecycle(ctx context.Context, s *app, l lifecycle.Options, out outputFlags) error {
	return weigh(ctx, s, &out, weighing{
		experiment: lifecycle.Name, engines: l.Engines, steady: true, lanes: slices.Max(l.Lanes), workload: &l.Workload, cache: l.Cache,
		targets: func() ([]subject.Target, []record.Finding, error) {
			targets, skipped, err := choose(ctx, s, selection{&l.Whom, []*string{&l.Baseline, &l.Subject}, &l.Workload}, out.quiet)
			if err != nil {
				return nil, nil, err
			}
			if err := checkOps(targets, l.Ops); err != nil {
				if len(skipped) > 0 { // a skipped target may support them
					err = &notHere{err}
				}
				return nil, nil, err
			}
			return targets, skipped, cmp.Or(checkNames(targets, l.Baseline, "--baseline"), checkNames(targets, l.Subject, "--subject"))
		},
		run: func(o *session) (*record.Record, instrument.Judgement, error) {
			o.options.Node = nodeReader()
			options := lifecyclerun.Options{Plan: l, Options: o.options, Targets: o.targets, Workload: subject.Workload{Cargo: o.cargo}}
			if meter, err := snapshot.New(); err == nil {
				defer meter.Close()
				options.Meter = meter
			}
			return outcome(lifecyclerun.Run(ctx, options))
		},
	})
}

// nodeReader returns a function that reads the machine's state between rounds.
func nodeReader() func() record.Node {
	node := &nodestat.Reader{}
	return func() record.Node {
		n, _ := node.Read() // Node itself marks unknown values
		return n
	}
}

func joinOps(ops []subject.Op) string {
	var names []string
	for _, op := range ops {
		names = append(names, string(op))
	}
	return strings.Join(names, ",")
}

// checkOps rejects operations that no target supports.
func checkOps(targets []subject.Target, ops []subject.Op) error {
	for _, t := range targets {
		info := t.Info()
		for _, op := range ops {
			if lifecycle.Absent(&info, op) == "" {
				return nil
			}
		}
	}
	return fmt.Errorf("--ops: no target supports %s", joinOps(ops))
}

func checkNames(targets []subject.Target, name, flag string) error {
	var names []string
	for _, t := range targets {
		if t.Info().Name == name {
			return nil
		}
		names = append(names, t.Info().Name)
	}
	if name == "" {
		return nil
	}
	return fmt.Errorf("%s: %q is not a measured target: %s", flag, name, strings.Join(names, ", "))
}
