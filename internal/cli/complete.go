package cli

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tare-bench/tare/internal/core/option"
	"github.com/tare-bench/tare/internal/subject/find"
	"github.com/tare-bench/tare/internal/subject/setting"
	"github.com/tare-bench/tare/internal/term"
)

// formatFlag declares --format for a fixed list of formats. The first is the default.
func formatFlag(c *cobra.Command, format *string, all ...string) {
	*format = all[0]
	c.Flags().Var(&choice{"format", format, all}, "format", strings.Join(all, ", "))
}

// choice is a flag with a fixed list of values.
type choice struct {
	flag  string
	value *string
	of    []string
}

func (c *choice) String() string    { return *c.value }
func (c *choice) Type() string      { return "string" }
func (c *choice) Choices() []string { return c.of }

func (c *choice) Set(text string) error {
	if !slices.Contains(c.of, text) {
		return option.WrongFlag(c.flag, "%s", term.Unknown(c.flag, text, c.of))
	}
	*c.value = text
	return nil
}

// completing adds shell completion for a command's flag values and record arguments.
func (s *app) completing(c *cobra.Command) {
	c.Flags().VisitAll(func(f *pflag.Flag) {
		var all []string
		if v, is := f.Value.(interface{ Choices() []string }); is {
			all = v.Choices()
		}
		switch f.Name {
		case "format":
			if all == nil {
				of := c.Name()
				if slices.Contains([]string{"report", "run", "load", "quota", "memory"}, of) {
					of = ""
				}
				all = s.instruments.FormatNames(of)
			}
		case "ops":
			for _, op := range setting.Ops {
				all = append(all, string(op))
			}
		case "baseline", "subject", "control":
			_ = c.RegisterFlagCompletionFunc(f.Name, targetNames)
		}
		if all != nil {
			_ = c.RegisterFlagCompletionFunc(f.Name, func(_ *cobra.Command, _ []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
				list := begun[:strings.LastIndex(begun, ",")+1] // the list items already typed
				out := make([]cobra.Completion, len(all))
				for i := range all {
					out[i] = list + all[i]
				}
				return out, cobra.ShellCompDirectiveNoFileComp
			})
		}
	})
	if most, is := readers[c.Name()]; is {
		c.ValidArgsFunction = func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(args) >= most {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return s.recordNames(), cobra.ShellCompDirectiveDefault
		}
	}
}

// lookForTargets is the timeout of target completion.
const lookForTargets = 3 * time.Second

// targetNames returns the available targets.
func targetNames(c *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(c.Context(), lookForTargets)
	defer cancel()
	var names []cobra.Completion
	for _, t := range present(find.All(ctx, find.Settings{}, false)) {
		names = append(names, t.Info().Name)
	}
	return names, cobra.ShellCompDirectiveDefault
}
