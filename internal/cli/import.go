package cli

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tare-bench/tare/internal/instrument"
	"github.com/tare-bench/tare/internal/instrument/storage"
	"github.com/tare-bench/tare/internal/instrument/storage/tool"
	"github.com/tare-bench/tare/internal/version"
	"github.com/tare-bench/tare/record"
)

// importFlags say what texts do not say of themselves.
type importFlags struct {
	target, volume, cache string
}

func newImport(s *app) *cobra.Command {
	var flags importFlags
	var out outputFlags
	c := &cobra.Command{
		Use:   "import [LABEL=]FILE...",
		Short: "Make a record of what fio, dd and sysbench said earlier, in any text that was kept",
		Long: `Find what fio, dd and sysbench printed in any text (a page, Markdown, a console, a
log) and make a storage record of it, so that old figures can be compared and
judged: fio's JSON and normal text of versions 2 and 3, the last lines of dd (GNU,
busybox, BSD), and sysbench's fileio reports of 0.4, 0.5 and 1.0. FILE "-" is
standard input.

Whose they are says LABEL, else --target, else the file's name without its ending.
Where a text holds several outputs of one job, they are told apart by a number, as
LABEL-1 and LABEL-2; give each target a text of its own to name it. Texts of one
label are rounds. Nothing is guessed from the words around an output, but for dd: its
command, if it stands before, says whether it read. An output that cannot be read is
left out, and told with its line.

A record that was imported holds what the tools said and nothing of the machine:
nothing was seen from outside, and nothing is known of the environment.`,
		Example: "  tare import notes.txt\n  tare import kata=notes.txt --volume rootfs --cache direct --format md",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := s.checkFormat(out.format, storage.Name); err != nil {
				return err
			}
			if err := flags.validate(); err != nil {
				return err
			}
			return importTexts(s, c.InOrStdin(), args, flags, out)
		},
	}
	c.Flags().StringVar(&flags.target, "target", "", "whose all results are that no LABEL= names")
	c.Flags().StringVar(&flags.volume, "volume", "", "where the files of all results were: rootfs, bind, tmpfs, nfs or device")
	c.Flags().StringVar(&flags.cache, "cache", "", "how all results were made: direct or buffered")
	out.addFile(c.Flags())
	out.addForm(c.Flags(), instrument.List{storage.Instrument})
	return c
}

func (f *importFlags) validate() error {
	if err := oneOf("--volume", f.volume, record.VolumeRootfs, record.VolumeBind, record.VolumeTmpfs, record.VolumeNFS, record.VolumeDevice); err != nil {
		return err
	}
	if err := oneOf("--cache", f.cache, record.CacheDirect, record.CacheBuffered); err != nil {
		return err
	}
	if f.target != "" && !tool.IsLabel(f.target) {
		return fmt.Errorf("--target %q: a name has letters, digits and ._/+- only", f.target)
	}
	return nil
}

func oneOf(flag, value string, known ...string) error {
	if value == "" {
		return nil
	}
	for _, k := range known {
		if value == k {
			return nil
		}
	}
	return fmt.Errorf("%s %q: it is one of %s", flag, value, strings.Join(known, ", "))
}

// importTexts reads the texts, stores what is in them and reports it.
func importTexts(s *app, stdin io.Reader, args []string, flags importFlags, out outputFlags) error {
	began := time.Now()
	g := &tool.Imported{}
	for _, arg := range args {
		if err := addText(g, stdin, arg, flags); err != nil {
			return err
		}
	}
	if g.Close(); len(g.Cells) == 0 {
		return nothingFound(args, g.Findings)
	}
	path, err := s.storeImported(g, began, out)
	if err != nil {
		return err
	}
	rec, err := s.lines().Load(path)
	if err != nil {
		return err
	}
	j, err := storage.Judge(rec)
	if err != nil {
		return err
	}
	return s.showKept(rec, j, path, out)
}

// addText reads one argument, LABEL=FILE or FILE. A file whose name has an
// equals sign is taken as it is if it is there.
func addText(g *tool.Imported, stdin io.Reader, arg string, flags importFlags) error {
	told := tool.Told{Label: flags.target, Volume: flags.volume, Cache: flags.cache}
	path := arg
	if label, file, ok := strings.Cut(arg, "="); ok && tool.IsLabel(label) {
		if _, err := os.Lstat(arg); err != nil {
			told.Label, path = label, file
		}
	}
	if path == "-" {
		return g.Add("-", stdin, told)
	}
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("import: %w; give a text file, as FILE or LABEL=FILE", err)
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil && info.IsDir() {
		return fmt.Errorf("import: %s is a folder; give the files in it", path)
	}
	return g.Add(filepath.Base(path), file, told)
}

// nothingFound says why no record is made.
func nothingFound(args []string, findings []record.Finding) error {
	why := ""
	for _, f := range findings {
		if f.Code == tool.FoundUnread { // the others are about results, of which there is none
			why += "\n" + f.Message
		}
	}
	return fmt.Errorf("import: no result of fio, dd or sysbench in %s%s\ngive the output of the tools themselves, as text or JSON", strings.Join(args, ", "), why)
}

// storeImported writes the record and returns where it is.
func (s *app) storeImported(g *tool.Imported, began time.Time, out outputFlags) (path string, err error) {
	header, err := keptHeader(storage.Name, g.Plan)
	if err != nil {
		return "", err
	}
	w, path, err := s.createRecord(out.record, storage.Name, header.RunID)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	header.Started = began.UTC()
	lines := []any{header}
	for _, t := range g.Targets {
		lines = append(lines, t)
	}
	end := record.End{Status: "done", Why: "imported", Batches: len(g.Cells), Elapsed: int64(time.Since(began))}
	for _, c := range g.Cells {
		if c.Failure != nil {
			end.Failures++
		}
		lines = append(lines, c)
	}
	for _, f := range g.Findings {
		lines = append(lines, f)
	}
	for _, line := range append(lines, end) {
		if err := w.Write(line); err != nil {
			return path, err
		}
	}
	return path, nil
}

// keptHeader begins a record of what was not measured by tare but kept by others. The
// environment stays empty: that of the runs is not known, and this machine's has
// nothing to do with them.
func keptHeader(experiment string, plan any) (record.Header, error) {
	text, err := json.Marshal(plan)
	if err != nil {
		return record.Header{}, fmt.Errorf("store the plan: %w", err)
	}
	var id [4]byte          // in the form of the others: the record's file is called by it
	_, _ = rand.Read(id[:]) // never fails
	return record.Header{
		RunID: hex.EncodeToString(id[:]), Experiment: experiment, Started: time.Now().UTC(),
		Command: commandLine(), Version: version.String(), Plan: text,
	}, nil
}
