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
		Short: "Make the report of stored records again, or set them beside published figures",
		Long: `Make the report of a stored record again, in any format. A record that was cut
off (killed, disk full) is reported as far as it goes. Several, of any commands, all
below a folder, or of a file that tare join wrote, are reported one after the other, and
in a format for programs as one document; one that cannot be read is told of, and the
exit status is then 1.

With -o DIR a whole document of the records, or of those of a folder, is made there:
the one that tare run ends with. With --format and -o FILE the file is written whole:
a reader never sees half of one. A file that exists is replaced only with --force, and a
record never. For node_exporter's textfile collector: --format openmetrics -o tare.prom --force.

Records of more than 8 nodes, as tare label node=NAME tells them, are one report: how
every figure is distributed over the nodes, which of them are outliers and what is
unlike about them, and how they differ by machine, kernel and all else that differs.
--over node asks for that of any records, --over KEY of those of another label; one
that lacks the label is called by its file.

With --against, what was measured stands beside published figures of the same
kind of run, table by table, with what a publication says that its own figures
contradict. Theirs are of other machines and versions: nothing is computed
between the two. With tare come:

  ` + comeAlong(),
		Example: "  tare report run.jsonl\n  tare report run.jsonl --format md\n  tare report run.jsonl --format csv\n  tare report run.jsonl --against published/isulad-2020",
		Args:    takes(1, math.MaxInt),
		RunE: func(c *cobra.Command, args []string) (err error) {
			s, dir := s, dir
			if dir != "" && c.Flags().Changed("format") {
				if isFolder(dir) {
					return errors.New("--format: a document has its own formats; name a file with an extension, or leave one of the two out")
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
				return errors.New("--over: it is a report of its own; leave --output and --against out")
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
			show := func() (int, error) { return r.code, r.show(s) }
			if dir != "" {
				show = func() (int, error) { return s.makeDocument(dir, r.all, out) }
			}
			if theirs != nil {
				show = func() (int, error) { return showBeside(s, out, r.all, theirs) }
			}
			code, err := show()
			if err != nil {
				return errors.Join(err, r.unread)
			}
			if r.unread != nil {
				fmt.Fprintf(s.Err, "tare: %s\n", cleanLines(r.unread.Error()))
				code = max(code, ExitUsage) // operations that failed weigh more
			}
			return ended(code)
		},
	}
	out.addForm(c.Flags(), s.instruments)
	c.Flags().StringVarP(&dir, "output", "o", "", "folder for a document of all the records: report.html, report.md, figures, and the plan that measures it again; with --format the report's file")
	c.Flags().BoolVar(&out.force, "force", false, "replace the file that --format -o names; a record is never replaced")
	c.Flags().StringVar(&over, "over", "", "one report over all records, told apart by this label (default: node, where they are of more than 8)")
	c.Flags().StringVar(&against, "against", "", "published figures to compare by eye, also in the document of -o DIR/: one of those that come with tare, or a file of the same form")
	return c
}

// theirsOf are the published figures of that name, nil for "".
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

// showBeside prints what runs gave beside published figures of their experiment.
func showBeside(s *app, out outputFlags, all []instrument.Judged, theirs *published.Report) (code int, err error) {
	for _, one := range all {
		if is := one.Record.Header.Experiment; is != theirs.Experiment {
			return 0, fmt.Errorf("--against: these published figures are of %s, and this is a record of %s; leave it out", theirs.Experiment, is)
		}
	}
	o := s.pageOptions(out)
	p, figures := beside.Page(all, theirs, o)
	// Theirs have no run: a document of their own.
	documents := append([]export.Document{{Figures: figures, Record: &record.Record{
		Header: record.Header{Experiment: theirs.Experiment}, End: &record.End{Status: "published"},
	}}}, instrument.Documents(all)...)
	if err := s.showPage(out, p, documents); err != nil {
		return 0, err
	}
	return codeOfAll(all), nil
}

// showPage prints a page that is of no single record, or its figures.
func (s *app) showPage(out outputFlags, p *page.Page, documents []export.Document) (err error) {
	if format, ok := export.FormatOf(out.format); ok {
		err = format.Write(s.Out, documents)
	} else {
		err = page.Write(s.Out, out.format, []*page.Page{p}, s.pageOptions(out))
	}
	if err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

// makeDocument makes the document of records, in a folder of its own.
func (s *app) makeDocument(dir string, all []instrument.Judged, out outputFlags) (code int, err error) {
	if !isFolder(dir) {
		return 0, fmt.Errorf("--output: a document is a folder, and %s is a file's name: end a new folder's with /, or give --format too, such as --format html, for one file", dir)
	}
	_, before := os.Stat(dir)
	if err := newFolder(dir); err != nil {
		return 0, err
	}
	err = s.document(dir, all, out)
	if err != nil && errors.Is(before, os.ErrNotExist) {
		_ = os.Remove(dir) // unless somebody else has put something there
	}
	return codeOfAll(all), err
}
