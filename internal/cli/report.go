package cli

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tare-bench/tare/internal/core/export"
	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/instrument"
	"github.com/tare-bench/tare/internal/instrument/beside"
	"github.com/tare-bench/tare/internal/instrument/lifecycle"
	"github.com/tare-bench/tare/published"
	"github.com/tare-bench/tare/record"
)

func newReport(s *app) *cobra.Command {
	var out outputFlags
	var against string
	c := &cobra.Command{
		Use:   "report RECORD...",
		Short: "Make the report of stored records again, or set them beside published figures",
		Long: `Make the report of a stored record again, in any format. A record that was cut
off (killed, disk full) is reported as far as it goes. Several, such as those of
the measures of one plan, are reported one after the other.

With --against, what was measured stands beside published figures of the same
kind of run, table by table, with what a publication says that its own figures
contradict. Theirs are of other machines and versions: nothing is computed
between the two. With tare come:

  ` + comeAlong(),
		Example: "  tare report run.jsonl\n  tare report run.jsonl --format md\n  tare report run.jsonl --format csv --subject runc\n  tare report run.jsonl --against published/isulad-2020",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			var theirs *published.Report
			if against != "" {
				if out.subject != "" {
					return errors.New("--subject: nothing is compared with --against; leave one of the two out")
				}
				var err error
				if theirs, err = published.Load(against); err != nil {
					return fmt.Errorf("--against: %w", err)
				}
			}
			all, err := s.judged(args, out.format)
			if err != nil {
				return err
			}
			if theirs != nil {
				return showBeside(s, out, all, theirs)
			}
			if err := checkSubject(all, out.subject); err != nil {
				return err
			}
			code, err := s.show(all, out)
			return errors.Join(err, ended(code))
		},
	}
	out.addForm(c.Flags(), s.instruments)
	c.Flags().StringVar(&out.subject, "subject", "", "target whose column of the iSulad form is compared with every other (default: every other with the baseline)")
	c.Flags().StringVar(&against, "against", "", "published figures to stand beside: one of those that come with tare, or a file of the same form")
	return c
}

func comeAlong() string { return "published/" + strings.Join(published.Names(), "\n  published/") }

// judged judges stored records, each by its own instrument.
func (s *app) judged(paths []string, format string) (all []instrument.Judged, err error) {
	for _, path := range paths {
		rec, err := s.lines().Load(path)
		if err != nil {
			return nil, err
		}
		j, err := s.instruments.Judge(rec)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if err := s.checkFormat(format, rec.Header.Experiment); err != nil {
			return nil, err
		}
		all = append(all, instrument.Judged{Record: rec, Judgement: j})
	}
	return all, nil
}

// showBeside prints what runs gave beside published figures of their experiment.
func showBeside(s *app, out outputFlags, all []instrument.Judged, theirs *published.Report) error {
	experiment := cmp.Or(theirs.Experiment, lifecycle.Name)
	var lifecycles []*lifecycle.Judgement
	for _, one := range all {
		if is := one.Record.Header.Experiment; is != experiment {
			return fmt.Errorf("--against: these published figures are of %s, and this is a record of %s; leave it out", experiment, is)
		}
		if l, ok := one.Judgement.(*lifecycle.Judgement); ok {
			lifecycles = append(lifecycles, l)
		}
	}
	o := s.pageOptions(out)
	p, figures := beside.Page(all, theirs, o)
	if experiment == lifecycle.Name {
		p, figures = lifecycle.Against(lifecycles, theirs, o)
	}
	// Theirs have no run: a document of their own.
	documents := append([]export.Document{{Figures: figures, Record: &record.Record{
		Header: record.Header{Experiment: experiment}, End: &record.End{Status: "published"},
	}}}, instrument.Documents(all)...)
	if err := s.showPage(out, p, documents); err != nil {
		return err
	}
	for _, one := range all {
		if failed, _, found := one.Result(); codeOf(failed, found) != ExitDone {
			return exit{ExitFailed}
		}
	}
	return nil
}

// showPage prints a page that is of no single record, or its figures.
func (s *app) showPage(out outputFlags, p *page.Page, documents []export.Document) (err error) {
	switch out.format {
	case "json":
		err = export.JSON(s.Out, documents)
	case "csv":
		err = export.CSV(s.Out, documents)
	default:
		err = page.Write(s.Out, out.format, []*page.Page{p}, s.pageOptions(out))
	}
	if err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

// checkSubject wants the subject among the targets of one of the records.
func checkSubject(all []instrument.Judged, subject string) error {
	if subject == "" {
		return nil
	}
	var names []string
	for _, one := range all {
		if _, ok := one.Judgement.(*lifecycle.Judgement); !ok {
			continue
		}
		for _, t := range one.Record.Targets {
			if t.Name == subject {
				return nil
			}
			names = append(names, t.Name)
		}
	}
	if names == nil {
		return errors.New("--subject: it is of the iSulad form, which is of lifecycles; leave it out")
	}
	return fmt.Errorf("--subject: %q is not among the targets: %s", subject, strings.Join(names, ", "))
}
