package trace

import (
	"cmp"
	"slices"

	"github.com/tare-bench/tare/record"
)

// Rows returns the start's processes or spans as the lines of a waterfall, parents
// before their children, siblings by birth. A process stays below the one that
// forked it, wherever the kernel moved it afterwards. A span is below the
// innermost one that it lies in.
func Rows(s *record.Start) []Row {
	if len(s.Processes) == 0 {
		return spanRows(s)
	}
	f := family(s)
	children := make([][]int, len(s.Processes))
	var stack []int
	depth := make([]int, len(s.Processes))
	for _, i := range f.order {
		if up := f.parent[i]; up >= 0 {
			children[up] = append(children[up], i)
			depth[i] = depth[up] + 1
		} else {
			stack = append(stack, i)
		}
	}
	slices.Reverse(stack)
	rows := make([]Row, 0, len(s.Processes))
	for len(stack) > 0 {
		i := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		rows = append(rows, f.row(i, depth[i]))
		for _, child := range slices.Backward(children[i]) {
			stack = append(stack, child)
		}
	}
	return rows
}

func (f *relatives) row(i, depth int) Row {
	p := &f.start.Processes[i]
	r := Row{
		Part: Part{Name: p.Name, Kind: p.Kind, Container: p.Container, Began: p.Born, Ended: f.end(i), CPU: p.CPU},
		Pid:  p.Pid, Depth: depth, Open: !f.ended(i), Exit: p.Exit,
	}
	if r.Open {
		r.Ended = max(r.Began, f.last)
	}
	if p.Exec >= r.Began && p.Exec <= r.Ended {
		r.First = p.Exec
	}
	return r
}

func spanRows(s *record.Start) []Row {
	rows := make([]Row, 0, len(s.Spans))
	for _, p := range s.Spans {
		rows = append(rows, Row{Part: Part{Name: p.Name, Kind: p.Kind, Container: p.Container, Began: p.Began, Ended: max(p.Began, p.Ended), CPU: -1}})
	}
	slices.SortStableFunc(rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(a.Began, b.Began), cmp.Compare(b.Ended, a.Ended))
	})
	var around []int64 // the ends of the spans around the next
	for i := range rows {
		for n := len(around); n > 0 && (around[n-1] < rows[i].Ended || around[n-1] <= rows[i].Began); n = len(around) {
			around = around[:n-1]
		}
		rows[i].Depth = len(around)
		around = append(around, rows[i].Ended)
	}
	return rows
}
