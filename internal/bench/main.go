// Command bench measures tare itself: what its stopwatch adds, how far apart
// the lanes of a batch start, what tare uses while others are measured, and
// how heavy the probe is. Every comparison is interleaved and stands beside an
// A/A pair, which shows how large a difference this machine makes of nothing.
//
//	make bench
//	make bench ARGS='-parts calls,docker -lives 40'
//
// The parts, in this order:
//
//	stopwatch       a static program, timed by tare and by a bare loop in C
//	containers      runc run, timed by tare and by the loop
//	batch           a hundred lanes of runc run: skew, tare's own CPU
//	calls           a call of an API that does nothing, through tare's lanes
//	cgroups         the sampler over 500 cgroups, and bare loops that read them
//	top             tare top on a terminal, with 500 containers
//	storage         a job of fio, run by tare storage and by hand
//	watch           processes that do nothing, while all processes are watched
//	starts          starts of runc and docker, watched and not
//	logs            speed and memory of reading logs
//	bpf             200 BPF programs listed: the first time, again, and watched
//	docker          Docker's API
//	containerd      containerd's API
//	cri+containerd  CRI, served by containerd
//	cri+cri-o       CRI, served by CRI-O
//	probe           size and start of the workload
//
// Each of those with an engine's name starts that engine for itself and times
// every operation twice by tare (its target's session, through its API) and
// twice by a minimal client, a process of its own that makes the same calls with
// nothing around them: plain HTTP to Docker, containerd's Go client, the bare
// gRPC stubs of CRI. An operation takes milliseconds and varies by more than
// tare can add to it; so one that finds nothing to do, stopping what is stopped,
// is repeated many times: its difference is
// what tare adds to a call. Then a hundred lanes tell tare's own CPU and the skew
// of a release. A call begins where its lane goes on, which is what a record's
// start says; its bytes leave later, when the client has encoded them and has a
// CPU. With Docker it is told beside it how far apart the requests are ready:
// HTTP's client tells when one is encoded, of which the socket's write is the next
// step; gRPC's does not.
//
// The parts of one lane, stopwatch and containers, are done with tare settled on
// one CPU (lane.Settle, before the lane is made), the batch of a hundred is not.
//
// The load average that is printed contains what the measurement itself makes.
// Figures that were taken while others used the machine say little.
//
// It needs a C compiler for the bare loop that it compares with, root and runc
// for the parts about containers, and the engines (make engines) for the others;
// what it cannot do it says.
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

	"github.com/tare-bench/tare/internal/engines"
)

func main() {
	if len(os.Args) == 3 && os.Args[1] == clientVerb {
		if err := serve(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, "bench: minimal client:", err)
			os.Exit(1)
		}
		return
	}
	rounds := flag.Int("rounds", 300, "interleaved rounds of the comparisons of what takes less than a millisecond")
	runs := flag.Int("runs", 60, "interleaved rounds of the comparison with runc")
	batches := flag.Int("batches", 10, "batches of 100 lanes of runc")
	lives := flag.Int("lives", 16, "interleaved rounds of the comparisons behind engines")
	flocks := flag.Int("flocks", 2, "batches of 100 lanes behind an engine")
	chosen := flag.String("parts", "", "only these parts, separated by commas; they are "+strings.Join(partNames(), ", "))
	flag.Parse()
	if min(*rounds, *runs, *batches, *lives) < 1 || *flocks < 0 {
		fmt.Fprintln(os.Stderr, "bench: there has to be one round of each at least (of flocks, none)")
		os.Exit(1)
	}
	// Engines are started and ended on every path.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	dir, err := os.MkdirTemp("", "tare-bench-")
	if err == nil {
		b := bench{ctx: ctx, dir: dir, rounds: *rounds, runs: *runs, batches: *batches, lives: *lives, flocks: *flocks}
		err = errors.Join(b.run(*chosen), engines.Stop(), os.RemoveAll(dir))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

type bench struct {
	ctx                                  context.Context
	dir                                  string
	rounds, runs, batches, lives, flocks int
}

type part struct {
	name string
	do   func(b *bench) error
}

func parts() []part {
	all := []part{{"stopwatch", (*bench).stopwatch}, {"containers", (*bench).containers}, {"batch", (*bench).batch}, {"calls", (*bench).calls}, {"cgroups", (*bench).cgroups}, {"top", (*bench).top}, {"storage", (*bench).storage}, {"watch", (*bench).traceCost}, {"starts", (*bench).starts}, {"logs", (*bench).logs}, {"bpf", (*bench).bpf}}
	for _, d := range drivenEngines {
		all = append(all, part{d.name, func(b *bench) error { return b.engine(d) }})
	}
	return append(all, part{"probe", (*bench).probe})
}

func partNames() []string {
	var names []string
	for _, p := range parts() {
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
	for _, p := range parts() {
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
