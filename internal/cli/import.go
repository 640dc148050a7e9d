package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tare-bench/tare/internal/instrument/bpf"
	fortio "github.com/tare-bench/tare/internal/instrument/bpf/tool"
	"github.com/tare-bench/tare/internal/instrument/lifecycle"
	operations "github.com/tare-bench/tare/internal/instrument/lifecycle/tool"
	"github.com/tare-bench/tare/internal/instrument/storage"
	"github.com/tare-bench/tare/internal/instrument/storage/tool"
	"github.com/tare-bench/tare/internal/instrument/transcript"
	"github.com/tare-bench/tare/internal/subject/setting"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/internal/version"
	"github.com/tare-bench/tare/internal/workspace"
	"github.com/tare-bench/tare/record"
)

// importFlags are what texts lack.
type importFlags struct {
	volume, cache, op  string
	samples            bool
	unit, column, done string
}

func newImport(s *app) *cobra.Command {
	var flags importFlags
	var out outputFlags
	c := &cobra.Command{
		Use:   "import [LABEL=]FILE...",
		Short: "Import results from other tools' output",
		Long: `Find what other tools printed in any text (a page, Markdown, a console, a log) and make
records of it, to be reported and compared like tare's own. FILE "-" is standard input.
Each format is known by its content:

  fio (JSON and text, also of clients), dd, sysbench fileio: a record of storage
  hyperfine (JSON, text, Markdown), critest -benchmark, containerd-stress, ptcr's table,
  Go's benchmark format, time of a shell: a record of lifecycle
  fortio load (JSON and text): a record of bpf

A prefix of each line (kubectl logs --prefix, stern, docker compose, gh run view --log,
journalctl) names the target. Otherwise LABEL does, or the tool (hyperfine -n), or the file's
name. Several outputs of one job are LABEL-1 and LABEL-2; texts of one label are rounds.
Nothing is guessed from the words around an output but commands of dd and time. An
unreadable output is left out, and reported with its line; -v lists all of them.

With --samples FILE holds single times: one number a line, or a table, of which --column
names the column. The machine of a record is unknown; tare label names it.`,
		Example: "  tare import notes.txt\n  tare import kata=notes.txt --volume rootfs --cache direct --format md\n  tare import --samples runc=times.csv --unit ms --op run --column total",
		Args:    takes(1, math.MaxInt),
		RunE: func(c *cobra.Command, args []string) error {
			if err := s.checkFormat(out.format, ""); err != nil {
				return err
			}
			if err := flags.validate(); err != nil {
				return err
			}
			return importTexts(s, c.InOrStdin(), args, flags, out)
		},
	}
	c.Flags().StringVar(&flags.volume, "volume", "", "where the files of all results were: rootfs, bind, tmpfs, nfs or device")
	c.Flags().StringVar(&flags.cache, "cache", "", "how all results were made: direct or buffered")
	c.Flags().StringVar(&flags.op, "op", "", "which operation all results of lifecycle are of: create, start, stop, rm, run, runp, stopp or rmp (default: what they say, or run)")
	c.Flags().BoolVar(&flags.samples, "samples", false, "files hold single times: one number a line, or a column of a table")
	c.Flags().StringVar(&flags.unit, "unit", "", "unit of the samples: ns, us, ms, s or min")
	c.Flags().StringVar(&flags.column, "column", "", "column of the samples, by its name or its number from 1 (default: the only one)")
	c.Flags().StringVar(&flags.done, "done", "", `what each sample ends with, such as "until wget reached the host"`)
	out.addFile(c.Flags())
	out.addForm(c.Flags(), s.instruments)
	return c
}

func (f *importFlags) validate() error {
	if err := oneOf("--volume", f.volume, record.VolumeRootfs, record.VolumeBind, record.VolumeTmpfs, record.VolumeNFS, record.VolumeDevice); err != nil {
		return err
	}
	if err := oneOf("--cache", f.cache, record.CacheDirect, record.CacheBuffered); err != nil {
		return err
	}
	if _, known := operations.Units[f.unit]; f.samples != known || !f.samples && f.unit+f.column+f.done != "" {
		return fmt.Errorf("--samples and --unit (ns, us, ms, s or min) need each other; --column and --done are for --samples: got --unit %q", f.unit)
	}
	if _, err := setting.ParseOp(f.op); f.op != "" && err != nil {
		return fmt.Errorf("--op: %w", err)
	}
	return nil
}

func oneOf(flag, value string, known ...string) error {
	if value == "" || slices.Contains(known, value) {
		return nil
	}
	return fmt.Errorf("%s %q: it is one of %s", flag, value, strings.Join(known, ", "))
}

// maxText is how much of a text is read.
const maxText = 64 << 20

// imported is what texts hold for the records of each instrument.
type imported struct {
	storage   tool.Imported
	lifecycle operations.Imported
	bpf       fortio.Imported
	unread    []record.Finding
}

// importTexts reads the texts, stores what is in them, a record for each instrument,
// and reports it. A text that cannot be used costs nothing but itself.
func importTexts(s *app, stdin io.Reader, args []string, flags importFlags, out outputFlags) error {
	began := time.Now()
	g := &imported{}
	for _, arg := range args {
		if err := g.add(stdin, arg, flags); err != nil {
			return err
		}
	}
	for _, unread := range g.storage.Unread {
		if out.verbose {
			fmt.Fprintln(s.Err, term.Clean(unread))
		}
	}
	records, left := g.records()
	switch {
	case len(records) == 0:
		return nothingFound(args, left)
	case len(records) > 1 && out.record != "":
		return fmt.Errorf("import: -o: there are results for %d records, of storage, operations and loads: give each an import of its own, or leave -o out", len(records))
	}
	records[0].findings = append(records[0].findings, left...)
	var paths []string
	for _, r := range records {
		if err := s.checkFormat(out.format, r.experiment); err != nil {
			return err
		}
		path, err := s.storeImported(r, began, out)
		if err != nil {
			return err
		}
		paths = append(paths, path)
	}
	all, err := s.judged(paths, out.format)
	if err != nil {
		return err
	}
	return s.showKept(all, paths, out)
}

