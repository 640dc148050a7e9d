// Package bpfstat says which BPF programs are loaded, whose they are, what they occupy
// and what they cost.
//
// Counts and run times are the kernel's own (BPF_ENABLE_STATS), of which one run
// costs some 20 ns more while they are on. They are switched on by a descriptor,
// so that they go off when the last who asked for them has gone, however that
// ends.
package bpfstat

import "github.com/tare-bench/tare/record"

// Counters are what a program did since it was loaded, as far as statistics were
// on.
type Counters struct {
	ID     uint32
	Count  uint64
	Time   uint64 // ns
	Misses uint64 // runs that were left out since the program was running on this CPU already
}

// Filter chooses programs. Empty fields choose all; of several, all have to hold.
type Filter struct {
	Kmesh   bool
	Names   []string // globs, matched with both names
	Pins    []string // paths of pins, or of folders with pins
	Owners  []string // pids or names of processes that hold them, or names of recognised owners
	Cgroups []string // paths that they are attached to
	IDs     []uint32
}

// Listing is programs, and maps, at a moment.
type Listing struct {
	At       int64 // ns of CLOCK_MONOTONIC
	Programs []record.Program
	Counters []Counters          // in the same order
	Maps     []record.ProgramMap // that they use
	// Loose are the maps that no loaded program uses and that somebody holds or has
	// pinned, as far as the filter can mean them; known once it was described.
	Loose []record.Map
	// Went are the last counters of programs, of whatever filter, that the listing
	// before held and that are not there any more.
	Went []Counters
	// Passed are programs that came and went since the listing before, at least: the kernel
	// gives ids in turn, and those left out between the first and the last new one were theirs.
	Passed   int
	Gone     int      // programs or maps that went while they were looked at
	Problems []string // what could not be seen, and why

	filter Filter
	chosen []*program
}
