package lifecycle

import (
	"fmt"
	"slices"

	"github.com/tare-bench/tare/internal/core/answer"
	"github.com/tare-bench/tare/internal/subject/setting"
	"github.com/tare-bench/tare/record"
)

// answer is how long it takes to start a container: a sentence for one at a time, one for
// each number of lanes, one for the host and the floor, and one for each target that failed.
func (j *Judgement) answer() (out []string) {
	var failed []string
	for i := range j.Tables {
		t := &j.Tables[i]
		row := t.asked()
		if row == nil {
			continue
		}
		var runtimes, limits []answer.Named
		returned := row.returned()
		for k := range row.Cells {
			c := &row.Cells[k]
			n := answer.Named{Name: c.Target, Figure: &c.Time}
			if r := c.returned(); returned && r != nil {
				n.Figure = r
			}
			switch {
			case c.Time.Failed > 0 && !c.Time.Known():
				failed = append(failed, answer.Failed(j.Found, c.Target, string(row.Op), t.Lanes, &c.Time))
			case limit(&j.Targets[k]):
				limits = append(limits, n)
			default:
				runtimes = append(runtimes, n)
			}
		}
		runtimes, limits = answer.Known(runtimes), answer.Known(limits)
		if len(runtimes) > 0 {
			out = append(out, j.sentence(t, row, runtimes))
		}
		if t.Lanes == 1 && len(limits) > 0 {
			out = append(out, limitsSentence(row.Op, limits, len(runtimes) > 0))
		}
	}
	if out = append(out, failed...); out == nil {
		out = []string{"No operation was measured."}
	}
	return out
}

const kindHost, kindFloor = "host", "floor"

// returned reports whether targets of the row end with different stamps, so that what can be
// compared is when their calls returned.
func (r *Row) returned() bool {
	return slices.ContainsFunc(r.Cells, func(c Cell) bool { return c.compared() != &c.Time })
}

// asked is the row that says how long a start takes: run, or else start, or the first.
func (t *Table) asked() *Row {
	for _, op := range []setting.Op{setting.Run, setting.Start} {
		if i := slices.IndexFunc(t.Rows, func(r Row) bool { return r.Op == op }); i >= 0 {
			return &t.Rows[i]
		}
	}
	if len(t.Rows) == 0 {
		return nil
	}
	return &t.Rows[0]
}

// sentence is about one row of the runtimes, the fastest first.
func (j *Judgement) sentence(t *Table, row *Row, runtimes []answer.Named) string {
	what := string(row.Op)
	switch {
	case t.Lanes > 1:
		what = fmt.Sprintf("%s of %d at once, until the last is done", row.Op, t.Lanes)
	case row.returned():
		what = fmt.Sprintf("%s until the call returned", row.Op)
	case slices.ContainsFunc(row.Cells, func(c Cell) bool { return c.Done == record.StampFirst }):
		what = fmt.Sprintf("%s to the first instruction", row.Op)
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

// limitsSentence says what no runtime can be faster than.
func limitsSentence(op setting.Op, limits []answer.Named, withRuntimes bool) string {
	if !withRuntimes {
		return fmt.Sprintf("%s: %s.", op, answer.Plain(limits))
	}
	return "Without a runtime: " + answer.Plain(limits) + " (host: a plain process; floor: the kernel's share of a container)."
}
