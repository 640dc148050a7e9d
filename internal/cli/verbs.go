package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/tare-bench/tare/internal/bpflist"
	"github.com/tare-bench/tare/internal/core/option"
	"github.com/tare-bench/tare/internal/instrument"
	service "github.com/tare-bench/tare/internal/instrument/app"
	servicerun "github.com/tare-bench/tare/internal/instrument/app/run"
	"github.com/tare-bench/tare/internal/instrument/bpf"
	bpfrun "github.com/tare-bench/tare/internal/instrument/bpf/run"
	"github.com/tare-bench/tare/internal/instrument/density"
	densityrun "github.com/tare-bench/tare/internal/instrument/density/run"
	"github.com/tare-bench/tare/internal/instrument/lifecycle"
	lifecyclerun "github.com/tare-bench/tare/internal/instrument/lifecycle/run"
	"github.com/tare-bench/tare/internal/instrument/overhead"
	overheadrun "github.com/tare-bench/tare/internal/instrument/overhead/run"
	"github.com/tare-bench/tare/internal/instrument/startup"
	startuprun "github.com/tare-bench/tare/internal/instrument/startup/run"
	"github.com/tare-bench/tare/internal/instrument/storage"
	storagerun "github.com/tare-bench/tare/internal/instrument/storage/run"
	"github.com/tare-bench/tare/internal/perform"
	"github.com/tare-bench/tare/internal/subject/find"
)

// performers maps each instrument to the function that performs it.
var performers = map[string]performer{
	lifecycle.Name: {perform: perform.By(lifecyclerun.Perform)},
	overhead.Name:  {perform: perform.By(overheadrun.Perform)},
	storage.Name:   {perform: perform.By(storagerun.Perform)},
	startup.Name:   {perform: perform.By(startuprun.Perform), extend: extendStartup},
	service.Name:   {perform: perform.By(servicerun.Perform)},
	bpf.Name:       {perform: perform.By(bpfrun.Perform), extend: extendBPF},
	density.Name:   {perform: perform.By(densityrun.Perform)},
}

// equip sets callbacks on options that need an engine or the kernel.
func equip(o option.Options) {
	w, _ := whom(o)
	w.IdentifyBy(find.IdentifyCRI)
	if b, ok := o.(*bpf.Options); ok {
		b.ShowLoaded(bpflist.Loaded)
	}
}

// performer runs an instrument.
type performer struct {
	perform perform.Func
	extend  func(*app, *verb) // adds subcommands or flags to its verb; may be nil
}

// perform runs a measurement and prints its report.
func (s *app) perform(ctx context.Context, experiment string, o option.Options, out outputFlags) error {
	return s.performers[experiment].perform(ctx, o, s.weigher(experiment, out))
}

func (s *app) weigher(experiment string, out outputFlags) perform.Weigh {
	return func(ctx context.Context, m *perform.Measure) error { return s.weigh(ctx, experiment, &out, m) }
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
	var v *verb
	if len(one.Modes) == 0 {
		v = newMeasure(s, one, &instrument.Mode{Name: one.Name, Short: one.Short, Long: one.Long, Example: one.Example, New: one.New})
	} else {
		v = &verb{Command: &cobra.Command{Use: one.Name, Short: one.Short, Long: one.Long, Example: one.Example, Args: knownVerb,
			RunE: func(c *cobra.Command, _ []string) error { return c.Help() }}}
		for i := range one.Modes {
			v.AddCommand(newMeasure(s, one, &one.Modes[i]).Command)
		}
	}
	if extend := s.performers[one.Name].extend; extend != nil {
		extend(s, v)
	}
	return v.Command
}

// newMeasure returns a verb that measures. Its flags and arguments are those of the
// options.
func newMeasure(s *app, one *instrument.Instrument, m *instrument.Mode) *verb {
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
			return s.perform(c.Context(), one.Name, v.options, v.out)
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
