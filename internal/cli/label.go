package cli

import (
	"fmt"
	"math"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tare-bench/tare/record"
)

var labelKey = regexp.MustCompile(`^[a-z][a-z0-9_.-]{0,63}$`)

func newLabel(s *app) *cobra.Command {
	return &cobra.Command{
		Use:   "label RECORD KEY=VALUE...",
		Short: "Add labels to a record, such as a commit, a node or a setting",
		Long: `Append labels to a record. Measurements are not changed: labels are lines at the end of
the file. Reports show them in their header, and in JSON and CSV every figure has them. A
later label replaces an earlier one with the same key; KEY= removes it.`,
		Example: "  tare label run.jsonl commit=1a2b3c4 node=a",
		Args:    takes(2, math.MaxInt),
		RunE: func(_ *cobra.Command, args []string) error {
			all, err := s.judged(args[:1], "json")
			if err != nil {
				return err
			}
			own := map[string]bool{}
			for _, f := range all[0].Figures() {
				for _, l := range f.Labels {
					own[l.Key] = true
				}
			}
			var labels []record.Label
			for _, arg := range args[1:] {
				key, value, ok := strings.Cut(arg, "=")
				l := record.Label{Key: key, Value: value}
				switch err := record.Validate(&l); {
				case !ok || !labelKey.MatchString(key):
					return fmt.Errorf("label %q: write KEY=VALUE, where the key has only lowercase letters, digits and _.-", arg)
				case own[key]:
					return fmt.Errorf("label %q: figures of this record already have a label %s; choose another key", arg, key)
				case err != nil:
					return fmt.Errorf("label %q: %w", arg, err)
				}
				labels = append(labels, l)
			}
			if err := s.lines().AddLabels(args[0], labels); err != nil {
				return err
			}
			_, err = fmt.Fprintf(s.Out, "%s: %s\n", args[0], cleanLines(strings.Join(args[1:], " ")))
			return err
		},
	}
}
