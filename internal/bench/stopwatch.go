package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/tare-bench/tare/internal/core/stat"
	"github.com/tare-bench/tare/internal/lane"
	"github.com/tare-bench/tare/internal/probe"
)

// stopwatch compares tare's timing of a sub-millisecond static program with
// the bare loop's, and tells what an operation takes outside the timed window.
func (b *bench) stopwatch() error {
	loopPath, err := b.buildLoop()
	if err != nil {
		return err
	}
	if err := probe.Install(b.dir); err != nil {
		return err
	}
	command := []string{filepath.Join(b.dir, probe.Name), "--exit", "x"}
	defer lane.Settle()()
	pools := make([]*lane.Pool, 2)
	loops := make([]*loop, 3)
	for i, how := range []string{"vfork", "vfork", "fork"} {
		if loops[i], err = startLoop(loopPath, append([]string{how}, command...)...); err != nil {
			return err
		}
		defer loops[i].close()
	}
	for i := range pools {
		if pools[i], err = lane.NewPool(lane.Options{Lanes: 1}); err != nil {
			return err
		}
		defer pools[i].Close()
	}
	var outside []float64
	timed := func(p *lane.Pool) func(context.Context) (float64, error) {
		return func(ctx context.Context) (float64, error) {
			begin := lane.Now()
			r, err := p.Do(ctx, 0, lane.Order{Kind: lane.Exec, Args: command, Timeout: 10 * time.Second})
			end := lane.Now()
			if err != nil {
				return 0, err
			}
			if r.Err != nil || r.Status != 0 {
				return 0, fmt.Errorf("probe: status %d: %w", r.Status, r.Err)
			}
			window := r.Returned - r.Start
			outside = append(outside, float64(end-begin-window))
			return float64(window), nil
		}
	}
	bare := func(l *loop) func(context.Context) (float64, error) {
		return func(context.Context) (float64, error) { return l.once() }
	}
	sides := []side{
		{"bare vfork/exec/wait loop in C", bare(loops[0])}, {"the same again (A/A)", bare(loops[1])},
		{"bare fork/exec/wait loop in C", bare(loops[2])},
		{"tare", timed(pools[0])}, {"tare again (A/A)", timed(pools[1])},
	}
	values, err := interleave(b.ctx, b.rounds, sides)
	if err != nil {
		return err
	}
	fmt.Printf("a static program that exits at once (%d rounds, interleaved)\n", b.rounds)
	show(sides, values)
	middle := func(i int) float64 { return stat.Quantiles(list(values[i]), 0.5)[0] }
	fmt.Printf("  bias of tare: %+.1f µs against vfork, which it uses itself (bound: 50 µs either way); fork copies page tables first: %+.1f µs\n",
		(middle(3)-middle(0))/1e3, (middle(3)-middle(2))/1e3)

	// Back to back, as a run does it: interleaving with another process would
	// put the other's cache misses into tare's share.
	outside = outside[:0]
	once := timed(pools[0])
	for range 2000 {
		if _, err := once(b.ctx); err != nil {
			return err
		}
	}
	q := stat.Quantiles(outside, 0.5, 0.9)
	fmt.Printf("  harness outside the timed window, per operation: median %s, p90 %s; bound: 20 µs\n\n", micro(q[0]), micro(q[1]))
	return nil
}
