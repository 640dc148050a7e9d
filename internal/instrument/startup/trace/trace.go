// Package trace finds in the record of a start where its time went: which of its
// processes and phases ran one after the other, and what lies between them.
//
// Everything here is a pure function of a [record.Start]. Package proctree makes
// such a start of what the kernel told of processes, packages logs and starts make
// it of logs. A start whose clock makes no sense, such as a process
// that ended before it was born, has its times brought into order; one without an
// end has no parts.
package trace

import "github.com/tare-bench/tare/record"

// Part is a piece of a start's time. The parts of a start follow each other
// without a hole from Began to Ended, so their sum is the measured time.
type Part struct {
	Name      string // "runc create", or whose time it is while nothing of that kind runs: "docker"
	Kind      string // record's Kind constants
	Container string
	Began     int64
	Ended     int64
	CPU       int64 // ns used by all processes of the start meanwhile; -1: not known
}

// Row is one line of a waterfall.
type Row struct {
	Part       // CPU is the process's own
	Pid   int  // 0 of a span
	Depth int  // in the tree of parents
	Open  bool // it was still there at the end
	Exit  *int
	First int64 // the moment in it that is marked, such as its exec; 0: none
}

// Calls returns the start's time as calls of the OCI runtime and what lies
// between them, which is the engine's, but for what the workload takes that ended
// within the start, and for the gaps in which a VMM alone works: those are nobody's but
// their own. While several calls are there at
// once the time is that of the one that began last, so that none is counted
// twice; a call that runs a container until it ends has the workload's time too.
func Calls(s *record.Start, engine string) []Part {
	return partition(s, calling(stretches(s)), engine)
}

// calling leaves the runtime's calls, the workload or the guest, and what notes name as
// the engine's, in this order.
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

// Parts returns the start's time by whatever was at work and most to the point
// at each moment. engine names what is none of them.
//
// Of a live start that is what somebody waits for, in this order: a network
// plugin; a helper that a call called, such as docker's hook that sets up the
// network; within the call that makes a container the runtime's init, from its
// birth on; a call; the workload from its first instruction to its end, where it
// ended within the start; any other helper that ended within it. Whatever lives
// on, such as daemons, shims, monitors, VMMs and their file servers, never makes
// anybody wait by being there; nor does an init that waits for the start of its container. What remains is the
// engine's, but for gaps in which a VMM alone works, see [Alone], and for what the logs
// of the same start tell of it. While several of one kind are there it is the one that
// began last.
//
// Of logs and notes it is the innermost span.
func Parts(s *record.Start, engine string) []Part {
	return partition(s, stretches(s), engine)
}
