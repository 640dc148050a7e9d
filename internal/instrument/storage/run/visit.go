package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tare-bench/tare/internal/core/finding"
	"github.com/tare-bench/tare/internal/core/run"
	"github.com/tare-bench/tare/internal/instrument/overhead/ledger"
	"github.com/tare-bench/tare/internal/instrument/storage"
	"github.com/tare-bench/tare/internal/instrument/storage/tool"
	"github.com/tare-bench/tare/internal/lane"
	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/probe"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/record"
)

// visit measures one job on one target.
type visit struct {
	*stage
	turn
	pair storage.Pair

	cell  record.Cell
	found *record.Place // place of the volume on the target, until it is recorded
	busy  int64         // ns spent on the layout and the job
}

// lane0 is the only lane of a storage run.
var lane0 = []int{0}

// failure ends a visit: the cell has no figures, and the run continues.
type failure struct{ record.Failure }

func (f *failure) Error() string { return f.Detail }

func fail(kind string, e *subject.Executed, format string, args ...any) *failure {
	f := &failure{record.Failure{Kind: kind, Detail: fmt.Sprintf(format, args...)}}
	if e != nil {
		f.Command, f.Exit, f.Output = e.Command, e.Exit, e.Said()
	}
	return f
}

// do performs a visit. It removes the sandbox, even after an error. It returns only
// errors that end the run.
func (v *visit) do(ctx context.Context) error {
	began := machine.Now()
	v.cell = record.Cell{Round: v.Number, Order: v.Order, Target: v.Target.Info.Name, Volume: v.volume.Name,
		Cache: v.pair.Cache, Job: v.pair.Job.Name, Tool: v.pair.Job.Tool}
	err := v.sandbox(ctx)
	if err == nil {
		err = v.job(ctx)
	}
	clean, cancel := run.CleaningUp(ctx, 0)
	defer cancel()
	cut := v.Target.Session.Discard(clean, lane0)
	if ctx.Err() != nil {
		return nil // the measurement is incomplete; Close cleans up
	}
	if f, ok := errors.AsType[*failure](err); ok {
		v.cell.Failure, err = &f.Failure, nil
	}
	if err != nil {
		return err
	}
	if v.found != nil {
		v.placed[v.Target.Info.Name] = true
		if err := v.Line(*v.found); err != nil {
			return err
		}
	}
	v.cell.SetUp = max(machine.Now()-began-v.busy, 0)
	if err := v.schedule.Line(v.cell); err != nil {
		return err
	}
	if cut != nil {
		return v.GiveUp(v.Target, record.Finding{Message: fmt.Sprintf("gave up on %s in round %d: cleanup failed: %v", v.volume.Name, v.Number+1, cut)})
	}
	return nil
}

// sandbox starts the sandbox.
func (v *visit) sandbox(ctx context.Context) error {
	v.step("starting a sandbox")
	samples, err := subject.Operate(ctx, v.Target.Session, subject.Run, lane0)
	if err != nil {
		return fail(record.FailError, nil, "the sandbox did not start: %v", err)
	}
	for _, s := range samples {
		if s.Failure != nil {
			f := *s.Failure
			f.Detail = "the sandbox did not start: " + f.Detail
			return &failure{f}
		}
	}
	return nil
}

