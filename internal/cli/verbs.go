package cli

import (
	"context"
	"fmt"

	"github.com/tare-bench/tare/internal/core/option"
	"github.com/tare-bench/tare/internal/instrument/bpf"
	"github.com/tare-bench/tare/internal/instrument/lifecycle"
	"github.com/tare-bench/tare/internal/instrument/overhead"
	"github.com/tare-bench/tare/internal/instrument/startup"
	"github.com/tare-bench/tare/internal/instrument/storage"
	"github.com/tare-bench/tare/internal/plan"
)

// verb is a kind of measurement: what it is asked for, and what does it.
type verb struct {
	plan.Instrument
	perform func(ctx context.Context, s Streams, o option.Options, out outputFlags) error
}

// of makes a verb of the defaults of its options and of what performs them.
func of[T any, P interface {
	*T
	option.Options
}](name, asks string, defaults func() T, perform func(context.Context, Streams, T, outputFlags) error) verb {
	return verb{
		plan.Instrument{Name: name, Help: asks, New: func() option.Options { o := defaults(); return P(&o) }},
		func(ctx context.Context, s Streams, o option.Options, out outputFlags) error {
			return perform(ctx, s, *o.(P), out)
		},
	}
}

// verbs are all that there are, in the order of help.
var verbs = []verb{
	of("lifecycle", "How long each operation takes on each target.", lifecycle.Defaults, weighLifecycle),
	of("overhead", "Whose memory and CPU a sandbox uses, and which cgroup is charged.", overhead.Defaults, weighOverhead),
	of("storage", "What I/O a runtime loses.", storage.Defaults, weighStorage),
	of("startup", "Where the seconds of a start go.", startup.Defaults, weighStartup),
	of("bpf", "What eBPF programs cost, and whose limit pays.", bpf.DefaultsOfLoad, weighBPF),
}

// planInstruments are they as a plan file names them.
func planInstruments() (all []plan.Instrument) {
	for _, i := range verbs {
		all = append(all, i.Instrument)
	}
	return all
}

// perform does one measure of a plan.
func perform(ctx context.Context, s Streams, m plan.Measure, out outputFlags) error {
	for _, i := range verbs {
		if i.Name == m.Name {
			return i.perform(ctx, s, m.Options, out)
		}
	}
	return fmt.Errorf("there is no instrument %s", m.Name)
}