// add reads one argument, LABEL=FILE or FILE. A file whose name has an equals sign is
// taken as it is if it is there. Every tool looks for what is its own.
func (g *imported) add(stdin io.Reader, arg string, flags importFlags) error {
	label, source := "", arg
	if l, file, ok := strings.Cut(arg, "="); ok && tool.IsLabel(l) {
		if _, err := os.Lstat(arg); err != nil {
			label, source = l, file
		}
	}
	in, name := stdin, "-"
	if source != "-" {
		file, err := os.Open(source)
		if err != nil {
			return fmt.Errorf("import: %w; give a text file, as FILE or LABEL=FILE", err)
		}
		defer file.Close()
		if info, err := file.Stat(); err == nil && info.IsDir() {
			return fmt.Errorf("import: %s is a folder; give the files in it", source)
		}
		in, name = file, filepath.Base(source)
	}
	text, err := io.ReadAll(io.LimitReader(in, maxText+1))
	if err == nil && len(text) > maxText {
		err = fmt.Errorf("it is longer than %d MiB: split it", maxText>>20)
	}
	if err != nil {
		g.unread = append(g.unread, record.Finding{Code: tool.FoundUnread, Level: "warning", Message: fmt.Sprintf("%s was not read: %v", name, err), Advice: "its results are missing here"})
		return nil
	}
	told := operations.Told{Label: label, File: tool.LabelOf(name), Op: setting.Op(flags.op)}
	if flags.samples {
		return g.lifecycle.AddSamples(name, text, told, operations.Samples{Unit: flags.unit, Column: flags.column, Done: flags.done})
	}
	streams := transcript.Split(string(text))
	writers := slices.DeleteFunc(slices.Clone(streams), func(s *transcript.Stream) bool { return s.Label == "" })
	for _, stream := range streams {
		told := told
		if label == "" || len(writers) > 1 {
			told.Label = path.Join(label, stream.Label)
		}
		g.lifecycle.Add(name, stream, told)
		g.bpf.Add(name, told.Label, stream)
		g.storage.Add(name, stream, tool.Told{Label: told.Label, Volume: flags.volume, Cache: flags.cache})
	}
	return nil
}

// importedRecord is a record before it is written.
type importedRecord struct {
	experiment string
	plan       any
	lines      []any
	n, failed  int
	findings   []record.Finding
}

// records are those that something was found for, and left is what was found of others.
func (g *imported) records() (all []importedRecord, left []record.Finding) {
	g.storage.Close()
	g.lifecycle.Close()
	g.bpf.Close()
	failed := 0
	for i := range g.lifecycle.Batches {
		n, _ := lifecycle.Outcomes(&g.lifecycle.Batches[i])
		failed += n
	}
	for _, r := range []importedRecord{
		{storage.Name, g.storage.Plan, slices.Concat(linesOf(g.storage.Targets), linesOf(g.storage.Cells)), len(g.storage.Cells), 0, g.storage.Findings},
		{lifecycle.Name, g.lifecycle.Plan, slices.Concat(linesOf(g.lifecycle.Targets), linesOf(g.lifecycle.Batches)), len(g.lifecycle.Batches), failed, g.lifecycle.Findings},
		{bpf.Name, g.bpf.Plan, linesOf(g.bpf.Points), len(g.bpf.Points), 0, g.bpf.Findings},
	} {
		if r.n == 0 {
			left = append(left, r.findings...)
			continue
		}
		all = append(all, r)
	}
	return all, append(left, g.unread...)
}

func linesOf[T any](all []T) []any {
	lines := make([]any, len(all))
	for i := range all {
		lines[i] = all[i]
	}
	return lines
}

// nothingFound says why no record is made.
func nothingFound(args []string, findings []record.Finding) error {
	why := ""
	for _, f := range findings {
		if f.Code == tool.FoundUnread { // the others are about results, of which there is none
			why += "\n" + f.Message
		}
	}
	return fmt.Errorf("import: no result of a tool in %s%s\ngive the output of the tools themselves, as text or JSON; tare import --help names them", strings.Join(args, ", "), why)
}

// storeImported writes the record and returns where it is.
func (s *app) storeImported(r importedRecord, began time.Time, out outputFlags) (string, error) {
	header, err := keptHeader(r.experiment, r.plan)
	if err != nil {
		return "", err
	}
	w, path, err := s.createRecord(out.record, r.experiment, header.RunID)
	if err != nil {
		return "", err
	}
	header.Started = began.UTC()
	end := record.End{Status: "done", Why: "imported", Batches: r.n, Failures: r.failed, Elapsed: int64(time.Since(began))}
	return path, writeRecord(w, slices.Concat([]any{header}, r.lines, linesOf(r.findings), []any{end})...)
}

// keptHeader begins a record of what was not measured by tare but kept by others. The
// environment stays empty: that of the runs is not known, and this machine's has
// nothing to do with them.
func keptHeader(experiment string, plan any) (record.Header, error) {
	text, err := json.Marshal(plan)
	if err != nil {
		return record.Header{}, fmt.Errorf("store the plan: %w", err)
	}
	return record.Header{
		RunID: workspace.NewID(), Experiment: experiment, Started: time.Now().UTC(),
		Command: commandLine(), Version: version.String(), Plan: text,
	}, nil
}
