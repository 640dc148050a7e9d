// Package starts makes starts of containers and pods of the lines that engines,
// runtimes and guests log about them.
//
// Lines come as one stream in order of time, of any number of sandboxes at once.
// A line belongs to the sandbox that it names, by sandbox or by container; one
// that names none to the sandbox for which its process spoke last, or to the only
// start that is under way. A start begins with the first line of its sandbox, or
// with the engine's call that led to it, and ends when the last container was
// started that was created before the first kill, stop or exec. It is given out
// as soon as that comes, and what the sandbox says later is no part of it.
//
// # Gaps
//
// A gap lies between two lines of one lane. The engine and the runtime share a
// lane, since one calls the other; programs that run beside them, as the proxy of
// Kata 1.x, have their own, and a gap in it counts only where the runtime is
// silent for nine tenths of it. Not every line ends a gap: those are passed over,
// and counted as others', which
//   - come out of a guest, from its console or its agent;
//   - name neither a sandbox nor a container, as those of libraries and of the
//     engine's own household;
//   - answer questions that others ask at any time: State(), Stats(), Wait().
//
// Milestones, see [mark], and lines cut before their names always count. An edge
// that is no milestone gives way to a milestone of its lane within a millisecond
// of it, outside the gap: what is said with the same breath is one event. A gap
// before the agent answers that a guest's lines divide is given a second time, from
// the last of them, if that is between a tenth and nine tenths of it: until then
// the guest was busy, from then on the host just waited.
//
// # Memory
//
// Everything kept is bounded: sandboxes, names, pids, and of each start its
// spans, points and gaps. What is forgotten is counted.
package starts

import (
	"container/list"
	"math"
	"strconv"
	"time"

	"github.com/tare-bench/tare/internal/instrument/startup/logs"
	"github.com/tare-bench/tare/record"
)

// Builder puts starts together. It is not for several goroutines.
type Builder struct {
	names []string // of the sources that Event.File counts
	out   func(x *record.Start, file int) error
	err   error // of out, which ends everything

	maxOpen int // sandboxes at once; the one not seen for longest is given out first
	maxGaps int // of each start, the longest

	Unplaced int64 // lines that belonged to no start
	Dropped  int64 // starts that were given out unfinished, since there were too many at once

	open       map[string]*sandbox
	byUse      *list.List               // of open ones, the one seen last first
	done       recent[string, int64]    // when the start of an id was last spoken of that has been given out
	containers recent[string, string]   // id of the sandbox by id of the container
	pids       recent[speaker, string]  // id of the sandbox that a process spoke for last
	pods       recent[string, *call]    // calls of RunPodSandbox by the pod's name, until its id is known
	pulls      recent[string, *call]    // of images, by name
	requests   recent[string, *request] // CRI-O's
	early      recent[speaker, *early]  // of Kata 1.x's runtime
	orphans    recent[string, []step]   // of containers whose sandbox is not known yet
	adding     adding
	create     call      // the first that docker was asked for since its last start
	creates    int       // how many there were
	commands   []command // of runsc, by file
	twice      *twice
	words      words

	underWay   map[*sandbox]bool // have begun and have not all they created started
	suppressed int64
	given      int
}

// How much is remembered of what passes by.
const (
	maxDone       = 16384
	maxContainers = 16384
	maxPids       = 16384
	maxPending    = 1024
)

const (
	// settled is how long after its last container was started a start may go on
	// with another one. A container that is added to a pod later is none of it.
	settled = 10 * time.Minute
	// longest is how long a start may take at all.
	longest = 24 * time.Hour
)

// New makes a Builder of the lines of sources, which gives each start to out, which may
// keep it, and in which source it begins.
func New(names []string, out func(x *record.Start, file int) error) *Builder {
	return &Builder{
		names: names, out: out, maxOpen: 1024, maxGaps: 32, open: map[string]*sandbox{}, byUse: list.New(), underWay: map[*sandbox]bool{}, twice: &twice{},
		done: newRecent[string, int64](maxDone), containers: newRecent[string, string](maxContainers), pids: newRecent[speaker, string](maxPids),
		pods: newRecent[string, *call](maxPending), pulls: newRecent[string, *call](maxPending),
		requests: newRecent[string, *request](maxPending), orphans: newRecent[string, []step](maxPending), early: newRecent[speaker, *early](maxPending),
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
	if seen, heals, timed := b.twice.seen(e, at); seen {
		s := b.open[string(e.Sandbox)]
		if s != nil {
			b.speaks(e, s) // what else the process writes into this file is of the same sandbox
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
	case e.Form == logs.Containerd || e.Form == logs.Docker:
		b.containerd(e, at)
	case e.Form == logs.CRIO:
		b.crio(e, at)
	default:
		b.runtime(e, at)
	}
	return b.err
}

// Close gives out what is open.
func (b *Builder) Close() error {
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
