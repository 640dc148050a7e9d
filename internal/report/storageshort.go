package report

import (
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/judge"
	"github.com/tare-bench/tare/internal/term"
)

// storageInShort is the matrix in the published report's own form: a row a target, a
// column a job, and below each figure its ratio to the host's. What is none of
// the device's has the verdict before it, on the same line, so that it cannot be
// read, copied or quoted as a disk's.
func storageInShort(v *judge.Storage) *section {
	if len(v.Tables) == 0 {
		return nil
	}
	varied := variedOf(v)
	s := &section{title: varied.title("in short"), style: term.Bold}
	base := baseOf(v)
	s.table = &spread{pivot: -1, build: func(of []int) *grid { return shortOf(v, &varied, base, of) }}
	for i := range v.Tables {
		s.table.order = append(s.table.order, i)
	}
	if missing := missingFigures(v, &varied); missing != nil {
		s.lists = []list{{items: missing}}
	}
	s.notes = shortNotes(v, base)
	return s
}

// baseOf is the target that all figures are compared with, or a word for it where
// it is not the same in all tables. A table without one compares nothing.
func baseOf(v *judge.Storage) (base string) {
	for i := range v.Tables {
		switch one := v.Tables[i].Base; {
		case one == "" || one == base:
		case base == "":
			base = one
		default:
			return "base"
		}
	}
	return known(base)
}

func shortOf(v *judge.Storage, varied *varied, base string, of []int) *grid {
	g := &grid{columns: []term.Column{{Title: "target"}}}
	for _, i := range of {
		g.columns = append(g.columns, term.Column{Title: varied.name(&v.Tables[i]), Right: true})
	}
	for _, target := range v.Targets {
		name := heading(target.Name)
		figures, ratios := []cell{plain(name)}, []cell{{head: "  × " + heading(base), label: name + " × " + heading(base)}}
		some := false
		for _, i := range of {
			t := &v.Tables[i]
			c := cellOf(t, target.Name)
			figures = append(figures, shortFigure(t, c))
			var below cell
			if c != nil && c.Rounds > 0 && c.Ratio.Known && c.Target != t.Base {
				some = true
				below.head, below.style = times(t, c, c.Ratio, c.Different)
				if half := halfOf(c.Ratio); half != "" {
					below.head += " " + half
				}
			}
			ratios = append(ratios, below)
		}
		g.rows = append(g.rows, figures)
		if some {
			g.rows = append(g.rows, ratios)
		}
	}
	return g
}

// shortFigure is what the report of each tool gives: dd's bandwidth, sysbench's
// with its total time, fio's IOPS with the bandwidth.
func shortFigure(t *judge.StorageTable, c *judge.StorageCell) cell {
	if c == nil || c.Rounds == 0 {
		return plain(none)
	}
	out := plain(none)
	f := &c.Total
	bandwidth := megabytes(f.Bandwidth.Value) + " MB/s"
	switch {
	case t.Tool == "dd" && f.Bandwidth.Known:
		out.head = bandwidth
	case t.Tool == "sysbench" && f.Bandwidth.Known:
		out.head = bandwidth
		if c.Seconds.Known {
			out.tail = "in " + duration(1e9*c.Seconds.Value)
		}
	case f.IOPS.Known && f.Bandwidth.Known:
		out.head, out.tail = significant(f.IOPS.Value), "("+bandwidth+")"
	case f.IOPS.Known:
		out.head = significant(f.IOPS.Value) + " IOPS"
	case f.Bandwidth.Known:
		out.head = bandwidth
	}
	if !ofDevice(c) {
		out.head, out.style = verdict(c)+" "+out.head, term.Yellow
	}
	if c.Failed > 0 {
		out.head, out.style = failedOf(c)+", "+out.head, term.Red
	}
	return out
}

