package run

import (
	"context"
	"errors"
	"fmt"

	"github.com/tare-bench/tare/internal/instrument"
	"github.com/tare-bench/tare/internal/instrument/startup"
	"github.com/tare-bench/tare/internal/instrument/startup/run/logfiles"
	"github.com/tare-bench/tare/internal/instrument/startup/run/proctree"
	"github.com/tare-bench/tare/internal/node/procs"
	"github.com/tare-bench/tare/internal/node/tracer"
	"github.com/tare-bench/tare/internal/perform"
	"github.com/tare-bench/tare/internal/subject/command"
	"github.com/tare-bench/tare/record"
)

// Perform runs a startup plan.
func Perform(ctx context.Context, p *startup.Options, weigh perform.Weigh) error {
	return PerformWith(ctx, p, weigh, logfiles.Logs{})
}

// PerformWith runs a startup plan and adds events from logs to its starts: these logs, and those
// of the plan.
func PerformWith(ctx context.Context, p *startup.Options, weigh perform.Weigh, from logfiles.Logs) (err error) {
	if p.Pod != "" || p.ID != "" {
		return errors.New("--pod and --id select starts in logs: add --log or --journal, or omit them")
	}
	from.Files, from.Journal = append(from.Files, p.Logs...), from.Journal || p.Journal
	beside := len(from.Files) > 0 || from.Journal
	// The check whether processes can be traced opens a tracer. The first start reuses it.
	var first *tracer.Tracer
	watch := func() (Watch, error) {
		w, err := first, error(nil)
		if first = nil; w == nil {
			w, err = tracer.Open()
		}
		if err != nil {
			return nil, err
		}
		return w, nil
	}
	defer func() {
		if first != nil {
			err = errors.Join(err, first.Close())
		}
	}()
	m := &perform.Measure{Steady: true, Workload: &p.Workload, Cache: p.Cache}
	m.Check = func() (err error) {
		for _, c := range p.Commands {
			t, err := command.New(c.Name, c.Args)
			if err != nil {
				return err
			}
			m.Commands = append(m.Commands, t)
		}
		if beside {
			if from, err = from.Mark(); err != nil {
				return err
			}
		}
		if first, err = tracer.Open(); err != nil {
			return fmt.Errorf("%w\nto read starts from logs instead: tare startup --log FILE", err)
		}
		return nil
	}
	m.Run = func(s *perform.Session) (*record.Record, instrument.Judgement, error) {
		o := Options{Plan: *p, Options: s.Options, Targets: s.Targets, Workload: s.Workload, Callers: procs.Own, Daemons: daemons, Watch: watch}
		if beside {
			o.Logs = func(ctx context.Context, watched []record.Start) (_ []record.Start, _ *record.Logs, err error) {
				r, err := logfiles.Open(ctx, from)
				if err != nil {
					return nil, nil, err
				}
				defer func() { err = errors.Join(err, r.Close()) }()
				return r.Of(ctx, watched, s.ShowProgress)
			}
		}
		return perform.Outcome(Run(ctx, o))
	}
	return weigh(ctx, m)
}

// daemons returns the engines' daemons, shims and monitors. Package proctree decides which
// of their children belong to a start.
func daemons() (all []proctree.Root) {
	for _, f := range procs.Programs() {
		switch f.Role {
		case record.RoleDaemon, record.RoleShim, record.RoleMonitor:
			all = append(all, proctree.Root{Pid: f.Pid, Kind: proctree.Kind(f.Role), Name: f.Name})
		}
	}
	return all
}
