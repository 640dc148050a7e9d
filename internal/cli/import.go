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

// importFlags are settings that the imported text does not contain.
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
		Long: `Find results of other tools in any text (a page, Markdown, a console, a log) and convert
them to records, which can be reported and compared like tare's own. FILE "-" is standard
input. tare detects each format by its content:

  fio (JSON and text, also of clients), dd, sysbench fileio: a storage record
  hyperfine (JSON, text, Markdown), critest -benchmark, containerd-stress, ptcr's table,
  Go's benchmark format, time of a shell: a lifecycle record
  fortio load (JSON and text): a bpf record

A prefix of each line (kubectl logs --prefix, stern, docker compose, gh run view --log,
journalctl) names the target. Otherwise LABEL does, or the tool (hyperfine -n), or the file's
name. Several outputs of one job are LABEL-1 and LABEL-2; texts with the same label are
rounds. Apart from dd and time commands, text around an output is ignored. Unreadable
outputs are skipped and reported with their line; -v lists all of them.

With --samples FILE has single times: one number per line, or a table whose column
--column selects. The machine of a record is unknown; tare label can name it.`,
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
	volumes := []string{record.VolumeRootfs, record.VolumeBind, record.VolumeTmpfs, record.VolumeNFS, record.VolumeDevice}
	c.Flags().Var(&choice{"volume", &flags.volume, volumes}, "volume", "location of the files of all results: rootfs, bind, tmpfs, nfs or device")
	c.Flags().Var(&choice{"cache", &flags.cache, []string{record.CacheDirect, record.CacheBuffered}}, "cache", "cache mode of all results: direct or buffered")
	c.Flags().StringVar(&flags.op, "op", "", "operation of all lifecycle results: create, start, stop, rm, run, runp, stopp or rmp (default: as in the text, or run)")
	c.Flags().BoolVar(&flags.samples, "samples", false, "files contain single times: one number per line, or a column of a table")
	c.Flags().StringVar(&flags.unit, "unit", "", "unit of the samples: ns, us, ms, s or min")
	c.Flags().StringVar(&flags.column, "column", "", "column of the samples, by its name or its number from 1 (default: the only one)")
	c.Flags().StringVar(&flags.done, "done", "", `end of each sample, such as "until wget reached the host"`)
	out.addFile(c.Flags())
	out.addForm(c.Flags(), s.instruments)
	return c
}

func (f *importFlags) validate() error {
	if _, known := operations.Units[f.unit]; f.samples != known || !f.samples && f.unit+f.column+f.done != "" {
		return fmt.Errorf("--samples needs --unit (ns, us, ms, s or min); --unit, --column and --done need --samples: got --unit %q", f.unit)
	}
	if _, err := setting.ParseOp(f.op); f.op != "" && err != nil {
		return fmt.Errorf("--op: %w", err)
	}
	return nil
}

// maxText is the maximum size of a text.
const maxText = 64 << 20

// imported has the results in the texts, by instrument.
type imported struct {
	storage   tool.Imported
	lifecycle operations.Imported
	bpf       fortio.Imported
	unread    []record.Finding
}

// importTexts reads the texts, stores a record for each instrument with results, and prints
// the report. An unreadable text does not affect the others.
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
		return fmt.Errorf("import: -o: the results need %d records (storage, lifecycle, bpf): import them separately, or omit -o", len(records))
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

// add reads one argument, LABEL=FILE or FILE. A file with an equals sign in its name is
// accepted if it exists. Each tool's parser searches for its own output.
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
		err = fmt.Errorf("longer than %d MiB: split it", maxText>>20)
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

// importedRecord is a record that is not written yet.
type importedRecord struct {
	experiment string
	plan       any
	lines      []any
	n, failed  int
	findings   []record.Finding
}

// records returns the records with results. left has the findings of instruments without
// results.
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

// nothingFound returns the error for texts without results.
func nothingFound(args []string, findings []record.Finding) error {
	why := ""
	for _, f := range findings {
		if f.Code == tool.FoundUnread { // other findings are about results, and there are none
			why += "\n" + f.Message
		}
	}
	return fmt.Errorf("import: no result of a tool in %s%s\nimport the unmodified output of a tool, as text or JSON; tare import --help lists the tools", strings.Join(args, ", "), why)
}

// storeImported writes the record and returns its path.
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

// keptHeader returns the header of a record from results that tare did not measure. The
// environment stays empty: that of the runs is unknown, and this machine is unrelated.
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
