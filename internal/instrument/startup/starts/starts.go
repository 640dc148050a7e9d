// Package starts reconstructs the starts of containers and pods from the logs of
// engines, runtimes and guests.
//
// Each log writer has a file with a table and a pure function that converts a line to
// facts. A fact is, for example, that a call began, ended or failed, that a milestone
// was reached, or that a container belongs to a sandbox. Only [Builder] has state. It
// processes the facts of all writers in time order and builds starts from them.
//
// A line belongs to the sandbox whose id it contains, or to the sandbox of a container
// whose id it contains. A line without an id belongs to the last sandbox that its
// process logged about. Otherwise it belongs to the start in progress, if there is
// exactly one.
//
// # Begin and end
//
// A start begins with its first request, or with the first line about its sandbox. It
// ends when all containers of its first attempt run, including init containers. A
// container belongs to the first attempt in three cases: it is created before all
// others run, at most [patience] after that, or after one of them exited. Restarted
// containers and containers added later are separate starts. A start has no end if a
// call never returned or a container never ran. [record.Waiting] then describes where
// it stopped. A start is emitted once its end is certain, at the latest by
// [Builder.Close].
//
// # Gaps
//
// A gap is the time between two lines of one lane. The engine and the runtime share a
// lane, since one calls the other. Programs that run in parallel, such as the proxy of
// Kata 1.x, have a separate lane. A gap in such a lane counts only if the runtime logs
// nothing for at least nine tenths of it. Some lines do not end a gap. They are
// counted separately:
//   - lines from a guest, logged by its console or its agent;
//   - lines without the id of a sandbox or container;
//   - answers to queries that may occur at any time: State(), Stats(), Wait().
//
// Milestones always end a gap, and so do lines truncated before their ids. If a
// milestone is just outside a gap, at most a millisecond from its end, it replaces the
// ordinary line there. Guest lines can divide a gap before the agent answers. If the
// last guest line is between a tenth and nine tenths of the gap, the gap is reported a
// second time, from that line on. Until that line the guest was busy. After it the
// host only waited.
//
// # Memory
//
// All state is bounded: sandboxes, ids, pids, and the spans, milestones and gaps of
// each start. Evicted state is counted.
package starts

import (
	"cmp"
	"container/list"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/tare-bench/tare/internal/instrument/startup/logs"
	"github.com/tare-bench/tare/record"
)

// Builder builds starts from log events. It is not safe for concurrent use.
type Builder struct {
	names []string // by index, as in Event.File
	out   func(x *record.Start, file int) error
	err   error // the first error of out; stops all processing

	maxOpen int // maximum number of open sandboxes; above it the least recently used one is emitted
	maxGaps int // maximum number of gaps per start; the longest are retained

	Unplaced int64 // lines that belong to no start
	Dropped  int64 // starts emitted without an end because too many were open

	open       map[string]*sandbox    // by key
	byUse      *list.List             // open sandboxes, most recently used first
	done       recent[string, past]   // emitted starts, by key
	containers recent[string, string] // sandbox key by container id
	pids       recent[speaker, string]
	pods       recent[string, string] // key of the newest sandbox by pod name
	calls      recent[string, *call]  // by call key
	early      recent[speaker, *once]
	creates    []*call   // create calls of docker and podman without a known container id
	commands   []command // of runsc, by file
	twice      *twice
	words      words
	facts      []fact

	underWay   map[*sandbox]bool // starts in progress that still have created containers to start
	suppressed int64
	now        int64   // latest time in the logs
	pauses     []int64 // last times before jumps longer than the maximum duration of a start
	given      int
	creating   bool // whether a CreateContainer call was logged
}

// past is the state retained for an emitted start.
type past struct {
	last   int64 // time of the last line
	name   string
	labels string // of its containers, each surrounded by blanks
}

// Limits of the retained state.
const (
	maxDone       = 16384
	maxContainers = 16384
	maxPids       = 16384
	maxPending    = 1024
)

