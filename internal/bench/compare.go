package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/tare-bench/tare/internal/core/stat"
)

// side is one of the things that are compared: it makes one measurement.
type side struct {
	name string
	once func(ctx context.Context) (float64, error)
}

// interleave visits every side once a round, in a fresh random order.
func interleave(ctx context.Context, rounds int, sides []side) ([]stat.Rounds, error) {
	values := make([]stat.Rounds, len(sides))
	for i := range values {
		values[i] = stat.Rounds{}
	}
	for round := range rounds + 3 { // three to warm up
		for _, i := range rand.Perm(len(sides)) {
			v, err := sides[i].once(ctx)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", sides[i].name, err)
			}
			if round >= 3 {
				values[i][round] = v
			}
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	return values, nil
}

func list(r stat.Rounds) []float64 {
	out := make([]float64, 0, len(r))
	for _, v := range r {
		out = append(out, v)
	}
	return out
}

// show prints each side's median and how the others differ from the first.
func show(sides []side, values []stat.Rounds) {
	base := stat.Summarize(list(values[0]), 0.95)
	for i, s := range sides {
		sum := stat.Summarize(list(values[i]), 0.95)
		line := fmt.Sprintf("  %-34s %10s  [%s, %s]", s.name, micro(sum.Median), micro(sum.Lo), micro(sum.Hi))
		if i > 0 {
			c := stat.Compare(values[0], values[i])
			verdict := "no difference shown"
			if c.Different {
				verdict = "different"
			}
			line += fmt.Sprintf("  %+8.1f µs  %+.1f %% (%+.1f…%+.1f)  p=%.3f  %s", (sum.Median-base.Median)/1e3, 100*c.Delta, 100*c.PairedLo, 100*c.PairedHi, c.P, verdict)
		}
		fmt.Println(line)
	}
}

func micro(ns float64) string { return fmt.Sprintf("%.1f µs", ns/1e3) }

func milli(ns float64) string { return time.Duration(ns).Round(10 * time.Microsecond).String() }
