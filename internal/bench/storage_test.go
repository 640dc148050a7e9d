package main

import (
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/core/stat"
	"github.com/tare-bench/tare/record"
)

func TestWhatIsBeyondTheBoundsOfStorageIsAnError(t *testing.T) {
	for name, test := range map[string]struct {
		setUp time.Duration
		own   float64
		want  bool
	}{
		"within both":       {1400 * time.Millisecond, 0.009, false},
		"a set-up too long": {1600 * time.Millisecond, 0, true},
		"too much CPU":      {0, 0.011, true},
	} {
		cells := []record.Cell{{SetUp: int64(test.setUp), Ended: 1e9, Observed: &record.Observed{OwnCPU: int64(test.own * 1e9)}}}
		if err := beyond(costs(cells)); (err != nil) != test.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestOnlyMoreThanAnAAPairsDifferenceIsCalledSlower(t *testing.T) {
	// Rounds around 100, of which each is off by up to a part.
	around := func(middle, off float64) stat.Rounds {
		r := stat.Rounds{}
		for i := range 10 {
			r[i] = middle * (1 + off*float64(i%5-2)/2)
		}
		return r
	}
	for name, test := range map[string]struct {
		plain, again, tare stat.Rounds
		want               bool
	}{
		"no difference":                {around(100, 0.02), around(100.5, 0.02), around(100.2, 0.02), false},
		"a difference beyond the pair": {around(100, 0.02), around(100.5, 0.02), around(120, 0.02), true},
		"one that the pair has too":    {around(100, 0.02), around(121, 0.02), around(120, 0.02), false},
		"faster":                       {around(100, 0.02), around(100, 0.02), around(80, 0.02), false},
	} {
		if err := slower(test.plain, test.again, test.tare); (err != nil) != test.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}
