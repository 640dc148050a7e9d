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

// weighing describes an instrument to a session.
type weighing struct {
	experiment string
	engines    terms.Engines
	steady     bool               // call lane.Settle first, because its times are short
	metered    bool               // attribute memory and CPU time to processes
	lanes      int                // maximum number of lanes at once
	workload   *setting.Workload  // workload of the targets; nil or empty: the probe
	beside     []setting.Workload // images of neighbours
	cache      terms.Cache        // state of the page cache before each timed operation
	// targets returns the targets, and findings about skipped ones. It is called after all
	// checks that create nothing.
	targets func() ([]subject.Target, []record.Finding, error)
	run     func(o *session) (*record.Record, instrument.Judgement, error)
	ahead   func(targets int) terms.Ahead // expected cost of the run, printed before it; may be nil
}

// outcome returns the outcome of an instrument's run. The judgement is nil if there is
// none.
func outcome[J any, P interface {
	*J
	instrument.Judgement
}](rec *record.Record, j P, err error) (*record.Record, instrument.Judgement, error) {
	if j == nil {
		return rec, nil, err
	}
	return rec, j, err
}

// weigh runs a session: it runs a plan, prints its report and the path of the record.
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
	if w.ahead != nil && out.of == nil && !out.quiet { // a plan prints the total
		if a := w.ahead(len(targets)); a.Bytes > 0 || a.Time > longEnough {
			fmt.Fprintf(s.Err, "tare: this run %s\n", said(a))
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
		o.progress.say("--cache cold: throughout the run, tare writes back all dirty pages of this node and drops its page cache; other programs must read their files from disk again")
		o.options.Drop = disk.DropCaches
	}
	if err := o.load(ctx, w.workload, w.beside); err != nil {
		return errors.Join(o.close(nil, err), removeFile(o.path))
	}
	settled := func() {}
	if w.steady {
		settled = lane.Settle() // last, since it changes the capacity that tare has left
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

// mayBeCold returns an error if the page cache of a target cannot be dropped.
func mayBeCold(targets []subject.Target) error {
	if err := disk.MayDropCaches(); err != nil {
		return fmt.Errorf("--cache cold: %w; run tare as root with a writable /proc/sys, or omit it", err)
	}
	for _, t := range targets {
		if e, is := t.(subject.Elsewhere); is && e.Elsewhere() != "" {
			return fmt.Errorf("--cache cold: %s may not be cold, since tare only drops this machine's page cache: %s; run tare there, or omit it", t.Info().Name, e.Elsewhere())
		}
	}
	return nil
}

// session is one run of an instrument from the command line, with its folders, record and
// progress.
type session struct {
	*app
	targets  []subject.Target
	run      *workspace.Run
	record   *record.Writer
	path     string // of the record
	progress *progress
	options  run.Options
	meter    *snapshot.Reader // nil if not metered
	cargo    *cargo.Cargo     // the user's own program, nil for the probe
	beside   []*cargo.Cargo   // of neighbours
}

// begin creates what a run needs. close removes it.
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
	before, throttled := ownLimit(func() (cgroup.CPULimit, bool) { return cgroup.Tightest("") })
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

// close ends the progress line, closes the record and removes the run's folders.
func (o *session) close(rec *record.Record, err error) error {
	o.progress.done()
	return errors.Join(closeRecord(o.record, err), closeRun(o.run, rec))
}

// closeRecord closes the record of a run. It reports a write error only once.
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

// end prints the path of the record and returns the outcome of the command.
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

// closeRun removes the run's folders. It keeps them if objects are left on an engine, since
// tare clean needs them.
func closeRun(own *workspace.Run, rec *record.Record) error {
	if rec != nil && slices.ContainsFunc(rec.Findings, func(f record.Finding) bool { return f.Code == finding.LeftBehind }) {
		own.Leave()
		return nil // the finding reports it
	}
	return own.Close()
}

// ownLimit reports a CPU limit of tare's own cgroup. after returns how often the run was
// throttled.
func ownLimit(read func() (cgroup.CPULimit, bool)) (before []record.Finding, after func() []record.Finding) {
	was, limited := read()
	if cpus := float64(runtime.NumCPU()); !limited || was.CPUs >= cpus {
		return nil, func() []record.Finding { return nil }
	}
	advice := "the limit, not the runtime, then determines the times: start tare in another cgroup, or lift the limit: " + was.Lift
	before = []record.Finding{{Code: finding.OwnLimit, Level: finding.Note,
		Message: fmt.Sprintf("tare's own cgroup %s may use no more than %.3g CPUs", was.Group, was.CPUs), Advice: "if it is reached, " + advice}}
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

// rootChanged returns a function that reports which controllers runtimes have enabled in
// the root of cgroup v2 since. Runtimes do so when they create a container's cgroup, and it
// outlives the container.
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
			Message: "controllers newly enabled in the root of cgroup v2: " + strings.Join(added, ", ") + "; a runtime did that",
			Advice:  "tare does not undo this, since other processes may use them by now; disable a controller with echo -NAME > /sys/fs/cgroup/cgroup.subtree_control"}}
	}
}

// environment captures the machine and the scheduling priority of lanes.
func environment(dir string) record.Environment {
	e := machine.Capture(dir)
	e.Lanes = lane.BestPriority().String()
	return e
}

// commandLine returns the command line without values of variables.
func commandLine() []string { return append([]string{"tare"}, withoutValues(os.Args[1:])...) }

// createRecord creates the record at the given path, or a new file in the user's data
// folder.
func (s *app) createRecord(path, experiment, id string) (*record.Writer, string, error) {
	if path == "" {
		dir, err := recordsFolder()
		if err != nil {
			return nil, "", fmt.Errorf("find the records folder: %w; name a file with -o FILE", err)
		}
		if err := refuseForeignLink(dir); err != nil {
			return nil, "", err
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, "", fmt.Errorf("create the records folder: %w; name a file with -o FILE", err)
		}
		path = filepath.Join(dir, fmt.Sprintf("%s-%s-%s.jsonl", experiment, time.Now().UTC().Format("20060102T150405Z"), id))
	}
	if err := checkRecordName(path); err != nil {
		return nil, "", fmt.Errorf("%w; for a report in a file use tare report RECORD --format FORMAT -o FILE, for a document tare run -o DIR/", err)
	}
	w, err := s.create(path)
	if err != nil {
		return nil, "", fmt.Errorf("%w; name another with -o FILE", err)
	}
	return w, path, nil
}

// create creates a record. It does not follow links of other users.
func (s *app) create(path string) (*record.Writer, error) {
	if err := refuseForeignLink(path); err != nil {
		return nil, err
	}
	return s.lines().Create(path)
}

// removeFile removes an unused record. It does not remove devices and pipes that -o named.
func removeFile(path string) error {
	if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() {
		return err
	}
	return os.Remove(path)
}

// checkRecordName rejects an output path with another extension than that of a record.
func checkRecordName(path string) error {
	if filepath.Ext(path) != "" && !record.IsName(path) {
		return fmt.Errorf("--output: %s is a record and must end in .jsonl or .jsonl.zst", path)
	}
	return nil
}

// recordsFolder returns the default folder of records.
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

// hintLeftovers reports interrupted runs, since their containers may disturb this one.
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
