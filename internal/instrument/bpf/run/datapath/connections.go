package datapath

import (
	"errors"
	"fmt"
)

//go:generate go tool bpf2go -cc clang-14 -strip llvm-strip-14 -target bpfel -output-dir=$BPF_OUT -no-global-types datapath src/datapath.c -- -Wall -Werror -I../../../../node/tracer/src

// Operations of a sock_ops, enum in linux/bpf.h.
const (
	opActive   = 4  // BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB: a connect has succeeded
	opPassive  = 5  // BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB: a listener has a connection
	operations = 32 // that are counted: OPERATIONS of datapath.c
)

// Connections are how many connects of sockets in the cgroup have succeeded, and
// how many connections its listeners have got. Both ends of one count where both
// are in it.
func (d *Datapath) Connections() (active, passive int64, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return 0, 0, errClosed
	}
	if d.events == nil {
		return 0, 0, errors.New("reference datapath: it was attached without a look at connections' events")
	}
	sums, err := d.sums()
	if err != nil {
		return 0, 0, fmt.Errorf("reference datapath: read the counts of events: %w", err)
	}
	return sums[opActive], sums[opPassive], nil
}

// sums adds up the CPUs' counts of each operation.
func (d *Datapath) sums() (out [operations]int64, err error) {
	for op := range uint32(operations) {
		var each []uint64
		if err := d.events.Lookup(op, &each); err != nil {
			return out, err
		}
		for _, n := range each {
			out[op] += int64(n)
		}
	}
	return out, nil
}
