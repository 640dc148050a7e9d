package tracer

import (
	"cmp"
	"slices"
	"sort"
	"sync"

	"github.com/tare-bench/tare/internal/node/machine"
)

// maxPending is the largest number of events kept for a Take. A container start makes
// some dozens; a busy build makes a hundred thousand in half a minute.
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

// take removes the events up to a time, in order of time. Busy of events from different CPUs
// may go back a little, because the CPUs read it at different moments. take makes it
// monotonic.
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

func now() int64 { return machine.Now() }

// once recognises the first of several exit events of a process. The pid alone is not
// enough because it can be reused.
type once struct {
	ended map[int]ending
	swept int64
}

type ending struct {
	born uint64
	time int64
}

// soon is the longest time between two exit events of a process (ns).
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
