package startup

import (
	"cmp"
	"fmt"
	"slices"
)

// traced are the starts of a target that a trace holds.
func (t *Target) traced() []*Drawn {
	if len(t.Chosen) == 0 && t.Drawn != nil && t.Drawn.Start != nil {
		return []*Drawn{t.Drawn}
	}
	return t.Chosen
}

// slice is a row of a drawn start as a trace has it: within the start, with the
// process that it is of.
type slice struct {
	name      string
	kind      string
	container string
	began     int64 // ns on the start's clock, as ended
	ended     int64
	cpu       int64 // ns; -1: not known
	pid       int   // 0: not known
	exit      *int
	open      bool
	parent    int // index of another slice; -1: page.None
}

// slicesOf are a drawn start's rows, parents before their children. Nothing of them
// lies outside of the start, as it is drawn.
func slicesOf(d *Drawn) []slice {
	s := d.Start
	end := max(endOf(d), s.Began)
	var out []slice
	var above []int // the ancestors of the row, by depth
	for i := range d.Rows {
		r := &d.Rows[i]
		one := slice{name: r.Name, kind: r.Kind, container: r.Container, pid: r.Pid, cpu: r.CPU, exit: r.Exit, open: r.Open, parent: -1,
			began: min(max(r.Began, s.Began), end), ended: min(r.Ended, end)}
		if one.open || one.ended < one.began {
			one.ended = end
		}
		depth := min(max(r.Depth, 0), len(above))
		if depth > 0 {
			one.parent = above[depth-1]
		}
		above = append(above[:depth], i)
		out = append(out, one)
	}
	return out
}

// gapSlices are the gaps of a drawn start, in order of time.
func gapSlices(d *Drawn) (out []slice) {
	end := max(endOf(d), d.Start.Began)
	for i := range d.Gaps {
		g := &d.Gaps[i]
		one := slice{name: "gap", kind: "gap", cpu: g.CPU, parent: -1, began: min(max(g.Began, d.Start.Began), end)}
		one.ended = max(min(g.Ended, end), one.began)
		if g.In != "" {
			one.name = "gap in " + g.In
		}
		if g.Wait != nil {
			one.name, one.kind = "waited: "+g.Wait.Timer, "wait"
		}
		out = append(out, one)
	}
	return out
}

// trackOf is the name of the track that a slice belongs to, if it fits there: that
// of its process, or where there is none that of its kind.
func trackOf(s *slice) string {
	if s.pid != 0 {
		return fmt.Sprintf("pid %d", s.pid)
	}
	return s.kind
}

// laid puts slices on lanes, in each of which they lie behind each other or within
// each other, and returns the lane of each: viewers draw slices of one lane that
// cross wrongly. Of a track as few lanes are made as are needed.
func laid(all []slice) (lanes []int, tracks []string) {
	order := make([]int, len(all))
	for i := range all {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(all[a].began, all[b].began), cmp.Compare(all[b].ended, all[a].ended))
	})
	lanes = make([]int, len(all))
	open := [][]int64{} // of each lane the ends of the slices that enclose what comes next
	of := map[string][]int{}
	for _, i := range order {
		s, track := &all[i], trackOf(&all[i])
		found := -1
		for _, lane := range of[track] {
			ends := open[lane]
			for len(ends) > 0 && ends[len(ends)-1] <= s.began {
				ends = ends[:len(ends)-1]
			}
			open[lane] = ends
			if len(ends) == 0 || ends[len(ends)-1] >= s.ended {
				found = lane
				break
			}
		}
		if found < 0 {
			found = len(open)
			open, tracks = append(open, nil), append(tracks, track)
			of[track] = append(of[track], found)
		}
		open[found] = append(open[found], s.ended)
		lanes[i] = found
	}
	return lanes, tracks
}
