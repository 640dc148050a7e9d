package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tare-bench/tare/internal/judge"
	"github.com/tare-bench/tare/internal/term"
)

// calibrations are the phases whose use was told to the workload.
func calibrations(v *judge.Overhead) *section {
	type told struct {
		cell *judge.OverheadCell
		cpu  bool
	}
	m := &matrix{lead: []term.Column{{}, {Title: "target"}}}
	var rows []told
	for i := range v.Tables {
		t := &v.Tables[i]
		phase := heading(t.Phase)
		if t.Sandboxes != 1 {
			phase += fmt.Sprintf(" × %d", t.Sandboxes)
		}
		above := phase
		for j := range t.Cells {
			c := &t.Cells[j]
			if c.Told <= 0 || c.Rounds == 0 {
				continue
			}
			m.rows = append(m.rows, matrixRow{lead: []cell{{head: above, label: phase}, targetCell(c)}})
			rows = append(rows, told{c, isSpin(t.Phase)})
			above = ""
		}
	}
	if rows == nil {
		return nil
	}
	show := func(t *told, v float64) string {
		if t.cpu {
			return ratio(1000*v, "%.1f m")
		}
		return memory(v)
	}
	s := &section{title: "told and found", style: term.Bold}
	m.column("told", each(rows, func(t *told) cell { return plain(show(t, t.cell.Told)) }))
	m.column("found", each(rows, func(t *told) cell { return plain(show(t, t.cell.Found)) }))
	m.column("error", each(rows, func(t *told) cell {
		off := growth
		if t.cpu {
			off = func(v float64) string { return ratio(1000*v, "%+.1f m") }
		}
		return difference(t.cell.Found, t.cell.Told, 0, off)
	}))
	s.table = m.spread()
	s.notes = []string{"what each sandbox was told to hold or to use, and what was found above idle, per sandbox"}
	return s
}

// oneMore is what one more sandbox costs, and how many fit.
func oneMore(v *judge.Overhead) *section {
	if len(v.Scaling) == 0 {
		return nil
	}
	s := &section{title: "one more sandbox costs", style: term.Bold}
	m := &matrix{lead: []term.Column{{Title: "target"}, {Title: "counts"}}}
	for i := range v.Scaling {
		c := &v.Scaling[i]
		counts := make([]string, len(c.Counts))
		for j, n := range c.Counts {
			counts[j] = strconv.Itoa(n)
		}
		m.rows = append(m.rows, matrixRow{lead: []cell{plain(heading(c.Target)), plain(strings.Join(counts, ", "))}})
	}
	unknown := false
	slope := func(of func(*judge.Scaling) *judge.Slope, show func(float64) string) []cell {
		return each(v.Scaling, func(c *judge.Scaling) cell {
			l := of(c)
			if l.Value == 0 && l.Lo == 0 && l.Hi == 0 {
				return plain(dot)
			}
			unknown = unknown || !l.Known
			return cell{head: show(l.Value), tail: between(l.Lo, l.Hi, l.Known, show)}
		})
	}
	m.column("memory MiB", slope(func(c *judge.Scaling) *judge.Slope { return &c.Memory }, mib[float64]))
	m.onlyIf("cache MiB", slope(func(c *judge.Scaling) *judge.Slope { return &c.Cache }, mib[float64]))
	m.onlyIf("uncharged MiB", slope(func(c *judge.Scaling) *judge.Slope { return &c.Uncharged }, mib[float64]))
	m.onlyIf("total MiB", slope(func(c *judge.Scaling) *judge.Slope { return &c.Total }, mib[float64]))
	m.onlyIf("daemon MiB", slope(func(c *judge.Scaling) *judge.Slope { return &c.DaemonMemory }, mib[float64]))
	m.onlyIf("daemon CPU m", slope(func(c *judge.Scaling) *judge.Slope { return &c.DaemonCPU }, milli))
	m.column("more fit", each(v.Scaling, func(c *judge.Scaling) cell {
		if !c.FitKnown {
			return plain(dot)
		}
		out := cell{head: strconv.Itoa(c.Fit)}
		if c.Memory.Known || c.Total.Known {
			out.tail = fmt.Sprintf("%d…%d", c.FitLo, c.FitHi)
		}
		return out
	}))
	chargedOnly := each(v.Scaling, func(c *judge.Scaling) cell {
		if !c.FitKnown || !c.FitChargedOnly {
			return plain(dot)
		}
		return plain("charged memory only")
	})
	before := len(m.columns)
	m.onlyIf("counting", chargedOnly)
	for i := before; i < len(m.columns); i++ {
		m.columns[i].Right = false
	}
	s.table = m.spread()
	s.notes = []string{"the slope of a line through the idle phases of all rounds and counts, with its 95 % interval; more fit: into the memory that the node has available"}
	if unknown {
		s.notes = append(s.notes, "no interval: it takes at least 3 points at 2 counts")
	}
	if slices.ContainsFunc(v.Scaling, func(c judge.Scaling) bool { return c.FitKnown && c.FitChargedOnly }) {
		s.notes = append(s.notes, "charged memory only: kernel memory that no cgroup is charged for is not in it, and fewer may fit")
	}
	if slices.ContainsFunc(v.Scaling, func(c judge.Scaling) bool { return c.Total.Value != 0 }) {
		s.notes = append(s.notes, "total: memory and uncharged as one line")
	}
	s.notes = append(s.notes, warnings(v.Scaling)...)
	return s
}

// warnings are what the intervals of slopes do not say, a note a target and
// warning, with the slopes that it is of.
func warnings(scaling []judge.Scaling) (notes []string) {
	for i := range scaling {
		c := &scaling[i]
		of := map[string][]string{}
		var order []string
		for _, one := range []struct {
			name  string
			slope *judge.Slope
		}{
			{"memory", &c.Memory}, {"cache", &c.Cache}, {"uncharged", &c.Uncharged}, {"total", &c.Total},
			{"daemon memory", &c.DaemonMemory}, {"daemon CPU", &c.DaemonCPU},
		} {
			for _, text := range one.slope.Warnings {
				if of[text] == nil {
					order = append(order, text)
				}
				of[text] = append(of[text], one.name)
			}
		}
		for _, text := range order {
			notes = append(notes, heading(c.Target)+", "+strings.Join(of[text], ", ")+": "+short(term.Clean(text), longestMessage))
		}
	}
	return notes
}

// isSpin tells whether what a phase told its workload is CPUs, and not bytes.
func isSpin(phase string) bool {
	word, _, _ := strings.Cut(phase, " ") // "spin 0.5cpu", see plan.Phase
	return word == "spin"
}
