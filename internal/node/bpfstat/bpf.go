// Package bpfstat lists loaded BPF programs with owner, memory, counters and CPU time.
// Counts and run times come from the kernel (BPF_ENABLE_STATS), which adds some 20 ns
// to each run while statistics are on. Statistics stay on while a descriptor that
// enables them is open. They are disabled when the last process with such a descriptor
// ends.
package bpfstat

import "github.com/tare-bench/tare/record"

// Counters are the counters of a program since it was loaded, while statistics were on.
type Counters struct {
	ID     uint32
	Count  uint64
	Time   uint64 // ns
	Misses uint64 // runs skipped because the program was already running on that CPU
}

// Filter selects programs that match all of its fields. An empty field matches every
// program.
type Filter struct {
	Kmesh   bool
	Names   []string // globs for the short or full name
	Pins    []string // paths of pins, or of directories with pins
	Owners  []string // pids or names of holding processes, or known owners
	Cgroups []string // paths of cgroups that programs are attached to
	IDs     []uint32
}

// Listing is the set of programs and maps at one moment.
type Listing struct {
	At       int64 // ns of CLOCK_MONOTONIC
	Programs []record.Program
	Counters []Counters          // in the order of Programs
	Maps     []record.ProgramMap // used by Programs
	// Loose lists the maps that match the filter, have no loaded program, and are held
	// by a process or a pin. Describe sets it.
	Loose []record.Map
	// Went holds the last counters of all programs that were in the last listing and no
	// longer exist, whether or not they match the filter.
	Went []Counters
	// Passed is a lower bound of the number of programs that were both loaded and unloaded
	// since the last listing. It is derived from skipped ids.
	Passed   int
	Gone     int      // programs or maps removed while they were read
	Problems []string // what could not be read, and why

	filter Filter
	chosen []*program
}
