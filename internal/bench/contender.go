package main

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/tare-bench/tare/internal/core/stat"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/record"
)

// contender is one of the sides that perform and time the same operations.
type contender struct {
	name    string
	do      func(ctx context.Context, op subject.Op) (ns float64, err error)
	discard func(ctx context.Context) error // what it holds; not timed
}

// keeping are the same sides, who discard nothing.
func keeping(sides []contender) []contender {
	out := make([]contender, len(sides))
	for i, s := range sides {
		s.discard = func(context.Context) error { return nil }
		out[i] = s
	}
	return out
}

// timedBy performs operations on one lane of a session.
func timedBy(s subject.Session, lane int) func(context.Context, subject.Op) (float64, error) {
	return func(ctx context.Context, op subject.Op) (float64, error) {
		armed, err := s.Prepare(ctx, op, []int{lane})
		if err != nil {
			return 0, err
		}
		_, samples, err := armed.Start(ctx)
		if err != nil {
			return 0, err
		}
		if f := samples[0].Failure; f != nil {
			return 0, fmt.Errorf("%s: %s %s", f.Command, f.Detail, f.Output)
		}
		d, _ := samples[0].Latency(record.StampReturned)
		return float64(d), nil
	}
}

// warmUps are rounds that are not counted.
const warmUps = 2

// lives lets every side live the same life in every round. They take each
// operation one after the other, in a fresh random order, so that what is
// compared lies close together. Of each operation it returns one value (ns) a
// round for every side.
func lives(ctx context.Context, rounds int, life []subject.Op, sides []contender) (map[subject.Op][][]float64, error) {
	values := map[subject.Op][][]float64{}
	for _, op := range life {
		values[op] = make([][]float64, len(sides))
	}
	for round := range rounds + warmUps {
		for _, op := range life {
			for _, i := range rand.Perm(len(sides)) {
				v, err := sides[i].do(ctx, op)
				if err != nil {
					return nil, fmt.Errorf("%s: %s: %w", sides[i].name, op, err)
				}
				if round >= warmUps {
					values[op][i] = append(values[op][i], v)
				}
			}
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
		}
		for _, i := range rand.Perm(len(sides)) {
			if err := sides[i].discard(ctx); err != nil {
				return nil, fmt.Errorf("%s: remove what it made: %w", sides[i].name, err)
			}
		}
	}
	return values, nil
}

// differences are, within a round, that of the two times of tare from the two of
// the loop, and those of each from itself: of the loop (values 0 and 1) and of
// tare (2 and 3).
func differences(values [][]float64) (between, loops, tares stat.Summary) {
	var b, l, t []float64
	for i := range values[0] {
		b = append(b, (values[2][i]+values[3][i]-values[0][i]-values[1][i])/2)
		l, t = append(l, values[1][i]-values[0][i]), append(t, values[3][i]-values[2][i])
	}
	return stat.Summarize(b, 0.95), stat.Summarize(l, 0.95), stat.Summarize(t, 0.95)
}

func heading(sides []contender) {
	fmt.Printf("  %-7s", "")
	for _, s := range sides {
		fmt.Printf(" %9s", s.name)
	}
	fmt.Printf("   %-30s %-30s %s\n", "tare − loop, median [95 %]", "A/A: loop − loop", "A/A: tare − tare")
}

// row prints the medians of an operation, and how they differ.
func row(name string, values [][]float64) {
	fmt.Printf("  %-7s", name)
	for _, v := range values {
		fmt.Printf(" %9s", fmt.Sprintf("%.2f ms", stat.Quantiles(v, 0.5)[0]/1e6))
	}
	between, loops, tares := differences(values)
	fmt.Printf("   %-30s %-30s %-30s %s\n", interval(between), interval(loops), interval(tares), verdict(between, loops, tares))
}

// verdict says whether tare's time differs from the loop's, and if so whether by
// more than each may differ from itself.
func verdict(between, loops, tares stat.Summary) string {
	nothing := max(-loops.Lo, loops.Hi, -tares.Lo, tares.Hi)
	switch {
	case !between.Known:
		return "too few rounds to tell"
	case between.Lo <= 0 && between.Hi >= 0:
		return "no difference shown"
	case max(between.Median, -between.Median) <= nothing:
		return "different, not beyond the A/A pairs"
	}
	return "different"
}

// interval is a difference in µs.
func interval(s stat.Summary) string {
	return fmt.Sprintf("%+.0f µs [%+.0f, %+.0f]", s.Median/1e3, s.Lo/1e3, s.Hi/1e3)
}
