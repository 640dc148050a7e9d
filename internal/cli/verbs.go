package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/tare-bench/tare/internal/bpflist"
	"github.com/tare-bench/tare/internal/core/option"
	"github.com/tare-bench/tare/internal/instrument"
	service "github.com/tare-bench/tare/internal/instrument/app"
	"github.com/tare-bench/tare/internal/instrument/bpf"
	"github.com/tare-bench/tare/internal/instrument/density"
	"github.com/tare-bench/tare/internal/instrument/lifecycle"
	"github.com/tare-bench/tare/internal/instrument/overhead"
	"github.com/tare-bench/tare/internal/instrument/startup"
	"github.com/tare-bench/tare/internal/instrument/storage"
	"github.com/tare-bench/tare/internal/instrument/terms"
	"github.com/tare-bench/tare/internal/subject/find"
)

// performers maps each instrument to its implementation.
var performers = map[string]performer{
	lifecycle.Name: {perform: by(weighLifecycle)},
	overhead.Name:  {perform: by(weighOverhead)},
	storage.Name:   {perform: by(weighStorage)},
	startup.Name:   {perform: by(weighStartup), extend: extendStartup},
	service.Name:   {perform: by(weighApp)},
	bpf.Name:       {perform: by(weighBPF), extend: extendBPF},
	density.Name:   {perform: by(weighDensity)},
}

// equip sets callbacks on options that need an engine or the kernel.
func equip(o option.Options) {
	if w, ok := o.(interface{ IdentifyBy(terms.Identify) }); ok {
		w.IdentifyBy(find.IdentifyCRI)
	}
	if b, ok := o.(*bpf.Options); ok {
		b.ShowLoaded(bpflist.Loaded)
	}
}

// performer runs an instrument.
type performer struct {
	perform func(context.Context, *app, option.Options, outputFlags) error
	extend  func(*app, *verb) // adds subcommands or flags to its verb; may be nil
}

// by adapts a function for one type of options.
func by[O any](weigh func(context.Context, *app, O, outputFlags) error) func(context.Context, *app, option.Options, outputFlags) error {
	return func(ctx context.Context, s *app, o option.Options, out outputFlags) error {
		return weigh(ctx, s, *any(o).(*O), out)
	}
}

// verb is the command of an instrument. The verb of an instrument with modes has no options
// and a subcommand for each mode.
type verb struct {
	*cobra.Command
	options option.Options
	set     *option.Set
	out     outputFlags
}

func newVerb(s *app, one *instrument.Instrument) *cobra.Command {
	p := s.performers[one.Name]
	var v *verb
	if len(one.Modes) == 0 {
		v = newMeasure(s, one, p, &instrument.Mode{Name: one.Name, Short: one.Short, Long: one.Long, Example: one.Example, New: one.New})
	} else {
		v = &verb{Command: &cobra.Command{Use: one.Name, Short: one.Short, Long: one.Long, Example: one.Example, Args: knownVerb,
			RunE: func(c *cobra.Command, _ []string) error { return c.Help() }}}
		for i := range one.Modes {
			v.AddCommand(newMeasure(s, one, p, &one.Modes[i]).Command)
		}
	}
	if p.extend != nil {
		p.extend(s, v)
	}
	return v.Command
}

// newMeasure returns a verb that measures. Its flags and arguments are those of the
// options.
func newMeasure(s *app, one *instrument.Instrument, p performer, m *instrument.Mode) *verb {
	v := &verb{options: m.New()}
	equip(v.options)
	v.set = option.Of(v.options)
	name, take := v.set.Arguments()
	v.Command = &cobra.Command{
		Use: m.Name, Short: m.Short, Long: m.Long, Example: m.Example, Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, args []string) error {
			if take != nil {
				take(args)
			}
			if err := v.set.Finish(c.Context()); err != nil {
				return err
			}
			return p.perform(c.Context(), s, v.options, v.out)
		},
	}
	if take != nil {
		v.Use, v.Args = m.Name+" ["+name+"...]", cobra.ArbitraryArgs
		v.ValidArgsFunction = targetNames
	}
	v.set.AddFlags(v.Flags())
	v.out.addRecord(v.Flags())
	if v.set.Takes("lanes") || v.set.Takes("sandboxes") {
		v.out.addForce(v.Flags())
	}
	v.out.addForm(v.Flags(), instrument.List{*one})
	return v
}
