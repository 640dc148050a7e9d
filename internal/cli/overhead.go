package cli

import (
	"context"
	"fmt"
	"github.com/tare-bench/tare/internal/core/option"
	"github.com/tare-bench/tare/internal/instrument"
	"github.com/tare-bench/tare/internal/instrument/overhead"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	overheadrun "github.com/tare-bench/tare/internal/instrument/overhead/run"
	"github.com/tare-bench/tare/internal/node/snapshot"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/hosttools"
	"github.com/tare-bench/tare/record"
	"golang.org/x/sys/unix"
)

func newOverhead(s Streams) *cobra.Command {
	o := overhead.Defaults()
	set := option.Of(&o)
	var out outputFlags
	c := &cobra.Command{
		Use:   "overhead [TARGET...]",
		Short: "Weigh whose memory and CPU a sandbox uses, and which cgroup is charged",
		Long: `Start sandboxes on each target, watch them idle and under load, and close the
books: memory and CPU by role (workload, pause, shim, monitor, VMM, virtiofsd,
sentry, gofer, daemon, kernel, page cache), by cgroup, what the engine itself
reports beside the truth, and the residual, which is what the node's memory
changed by and no role explains.

Counts of sandboxes give the cost of one more, with an interval, and how many
fit on this node; from all of it comes a RuntimeClass with overhead.podFixed.
--check tells of an existing one whether it is enough, and in which phase it is
not.

Without TARGET, everything that can be weighed here is. Targets are those of
tare lifecycle. fio is carried into the containers from this machine, so that
all sides run the same version; it has to be installed for phases such as 1G.`,
		Example: `  tare overhead runc crun
  tare overhead runc containerd/runc --phases idle,10M,100M --limit cpu=1,memory=1Gi
  tare overhead runc --sandboxes 1 --phases 'hold 256MiB,spin 0.5cpu' --explain
  tare overhead docker/runc --sandboxes 1 --check 250m,160Mi`,
		RunE: func(c *cobra.Command, args []string) error {
			o.Targets = args
			if err := set.Finish(c.Context()); err != nil {
				return err
			}
			return weighOverhead(c.Context(), s, o, out)
		},
	}
	set.AddFlags(c.Flags())
	out.addRecord(c.Flags())
	out.addForm(c.Flags())
	return c
}

// weighOverhead performs an overhead plan.
func weighOverhead(ctx context.Context, s Streams, p overhead.Options, out outputFlags) error {
	var options overheadrun.Options
	var phases []overhead.Phase
	return weigh(ctx, s, &out, weighing{
		experiment: "overhead", engines: p.Engines,
		targets: func() (targets []subject.Target, skipped []record.Finding, err error) {
			if phases, err = p.Resolved(); err != nil {
				return nil, nil, err
			}
			if err := carryFio(ctx, phases, &options); err != nil {
				return nil, nil, err
			}
			if options.Meter, err = snapshot.New(); err != nil {
				return nil, nil, err
			}
			return choose(ctx, s, selection{Whom: &p.Whom}, out.quiet)
		},
		run: func(o *session) (_ *record.Record, _ instrument.Judgement, err error) {
			options.Plan, options.Options, options.Targets = p, o.options, o.targets
			if options.Workload.Volume, err = loadFolder(o, phases); err != nil {
				return nil, nil, err
			}
			options.Free = func() (int64, error) { return freeBelow(options.Workload.Volume) }
			return outcome(overheadrun.Run(ctx, options))
		},
	})
}

// carryFio finds fio if a phase needs it.
func carryFio(ctx context.Context, phases []overhead.Phase, o *overheadrun.Options) error {
	if !slices.ContainsFunc(phases, func(p overhead.Phase) bool { return p.Kind == overhead.PhaseFio }) {
		return nil
	}
	fio, err := hosttools.Fio(ctx)
	if err != nil {
		return err
	}
	o.Workload.Files, o.FioPath, o.FioVersion = fio.Files, fio.Path, fio.Version
	return nil
}

// loadFolder makes the folder below which every sandbox has one of its own to write
// to, if a phase writes.
func loadFolder(o *session, phases []overhead.Phase) (string, error) {
	if !slices.ContainsFunc(phases, func(p overhead.Phase) bool { return p.Kind == overhead.PhaseFio }) {
		return "", nil
	}
	dir, _, err := o.run.Dirs("-volume")
	return dir, err
}

func freeBelow(dir string) (int64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, fmt.Errorf("ask for the free space of %s: %w", filepath.Base(dir), os.NewSyscallError("statfs", err))
	}
	return int64(st.Bavail) * st.Bsize, nil
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
