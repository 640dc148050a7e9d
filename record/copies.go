package record

import (
	"errors"
	"io"
)

// Extent is how much of a run a file has.
type Extent struct {
	RunID string
	Whole bool // it has its end, and nothing of it is cut off or damaged
	Lines int  // that can be used
}

// more tells whether there is more of a run than in another copy of it.
func (e Extent) more(than Extent) bool {
	if e.Whole != than.Whole {
		return e.Whole
	}
	return e.Lines > than.Lines
}

// Extents reads how much the records have of their runs, and keeps none of them. Behind
// what cannot be read there is no more.
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

// Copies tells which of the files that have the same run counts, since the run would count
// twice: one that has it whole before one that does not, then the one with the most lines,
// then the first. What has no id is no copy.
type Copies struct {
	files []copied
	best  map[string]place
}

type copied struct {
	runs []string
	look func() []Extent
}

type place struct{ file, nth int }

// Add adds a file: the runs that it seems to have, and how to look at all that it has,
// which is done where one of them is in another, too.
func (c *Copies) Add(runs []string, look func() []Extent) {
	c.files = append(c.files, copied{runs, look})
}

// choose looks at the files that have runs of others.
func (c *Copies) choose() {
	c.best = map[string]place{}
	times, extents := map[string]int{}, map[string]Extent{}
	for _, f := range c.files {
		for _, id := range f.runs {
			times[id]++
		}
	}
	for file, f := range c.files {
		again := false
		for _, id := range f.runs {
			again = again || id != "" && times[id] > 1
		}
		if !again {
			continue
		}
		for nth, e := range f.look() {
			if best, met := extents[e.RunID]; !met || e.more(best) {
				c.best[e.RunID], extents[e.RunID] = place{file, nth}, e
			}
		}
	}
}

// Counts tells whether a run counts that is the nth of a file, both from 0 in their order,
// and which file has it that counts. Of a run that no file seemed to have, what is asked
// about first does.
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
