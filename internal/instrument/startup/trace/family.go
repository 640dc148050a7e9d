package trace

import (
	"cmp"
	"slices"

	"github.com/tare-bench/tare/record"
)

// relatives is the process tree of a start. Since pids are reused, the parent of a
// process is the one that had the parent's pid at its birth.
type relatives struct {
	start  *record.Start
	parent []int // index into the start's processes; -1: none
	order  []int // by birth, parents before children
	last   int64 // end of processes without a recorded end
}

func family(s *record.Start) *relatives {
	f := &relatives{start: s, parent: make([]int, len(s.Processes)), order: make([]int, len(s.Processes)), last: max(s.Ended, s.Began)}
	by := map[int][]int{} // pid → processes, by birth
	for i := range f.order {
		f.order[i] = i
		if s.Ended == 0 {
			f.last = max(f.last, s.Processes[i].Born, s.Processes[i].Ended)
		}
	}
	slices.SortStableFunc(f.order, func(a, b int) int { return cmp.Compare(s.Processes[a].Born, s.Processes[b].Born) })
	// Only an earlier process can be a parent. This prevents cycles.
	for _, i := range f.order {
		p := &s.Processes[i]
		f.parent[i] = -1
		had := by[p.Parent]
		for j := len(had) - 1; j >= 0 && j >= len(had)-64; j-- {
			if q := had[j]; s.Processes[q].Ended == 0 || f.end(q) >= p.Born {
				f.parent[i] = q
				break
			}
		}
		// A process keeps its parent across exec, even if the parent is gone.
		if was := by[p.Pid]; len(was) > 0 {
			if q := was[len(was)-1]; s.Processes[q].Ended == p.Born && s.Processes[q].Parent == p.Parent {
				f.parent[i] = f.parent[q]
			}
		}
		by[p.Pid] = append(by[p.Pid], i)
	}
	return f
}

func (f *relatives) born(i int) int64 { return f.start.Processes[i].Born }

// ended reports whether a process ended within the start.
func (f *relatives) ended(i int) bool {
	p := &f.start.Processes[i]
	return p.Ended != 0 && (f.start.Ended == 0 || p.Ended <= f.start.Ended)
}

// end returns the end of a process, or its birth if that is later. A running process
// ends with the start.
func (f *relatives) end(i int) int64 {
	p := &f.start.Processes[i]
	if p.Ended == 0 {
		return max(p.Born, f.last)
	}
	return max(p.Born, p.Ended)
}

// maker returns the nearest call among the ancestors of a process, or -1. For an init
// it is the call that created the container.
func (f *relatives) maker(i int) int {
	for up := f.parent[i]; up >= 0; up = f.parent[up] {
		if f.start.Processes[up].Kind == record.KindCall {
			return up
		}
	}
	return -1
}

// worked is the time in which a container's program ran.
type worked struct {
	process  int // index into the start's processes
	from, to int64
}

// workloads returns the container programs that ended within the start, each from its
// first instruction. Running programs delay nothing. Successive execs of one process
// count as one program. A workload begins at the start's own first instruction or later.
func (f *relatives) workloads() (all []worked) {
	s := f.start
	if s.First == 0 {
		return nil
	}
	last := map[int]int{} // pid → index in all
	for _, i := range f.order {
		p := &s.Processes[i]
		if p.Kind != record.KindWorkload || p.Exec == 0 {
			continue
		}
		if at, ok := last[p.Pid]; ok && all[at].to == p.Born { // exec of another program
			all[at].to = f.until(i)
			continue
		}
		if up := f.parent[i]; up >= 0 && s.Processes[up].Kind == record.KindWorkload {
			continue // child of a workload
		}
		last[p.Pid] = len(all)
		all = append(all, worked{i, max(s.First, p.Exec), f.until(i)})
	}
	return slices.DeleteFunc(all, func(w worked) bool { return w.to == 0 })
}

// until returns the end of a process if it ended within the start, else 0.
func (f *relatives) until(i int) int64 {
	if !f.ended(i) {
		return 0
	}
	return f.end(i)
}

// below reports whether i descends from up.
func (f *relatives) below(i, up int) bool {
	for i = f.parent[i]; i >= 0; i = f.parent[i] {
		if i == up {
			return true
		}
	}
	return false
}
