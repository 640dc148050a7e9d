package record

import (
	"errors"
	"io"
	"slices"
)

// Extent describes how much of a run a file contains.
type Extent struct {
	RunID string
	Whole bool // has an end mark and no damage
	Lines int  // number of usable lines
}

// more reports whether e is more complete than another copy of the run.
func (e Extent) more(than Extent) bool {
	return e.Whole && !than.Whole || e.Whole == than.Whole && e.Lines > than.Lines
}

// Extents returns the extent of each record without keeping its lines. It stops at an unreadable
// part.
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

// Copies selects one of several files with the same run, so that no run counts twice. It prefers a
// complete run, then the file with the most lines, then the first file. Runs without an id are
// never copies.
type Copies struct {
	files []copied
	best  map[string]place
}

type copied struct {
	runs []string
	look func() []Extent
}

type place struct{ file, nth int }

// Add adds a file and the ids of the runs that it seems to contain. look reads the extents of the
// file's runs. It is called only if another file seems to contain one of these runs.
func (c *Copies) Add(runs []string, look func() []Extent) {
	c.files = append(c.files, copied{runs, look})
}

// choose reads the extents of files with common runs and selects the best file for each run.
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

// Counts reports whether the nth run of a file is the copy to use. It also returns the file that
// has the copy to use. Both indexes start at 0. If no added file lists the run, the first file
// passed to Counts is used.
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
