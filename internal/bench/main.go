// Command bench measures tare itself: what its stopwatch adds, how far apart
// the lanes of a batch start, what tare uses while others are measured, and
// how heavy the probe is. Every comparison is interleaved and stands beside an
// A/A pair, which shows how large a difference this machine makes of nothing.
//
//	make bench
//
// It needs a C compiler for the bare loop that it compares with, and root and
// runc for the parts about containers; what it cannot do it says.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
)

func main() {
	rounds := flag.Int("rounds", 300, "interleaved rounds of the sub-millisecond comparison")
	runs := flag.Int("runs", 60, "interleaved rounds of the comparison with runc")
	batches := flag.Int("batches", 10, "batches of 100 lanes")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()

	dir, err := os.MkdirTemp("", "tare-bench-")
	if err == nil {
		b := bench{ctx: ctx, dir: dir, rounds: *rounds, runs: *runs, batches: *batches}
		err = errors.Join(b.run(), os.RemoveAll(dir))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

type bench struct {
	ctx                   context.Context
	dir                   string
	rounds, runs, batches int
}

func (b *bench) run() error {
	for _, part := range []func() error{b.stopwatch, b.containers, b.batch, b.probe} {
		if err := part(); err != nil {
			return err
		}
		if b.ctx.Err() != nil {
			return b.ctx.Err()
		}
	}
	return nil
}
