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

	"github.com/tare-bench/tare/internal/core/finding"
	"github.com/tare-bench/tare/internal/core/option"
	"github.com/tare-bench/tare/internal/core/run"
	"github.com/tare-bench/tare/internal/instrument"
	"github.com/tare-bench/tare/internal/instrument/terms"
	"github.com/tare-bench/tare/internal/lane"
	"github.com/tare-bench/tare/internal/node/cgroup"
	"github.com/tare-bench/tare/internal/node/disk"
	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/node/nodestat"
	"github.com/tare-bench/tare/internal/node/snapshot"
	"github.com/tare-bench/tare/internal/perform"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/version"
	"github.com/tare-bench/tare/internal/workspace"
	"github.com/tare-bench/tare/record"
)

// weigh runs a session: it runs a plan, prints its report and the path of the record.
func (s *app) weigh(ctx context.Context, experiment string, out *outputFlags, m *perform.Measure) error {
	if err := s.checkFormat(out.format, experiment); err != nil {
		return err
	}
	targets, found, err := s.choose(ctx, m, out.quiet)
	if err != nil {
		return err
	}
	o := &session{app: s, Session: perform.Session{Targets: targets}}
	if m.Metered {
		if o.Meter, err = snapshot.New(); err != nil {
			return err
		}
		defer o.Meter.Close()
	}
	crowded, err := checkRoom(s, targets, m.Lanes, out)
	if err != nil {
		return err
	}
	if p, ok := m.Plan.(foreseen); ok && out.of == nil && !out.quiet { // a plan prints the total
		if a := p.Ahead(len(targets)); a.Bytes > 0 || a.Time > longEnough {
			fmt.Fprintf(s.Err, "tare: this run %s\n", said(a))
		}
	}
	if m.Cache == terms.Cold {
		if err := mayBeCold(targets); err != nil {
			return err
		}
	}
	if err := o.begin(experiment, m.Plan, append(found, crowded...), *out); err != nil {
		return err
	}
	settled := func() {}
	if m.Cache == terms.Cold {
		o.progress.say("--cache cold: throughout the run, tare writes back all dirty pages of this node and drops its page cache; other programs must read their files from disk again")
		o.Drop = disk.DropCaches
	}
	if err := o.load(ctx, m.Workload, m.Neighbours); err != nil {
		return errors.Join(o.close(nil, err), removeFile(o.path))
	}
	if m.Steady {
		o.Node = nodeReader()
		settled = lane.Settle() // last, since it changes the capacity that tare has left
	}
	rec, j, runErr := m.Run(&o.Session)
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

// nodeReader returns a function that reads the machine's state between rounds.
func nodeReader() func() record.Node {
	node := &nodestat.Reader{}
	return func() record.Node {
		n, _ := node.Read() // Node itself marks unknown values
		return n
	}
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
	perform.Session
	run      *workspace.Run
	record   *record.Writer
	path     string // of the record
	progress *progress
}

// begin creates what a run needs. close removes it.
func (o *session) begin(experiment string, plan option.Options, found []record.Finding, out outputFlags) (err error) {
	roots := workspace.DefaultRoots()
	if o.run, err = workspace.New(roots); err != nil {
		return err
	}
	if o.record, o.path, err = o.createRecord(out.record, experiment, o.run.ID); err != nil {
		return errors.Join(err, o.run.Close())
	}
	hintLeftovers(o.app, roots)
	w, _ := whom(plan)
	if err := keepEngines(o.run, o.Targets, w.Engines); err != nil {
		return errors.Join(err, o.record.Close(), o.run.Close())
	}
	p := newProgress(o.app, out.quiet)
	before, throttled := ownLimit(func() (cgroup.CPULimit, bool) { return cgroup.Tightest("") })
	for _, f := range before {
		p.say(f.Message + "; " + f.Advice)
	}
	changed := rootChanged()
	o.progress, o.FolderBelow, o.ShowProgress = p, o.run.FolderBelow, p.line
	o.Options = run.Options{
		RunID: o.run.ID, Dirs: o.run.Dirs, Write: o.record.Write, Before: slices.Concat(before, found), After: func() []record.Finding { return slices.Concat(throttled(), changed()) },
		Header:   record.Header{Started: time.Now().UTC(), Command: commandLine(), Version: version.String(), Environment: environment(roots.Data), Of: out.of},
		Progress: func(at run.Progress) { p.line(at.String(), at.Elapsed, at.Left) },
		Warn:     p.say,
	}
	return nil
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
	return ended(code)
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
	e := machine.Root("").Capture(dir)
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
