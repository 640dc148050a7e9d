package record

import (
	"errors"
	"io"
	"slices"
)

// Extent is the part of a run that a file has.
type Extent struct {
	RunID string
	Whole bool // it has its end mark, without damage
	Lines int  // usable lines
}

// more reports whether e has more of a run than another copy.
func (e Extent) more(than Extent) bool {
	return e.Whole && !than.Whole || e.Whole == than.Whole && e.Lines > than.Lines
}

// Extents returns the extent of each record without keeping the lines. It stops at an
// unreadable part.
func (r *Reader) Extents() (all []Extent) {
	r.Several()
	for more := true; more && len(all) < MaxRecords; more = r.More() {
		var e Extent
		line, err := r.Next()
		ended := false
		for ; err == nil; line, err = r.Next() {
			if h, is := line.(*Header); is {
				e.RunID = h.RunID
			}
			_, end := line.(*End)
			ended = ended || end
			e.Lines++
		}
		e.Whole = ended && errors.Is(err, io.EOF) && !r.Truncated() && r.ProblemCount() == 0
		all = append(all, e)
	}
	return all
}

// Copies chooses one of several files with the same run, which would else count twice. It
// prefers a whole run, then the one with the most lines, then the first. Runs without an id
// have no copies.
type Copies struct {
	files []copied
	best  map[string]place
}

type copied struct {
	runs []string
	look func() []Extent
}

type place struct{ file, nth int }

// Add adds a file with the runs that it seems to have. look reads their extents. It is
// called only if another file seems to have one of the runs too.
func (c *Copies) Add(runs []string, look func() []Extent) {
	c.files = append(c.files, copied{runs, look})
}

// choose reads the extents of files with common runs and chooses the best.
func (c *Copies) choose() {
	c.best = map[string]place{}
	times, extents := map[string]int{}, map[string]Extent{}
	for _, f := range c.files {
		for _, id := range f.runs {
			times[id]++
		}
	}
	for file, f := range c.files {
		if !slices.ContainsFunc(f.runs, func(id string) bool { return id != "" && times[id] > 1 }) {
			continue
		}
		for nth, e := range f.look() {
			if best, met := extents[e.RunID]; !met || e.more(best) {
				c.best[e.RunID], extents[e.RunID] = place{file, nth}, e
			}
		}
	}
}

// Counts reports whether the nth run of a file counts, and returns the file that counts for
// this run. Both numbers are from 0. If no file seemed to have the run, the first one asked
// about counts.
func (c *Copies) Counts(file, nth int, runID string) (of int, counts bool) {
	if c.best == nil {
		c.choose()
	}
	at := place{file, nth}
	best, met := c.best[runID]
	if runID == "" || !met {
		c.best[runID], best = at, at
	}
	return best.file, best == at
}
