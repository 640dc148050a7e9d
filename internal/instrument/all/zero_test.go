package all_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/tare-bench/tare/internal/core/option"
	"github.com/tare-bench/tare/internal/instrument/all"
	"github.com/tare-bench/tare/internal/testing/check"
)

// zero lists the flags for which zero has a meaning, according to their help.
var zero = map[string]bool{
	"warmup": true, "seed": true, "rate": true, "qps": true, "slowest": true, "warm": true, "settle": true, "ceiling": true,
}

// numbers lists the flags whose values may have a unit.
var numbers = map[string]bool{"margin": true, "precision": true, "keep-free": true, "scale": true}

// An explicit out-of-range number is an error. It must not count as unset or be replaced
// by a default.
func TestNumericFlagsAreChecked(t *testing.T) {
	t.Parallel()
	for _, in := range all.Instruments {
		news := map[string]func() option.Options{in.Name: in.New}
		for _, m := range in.Modes {
			news[in.Name+" "+m.Name] = m.New
		}
		for verb, made := range news {
			of := pflag.NewFlagSet(verb, pflag.ContinueOnError)
			option.Of(made()).AddFlags(of)
			of.VisitAll(func(f *pflag.Flag) {
				for _, text := range []string{"0", "-1"} {
					if !numbers[f.Name] && !slices.Contains([]string{"int", "duration", "float"}, f.Value.Type()) || zero[f.Name] && text == "0" {
						continue
					}
					o := option.Of(made())
					given := pflag.NewFlagSet(verb, pflag.ContinueOnError)
					o.AddFlags(given)
					err := given.Set(f.Name, text)
					if err == nil {
						err = o.Finish(context.Background())
					}
					check.That(t, err != nil && strings.Contains(err.Error(), "--"+f.Name), "tare %s --%s %s: %v", verb, f.Name, text, err)
				}
			})
		}
	}
}
