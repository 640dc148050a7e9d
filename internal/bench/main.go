// Command bench measures tare itself: what its stopwatch adds, how far apart
// the lanes of a batch start, what tare uses while others are measured, and
// how heavy the probe is. Every comparison is interleaved and stands beside an
// A/A pair, which shows how large a difference this machine makes of nothing.
//
//	go run ./internal/bench
//	go run ./internal/bench -parts stopwatch,storage
//
// The parts, in this order:
//
//	stopwatch       a static program, timed by tare and by a bare loop in C
//	containers      runc run, timed by tare and by the loop
//	batch           a hundred lanes of runc run: skew, tare's own CPU
//	cgroups         the sampler over 500 cgroups, and a bare loop that reads them
//	top             tare top on a terminal, with 500 containers
//	storage         a job of fio, run by tare storage and by hand
//	watch           processes that do nothing, while all processes are watched
//	bpf             tare bpf list --watch on a terminal, with 200 BPF programs
//	probe           size and start of the workload
//
// What needs no other side beside it is a Go benchmark next to what it measures,
// and what has to keep a bound is a proof (make prove).
//
// The parts of one lane, stopwatch and containers, are done with tare settled on
// one CPU (lane.Settle, before the lane is made), the batch of a hundred is not.
// The load average that is printed contains what the measurement itself makes.
// Figures that were taken while others used the machine say little.
//
// It needs a C compiler for the bare loop that it compares with, and root and runc
// for the parts about containers; what it cannot do it says.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
)

func main() {
	rounds := flag.Int("rounds", 300, "interleaved rounds of the comparisons of what takes less than a millisecond")
	runs := flag.Int("runs", 60, "interleaved rounds of the comparison with runc")
	batches := flag.Int("batches", 10, "batches of 100 lanes of runc")
	chosen := flag.String("parts", "", "only these parts, separated by commas; they are "+strings.Join(partNames(), ", "))
	flag.Parse()
	if min(*rounds, *runs, *batches) < 1 {
		fmt.Fprintln(os.Stderr, "bench: there has to be one round of each at least")
		os.Exit(1)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	dir, err := os.MkdirTemp("", "tare-bench-")
	if err == nil {
		b := bench{ctx: ctx, dir: dir, rounds: *rounds, runs: *runs, batches: *batches}
		err = errors.Join(b.run(*chosen), os.RemoveAll(dir))
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

type part struct {
	name string
	do   func(b *bench) error
}

var parts = []part{
	{"stopwatch", (*bench).stopwatch}, {"containers", (*bench).containers}, {"batch", (*bench).batch},
	{"cgroups", (*bench).cgroups}, {"top", (*bench).top}, {"storage", (*bench).storage},
	{"watch", (*bench).watched}, {"bpf", (*bench).bpf}, {"probe", (*bench).probe},
}

func partNames() []string {
	var names []string
	for _, p := range parts {
		names = append(names, p.name)
	}
	return names
}

func (b *bench) run(chosen string) error {
	only := strings.FieldsFunc(chosen, func(r rune) bool { return r == ',' || r == ' ' })
	for _, name := range only {
		if !slices.Contains(partNames(), name) {
			return fmt.Errorf("there is no part %q; the parts are %s", name, strings.Join(partNames(), ", "))
		}
	}
	var errs []error
	for _, p := range parts {
		if len(only) > 0 && !slices.Contains(only, p.name) {
			continue
		}
		// What one part, or one engine, cannot do says nothing of the others.
		if err := p.do(b); err != nil {
			fmt.Printf("%s: broken off: %v\n\n", p.name, err)
			errs = append(errs, fmt.Errorf("%s: %w", p.name, err))
		}
		if b.ctx.Err() != nil {
			return errors.Join(append(errs, b.ctx.Err())...)
		}
	}
	return errors.Join(errs...)
}

// load is the load average of the last minute.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	first, _, _ := strings.Cut(string(text), " ")
	return first
}
