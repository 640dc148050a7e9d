package startup

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/tare-bench/tare/internal/instrument/startup/trace"
)

// traced returns the starts of a target to write into a trace.
func (t *Target) traced() []*Drawn {
	if len(t.Chosen) == 0 && t.Drawn != nil && t.Drawn.Start != nil {
		return []*Drawn{t.Drawn}
	}
	return t.Chosen
}

// slice is a row or a gap of a start in a trace, limited to the time of the start.
type slice struct {
	trace.Row
	parent             int // index of another slice; -1: none
	after, before, why string
}

// slicesOf returns the rows of a drawn start, parents first, and its gaps.
func slicesOf(d *Drawn) (rows, gaps []slice) {
	began, end := d.Start.Began, max(endOf(d), d.Start.Began)
	var above []int // ancestors of the row, by depth
	for i, r := range d.Rows {
		one := slice{Row: r, parent: -1}
		one.Began, one.Ended = min(max(r.Began, began), end), min(r.Ended, end)
		if r.Open || one.Ended < one.Began {
			one.Ended = end
		}
		depth := min(max(r.Depth, 0), len(above))
		if depth > 0 {
			one.parent = above[depth-1]
		}
		above = append(above[:depth], i)
		rows = append(rows, one)
	}
	for i := range d.Gaps {
		g := &d.Gaps[i]
		one := slice{Row: trace.Row{Part: trace.Part{Name: gapName(g), Kind: "gap", CPU: g.CPU}}, parent: -1, after: g.After, before: g.Before}
		one.Began = min(max(g.Began, began), end)
		one.Ended = max(min(g.Ended, end), one.Began)
		if g.Wait != nil {
			one.Kind, one.why = "wait", g.Wait.Why
		}
		gaps = append(gaps, one)
	}
	return rows, gaps
}

// track returns the preferred track of a slice. It is the track of the slice's
// process, or else of its kind.
func (s *slice) track() string {
	switch {
	case s.Pid != 0:
		return fmt.Sprintf("pid %d", s.Pid)
	case s.Kind == "gap" || s.Kind == "wait":
		return "waits"
	}
	return s.Kind
}

// laid assigns slices to lanes and returns the lane of each slice and the number of
// lanes. The slices of a lane are consecutive or nested, because viewers draw
// overlapping slices wrongly. Each track has as few lanes as possible.
func laid(all []slice) (lanes []int, made int) {
	order := make([]int, len(all))
	for i := range all {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(all[a].Began, all[b].Began), cmp.Compare(all[b].Ended, all[a].Ended))
	})
	lanes = make([]int, len(all))
	open := [][]int64{} // per lane, the ends of the enclosing slices
	of := map[string][]int{}
	for _, i := range order {
		s, track := &all[i], all[i].track()
		fits := func(lane int) bool {
			for n := len(open[lane]); n > 0 && open[lane][n-1] <= s.Began; n-- {
				open[lane] = open[lane][:n-1]
			}
			n := len(open[lane])
			return n == 0 || open[lane][n-1] >= s.Ended
		}
		at := slices.IndexFunc(of[track], fits)
		if at < 0 {
			at, of[track], open = len(of[track]), append(of[track], len(open)), append(open, nil)
		}
		lane := of[track][at]
		open[lane] = append(open[lane], s.Ended)
		lanes[i] = lane
	}
	return lanes, len(open)
}