func shortNotes(v *judge.Storage, base string) (notes []string) {
	var seen []judge.Verdict
	ratios, parentheses, bounded, unbounded, mixed := false, false, false, false, false
	for i := range v.Tables {
		t := &v.Tables[i]
		for j := range t.Cells {
			c := &t.Cells[j]
			if c.Rounds == 0 {
				continue
			}
			if !ofDevice(c) && !slices.Contains(seen, c.Verdict) {
				seen = append(seen, c.Verdict)
			}
			mixed = mixed || flows(&c.Read) && flows(&c.Write)
			if c.Ratio.Known && c.Target != t.Base {
				ratios = true
				parentheses = parentheses || !ofDevice(c) || !ofDevice(cellOf(t, t.Base))
				bounded, unbounded = bounded || c.Ratio.Bounded, unbounded || !c.Ratio.Bounded
			}
		}
	}
	if seen != nil {
		var parts []string
		for _, m := range meanings {
			if slices.Contains(seen, m.verdict) {
				c := judge.StorageCell{Rounds: 1, Verdict: m.verdict}
				parts = append(parts, verdict(&c)+": "+m.means)
			}
		}
		notes = append(notes, "a figure with words before it is not what the device gives. "+strings.Join(parts, "; "))
	}
	if ratios {
		note := "× " + heading(base) + ": of MB/s, or of IOPS where blocks have at most 64 KiB, in the same round; ~ where no difference was shown"
		if parentheses {
			note += "; in parentheses where one of the two is not what the device gives"
		}
		if bounded {
			note += "; ± the larger half of the 95 % interval"
		}
		if unbounded {
			note += "; without ±: too few rounds for an interval"
		}
		notes = append(notes, note)
	}
	if mixed {
		notes = append(notes, "of a job that reads and writes both are added up")
	}
	return notes
}

// missingFigures says of every dash why it is one; what is the same once.
func missingFigures(v *judge.Storage, varied *varied) (items []item) {
	for _, target := range v.Targets {
		var reasons []string
		where := map[string][]string{}
		add := func(reason, place string) {
			if where[reason] == nil {
				reasons = append(reasons, reason)
			}
			if place != "" && !slices.Contains(where[reason], place) {
				where[reason] = append(where[reason], place)
			}
		}
		for i := range v.Tables {
			t := &v.Tables[i]
			switch c := cellOf(t, target.Name); {
			case c == nil:
				add("no figures", varied.name(t))
			case c.Absent != "":
				add(short(term.Clean(c.Absent), longestReason), heading(t.Volume))
			case c.Rounds == 0 && c.Failure != nil:
				add("failed, the first: "+short(term.Clean(c.Failure.Detail), longestReason), varied.name(t))
			case c.Rounds == 0:
				add(verdict(c), varied.name(t))
			}
		}
		key := heading(target.Name)
		for _, reason := range reasons {
			items = append(items, item{key: key, text: none + " " + strings.Join(where[reason], "; ") + ": " + reason})
			key = ""
		}
	}
	return items
}

// longestReason is where a reason is cut in the summary; all of it stands below
// the job's own table.
const longestReason = 160

// varied tells which parts of a table's name tell tables apart: what is the same
// of all is said once, in the title.
type varied struct {
	volume, cache, tool          bool
	theVolume, theCache, theTool string
}

func variedOf(v *judge.Storage) (out varied) {
	first := &v.Tables[0]
	out.theVolume, out.theCache, out.theTool = first.Volume, first.Cache, first.Tool
	for i := range v.Tables {
		t := &v.Tables[i]
		out.volume = out.volume || t.Volume != first.Volume
		out.cache = out.cache || t.Cache != first.Cache
		out.tool = out.tool || t.Tool != first.Tool
	}
	return out
}

func (d *varied) name(t *judge.StorageTable) string {
	var parts []string
	for _, part := range []struct {
		text string
		show bool
	}{{t.Tool, d.tool && !strings.Contains(t.Job, t.Tool)}, {t.Job, true}, {t.Volume, d.volume}, {t.Cache, d.cache}} {
		if part.show && part.text != "" {
			parts = append(parts, heading(part.text))
		}
	}
	return strings.Join(parts, " ")
}

func (d *varied) title(text string) string {
	var parts []string
	for _, part := range []struct {
		text string
		show bool
	}{{d.theTool, !d.tool}, {d.theVolume, !d.volume}, {d.theCache, !d.cache}} {
		if part.show && part.text != "" {
			parts = append(parts, heading(part.text))
		}
	}
	if parts == nil {
		return text
	}
	return text + ": " + strings.Join(parts, ", ")
}
