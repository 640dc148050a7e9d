package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tare-bench/tare/internal/core/export"
	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/instrument"
	"github.com/tare-bench/tare/internal/instrument/lifecycle"
	"github.com/tare-bench/tare/published"
	"github.com/tare-bench/tare/record"
)

func newReport(s Streams) *cobra.Command {
	var out outputFlags
	var against string
	c := &cobra.Command{
		Use:   "report RECORD...",
		Short: "Make the report of stored records again, or set them beside published figures",
		Long: `Make the report of a stored record again, in any format. A record that was cut
off (killed, disk full) is reported as far as it goes. Several, such as those of
the measures of one plan, are reported one after the other.

With --against, what was weighed stands beside published figures, table by
table. Those are of other machines and versions: nothing is computed between
them. With tare come:

  ` + comeAlong(),
		Example: "  tare report run.jsonl\n  tare report run.jsonl --format md\n  tare report run.jsonl --format csv --subject runc\n  tare report run.jsonl --against published/isulad-2020",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			var beside *published.Report
			if against != "" {
				if out.subject != "" {
					return errors.New("--subject: nothing is compared with --against; leave one of the two out")
				}
				var err error
				if beside, err = published.Load(against); err != nil {
					return fmt.Errorf("--against: %w", err)
				}
			}
			records, err := loadRecords(args)
			if err != nil {
				return err
			}
			all, err := judged(args, records, out.format)
			if err != nil {
				return err
			}
			if beside != nil {
				return showBeside(s, out, all, beside)
			}
			code, err := show(s, out, all...)
			if err == nil && code != ExitDone {
				err = exit{code}
			}
			return err
		},
	}
	out.addFormat(c.Flags())
	c.Flags().StringVar(&against, "against", "", "published figures to stand beside: one of those that come with tare, or a file of the same form")
	return c
}

func comeAlong() string { return "published/" + strings.Join(published.Names(), "\n  published/") }

func loadRecords(paths []string) (all []*record.Record, err error) {
	for _, path := range paths {
		rec, err := record.Load(path)
		if err != nil {
			return nil, err
		}
		all = append(all, rec)
	}
	return all, nil
}

// judged judges records that are to be reported in a format, each by its own
// instrument.
func judged(paths []string, records []*record.Record, format string) (all []instrument.Judged, err error) {
	for i, rec := range records {
		j, err := instrument.Judge(rec)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", paths[i], err)
		}
		if err := checkFormat(format, rec.Header.Experiment); err != nil {
			return nil, err
		}
		all = append(all, instrument.Judged{Record: rec, Judgement: j})
	}
	return all, nil
}

// showBeside prints what lifecycles gave beside published figures.
func showBeside(s Streams, out outputFlags, all []instrument.Judged, theirs *published.Report) error {
	var ours []*lifecycle.Judgement
	for _, one := range all {
		l, ok := one.Judgement.(*lifecycle.Judgement)
		if !ok {
			return fmt.Errorf("--against: published figures are of lifecycles, and this is a record of %s; leave it out", one.Record.Header.Experiment)
		}
		ours = append(ours, l)
	}
	o := pageOptions(s, out)
	p, figures := lifecycle.Against(ours, theirs, o)
	var err error
	switch out.format {
	case "json", "csv":
		d := export.Document{Record: all[0].Record, Figures: figures}
		d.Failed, d.Total, d.Findings = all[0].Result()
		err = map[string]func(io.Writer, []export.Document) error{"json": export.JSON, "csv": export.CSV}[out.format](s.Out, []export.Document{d})
	default:
		err = page.Write(s.Out, out.format, []*page.Page{p}, o)
	}
	if err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	for _, one := range ours {
		if codeOf(one.Failed, one.Found) != ExitDone {
			return exit{ExitFailed}
		}
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
