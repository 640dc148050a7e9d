package datapath

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"testing"

	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
)

func TestRunsEqualConnections(t *testing.T) {
	g := group(t)
	b := newBackend(t)
	d := attached(t, Options{Cgroup: g, Backend: b.at})
	connect := clientIn(t, g)
	connect("tcp", d.Service(0), 2) // run statistics are still disabled; connections are always counted
	counting(t)
	for _, times := range []int{1, 100, 300} {
		count, _ := runs(t, d.IDs()[1])
		events, _ := runs(t, d.IDs()[0])
		active, _, err := d.connections()
		must.OK(t, err)
		called := total(t, d)
		got := connect("tcp", d.Service(0), times)
		must.That(t, got == times, "%d of %d connected", got, times)
		countAfter, _ := runs(t, d.IDs()[1])
		eventsAfter, _ := runs(t, d.IDs()[0])
		activeAfter, passive, err := d.connections()
		must.OK(t, err)
		check.That(t, countAfter-count == int64(times) && activeAfter-active == int64(times),
			"%d connections: %d runs of connect4, %d established", times, countAfter-count, activeAfter-active)
		ran, calls := eventsAfter-events, total(t, d)-called
		check.That(t, ran == calls && ran >= int64(times), "%d connections: %d runs of sockops, but it counted %d", times, ran, calls)
		check.Equal(t, "accepted connections of listeners in the cgroup", passive, 0)
	}
}

func total(t *testing.T, d *Datapath) (n int64) {
	t.Helper()
	sums := must.Get(d.sums())(t)
	for _, one := range sums {
		n += one
	}
	return n
}

func TestAcceptedConnectionsAreCounted(t *testing.T) {
	g := group(t)
	d := attached(t, Options{Cgroup: g})
	_, in, out := part(t, g, "listener")
	line := must.Get(out.ReadString('\n'))(t)
	for range 20 {
		c := must.Get(net.Dial("tcp", line[:len(line)-1]))(t)
		c.Close()
	}
	must.Get(in.Write([]byte("end\n")))(t)
	active, passive, err := d.connections()
	check.That(t, err == nil && active == 0 && passive == 20, "20 connections from outside: %d active, %d passive (%v)", active, passive, err)
}

func TestLoopRunsTheRequestedRounds(t *testing.T) {
	for _, c := range []struct {
		name   string
		loop   loop
		rounds []int64
	}{
		{"bpf_loop", looped, []int64{0, 1, 2, 1000, 1 << 23, 1<<23 + 1, maxHeavy}},
		{"walked", walked, []int64{0, 16, 1600, walked.most - 16, walked.most}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := with(t, group(t), c.loop)
			twin, err := d.loadTwin() // load once: the verifier needs a second for the loop
			must.OK(t, err)
			defer twin.Close()
			for _, rounds := range c.rounds {
				must.OK(t, d.SetHeavy(rounds))
				got, _, err := twin.Benchmark(frame[:], 1, nil)
				must.OK(t, err)
				want := worked(uint64(rounds), rounds)
				check.That(t, got == want, "%d rounds compute %#x, want %#x", rounds, got, want)
			}
			err = d.SetHeavy(c.loop.most + 1)
			check.That(t, err != nil && errors.Is(err, errUnsupported) == (c.loop == walked), "one round above the maximum: %v", err)
			err = d.SetHeavy(-1)
			check.That(t, err != nil, "a negative number of rounds was accepted")
		})
	}
}

// worked computes in Go the same result as the loop of the BPF program.
func worked(state uint64, rounds int64) uint32 {
	for range rounds {
		state ^= state << 13
		state ^= state >> 7
		state ^= state << 17
	}
	return uint32(state)
}

// with attaches a datapath with one kind of loop, even if the kernel supports others.
func with(t *testing.T, path string, l loop) *Datapath {
	t.Helper()
	g := must.Get(os.Open(path))(t)
	defer g.Close()
	d := must.Get(attach(Options{Most: 1, Backend: netip.MustParseAddrPort("127.0.0.1:9")}, g, l))(t)
	t.Cleanup(func() { d.Close() })
	return d
}

// Operations of sock_ops, see enum in linux/bpf.h.
const (
	opActive   = 4  // BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB: a connect has succeeded
	opPassive  = 5  // BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB: a listener has a connection
	operations = 32 // OPERATIONS in datapath.c
)

// connections returns the number of successful connects of sockets in the cgroup, and of
// connections accepted by its listeners. If both ends are in the cgroup, both are
// counted.
func (d *Datapath) connections() (active, passive int64, err error) {
	sums, err := d.sums()
	return sums[opActive], sums[opPassive], err
}

// sums adds up the per-CPU counts of each operation.
func (d *Datapath) sums() (out [operations]int64, err error) {
	for op := range uint32(operations) {
		var each []uint64
		if err := d.loaded.Maps["tare_events"].Lookup(op, &each); err != nil {
			return out, err
		}
		for _, n := range each {
			out[op] += int64(n)
		}
	}
	return out, nil
}
