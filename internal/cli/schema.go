package cli

import (
	"github.com/spf13/cobra"

	"github.com/tare-bench/tare/internal/plan"
)

func newSchema(s *app) *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of plan files, for editors",
		Long: `Print the JSON Schema of plan files: every field with what it is for, its default
and its range. Editors that know YAML's language server take it by a first line such as
# yaml-language-server: $schema=plan.schema.json`,
		Example: "  tare schema",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			text, err := plan.Schema(s.instruments)
			if err == nil {
				_, err = s.Out.Write(text)
			}
			return err
		},
	}
}
