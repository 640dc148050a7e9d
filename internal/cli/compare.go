package cli

import (
	"math"

	"github.com/spf13/cobra"

	"github.com/tare-bench/tare/internal/core/compare"
	"github.com/tare-bench/tare/internal/core/export"
	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/option"
	"github.com/tare-bench/tare/internal/instrument"
	"github.com/tare-bench/tare/internal/instrument/terms"
	"github.com/tare-bench/tare/internal/version"
	"github.com/tare-bench/tare/record"
)

// compareOptions are the options of package compare with their shared flags.
type compareOptions struct{ compare.Options }

// Declare declares the flags.
func (o *compareOptions) Declare(s *option.Set) { terms.Comparing(s, &o.Comparing) }

func newCompare(s *app) *cobra.Command {
	var out outputFlags
	var earlier []string
	o := &compareOptions{}
	set := option.Of(o)
	c := &cobra.Command{
		Use:   "compare OLD NEW [MORE...]",
		Short: "Compare records: what differs, by how much, and whether it is significant",
		Long: `Compare records. Every figure that both sides have is compared with that of the first
side. The table has the shift with a 95 % interval, p adjusted for the table, and a verdict:
worse, better, same or not decided. Figures of one side only are listed below.

A side is a record, a folder with all records below it, or NAME=FILE. Files with the same
NAME are one side. Each of their runs counts once, so the interval includes the variation
between boots. Records of different machines, kernels, versions, definitions or options
are refused, unless --unlike: then the differences are listed first, and figures of two
machines never get a verdict.

A verdict needs a basis: both sides in the rounds of one run, at least three runs per
side, or a control in both. --table, --row, --col and --filter work as in benchstat. Keys
are the labels of figures (target, op, lanes, …), experiment, quantity, unit, side, and
for the record run, kernel, arch, os, cpu, cgroup, tare and version (of the target).`,
		Example: `  tare compare run.jsonl --col target
  tare compare run.jsonl --col 'target@(runc host)' --filter 'quantity:latency op:(create OR start)'`,
		Args: takes(1, math.MaxInt),
		RunE: func(c *cobra.Command, args []string) error {
			if err := set.Finish(c.Context()); err != nil {
				return err
			}
			if err := s.checkFormat(out.format, ""); err != nil {
				return err
			}
			sides, err := s.sides(args)
			if err != nil {
				return err
			}
			if len(sides) == 1 && o.Col == "" {
				return errOneSide
			}
			if o.Earlier, err = s.runs(earlier); err != nil {
				return err
			}
			compared, err := compare.New(sides, o.Options)
			if err != nil {
				return err
			}
			return s.showPages(out, comparison("compare", compared.Figures(), compared.Findings()), compared.Page())
		},
	}
	set.AddFlags(c.Flags())
	flags := c.Flags()
	flags.StringVar(&o.Col, "col", "", "key of the columns; the others are compared with the first (default: side)")
	flags.StringVar(&o.Row, "row", "", "key of the rows (default: all other labels)")
	flags.StringVar(&o.Table, "table", "", "key of the tables, in addition to experiment and quantity")
	flags.StringVar(&o.Filter, "filter", "", "figures to compare, such as 'quantity:latency -target:host'")
	flags.BoolVar(&o.Unlike, "unlike", false, "also compare unlike records")
	addBasis(flags, &o.Control, &earlier)
	out.addForm(flags, instrument.List{})
	return c
}

// comparison returns the document of figures from several records.
func comparison(verb string, figures []figure.Figure, findings []record.Finding) []export.Document {
	return []export.Document{{Figures: figures, Findings: findings, Record: &record.Record{
		Header: record.Header{Experiment: verb, Version: version.String(), Command: commandLine()}, End: &record.End{Status: "done"},
	}}}
}
