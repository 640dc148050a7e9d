// Package trace finds in the record of a start where its time went: which of its
// processes and phases ran one after the other, what lies between them, and which
// of those gaps look like a timer that somebody waited for.
//
// Everything here is a pure function of a [record.Start]. Package trace/kin makes
// such a start from what the kernel told of processes, trace/logs and
// trace/starts from logs, trace/notes from figures in a text.
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
	Part
	Depth int  // in the tree of parents
	Open  bool // it was still there at the end
	Exit  *int
	First int64 // the moment in it that is marked, such as its exec; 0: none
}

// Calls returns the start's time as calls of the OCI runtime and what lies
// between them. Calls that overlap are one part, named by the one that began
// first, up to the beginning of the next.
func Calls(s *record.Start, engine string) []Part { return nil }

// Parts returns the start's time by whatever was at work and most to the point
// at each moment: a network plugin within the engine's time, the runtime's init
// within a call. engine names what is none of them.
func Parts(s *record.Start, engine string) []Part { return nil }

// Rows returns the start's processes or spans as the lines of a waterfall, parents
// before their children.
func Rows(s *record.Start) []Row { return nil }

// Gaps returns at most n intervals in which a start waited, the longest first: of
// a live one those between two events of its processes, of logs those that were
// recorded, all named by [Recognise].
func Gaps(s *record.Start, engine string, n int) []record.Gap { return nil }
