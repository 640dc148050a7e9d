package main

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptrace"
	"slices"
	"sync"

	"github.com/tare-bench/tare/internal/core/stat"
	"github.com/tare-bench/tare/internal/lane"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/workspace"
)

// flock tells how far apart a hundred calls begin, and their requests are
// written where the engine's client tells that, and what tare itself uses
// meanwhile.
func (b *bench) flock(d driven, t subject.Target, run *workspace.Run) (err error) {
	const lanes = 100
	s, err := b.openIn(run, t, "flock", lanes)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeSession(s)) }()
	all := make([]int, lanes)
	for i := range all {
		all[i] = i
	}
	seen := map[subject.Op]*crowd{}
	for _, op := range d.flock {
		seen[op] = new(crowd)
	}
	for range b.flocks {
		for _, op := range d.flock {
			if err := seen[op].once(b, s, op, all); err != nil {
				return fmt.Errorf("%d × %s: %w", lanes, op, err)
			}
		}
	}
	for _, op := range d.flock {
		c := seen[op]
		skew := stat.Quantiles(c.skews, 0.5, 1)
		fmt.Printf("  %d × %-5s (%d batches, load average %s): skew, of the calls' beginnings: median %s, worst %s, bound: %s; makespan %s; tare's own CPU: %s, %.2f %% of all CPUs' time, bound: 5 %%\n",
			lanes, op, b.flocks, load(), milli(skew[0]), milli(skew[1]), skewBound,
			milli(stat.Quantiles(c.makespans, 0.5)[0]), milli(stat.Quantiles(c.own, 0.5)[0]), 100*stat.Quantiles(c.shares, 0.5)[0])
		if len(c.written) > 0 {
			w := stat.Quantiles(c.written, 0.5, 1)
			fmt.Printf("    skew, of their requests, encoded and about to be written: median %s, worst %s\n", milli(w[0]), milli(w[1]))
		}
	}
	return nil
}

// crowd is what was seen of batches of one operation (ns, and shares of all
// CPUs' time).
type crowd struct{ skews, written, makespans, own, shares []float64 }

// requests are the times at which HTTP requests are about to be written: the
// client calls WroteRequest when all is in its buffer, and flushes that next.
// Other clients tell none.
type requests struct {
	mu sync.Mutex
	at []int64
}

func (r *requests) watch(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) {
		now := lane.Now()
		r.mu.Lock()
		defer r.mu.Unlock()
		r.at = append(r.at, now)
	}})
}

// between returns those of a batch: connections are warmed up before it, and
// what it did is asked after it.
func (r *requests) between(released, last int64) []int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	slices.Sort(r.at)
	return slices.DeleteFunc(slices.Clone(r.at), func(at int64) bool { return at < released || at > last })
}

func (c *crowd) once(b *bench, s subject.Session, op subject.Op, lanes []int) error {
	armed, err := s.Prepare(b.ctx, op, lanes)
	if err != nil {
		return err
	}
	sent := requests{at: make([]int64, 0, 4*len(lanes))}
	released, samples, err := armed.Start(sent.watch(b.ctx))
	if err != nil {
		return err
	}
	start, last := stat.Rounds{}, int64(0)
	for i, x := range samples {
		if x.Failure != nil {
			return fmt.Errorf("lane %d: %s: %s %s", x.Lane, x.Failure.Command, x.Failure.Detail, x.Failure.Output)
		}
		start[i] = float64(x.Start)
		last = max(last, x.Returned)
	}
	if at := sent.between(released, last); len(at) == len(lanes) { // one each
		c.written = append(c.written, float64(at[len(at)-1]-at[0]))
	} else if len(at) > 0 {
		return fmt.Errorf("%d requests were written for %d calls", len(at), len(lanes))
	}
	makespan, own := float64(last-released), 0.0
	if m, ok := armed.(subject.Metered); ok {
		own = float64(m.OwnCPU())
	}
	c.skews, c.makespans = append(c.skews, spread(start)), append(c.makespans, makespan)
	c.own, c.shares = append(c.own, own), append(c.shares, own/(makespan*float64(cpus())))
	return nil
}
