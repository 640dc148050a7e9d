package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/tare-bench/tare/internal/cargo"
	"github.com/tare-bench/tare/internal/core/finding"
	"github.com/tare-bench/tare/internal/core/run"
	"github.com/tare-bench/tare/internal/instrument"
	"github.com/tare-bench/tare/internal/instrument/terms"
	"github.com/tare-bench/tare/internal/lane"
	"github.com/tare-bench/tare/internal/node/cgroup"
	"github.com/tare-bench/tare/internal/node/disk"
	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/node/snapshot"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/setting"
	"github.com/tare-bench/tare/internal/version"
	"github.com/tare-bench/tare/internal/workspace"
	"github.com/tare-bench/tare/record"
)

// weighing is what a session has to know of an instrument.
type weighing struct {
	experiment string
	engines    terms.Engines
	steady     bool               // it times so finely that lanes are to be settled
	metered    bool               // it looks at whose memory and CPU time is used
	lanes      int                // that are there at once, at most
	workload   *setting.Workload  // what targets run; nil, or that of nothing, for the probe
	beside     []setting.Workload // images that run in sandboxes beside those
	cache      terms.Cache        // what of the page cache is there before whatever is timed
	// targets finds what is weighed, after everything was checked that can be before
	// anything is made. Findings tell of what is not weighed.
	targets func() ([]subject.Target, []record.Finding, error)
	run     func(o *session) (*record.Record, instrument.Judgement, error)
	ahead   func(targets int) terms.Ahead // what it takes, where that is said before; may be nil
}

// outcome is that of an instrument's run; the judgement is nil where there is none.
func outcome[J any, P interface {
	*J
	instrument.Judgement
}](rec *record.Record, j P, err error) (*record.Record, instrument.Judgement, error) {
	if j == nil {
		return rec, nil, err
	}
	return rec, j, err
}

// weigh does a session: it performs a plan, prints its report and says where the record
// is.
func weigh(ctx context.Context, s *app, out *outputFlags, w weighing) error {
	if err := s.checkFormat(out.format, w.experiment); err != nil {
		return err
	}
	if err := checkEngines(w.engines); err != nil {
		return err
	}
	targets, skipped, err := w.targets()
	if err != nil {
		return err
	}
	var meter *snapshot.Reader
	if w.metered {
		if meter, err = snapshot.New(); err != nil {
			return err
		}
		defer meter.Close()
	}
	crowded, err := checkRoom(s, targets, w.lanes, out)
	if err != nil {
		return err
	}
	skipped = append(skipped, crowded...)
	if w.ahead != nil && out.of == nil && !out.quiet { // a plan says it of all
		if a := w.ahead(len(targets)); a.Bytes > 0 || a.Time > longEnough {
			fmt.Fprintf(s.Err, "tare: it %s\n", said(a))
		}
	}
	if w.cache == terms.Cold {
		if err := mayBeCold(targets); err != nil {
			return err
		}
	}
	o, err := begin(s, w.experiment, targets, skipped, w.engines, *out)
	if err != nil {
		return err
	}
	o.meter = meter
	if w.cache == terms.Cold {
		o.progress.say("--cache cold: again and again until the end, all that is dirty on this node is written back and its page cache dropped; other programs here have to read theirs from disk again")
		o.options.Drop = disk.DropCaches
	}
	if err := o.load(ctx, w.workload, w.beside); err != nil {
		return errors.Join(o.close(nil, err), removeFile(o.path))
	}
	settled := func() {}
	if w.steady {
		settled = lane.Settle() // last: what the machine has is not what tare is left with
	}
	rec, j, runErr := w.run(o)
	settled()
	err = o.close(rec, runErr)
	if j == nil {
		return err
	}
	code, showErr := s.show([]instrument.Judged{{Record: rec, Judgement: j}}, *out)
	if showErr != nil {
		return errors.Join(err, showErr)
	}
	return o.end(ctx, code, err)
}

// mayBeCold says why what is weighed would not be cold.
func mayBeCold(targets []subject.Target) error {
	if err := disk.MayDropCaches(); err != nil {
		return fmt.Errorf("--cache cold: %w; run tare as root where /proc/sys can be written to, or leave it out", err)
	}
	for _, t := range targets {
		if e, is := t.(subject.Elsewhere); is && e.Elsewhere() != "" {
			return fmt.Errorf("--cache cold: %s may not be cold, since only this machine's page cache is dropped: %s; run tare there, or leave it out", t.Info().Name, e.Elsewhere())
		}
	}
	return nil
}

