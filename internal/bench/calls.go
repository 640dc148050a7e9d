package main

import (
	"context"
	"fmt"
	"time"

	"github.com/tare-bench/tare/internal/core/stat"
	"github.com/tare-bench/tare/internal/lane"
	"github.com/tare-bench/tare/internal/subject/batch"
)

// calls tells what lies between the stamps of a call that does nothing, and how
// far apart a hundred of them begin.
func (b *bench) calls() error {
	const lanes, batches = 100, 50
	var window, wake, outside []float64
	for range 10 * b.rounds {
		began := lane.Now()
		one, err := b.nothing(1)
		if err != nil {
			return err
		}
		took := one.end[0] - one.start[0]
		window, wake = append(window, took), append(wake, one.start[0]-one.released)
		outside = append(outside, float64(lane.Now()-began)-took)
	}
	var skews, cpu []float64
	for range batches {
		all, err := b.nothing(lanes)
		if err != nil {
			return err
		}
		q := stat.Quantiles(all.start, 0, 1)
		skews, cpu = append(skews, q[1]-q[0]), append(cpu, all.own)
	}
	w, k, o := stat.Quantiles(window, 0.5, 0.99), stat.Quantiles(wake, 0.5, 0.99), stat.Quantiles(outside, 0.5)
	s := stat.Quantiles(skews, 0.5, 1)
	fmt.Printf("an API call that does nothing (%d times), load average %s\n", 10*b.rounds, load())
	fmt.Printf("  between its two stamps: median %s, p99 %s; bound: %s\n", micro(w[0]), micro(w[1]), ownBound)
	fmt.Printf("  from the release to its beginning: median %s, p99 %s; arming, collection and all else, per batch: median %s\n", micro(k[0]), micro(k[1]), micro(o[0]))
	fmt.Printf("  100 of them: skew, of their beginnings: median %s, worst %s; own CPU: median %s\n\n", milli(s[0]), milli(s[1]), milli(stat.Quantiles(cpu, 0.5)[0]))
	return nil
}

// released are the times (ns) of one batch.
type released struct {
	released, own float64
	start, end    []float64
}

func (b *bench) nothing(lanes int) (released, error) {
	calls := make([]batch.Call, lanes)
	for i := range calls {
		calls[i] = batch.Call{Lane: i, Timeout: 10 * time.Second, Do: func(context.Context) error { return nil }}
	}
	var r released
	armed, err := batch.PrepareCalls(calls)
	if err != nil {
		return r, err
	}
	at, samples, err := armed.Start(b.ctx)
	if err != nil {
		return r, err
	}
	r.released, r.own = float64(at), float64(armed.OwnCPU())
	for _, s := range samples {
		if s.Failure != nil {
			return r, fmt.Errorf("a call that does nothing: %s", s.Failure.Detail)
		}
		r.start, r.end = append(r.start, float64(s.Start)), append(r.end, float64(s.Returned))
	}
	return r, nil
}
