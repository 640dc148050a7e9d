// Package starts makes starts of containers and pods of the lines that engines,
// runtimes and guests log about them.
//
// Each writer has a file with a table and a pure function from a line to facts: a
// call began, ended or failed, a milestone was reached, a container belongs to a
// sandbox. [Builder] is the only thing with state. It takes the facts of all
// writers in order of time and assembles starts of them.
//
// A line belongs to the sandbox that it names, by sandbox or by container. A line
// that names none belongs to the sandbox for which its process spoke last, or to
// the only start that is under way.
//
// # Begin and end
//
// A start begins with the first request for it, or with the first line about its
// sandbox. It ends when every container of its first attempt runs, init containers
// included. A container belongs to the first attempt if it is created before all
// others run, at most [patience] after they do, or after one of them exited.
// Restarted containers, and those that are added later, are starts of their own.
// A start in which a call never returned, or a container never ran, has no end:
// [record.Waiting] says where it stands. A start is given out when its end is
// certain, at the latest by [Builder.Close].
//
// # Gaps
//
// A gap lies between two lines of one lane. The engine and the runtime share a
// lane, since one calls the other. Programs that run in parallel, as the proxy of
// Kata 1.x, have their own, and a gap in it counts only where the runtime is
// silent for nine tenths of it. Some lines do not end a gap. They are counted as
// others':
//   - lines out of a guest, from its console or its agent;
//   - lines that name neither a sandbox nor a container;
//   - answers to questions that are asked at any time: State(), Stats(), Wait().
//
// Milestones, and lines cut before their names, always count. An edge
// that is no milestone gives way to a milestone of its lane within a millisecond
// of it, outside the gap. A gap before the agent answers that a guest's lines
// divide is given a second time, from the last of them, if that is between a tenth
// and nine tenths of it: until then the guest was busy, from then on the host
// just waited.
//
// # Memory
//
// Everything kept is bounded: sandboxes, names, pids, and of each start its
// spans, points and gaps. What is forgotten is counted.
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

// Builder assembles starts. It is not safe for concurrent use.
type Builder struct {
	names []string // of the sources that Event.File counts
	out   func(x *record.Start, file int) error
	err   error // of out, which ends everything

	maxOpen int // sandboxes at once; the one not seen for longest is given out first
	maxGaps int // of each start, the longest

	Unplaced int64 // lines that belonged to no start
	Dropped  int64 // starts that were given out unfinished, since there were too many at once

	open       map[string]*sandbox    // by key
	byUse      *list.List             // of open ones, the one seen last first
	done       recent[string, past]   // starts that have been given out, by key
	containers recent[string, string] // key of the sandbox by id of the container
	pids       recent[speaker, string]
	pods       recent[string, string] // key of the newest sandbox by the pod's name
	calls      recent[string, *call]  // by their key
	early      recent[speaker, *early]
	creates    []*call   // that docker and podman were asked for, whose containers are not known yet
	commands   []command // of runsc, by file
	twice      *twice
	words      words
	facts      []fact

	underWay   map[*sandbox]bool // have begun and have not all they created started
	suppressed int64
	now        int64   // the last time in the logs
	pauses     []int64 // the last times before others that are later by more than a start may take
	given      int
	creating   bool // a call of CreateContainer was logged
}

// past is what is remembered of a start that has been given out.
type past struct {
	last   int64 // when it was last spoken of
	name   string
	labels string // of its containers
}

// How much is remembered of what passes by.
const (
	maxDone       = 16384
	maxContainers = 16384
	maxPids       = 16384
	maxPending    = 1024
)

const (
	// patience is how long after all containers of a start run another one may be
	// created that still belongs to it, if none of them exited.
	patience = 2 * time.Minute
	// settled is the same where one of them exited, or a line names the sandbox.
	settled = 10 * time.Minute
	// longest is how long a start may take at all.
	longest = 24 * time.Hour
)

// New makes a Builder of the lines of sources. It gives each start, and the source in
// which it begins, to out, which may keep it.
func New(names []string, out func(x *record.Start, file int) error) *Builder {
	return &Builder{
		names: names, out: out, maxOpen: 1024, maxGaps: 32, open: map[string]*sandbox{}, byUse: list.New(), underWay: map[*sandbox]bool{}, twice: &twice{},
		done: newRecent[string, past](maxDone), containers: newRecent[string, string](maxContainers), pids: newRecent[speaker, string](maxPids),
		pods: newRecent[string, string](maxPending), calls: newRecent[string, *call](2 * maxPending), early: newRecent[speaker, *early](maxPending),
		commands: make([]command, max(len(names), 1)),
	}
}

// Add takes the next line. Its texts are copied as far as they are kept. An error
// is that of out.
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
	if at <= 0 { // it says nothing of when it was
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
			b.speaks(e, s) // what else the process writes into this file is about the same sandbox
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
	case rules[e.Form] == nil:
		b.runtime(e, at)
	default:
		b.facts = rules[e.Form](e, b.facts[:0])
		for i := range b.facts {
			f := &b.facts[i]
			b.take(e, f, cmp.Or(f.at, at))
		}
	}
	return b.err
}

// Close gives out what is open, calls that never returned included.
func (b *Builder) Close() error {
	var lost []*call
	for _, c := range b.calls.m {
		for ; c != nil; c = c.first {
			switch {
			case c.s != nil || c.over || c.name == pullName || c.name == setUp:
			case c.first != nil && c.point == podCalled && !c.oldest: // a retry is a line of what it repeats
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

// source is where a line stands, "kata.log:25".
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

// place is where a line stands.
type place struct {
	file int
	line int64
}

func placeOf(e *logs.Event) place { return place{e.File, e.Line} }