// session is one run of an instrument from the command line: its folders, its record,
// its progress.
type session struct {
	*app
	targets  []subject.Target
	run      *workspace.Run
	record   *record.Writer
	path     string // of the record
	progress *progress
	options  run.Options
	meter    *snapshot.Reader // of what is metered
	cargo    *cargo.Cargo     // the user's own program, nil for the probe
	beside   []*cargo.Cargo   // of neighbours
}

// begin makes what a run needs. What it made is removed by close.
func begin(s *app, experiment string, targets []subject.Target, skipped []record.Finding, engines terms.Engines, out outputFlags) (*session, error) {
	roots := workspace.DefaultRoots()
	own, err := workspace.New(roots)
	if err != nil {
		return nil, err
	}
	w, path, err := s.createRecord(out.record, experiment, own.ID)
	if err != nil {
		return nil, errors.Join(err, own.Close())
	}
	hintLeftovers(s, roots)
	if err := keepEngines(own, targets, engines); err != nil {
		return nil, errors.Join(err, w.Close(), own.Close())
	}
	p := newProgress(s, out.quiet)
	before, throttled := ownLimit(machine.Root("").CPULimit)
	for _, f := range before {
		p.say(f.Message + "; " + f.Advice)
	}
	changed := rootChanged()
	return &session{
		app: s, targets: targets, run: own, record: w, path: path, progress: p,
		options: run.Options{
			RunID: own.ID, Dirs: own.Dirs, Write: w.Write, Before: slices.Concat(before, skipped), After: func() []record.Finding { return slices.Concat(throttled(), changed()) },
			Header:   record.Header{Started: time.Now().UTC(), Command: commandLine(), Version: version.String(), Environment: environment(roots.Data), Of: out.of},
			Progress: func(at run.Progress) { p.line(at.String(), at.Elapsed, at.Left) },
			Warn:     p.say,
		},
	}, nil
}

// close puts everything away, behind a run that ended with an error or none.
func (o *session) close(rec *record.Record, err error) error {
	o.progress.done()
	return errors.Join(closeRecord(o.record, err), closeRun(o.run, rec))
}

// closeRecord closes a record behind what ended with an error or none. That it could not be
// written is told once, whoever met it first.
func closeRecord(w *record.Writer, err error) error {
	if wrong := w.Close(); !errors.Is(err, wrong) {
		err = errors.Join(err, wrong)
	}
	return err
}

// writeRecord writes a whole record.
func writeRecord(w *record.Writer, lines ...any) (err error) {
	for i := 0; i < len(lines) && err == nil; i++ {
		err = w.Write(lines[i])
	}
	return closeRecord(w, err)
}

// end says where the record is that was shown, and returns what the command ends with.
func (o *session) end(ctx context.Context, code int, err error) error {
	fmt.Fprintf(o.Err, "record: %s\n", o.path)
	if err != nil {
		if ctx.Err() == nil {
			return fmt.Errorf("%w\nwhat was measured before is shown above", err)
		}
		fmt.Fprintf(o.Err, "tare: %s\n", cleanLines(err.Error()))
	}
	if ctx.Err() != nil {
		fmt.Fprintf(o.Err, "tare: interrupted; what was measured is shown above and saved\n")
		return exit{ExitInterrupted}
	}
	if code != ExitDone {
		return exit{code}
	}
	return nil
}

// closeRun removes the run's folders, unless something is left on an engine: then
// tare clean needs them to find it.
func closeRun(own *workspace.Run, rec *record.Record) error {
	if rec != nil && slices.ContainsFunc(rec.Findings, func(f record.Finding) bool { return f.Code == finding.LeftBehind }) {
		own.Leave()
		return nil // the finding says it
	}
	return own.Close()
}

