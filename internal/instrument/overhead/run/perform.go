package run

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
	"github.com/tare-bench/tare/internal/perform"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/hosttools"
	"github.com/tare-bench/tare/record"
)

// Perform runs an overhead plan.
func Perform(ctx context.Context, p *overhead.Options, weigh perform.Weigh) error {
	p.Serve(&p.Workload)
	var fio *hosttools.Program // nil if no phase writes; otherwise every sandbox has its own folder
	return weigh(ctx, &perform.Measure{
		Metered: true, Lanes: slices.Max(p.Sandboxes), Workload: &p.Workload,
		Check: func() (err error) {
			if !slices.ContainsFunc(p.Resolved(), func(p overhead.Phase) bool { return p.Kind == overhead.PhaseFio }) {
				return nil
			}
			if p.Workload.Is() {
				return errors.New("--phases: fio is only available in tare's own image, not in yours: omit the phases with a size, or the workload")
			}
			fio, err = hosttools.Fio(ctx)
			return err
		},
		Suits: func(targets []subject.Target, _ bool) error { return inCluster(p, targets) },
		Run: func(s *perform.Session) (_ *record.Record, _ instrument.Judgement, err error) {
			o := Options{Plan: *p, Options: s.Options, Targets: s.Targets, Meter: s.Meter, Workload: s.Workload}
			if fio != nil {
				o.Workload.Files, o.FioPath, o.FioVersion = fio.Files, fio.Path, fio.Version
				if o.Workload.Volume, _, err = s.Dirs("-volume"); err != nil {
					return nil, nil, err
				}
			}
			o.Free = func() (int64, error) { return freeBelow(o.Workload.Volume) }
			return perform.Outcome(Run(ctx, o))
		},
	})
}

// inCluster rejects pods whose memory cannot be read here. It also rejects a check of
// declared overhead if no target declares one.
func inCluster(p *overhead.Options, targets []subject.Target) error {
	if err := perform.OnThisNode(targets); err != nil {
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

func freeBelow(dir string) (int64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, fmt.Errorf("read the free space of %s: %w", filepath.Base(dir), os.NewSyscallError("statfs", err))
	}
	return int64(st.Bavail) * st.Bsize, nil
}
