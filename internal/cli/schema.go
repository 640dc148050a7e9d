package cli

import (
	"github.com/spf13/cobra"

	"github.com/tare-bench/tare/internal/core/export"
	"github.com/tare-bench/tare/internal/plan"
)

func newSchema(s *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of plan files, for editors, or of figures",
		Long: `Print the JSON Schema of plan files: every field with its purpose, default and range.
Editors with the YAML language server use it with a first line such as
# yaml-language-server: $schema=plan.schema.json

tare schema figures prints the schema of the output of --format json.`,
		Example: "  tare schema\n  tare schema figures",
		Args:    knownVerb,
		RunE: func(*cobra.Command, []string) error {
			text, err := plan.Schema(s.instruments)
			if err == nil {
				_, err = s.Out.Write(text)
			}
			return err
		},
	}
	c.AddCommand(&cobra.Command{
		Use: "figures", Short: "Print the JSON Schema of figures in --format json", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := s.Out.Write(export.Schema)
			return err
		},
	})
	return c
}