const (
	// patience is the maximum time between the start of the last container and the
	// creation of another container of the same start, if none has exited.
	patience = 2 * time.Minute
	// settled replaces patience if a container has exited or a line has the sandbox's id.
	settled = 10 * time.Minute
	// longest is the maximum duration of a start.
	longest = 24 * time.Hour
)

// New returns a Builder for the lines of the named sources. It calls out for each
// start, with the index of the source in which the start begins. out may retain the
// start.
func New(names []string, out func(x *record.Start, file int) error) *Builder {
	return &Builder{
		names: names, out: out, maxOpen: 1024, maxGaps: 32, open: map[string]*sandbox{}, byUse: list.New(), underWay: map[*sandbox]bool{}, twice: &twice{}, words: words{},
		done: newRecent[string, past](maxDone), containers: newRecent[string, string](maxContainers), pids: newRecent[speaker, string](maxPids),
		pods: newRecent[string, string](maxPending), calls: newRecent[string, *call](2 * maxPending), early: newRecent[speaker, *once](maxPending),
		commands: make([]command, max(len(names), 1)),
	}
}

// Add processes the next event. It does not retain e. It returns the first error of
// out.
func (b *Builder) Add(e *logs.Event) error {
	if b.err != nil {
		return b.err
	}
	at := e.Time
	if e.Guest {
		at = e.Arrived
	}
	if e.Suppressed > 0 {
		b.suppressed += min(e.Suppressed, math.MaxInt64-b.suppressed)
		return nil
	}
	if at <= 0 { // the line has no time
		b.Unplaced++
		return nil
	}
	if b.now != 0 && at-b.now > int64(longest) && len(b.pauses) < maxPending {
		b.pauses = append(b.pauses, b.now)
	}
	b.now = max(b.now, at)
	if seen, heals, timed := b.twice.seen(e, at); seen {
		s := b.open[string(e.Sandbox)]
		if s != nil {
			b.speaks(e, s) // the next lines of this process without an id are about the same sandbox
		}
		if heals && s != nil && s.cuts > 0 {
			s.cuts--
		}
		if timed && s != nil {
			s.clock.arrived(e, at)
		}
		return nil
	}
	switch {
	case e.Form == logs.Runsc:
		b.runsc(e, at)
	case fromGuest(e):
		b.guest(e, at)
	case writers[e.Form].rule == nil:
		b.runtime(e, at)
	default:
		b.facts = writers[e.Form].rule(e, b.facts[:0])
		for i := range b.facts {
			f := &b.facts[i]
			b.take(e, f, cmp.Or(f.at, at))
		}
	}
	return b.err
}

// Close emits all open starts, including those of calls that never returned.
func (b *Builder) Close() error {
	var lost []*call
	for _, c := range b.calls.m {
		for ; c != nil; c = c.first {
			switch {
			case c.s != nil || c.over || c.name == pullName || c.name == setUp:
			case c.first != nil && c.point == podCalled && !c.oldest: // lines of a retry belong to the first call
				c.first.stage, c.first.lines = cmp.Or(c.first.stage, c.stage), c.first.lines+c.lines+1
			default:
				lost = append(lost, c)
			}
		}
	}
	lost = append(lost, b.creates...)
	slices.SortFunc(lost, func(x, y *call) int {
		return cmp.Or(cmp.Compare(x.at, y.at), cmp.Compare(x.place.file, y.place.file), cmp.Compare(x.place.line, y.place.line))
	})
	for _, c := range slices.Compact(lost) {
		b.finish(b.alone(c))
	}
	for b.byUse.Len() > 0 {
		b.finish(b.byUse.Back().Value.(*sandbox))
	}
	return b.err
}

// source formats the position of a line, as in "kata.log:25".
func (b *Builder) source(p place) string {
	name := "?"
	if p.file >= 0 && p.file < len(b.names) {
		name = b.names[p.file]
	}
	if p.line <= 0 {
		return name
	}
	return name + ":" + strconv.FormatInt(p.line, 10)
}

// place is the position of a line.
type place struct {
	file int
	line int64
}

func placeOf(e *logs.Event) place { return place{e.File, e.Line} }