// ownLimit says that tare's own cgroup has a CPU limit, and returns a look at how often
// that held the run back.
func ownLimit(read func() (machine.CPULimit, bool)) (before []record.Finding, after func() []record.Finding) {
	was, limited := read()
	if cpus := float64(runtime.NumCPU()); !limited || was.CPUs >= cpus {
		return nil, func() []record.Finding { return nil }
	}
	advice := "times are the limit's and not the runtime's: start tare in another cgroup, or lift it: " + was.Lift
	before = []record.Finding{{Code: finding.OwnLimit, Level: finding.Note,
		Message: fmt.Sprintf("tare's own cgroup %s may use no more than %.3g CPUs", was.Group, was.CPUs), Advice: "where it is reached, " + advice}}
	return before, func() []record.Finding {
		is, _ := read()
		if is.Group != was.Group || is.Throttled <= was.Throttled {
			return nil
		}
		return []record.Finding{{Code: finding.OwnThrottled, Level: finding.Warning,
			Message: fmt.Sprintf("tare's own cgroup %s may use no more than %.3g CPUs, and was throttled in %d of %d periods of the run, for %s in all",
				was.Group, was.CPUs, is.Throttled-was.Throttled, is.Periods-was.Periods, time.Duration(is.Held-was.Held).Round(time.Millisecond)),
			Advice: advice}}
	}
}

// rootChanged remembers which controllers the root of cgroup v2 hands down, and
// returns a look at what runtimes have added to them: they do so when they make
// a container's group, and it outlives the container.
func rootChanged() func() []record.Finding {
	hs, err := cgroup.Hierarchies()
	if err != nil {
		return func() []record.Finding { return nil }
	}
	before := cgroup.HandedDown(hs)
	return func() []record.Finding {
		added := cgroup.Added(before, cgroup.HandedDown(hs))
		if len(added) == 0 {
			return nil
		}
		return []record.Finding{{Code: finding.RootChanged, Level: "note",
			Message: "the root of cgroup v2 now hands down to its groups, too: " + strings.Join(added, ", ") + "; a runtime did that",
			Advice:  "tare leaves it, since others may use it by now; a controller is taken back with echo -NAME > /sys/fs/cgroup/cgroup.subtree_control"}}
	}
}

// environment is the machine, and how well it can be measured.
func environment(dir string) record.Environment {
	e := machine.Capture(dir)
	e.Lanes = lane.BestPriority().String()
	return e
}

// commandLine is what the user typed.
func commandLine() []string { return append([]string{"tare"}, withoutValues(os.Args[1:])...) }

// createRecord opens the record's file: the given one, or a new one in the
// user's data folder.
func (s *app) createRecord(path, experiment, id string) (*record.Writer, string, error) {
	if path == "" {
		dir, err := recordsFolder()
		if err != nil {
			return nil, "", fmt.Errorf("no place for the record: %w; name one with -o FILE", err)
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, "", fmt.Errorf("make a place for the record: %w; name another with -o FILE", err)
		}
		path = filepath.Join(dir, fmt.Sprintf("%s-%s-%s.jsonl", experiment, time.Now().UTC().Format("20060102T150405Z"), id))
	}
	if err := checkRecordName(path); err != nil {
		return nil, "", fmt.Errorf("%w; a report in a file is tare report RECORD --format FORMAT -o FILE, a whole document -o DIR/ of tare run", err)
	}
	w, err := s.lines().Create(path)
	if err != nil {
		return nil, "", fmt.Errorf("%w; name another with -o FILE", err)
	}
	return w, path, nil
}

// removeFile removes what was to be a record. A device or a pipe that was named for it is
// no file of ours.
func removeFile(path string) error {
	if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() {
		return err
	}
	return os.Remove(path)
}

// checkRecordName refuses a name for a record that is that of something else.
func checkRecordName(path string) error {
	if filepath.Ext(path) != "" && !record.IsName(path) {
		return fmt.Errorf("--output: %s would be a record, which ends in .jsonl or .jsonl.zst", path)
	}
	return nil
}

// recordsFolder is where records go that no file is named for.
func recordsFolder() (string, error) {
	dir := os.Getenv("XDG_DATA_HOME")
	if dir == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", err
		}
		dir = filepath.Join(home, ".local", "share")
	}
	return filepath.Join(dir, "tare", "records"), nil
}

// hintLeftovers tells of interrupted runs; their containers may still be there
// and disturb.
func hintLeftovers(s *app, roots workspace.Roots) {
	left, _, err := workspace.Leftovers(roots)
	if err != nil || len(left) == 0 {
		return
	}
	var ids []string
	for _, l := range left {
		ids = append(ids, l.RunID)
	}
	fmt.Fprintf(s.Err, "left behind by interrupted runs: %s → tare clean\n", strings.Join(ids, ", "))
}
