package storage

import (
	"fmt"

	"github.com/tare-bench/tare/record"
)

// ofClaims judges a cell without device readings by the rest of the record. It returns "" if
// nothing contradicts the cell.
func (w *Cell) ofClaims(e *evidence) (Verdict, []string) {
	if e.seconds > 0 && e.seconds < shortRun || e.few() {
		return TooShort, []string{w.tooShort(e)} // too short for a comparison
	}
	because := w.beyond(e)
	reference := w.reference()
	faster, ahead := w.ahead(e, reference)
	guest := hasGuest(w.info)
	plausible := reference != nil && len(reference.beyond(&reference.facts)) == 0
	switch {
	case ahead && (plausible || guest):
		because = append(because, faster)
	case len(because) == 0:
		return "", nil
	case reference != nil && !plausible:
		because = append(because, reference.Target+"'s in the same job cannot be the device's either")
	}
	if w.table.Cache == record.CacheDirect {
		because = append(because, "with direct I/O: it had no effect, or the device has a cache")
	}
	// A cache faster than the host's memory is inside the guest.
	if guest && (ahead || reference == nil || plausible) {
		return GuestCache, because
	}
	return HostCache, because
}

// beyond returns why the cell's figures cannot be the device's, or nil.
func (w *Cell) beyond(e *evidence) []string {
	var because []string
	if b := w.nearest(e); b != nil && b.factor() > beyondFactor {
		because = append(because, b.text())
	}
	if why := w.impossible(e); why != "" {
		because = append(because, why)
	}
	return because
}

// reference returns the cell of the same job that shows what the storage can deliver.
// That is the host's cell. Without one, a target with its own kernel is compared with the
// fastest target that shares the host's kernel. reference returns nil if there is no such
// cell besides w.
func (w *Cell) reference() *Cell {
	var best *Cell
	for _, c := range w.table.Cells {
		if c == w || c.Rounds == 0 {
			continue
		}
		if c.Target == host {
			return c
		}
		if hasGuest(w.info) && !hasGuest(c.info) && (best == nil || c.primary().Value > best.primary().Value) {
			best = c
		}
	}
	return best
}

// ahead reports whether the cell is faster than its reference by more than storage can
// explain.
func (w *Cell) ahead(e *evidence, reference *Cell) (text string, ok bool) {
	if reference == nil {
		return "", false
	}
	mine, theirs := e.bandwidth.sum(), reference.facts.bandwidth.sum()
	print := rateText
	if w.table.primary == "iops" {
		mine, theirs = e.iops.sum(), reference.facts.iops.sum()
		print = func(v float64) string { return fmt.Sprintf("%.0f IOPS", v) }
	}
	if !(theirs > 0) || mine <= beyondFactor*theirs {
		return "", false
	}
	return fmt.Sprintf("%s inside are %s the %s of %s in the same job", print(mine), timesText(mine/theirs), print(theirs), reference.Target), true
}

// unseen returns the verdict of a cell without device readings that nothing contradicts.
// The verdict depends on whether the record contains anything that could contradict the
// cell.
func (w *Cell) unseen(e *evidence) (Verdict, []string) {
	const nothing = "there are no device readings, and nothing in the record contradicts it"
	switch b := w.nearest(e); {
	case b != nil:
		return NotContradicted, []string{nothing, b.text()}
	case w.reference() != nil, w.steady(), w.table.random() && w.table.inFlight() > 0:
		return NotContradicted, []string{nothing}
	}
	return Unjudged, []string{"there are no device readings, and there is nothing to compare it with: no ceiling, no long direct job on the same volume, no host in the same job"}
}
