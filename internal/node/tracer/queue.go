package tracer

import (
	"cmp"
	"slices"
	"sort"
	"sync"

	"github.com/tare-bench/tare/internal/node/machine"
)

// maxPending is how many events are kept for a Take. A container's start makes
// some dozens; a hundred thousand are what a busy build makes in half a minute.
const maxPending = 1 << 17

// queue keeps events until they are taken.
type queue struct {
	sync.Mutex
	pending []Event
	dropped int64
	busy    int64 // of the last event taken
}

func (q *queue) add(e Event) {
	q.Lock()
	defer q.Unlock()
	if len(q.pending) >= maxPending {
		q.dropped++
		return
	}
	q.pending = append(q.pending, e)
}

func (q *queue) lost() int64 {
	q.Lock()
	defer q.Unlock()
	return q.dropped
}

// take removes what happened until then, in order of time. What CPUs say of
// their time differs by what passes between two looks; it is made to never
// shrink.
func (q *queue) take(until int64) []Event {
	q.Lock()
	defer q.Unlock()
	slices.SortStableFunc(q.pending, func(a, b Event) int { return cmp.Or(cmp.Compare(a.Time, b.Time), cmp.Compare(a.Kind, b.Kind)) })
	n := sort.Search(len(q.pending), func(i int) bool { return q.pending[i].Time > until })
	taken := slices.Clone(q.pending[:n])
	q.pending = slices.Delete(q.pending, 0, n)
	for i := range taken {
		if taken[i].Busy >= 0 {
			q.busy = max(q.busy, taken[i].Busy)
			taken[i].Busy = q.busy
		}
	}
	return taken
}

// now is CLOCK_MONOTONIC, in ns.
func now() int64 { return machine.Now() }

// once tells the first end of a process from others that are told of it. A pid
// alone does not: it is given out again.
type once struct {
	ended map[int]ending
	swept int64
}

type ending struct {
	born uint64
	time int64
}

// soon is within what time an end is told twice (ns).
const soon = 1e9

func newOnce() *once { return &once{ended: make(map[int]ending)} }

func (o *once) first(pid int, born uint64, time int64) bool {
	if was, ok := o.ended[pid]; ok && was.born == born {
		return false
	}
	o.ended[pid] = ending{born, time}
	if time-o.swept > soon {
		for pid, was := range o.ended {
			if time-was.time > soon {
				delete(o.ended, pid)
			}
		}
		o.swept = time
	}
	return true
}
