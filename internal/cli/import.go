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

	"github.com/tare-bench/tare/internal/instrument/storage/tool/notes"
	"github.com/tare-bench/tare/internal/report"
	"github.com/tare-bench/tare/internal/version"
	"github.com/tare-bench/tare/record"
)

// importFlags say what texts do not say of themselves.
type importFlags struct {
	target, volume, cache string
}

func newImport(s Streams) *cobra.Command {
	var flags importFlags
	var out outputFlags
	c := &cobra.Command{
		Use:   "import [LABEL=]FILE...",
		Short: "Make a record of what fio, dd and sysbench said earlier, in any text that was kept",
		Long: `Read the output of tools out of any text (consoles, wiki pages, mails, logs) and
make a storage record of it, so that old figures can be compared and judged:
fio's JSON, terse lines (versions 2 to 5) and text (2.x and 3.x, whole or single
lines), dd's of GNU, busybox and BSD, sysbench's fileio of 0.4, 0.5 and 1.0, and
Markdown tables whose cells are rates or IOPS. FILE "-" is standard input.

Commands in the text say what the results after them are of. Whose they are says
LABEL or --target, else a line such as "kata:" or the command that started the
container, else the file's name. Any other name alone on a line, "my-vm:" or
"VM 1:", begins a target as well if a command or a result comes right after; which
lines were taken so, or may have been meant so, is told. Rows of tables keep their
own names, and are jobs of their own beside what a tool printed. What looked like a
result and could not be read is told with its line.

A record that was imported holds what the tools said and nothing of the machine:
nothing was seen from outside, and nothing is known of the environment.`,
		Example: "  tare import notes.txt\n  tare import kata=notes.txt --volume rootfs --cache direct --format md",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			format, err := formatOf(out.format, "storage")
			if err != nil {
				return err
			}
			if err := flags.validate(); err != nil {
				return err
			}
			return importNotes(s, format, c.InOrStdin(), args, flags, out)
		},
	}
	c.Flags().StringVar(&flags.target, "target", "", "whose all results are that no LABEL= names")
	c.Flags().StringVar(&flags.volume, "volume", "", "where the files of all results were: rootfs, bind, tmpfs, nfs or device")
	c.Flags().StringVar(&flags.cache, "cache", "", "how all results were made: direct or buffered")
	c.Flags().StringVarP(&out.record, "output", "o", "", "record to write, .jsonl or .jsonl.zst (default: a new file in the user's data folder)")
	out.addStorageForm(c.Flags())
	return c
}

func (f *importFlags) validate() error {
	if err := oneOf("--volume", f.volume, record.VolumeRootfs, record.VolumeBind, record.VolumeTmpfs, record.VolumeNFS, record.VolumeDevice); err != nil {
		return err
	}
	if err := oneOf("--cache", f.cache, record.CacheDirect, record.CacheBuffered); err != nil {
		return err
	}
	if f.target != "" && !notes.IsTarget(f.target) {
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

// importNotes reads the texts, stores what is in them and reports it.
func importNotes(s Streams, format report.Format, stdin io.Reader, args []string, flags importFlags, out outputFlags) error {
	began := time.Now()
	var all []*notes.Notes
	for _, arg := range args {
		n, err := readNotes(stdin, arg, flags)
		if err != nil {
			return err
		}
		all = append(all, n)
	}
	g := notes.Gather(all...)
	if len(g.Cells) == 0 {
		return nothingFound(args, g.Findings)
	}
	path, err := storeImported(g, began, out)
	if err != nil {
		return err
	}
	rec, err := record.Load(path)
	if err != nil {
		return err
	}
	code, err := showStorage(s, format, rec, out)
	if err != nil {
		return err
	}
	fmt.Fprintf(s.Err, "record: %s\n", path)
	if code != ExitDone {
		return exit{code}
	}
	return nil
}

// readNotes reads one argument, LABEL=FILE or FILE. A file whose name has an
// equals sign is taken as it is if it is there.
func readNotes(stdin io.Reader, arg string, flags importFlags) (*notes.Notes, error) {
	o := notes.Options{Target: flags.target, Volume: flags.volume, Cache: flags.cache}
	path := arg
	if label, file, ok := strings.Cut(arg, "="); ok && notes.IsTarget(label) {
		if _, err := os.Lstat(arg); err != nil {
			o.Target, path = label, file
		}
	}
	if path == "-" {
		return notes.Read("-", stdin, o)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("import: %w; give a text file, as FILE or LABEL=FILE", err)
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil && info.IsDir() {
		return nil, fmt.Errorf("import: %s is a folder; give the files in it", path)
	}
	return notes.Read(filepath.Base(path), file, o)
}

// nothingFound says why no record is made.
func nothingFound(args []string, findings []record.Finding) error {
	why := ""
	for _, f := range findings {
		if f.Code == notes.FoundUnread { // the others are about results, of which there is none
			why += "\n" + f.Message
		}
	}
	return fmt.Errorf("import: no result of fio, dd or sysbench in %s%s\ngive the output of the tools themselves, as text or JSON", strings.Join(args, ", "), why)
}

// storeImported writes the record and returns where it is.
func storeImported(g notes.Gathered, began time.Time, out outputFlags) (path string, err error) {
	id := importID()
	w, path, err := createRecord(out.record, "storage", id)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	lines, err := linesOf(g, id, began)
	if err != nil {
		return path, err
	}
	for _, line := range lines {
		if err := w.Write(line); err != nil {
			return path, err
		}
	}
	return path, nil
}

// linesOf is the record of what was found, from its header to its end.
func linesOf(g notes.Gathered, id string, began time.Time) ([]any, error) {
	p, err := json.Marshal(g.Plan)
	if err != nil {
		return nil, fmt.Errorf("store the plan: %w", err)
	}
	// The environment stays empty: that of the runs is not known, and this
	// machine's has nothing to do with them.
	lines := []any{record.Header{
		RunID: id, Experiment: "storage", Started: began.UTC(), Command: append([]string{"tare"}, commandLine()...),
		Version: version.String(), Plan: p,
	}}
	for _, t := range g.Targets {
		lines = append(lines, t)
	}
	failures := 0
	for _, c := range g.Cells {
		if c.Failure != nil {
			failures++
		}
		lines = append(lines, c)
	}
	for _, f := range g.Findings {
		lines = append(lines, f)
	}
	return append(lines, record.End{Status: "done", Why: "imported", Batches: len(g.Cells), Failures: failures, Elapsed: int64(time.Since(began))}), nil
}

// importID names a record of a run that tare did not make. It has the form of
// the others, since the record's file is called by it.
func importID() string {
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}
