package lifecycle

import (
	"fmt"
	"slices"

	"github.com/tare-bench/tare/internal/core/answer"
	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/subject/setting"
)

// answer states how long it takes to start a container. There is a sentence for one at
// a time and for each number of lanes, one for host and floor, and one for each failed
// target.
func (j *Judgement) answer() (out []string) {
	var failed []string
	for _, t := range j.tables() {
		row := t.asked()
		op := row.Get("op")
		var runtimes, limits []answer.Named
		for _, cell := range row.Parts("target") {
			n := answer.Named{Name: cell.Get("target"), Figure: &cell[0]}
			if r := returned(cell); byReturn(row) && r.Known() {
				n.Figure = r
			}
			switch {
			case cell[0].Failed > 0 && !cell[0].Known():
				failed = append(failed, answer.Failed(j.Found, n.Name, op, t.lanes, &cell[0]))
			case limit(j.target(n.Name)):
				limits = append(limits, n)
			default:
				runtimes = append(runtimes, n)
			}
		}
		runtimes, limits = answer.Known(runtimes), answer.Known(limits)
		if len(runtimes) > 0 {
			out = append(out, j.sentence(&t, row, runtimes))
		}
		if t.lanes == 1 && len(limits) > 0 {
			out = append(out, limitsSentence(op, limits, len(runtimes) > 0))
		}
	}
	if out = append(out, failed...); out == nil {
		out = []string{"No operation was measured."}
	}
	return append(answer.NotWeighed(j.Found), out...)
}

// byReturn reports whether targets of the row end at different stamps. They are then
// compared by the time their calls returned.
func byReturn(row figure.Set) bool {
	return slices.ContainsFunc(row.Parts("target"), func(c figure.Set) bool { return compared(c) != &c[0] })
}

// asked returns the row of a start: run, else start, else the first operation.
func (t *table) asked() figure.Set {
	for _, op := range []setting.Op{setting.Run, setting.Start} {
		if row := t.Part("op", string(op)); row.Get("op") != "" {
			return row
		}
	}
	return t.Parts("op")[0]
}

// sentence describes one row of the runtimes, fastest first.
func (j *Judgement) sentence(t *table, row figure.Set, runtimes []answer.Named) string {
	what := row.Get("op")
	switch {
	case t.lanes > 1:
		what += fmt.Sprintf(" of %d at once, until the last is done", t.lanes)
	case byReturn(row):
		what += " until the call returned"
	case slices.ContainsFunc(row, func(f figure.Figure) bool { return byFirst(&f) }):
		what += " to the first instruction"
	}
	text := what + ": " + answer.Values(runtimes, j.Baseline)
	if base := slices.IndexFunc(runtimes, func(n answer.Named) bool { return n.Name == j.Baseline }); len(runtimes) == 2 && base >= 0 {
		text = fmt.Sprintf("%s: %s: %s", what, answer.Plain(runtimes), answer.Pair(runtimes[1-base], runtimes[base], "fast"))
	}
	if answer.Undecided(runtimes) {
		text += answer.Spoiled(j.Found)
	}
	return text + "."
}

// limitsSentence states the lower bound for every runtime.
func limitsSentence(op string, limits []answer.Named, withRuntimes bool) string {
	if !withRuntimes {
		return fmt.Sprintf("%s: %s.", op, answer.Plain(limits))
	}
	return "Without a runtime: " + answer.Plain(limits) + " (host: a plain process; floor: the kernel's share of a container)."
}
