// Package trace finds where the time of a start went: which of its processes and
// phases ran one after the other, and what ran between them.
//
// All functions are pure functions of a [record.Start]. Package proctree makes such a
// start from kernel events; packages logs and starts make it from logs. Inconsistent
// times are corrected, such as a process that ends before its birth. A start without
// an end has no parts.
package trace

import "github.com/tare-bench/tare/record"

// Part is an interval of a start. The parts of a start cover Began to Ended without
// holes, so their sum is the measured time.
type Part struct {
	Name      string // "runc create", or the engine's name, such as "docker"
	Kind      string // record's Kind constants
	Container string
	Began     int64
	Ended     int64
	CPU       int64 // CPU time of all processes of the start in the interval, ns; -1: unknown
}

// Row is one line of a waterfall.
type Row struct {
	Part       // CPU is the usage of this process alone
	Pid   int  // 0 for a span
	Depth int  // in the tree of parents
	Open  bool // still running at the end
	Exit  *int
	First int64 // marked time in the row, such as its exec; 0: none
}

// Calls divides a start into calls of the OCI runtime and the time between them. The
// time between calls belongs to the engine, with two exceptions: workloads that ended
// within the start, and gaps in which only a VMM works.
//
// If several calls run at once, the time goes to the one that began last, so none is
// counted twice. A call that runs a container to its end includes the workload.
func Calls(s *record.Start, engine string) []Part {
	return partition(s, calling(stretches(s)), engine)
}

// calling keeps the stretches of runtime calls, workloads or guests, and the engine's
// spans from notes, in this order of precedence.
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

// Parts divides a start by the most specific activity at each moment. The time without
// such activity gets the name engine.
//
// For a live start the order of precedence is:
//   - a network plugin;
//   - a helper below a call, such as docker's network hook;
//   - the runtime's init, from its birth, within the call that makes a container;
//   - a call;
//   - the workload, from its first instruction to its end, if it ended within the
//
// start;
//   - any other helper that ended within the start.
//
// Long-running processes (daemons, shims, monitors, VMMs and their file servers) never
// count as waited for. Nor does an init that waits for the start of its container. The
// rest is the engine's, except for gaps in which only a VMM works (see alone), and
// time that the logs of the same start explain. Among several activities of one kind
// the one that began last has precedence.
//
// For logs and notes the innermost span has precedence.
func Parts(s *record.Start, engine string) []Part {
	return partition(s, stretches(s), engine)
}
