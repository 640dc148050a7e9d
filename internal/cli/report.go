package cli

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tare-bench/tare/internal/core/export"
	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/instrument"
	"github.com/tare-bench/tare/internal/instrument/beside"
	"github.com/tare-bench/tare/published"
	"github.com/tare-bench/tare/record"
)

func newReport(s *app) *cobra.Command {
	var out outputFlags
	var against, dir, over string
	c := &cobra.Command{
		Use:   "report RECORD|DIR...",
		Short: "Report stored records, or compare them with published figures",
		Long: `Print the report of a stored record, in any format. A truncated record (killed run, full
disk) is reported up to its end. Several records are reported one after the other, or as
one document in a format for programs. They may be of any commands, in a folder, or in a
file from tare join. Unreadable records are reported, and the exit status is then 1.

With -o DIR tare writes a whole document of the records to DIR, as tare run does. With
--format and -o FILE the file is written atomically, so a reader never sees a partial file.
An existing file is replaced only with --force, and a record never. For node_exporter's
textfile collector: --format openmetrics -o tare.prom --force.

Records of more than 8 nodes, by their label node=NAME, are one report: the distribution
of every figure over the nodes, the outliers with what is different about them, and the
differences by machine, kernel and other settings. --over node requests this report for
any records, --over KEY by another label; a record without the label is named by its file.

With --against, the report shows published figures of the same kind of run next to the
measured ones, table by table, and contradictions within the publication. Published
figures are of other machines and versions, so nothing is computed between the two.
These come with tare:

  ` + comeAlong(),
		Example: "  tare report run.jsonl\n  tare report run.jsonl --format md\n  tare report run.jsonl --format csv\n  tare report run.jsonl --against published/isulad-2020",
		Args:    takes(1, math.MaxInt),
		RunE: func(c *cobra.Command, args []string) (err error) {
			s, dir := s, dir
			if dir != "" && c.Flags().Changed("format") {
				if isFolder(dir) {
					return errors.New("--format: a document has fixed formats; name a file with an extension, or omit --format or -o")
				}
				var written func(error) error
				s, written = s.into(dir, out.force)
				dir = ""
				defer func() { err = written(err) }()
			}
			theirs, err := theirsOf(against)
			if err != nil {
				return err
			}
			if dir != "" {
				out.theirs, theirs = theirs, nil
			}
			if over != "" && (dir != "" || theirs != nil) {
				return errors.New("--over: it is a separate report; omit --output and --against")
			}
			if err := s.checkFormat(out.format, ""); err != nil {
				return err
			}
			r, err := s.read(args, toReport{out, over, dir == "" && theirs == nil})
			if err != nil {
				return err
			}
			s.tellUnbegun(r.of)
			if r.records == 0 {
				return r.unread
			}
			switch {
			case dir != "":
				err = s.makeDocument(dir, r.all, out)
			case theirs != nil:
				err = showBeside(s, out, r.all, theirs)
			default:
				err = r.show(s)
			}
			if err != nil {
				return errors.Join(err, r.unread)
			}
			if r.unread != nil {
				fmt.Fprintf(s.Err, "tare: %s\n", cleanLines(r.unread.Error()))
				r.code = max(r.code, ExitUsage) // failed operations take precedence
			}
			return ended(r.code)
		},
	}
	out.addForm(c.Flags(), s.instruments)
	c.Flags().StringVarP(&dir, "output", "o", "", "folder for a document of all records: report.html, report.md, figures, and the plan to repeat it; with --format the report's file")
	c.Flags().BoolVar(&out.force, "force", false, "replace an existing file of --format -o; a record is never replaced")
	c.Flags().StringVar(&over, "over", "", "one report over all records, grouped by this label (default: node, for more than 8 nodes)")
	c.Flags().StringVar(&against, "against", "", "published figures to show next to the measured ones, also in the document of -o DIR/: one of those included in tare, or a file in the same format")
	return c
}

// theirsOf returns the published figures with the given name, or nil for "".
func theirsOf(against string) (*published.Report, error) {
	if against == "" {
		return nil, nil
	}
	theirs, err := published.Load(against)
	if err != nil {
		return nil, fmt.Errorf("--against: %w", err)
	}
	return theirs, nil
}

func comeAlong() string { return "published/" + strings.Join(published.Names(), "\n  published/") }

// showBeside prints measured figures next to published figures of the same experiment.
func showBeside(s *app, out outputFlags, all []instrument.Judged, theirs *published.Report) error {
	for _, one := range all {
		if is := one.Record.Header.Experiment; is != theirs.Experiment {
			return fmt.Errorf("--against: these published figures are of %s, but the record is of %s; omit the record", theirs.Experiment, is)
		}
	}
	o := s.pageOptions(out)
	p, figures := beside.Page(all, theirs, o)
	// Published figures have no run, so they are a separate document.
	documents := append([]export.Document{{Figures: figures, Record: &record.Record{
		Header: record.Header{Experiment: theirs.Experiment}, End: &record.End{Status: "published"},
	}}}, instrument.Documents(all)...)
	return s.showPages(out, documents, p)
}

// showPages prints pages of several records, or their figures.
func (s *app) showPages(out outputFlags, documents []export.Document, pages ...*page.Page) (err error) {
	if format, ok := export.FormatOf(out.format); ok {
		err = format.Write(s.Out, documents)
	} else {
		err = page.Write(s.Out, out.format, pages, s.pageOptions(out))
	}
	if err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

// makeDocument writes the document of records to a new folder.
func (s *app) makeDocument(dir string, all []instrument.Judged, out outputFlags) error {
	if !isFolder(dir) {
		return fmt.Errorf("--output: a document is a folder, and %s is a file name: add / for a new folder, or --format, such as --format html, for a single file", dir)
	}
	_, before := os.Stat(dir)
	if err := newFolder(dir); err != nil {
		return err
	}
	err := s.document(dir, all, out)
	if err != nil && errors.Is(before, os.ErrNotExist) {
		_ = os.Remove(dir) // fails if another process wrote to it
	}
	return err
}
