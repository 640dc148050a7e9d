package cli

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/tare-bench/tare/internal/plan"
	"github.com/tare-bench/tare/internal/version"
	"github.com/tare-bench/tare/record"
)

func newVersion(s *app) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print tare's version and those of its formats",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintf(s.Out, "tare %s (%s, %s/%s), record schema %d, plan version %d\n",
				version.String(), runtime.Version(), runtime.GOOS, runtime.GOARCH, record.Schema, plan.Version)
			return err
		},
	}
}
