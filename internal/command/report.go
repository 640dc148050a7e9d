package command

import (
	"github.com/spf13/cobra"

	"github.com/tare-bench/tare/record"
	"github.com/tare-bench/tare/report"
)

func newReport(s Streams) *cobra.Command {
	var out outputFlags
	c := &cobra.Command{
		Use:   "report RECORD",
		Short: "Make the report of a stored record again",
		Long: `Make the report of a stored record again, in any format. A record that was cut
off (killed, disk full) is reported as far as it goes.`,
		Example: "  tare report run.jsonl\n  tare report run.jsonl --format md\n  tare report run.jsonl --format csv --subject runc",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			format, err := report.ParseFormat(out.format)
			if err != nil {
				return err
			}
			rec, err := record.Load(args[0])
			if err != nil {
				return err
			}
			code, err := show(s, format, rec, out)
			if err == nil && code != ExitDone {
				err = exit{code}
			}
			return err
		},
	}
	out.addFormat(c.Flags())
	return c
}
