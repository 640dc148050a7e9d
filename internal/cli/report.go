package cli

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tare-bench/tare/internal/judge"
	"github.com/tare-bench/tare/internal/report"
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
			format, err := report.ParseFormat(out.format)
			if err != nil {
				return err
			}
			var beside *published.Report
			if against != "" {
				if out.subject != "" {
					return errors.New("--subject: nothing is compared with --against; leave one of the two out")
				}
				if beside, err = published.Load(against); err != nil {
					return fmt.Errorf("--against: %w", err)
				}
			}
			records, err := loadRecords(args)
			if err != nil {
				return err
			}
			if rec, err := onlyOverhead(args, records); rec != nil || err != nil {
				return showStored(s, format, rec, err, out, showOverhead)
			}
			if some, err := alone(args, records, "bpf"); some || err != nil {
				err = cmp.Or(err, plainOnly(against, out))
				return showStored(s, format, records[0], err, out, showBPF)
			}
			if some, err := alone(args, records, "startup"); some || err != nil {
				err = cmp.Or(err, plainOnly(against, out))
				return showStored(s, format, records[0], err, out, showStarts)
			}
			if some, err := ofStorage(args, records); some || err != nil {
				if err == nil {
					err = plainOnly(against, out)
				}
				return showStorages(s, format, records, err, out)
			}
			all, err := judged(args, records)
			if err != nil {
				return err
			}
			return showAll(s, format, all, beside, out)
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

// alone tells whether the records are of an experiment whose records are reported
// one at a time.
func alone(paths []string, records []*record.Record, experiment string) (bool, error) {
	i := slices.IndexFunc(records, func(r *record.Record) bool { return r.Header.Experiment == experiment })
	if i >= 0 && len(records) > 1 {
		return false, fmt.Errorf("%s is a record of %s, which is reported alone; give it without the others", paths[i], experiment)
	}
	return i >= 0, nil
}

// onlyOverhead is the record of an overhead run, which is reported alone: its
// books have nothing that could stand beside a lifecycle's times. nil for others.
func onlyOverhead(paths []string, records []*record.Record) (*record.Record, error) {
	for i, rec := range records {
		if rec.Header.Experiment != "overhead" {
			continue
		}
		if len(records) > 1 {
			return nil, fmt.Errorf("%s is a record of overhead, which is reported alone; give it without the others", paths[i])
		}
		return rec, nil
	}
	return nil, nil
}

// showStored prints the report of a stored record by show, the one of its experiment.
func showStored(s Streams, format report.Format, rec *record.Record, err error, out outputFlags,
	show func(Streams, report.Format, *record.Record, outputFlags) (int, error)) error {
	if err != nil {
		return err
	}
	code, err := show(s, format, rec, out)
	if err == nil && code != ExitDone {
		err = exit{code}
	}
	return err
}

// ofStorage tells whether records are of storage. Those cannot stand among
// others.
func ofStorage(paths []string, records []*record.Record) (bool, error) {
	count, other := 0, ""
	for i, rec := range records {
		if rec.Header.Experiment == "storage" {
			count++
		} else {
			other = paths[i]
		}
	}
	if count > 0 && other != "" {
		return false, fmt.Errorf("%s is no record of storage as the others are; give it alone", other)
	}
	return count > 0, nil
}

// plainOnly refuses what only reports of lifecycles have a use for.
func plainOnly(against string, out outputFlags) error {
	switch {
	case against != "":
		return errors.New("--against: published figures are of lifecycles; leave it out")
	case out.subject != "":
		return errors.New("--subject: it is of the iSulad form, which is of lifecycles; leave it out")
	}
	return nil
}

// showStorages prints the reports of stored records of storage, one after the
// other.
func showStorages(s Streams, format report.Format, records []*record.Record, err error, out outputFlags) error {
	if err != nil {
		return err
	}
	if format == report.JSON && len(records) > 1 {
		return errors.New("--format json: give one record of storage at a time")
	}
	worst := ExitDone
	for i, rec := range records {
		if i > 0 {
			fmt.Fprintln(s.Out)
		}
		code, err := showStorage(s, format, rec, out)
		if err != nil {
			return err
		}
		worst = max(worst, code)
	}
	if worst != ExitDone {
		return exit{worst}
	}
	return nil
}

// judged judges records of lifecycles.
func judged(paths []string, records []*record.Record) (all []report.Weighed, err error) {
	for i, rec := range records {
		l, err := judge.Of(rec)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", paths[i], err)
		}
		all = append(all, report.Weighed{Record: rec, Lifecycle: l})
	}
	return all, nil
}

// showAll prints the reports of records, or what they hold beside published
// figures, and fails as the runs did.
func showAll(s Streams, format report.Format, all []report.Weighed, beside *published.Report, out outputFlags) error {
	if err := checkSubjects(all, out.subject); err != nil {
		return err
	}
	o := reportOptions(s, out)
	var err error
	if beside != nil {
		err = report.Against(s.Out, format, all, beside, o)
	} else {
		err = report.Lifecycles(s.Out, format, all, o)
	}
	if err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	for _, one := range all {
		if one.Lifecycle.Failed > 0 || hasError(one.Lifecycle.Findings) {
			return exit{ExitFailed}
		}
	}
	return nil
}

// checkSubjects wants the subject among the targets of one of the records.
func checkSubjects(all []report.Weighed, subject string) error {
	var errs []error
	for _, one := range all {
		err := checkSubject(one.Lifecycle, subject)
		if err == nil {
			return nil
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