// job prepares everything and runs the tool.
func (v *visit) job(ctx context.Context) error {
	at := v.at(v.pair, v.volume.Kind)
	files, err := tool.Files(v.pair.Job, at)
	if err != nil {
		return fail(record.FailError, nil, "%v", err)
	}
	args, err := tool.Command(v.pair.Job, at)
	if err != nil {
		return fail(record.FailError, nil, "%v", err)
	}
	for _, step := range []func() error{
		func() error { return v.look(ctx, at) },
		func() error { return v.room(ctx, at, files) },
		func() error { return v.layOut(ctx, files) },
		func() error { return v.tryDirect(ctx, files) },
		func() error { return v.drop(ctx, files) },
		func() error { return v.warm(ctx, at.Program) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	v.cell.Quiet = v.rest.Wait(func(most time.Duration) bool { return v.options.Meter.Rest(ctx, v.device(), most) })
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return v.measure(ctx, args, at.Program)
}

// ownRoots are the kinds of target with root file systems in the run's own directories.
// Engines choose their own place.
var ownRoots = []string{"host", "floor", "oci"}

// lies returns the storage below the job's files.
func (v *visit) lies() record.Place {
	if v.volume.Kind == record.VolumeRootfs && slices.Contains(ownRoots, v.Target.Info.Kind) {
		return v.volume.OwnOn
	}
	return v.volume.On
}

// device returns the block device to observe, or "" for all whole disks.
func (v *visit) device() string { return v.lies().Answers }

// grace is the time that a tool has beyond its limit, to exit and print its results.
const grace = 20 * time.Second

// measure runs the tool between two readings. If processes outside a guest serve its
// files, the tool is loaded once before. A guest may drop a file's pages on open. Each
// run then reads tens of megabytes of fio and its libraries through these processes.
// These reads are not the job's.
func (v *visit) measure(ctx context.Context, args []string, program string) error {
	v.step("running")
	boxes, err := subject.SandboxesOf(ctx, v.Target.Session)
	if err != nil {
		return fail(record.FailState, nil, "%v", err)
	}
	if err := v.volume.Check(); err != nil { // again: laying out files and waiting for an idle device take minutes
		return fail(record.FailState, nil, "nothing was written: %v", err)
	}
	begin := v.options.Meter.Begin(ctx, boxes, subject.DaemonsOf(ctx, v.Target.Session))
	var loading *record.Transfer
	if v.options.Meter.Seen(begin, begin, v.device()).Outside != nil {
		if err := v.warm(ctx, program); err != nil {
			return err
		}
		before := begin
		begin = v.options.Meter.Begin(ctx, boxes, subject.DaemonsOf(ctx, v.Target.Session))
		loading = v.options.Meter.Seen(before, begin, v.device()).Outside
	}
	bounded, cancel := context.WithTimeout(ctx, v.patience())
	v.cell.Begun = machine.Now()
	e, runErr := v.inside(bounded, args)
	v.cell.Ended = machine.Now()
	cancel()
	end := v.options.Meter.End(ctx, boxes, subject.DaemonsOf(ctx, v.Target.Session))
	v.busy += v.cell.Ended - v.cell.Begun
	v.cell.Command = v.ran(args, e)
	seen := v.options.Meter.Seen(begin, end, v.device())
	end.Reading.Work = &record.Work{Command: v.cell.Command, Begun: v.cell.Begun, Ended: v.cell.Ended, CPU: e.CPU}
	seen.Loading = loading
	roles, _ := ledger.CPU(&begin.Reading, &end.Reading)
	seen.CPU = append(seen.CPU, roles...)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err := v.ended(e, runErr); err != nil {
		return err
	}
	if seen.Flushed = -1; v.cell.Reported.Write.Bytes > 0 || v.cell.Reported.Write.IOs > 0 {
		seen.Flushed = v.options.Meter.Flush(end, v.device())
	}
	seen.Fetched = cmp.Or(e.Fetched, seen.Fetched)
	v.cell.Observed = &seen
	return nil
}

// ran returns the command as the tool received it. On the host its paths differ from
// those in a container.
func (v *visit) ran(args []string, e subject.Executed) string {
	if v.Target.Info.Kind == "host" && e.Command != "" {
		return e.Command
	}
	return lane.Quote(args)
}

// patience returns the time limit of a tool. A tool that cannot stop by itself is
// stopped at the runtime limit.
func (v *visit) patience() time.Duration {
	if stops(v.pair.Job.Tool) {
		return max(v.options.Plan.RuntimeLimit, v.pair.Job.Runtime) + grace
	}
	return v.options.Plan.RuntimeLimit
}

// ended evaluates the tool's result.
func (v *visit) ended(e subject.Executed, err error) error {
	switch {
	case errors.Is(err, context.DeadlineExceeded) && !stops(v.pair.Job.Tool):
		return fail(record.FailTimeout, &e, "%s did not finish within --runtime-limit %v, and cannot stop by itself", v.pair.Job.Tool, v.options.Plan.RuntimeLimit)
	case errors.Is(err, context.DeadlineExceeded):
		return fail(record.FailTimeout, &e, "%s did not exit within %v after its limit of %v: the storage hangs", v.pair.Job.Tool, grace, v.options.Plan.RuntimeLimit)
	case err != nil:
		return fail(record.FailError, &e, "%v", err)
	case e.Exit != 0:
		return fail(record.FailExit, &e, "exit status %d", e.Exit)
	}
	claim, version, err := tool.Parse(v.pair.Job, e.Output, e.Stderr)
	if err != nil {
		return fail(record.FailWorkload, &e, "the output of %s could not be read: %v", v.pair.Job.Tool, err)
	}
	v.cell.Reported = &claim
	v.cell.Version = cmp.Or(version, v.cell.Version)
	return nil
}

func stops(name string) bool { return name != "dd" }

// drop empties the caches that the layout filled: those of the files in the sandbox's
// kernel, and those of the node.
func (v *visit) drop(ctx context.Context, files []tool.File) error {
	v.step("dropping caches")
	var paths []string
	for _, f := range files {
		paths = append(paths, f.Path)
	}
	if len(paths) > 0 && v.volume.Kind != record.VolumeTmpfs {
		if _, e, err := probed(ctx, v.schedule, v.inside, probe.EvictArgs(paths...), probe.ParseEvicted); err == nil && e.Exit == 0 {
			v.cell.Dropped = "files"
		}
	}
	if v.options.Plan.Drop == storage.DropFiles || ctx.Err() != nil {
		return ctx.Err()
	}
	err := v.options.Meter.Drop(ctx)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err == nil:
		v.cell.Dropped = "node"
		return nil
	case v.kept:
		return nil
	}
	v.kept = true
	return v.Finding(record.Finding{Code: finding.NotDropped, Level: "warning",
		Message: fmt.Sprintf("the node's page cache was not dropped before the jobs, only that of their files: %v", err),
		Advice:  "run tare as root with /proc/sys/vm/drop_caches writable, or use --drop files"})
}

// Exit codes of shells and runtimes if a program cannot be executed or does not exist.
const (
	cannotRun = 126
	notFound  = 127
)

// warm loads the tool, its libraries and the runtime's programs into memory again.
// fio's libraries alone are tens of megabytes and would count as reads of the job.
// It also asks for the version, which not every tool prints in a run.
func (v *visit) warm(ctx context.Context, program string) error {
	e, err := v.inTime(ctx, v.inside, []string{program, "--version"})
	if err != nil {
		return fail(record.FailError, nil, "%s cannot be run in the sandbox: %v", v.pair.Job.Tool, err)
	}
	if e.Exit == cannotRun || e.Exit == notFound {
		return fail(record.FailExit, &e, "%s cannot be run in the sandbox: exit status %d", v.pair.Job.Tool, e.Exit)
	}
	v.cell.Version = tool.Version(e.Exit, e.Output, e.Stderr)
	return nil
}

// inside runs a command in the sandbox.
func (v *visit) inside(ctx context.Context, args []string) (subject.Executed, error) {
	return v.Target.Session.(subject.Executor).Exec(ctx, 0, args)
}

func (v *visit) step(what string) {
	v.tell(v.pair.Job.Name, v.pair.Cache, v.Target.Info.Name, what)
}
