// Package bpfstat lists loaded BPF programs with owner, memory, counters and CPU time.
//
// Counts and run times come from the kernel (BPF_ENABLE_STATS), which adds some 20 ns
// to each run while statistics are on. A descriptor enables them, so they are disabled
// when the last process with such a descriptor ends.
package bpfstat

import "github.com/tare-bench/tare/record"

// Counters are the counters of a program since it was loaded, while statistics were on.
type Counters struct {
	ID     uint32
	Count  uint64
	Time   uint64 // ns
	Misses uint64 // runs that were left out since the program was running on this CPU already
}

// Filter selects programs that match all of its fields. An empty field matches all.
type Filter struct {
	Kmesh   bool
	Names   []string // globs, matched with both names
	Pins    []string // paths of pins, or of folders with pins
	Owners  []string // pids or names of processes that hold them, or names of recognised owners
	Cgroups []string // paths that they are attached to
	IDs     []uint32
}

// Listing is the programs and maps at one moment.
type Listing struct {
	At       int64 // ns of CLOCK_MONOTONIC
	Programs []record.Program
	Counters []Counters          // in the same order
	Maps     []record.ProgramMap // that they use
	// Loose are the maps that no loaded program uses and that a process or a pin holds,
	// if they match the filter; set by Describe.
	Loose []record.Map
	// Went are the last counters of programs of any filter that were in the last
	// listing and no longer exist.
	Went []Counters
	// Passed is a lower bound of programs that came and went since the last listing, by
	// the ids that the kernel skipped.
	Passed   int
	Gone     int      // programs or maps that went while they were looked at
	Problems []string // what could not be seen, and why

	filter Filter
	chosen []*program
}
