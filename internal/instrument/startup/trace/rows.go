package trace

import (
	"cmp"
	"slices"

	"github.com/tare-bench/tare/record"
)

// Rows returns the processes and spans of a start as lines of a waterfall. Parents
// precede their children, and siblings are sorted by birth. A process is below the
// process that forked it, even if the kernel reparented it. A span is below the
// innermost enclosing span of the same process, or else below the process.
func Rows(s *record.Start) []Row {
	f := family(s)
	all := make([]Row, 0, len(s.Processes)+len(s.Spans))
	below := map[int][]int{} // -1: the top
	for i := range s.Processes {
		all = append(all, f.row(i))
	}
	for _, i := range f.order {
		below[f.parent[i]] = append(below[f.parent[i]], i)
	}
	for _, p := range s.Spans {
		all = append(all, Row{Part: Part{Name: p.Name, Kind: p.Kind, Container: p.Container, Began: p.Began, Ended: max(p.Began, p.Ended), CPU: -1}})
	}
	for i, up := range f.nested(all) {
		below[up] = append(below[up], len(s.Processes)+i)
	}
	for _, of := range below {
		slices.SortStableFunc(of, func(a, b int) int {
			x, y := &all[a], &all[b]
			if order := cmp.Compare(x.Began, y.Began); order != 0 || a < len(s.Processes) || b < len(s.Processes) {
				return order
			}
			return cmp.Compare(y.Ended, x.Ended)
		})
	}
	rows := make([]Row, 0, len(all))
	var add func(up, depth int)
	add = func(up, depth int) {
		for _, i := range below[up] {
			all[i].Depth = depth
			rows = append(rows, all[i])
			add(i, depth+1)
		}
	}
	add(-1, 0)
	return rows
}

// nested returns the index of the parent row of each span, or -1.
func (f *relatives) nested(all []Row) []int {
	first := len(f.start.Processes)
	up, order := make([]int, len(f.start.Spans)), make([]int, len(f.start.Spans))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		x, y := &all[first+a], &all[first+b]
		return cmp.Or(cmp.Compare(x.Began, y.Began), cmp.Compare(y.Ended, x.Ended))
	})
	around := map[int][]int{} // spans of a process that may enclose the next one
	for _, i := range order {
		r, of := &all[first+i], f.owner(&f.start.Spans[i])
		open := around[of]
		for n := len(open); n > 0 && (all[open[n-1]].Ended < r.Ended || all[open[n-1]].Ended <= r.Began); n = len(open) {
			open = open[:n-1]
		}
		if up[i] = of; len(open) > 0 {
			up[i] = open[len(open)-1]
		}
		around[of] = append(open, first+i)
	}
	return up
}

// owners maps the process kind of a span to the kinds of processes that can own it, in
// order of preference.
var owners = map[string][]string{
	record.KindVMM:    {record.KindVMM, record.KindShim, record.KindMonitor, record.KindDaemon},
	record.KindShim:   {record.KindShim, record.KindMonitor, record.KindDaemon},
	record.KindDaemon: {record.KindDaemon},
}

// owner returns the process that a span belongs to, or -1. If there are
// several, it returns the one of the span's container, or else the first.
func (f *relatives) owner(p *record.Span) int {
	for _, kind := range owners[p.Of] {
		found := -1
		for _, i := range f.order {
			x := &f.start.Processes[i]
			if x.Kind != kind || x.Verb != "" || x.Born > p.Ended || f.end(i) < p.Began {
				continue
			}
			if p.Container != "" && x.Container == p.Container {
				return i
			}
			if found < 0 {
				found = i
			}
		}
		if found >= 0 {
			return found
		}
	}
	return -1
}

func (f *relatives) row(i int) Row {
	p := &f.start.Processes[i]
	r := Row{
		Part: Part{Name: p.Name, Kind: p.Kind, Container: p.Container, Began: p.Born, Ended: f.end(i), CPU: p.CPU},
		Pid:  p.Pid, Open: !f.ended(i), Exit: p.Exit,
	}
	if r.Open {
		r.Ended = max(r.Began, f.last)
	}
	if p.Exec >= r.Began && p.Exec <= r.Ended {
		r.First = p.Exec
	}
	return r
}
