package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/instrument"
	"github.com/tare-bench/tare/internal/instrument/overhead"
	overheadrun "github.com/tare-bench/tare/internal/instrument/overhead/run"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/hosttools"
	"github.com/tare-bench/tare/record"
)

// inCluster rejects pods whose memory cannot be read here. It also rejects a check of
// declared overhead if no target declares one.
func inCluster(p *overhead.Options, targets []subject.Target) error {
	if err := onThisNode(targets); err != nil {
		return err
	}
	if p.Check == nil || !p.Check.Declared || slices.ContainsFunc(targets, func(t subject.Target) bool {
		info := t.Info()
		return p.Asked(&info) != nil
	}) {
		return nil
	}
	return errors.New("--check: no target is a RuntimeClass of a cluster, so no overhead is declared: measure kubernetes/RUNTIMECLASS, or give the overhead itself, such as 250m,160Mi")
}

// onThisNode rejects pods that run on other machines.
func onThisNode(targets []subject.Target) error {
	for _, t := range targets {
		if info := t.Info(); info.Kubernetes != nil && info.Kubernetes.Allocatable == nil {
			return fmt.Errorf("target %s: its pods run on other machines, and their memory can only be read there: run this as root on a node of the cluster (--node names it), or on all nodes with tare fleet run PLAN --nodes SELECTOR", info.Name)
		}
	}
	return nil
}

// weighOverhead runs an overhead plan.
func weighOverhead(ctx context.Context, s *app, p overhead.Options, out outputFlags) error {
	p.Serve(&p.Workload)
	var options overheadrun.Options
	var writes bool // a phase writes, so every sandbox has its own folder
	return weigh(ctx, s, &out, weighing{
		experiment: overhead.Name, engines: p.Engines, metered: true, lanes: slices.Max(p.Sandboxes), ahead: p.Ahead, workload: &p.Workload,
		targets: func() (targets []subject.Target, skipped []record.Finding, err error) {
			writes = slices.ContainsFunc(p.Resolved(), func(p overhead.Phase) bool { return p.Kind == overhead.PhaseFio })
			if writes && p.Workload.Is() {
				return nil, nil, errors.New("--phases: fio is only available in tare's own image, not in yours: omit the phases with a size, or the workload")
			}
			if writes {
				fio, err := hosttools.Fio(ctx)
				if err != nil {
					return nil, nil, err
				}
				options.Workload.Files, options.FioPath, options.FioVersion = fio.Files, fio.Path, fio.Version
			}
			if targets, skipped, err = choose(ctx, s, selection{Whom: &p.Whom, workload: &p.Workload}, out.quiet); err == nil {
				err = inCluster(&p, targets)
			}
			return targets, skipped, err
		},
		run: func(o *session) (_ *record.Record, _ instrument.Judgement, err error) {
			options.Plan, options.Options, options.Targets, options.Meter = p, o.options, o.targets, o.meter
			options.Workload.Cargo = o.cargo
			if writes {
				if options.Workload.Volume, _, err = o.run.Dirs("-volume"); err != nil {
					return nil, nil, err
				}
			}
			options.Free = func() (int64, error) { return freeBelow(options.Workload.Volume) }
			return outcome(overheadrun.Run(ctx, options))
		},
	})
}

func freeBelow(dir string) (int64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, fmt.Errorf("read the free space of %s: %w", filepath.Base(dir), os.NewSyscallError("statfs", err))
	}
	return int64(st.Bavail) * st.Bsize, nil
}
