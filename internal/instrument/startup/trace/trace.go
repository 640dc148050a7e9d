// Package trace divides the time of a start: which processes and phases ran one after
// the other, and how long it waited between them.
//
// All functions are pure functions of a [record.Start]. Package proctree creates
// starts from kernel events, packages logs and starts create them from logs.
// Inconsistent times are corrected, such as the end of a process before its birth. A
// start without an end has no parts.
package trace

import "github.com/tare-bench/tare/record"

// Part is an interval of a start. The parts of a start cover Began to Ended without
// gaps, so they sum to the measured time.
type Part struct {
	Name      string // "runc create", or the engine's name, such as "docker"
	Kind      string // record's Kind constants
	Container string
	Began     int64
	Ended     int64
	CPU       int64 // CPU time of all processes of the start in this interval, ns; -1: unknown
}

// Row is one line of a waterfall.
type Row struct {
	Part       // CPU is the usage of this process only
	Pid   int  // 0 for a span
	Depth int  // in the tree of processes
	Open  bool // still running at the end
	Exit  *int
	First int64 // time of a mark in the row, such as its exec; 0: none
}

// Calls divides a start into calls of the OCI runtime and the time between them. The
// time between calls belongs to the engine. There are two exceptions: workloads that
// ended within the start, and gaps in which only a VMM works.
//
// If several calls run at once, the time belongs to the one that began last, so no
// time is counted twice. The time of a call that runs a container to its end includes
// the workload.
func Calls(s *record.Start, engine string) []Part {
	return partition(s, calling(stretches(s)), engine)
}

// calling returns the stretches of runtime calls, workloads and guests, and of the
// engine's spans from notes, in this order of precedence.
func calling(all []stretch) []stretch {
	ranks := map[string]int{record.KindCall: 2, record.KindWorkload: 1, record.KindVMM: 1, record.KindEngine: 0}
	var calls []stretch
	for _, c := range all {
		var ok bool
		if c.rank, ok = ranks[c.kind]; ok {
			calls = append(calls, c)
		}
	}
	return calls
}

// Parts divides a start by the most specific activity at each moment. Time without an
// activity has the name engine.
//
// For a live start the order of precedence is:
//   - a network plugin;
//   - a helper below a call, such as docker's network hook;
//   - the runtime's init, from its birth, within the call that creates a container;
//   - a call;
//   - the workload, from its first instruction to its end, if it ended within the
//     start;
//   - any other helper that ended within the start.
//
// Long-running processes never count: daemons, shims, monitors, VMMs and their file
// servers. Nor does an init that waits for the start of its container. The rest of the
// time belongs to the engine. The exceptions are gaps in which only a VMM works (see
// alone), and time that the logs of the same start explain. Among activities of one
// kind, the one that began last has precedence.
//
// For logs and notes the innermost span has precedence.
func Parts(s *record.Start, engine string) []Part {
	return partition(s, stretches(s), engine)
}
