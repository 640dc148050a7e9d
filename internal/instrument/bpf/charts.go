package bpf

import (
	"slices"
	"strconv"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/page"
)

// programsDrawn is the maximum number of programs with their own line.
const programsDrawn = 9

// cpuChart draws the CPU time by load of all programs together and of each one.
func cpuChart(v *Judgement) *page.Chart {
	columns, lead := pointColumns(v)
	varies := func(i int) bool {
		return slices.ContainsFunc(v.Rows, func(r Row) bool { return lead(&r)[i].Head != lead(&v.Rows[0])[i].Head })
	}
	x := 0 // the first numeric column that varies
	for x+1 < len(columns) && columns[x+1].Right && !varies(x) {
		x++
	}
	c := &page.Chart{
		Name: "cpu-by-load", Title: "CPU of eBPF by load", Kind: page.Lines,
		Caption: "The CPU time of all chosen programs together and of each, in CPUs, minus their idle time: medians with their 95 % intervals.",
		X:       page.Axis{Title: columns[x].Title, Unit: figure.Count}, Y: page.Axis{Title: "CPUs", Unit: figure.CPUs},
	}
	for i := range v.Rows {
		r := &v.Rows[i]
		names, panel := lead(r), ""
		for k := range columns {
			if k != x && varies(k) {
				panel = page.Dotted(panel, columns[k].Title+" "+names[k].Head)
			}
		}
		at := page.At(panel, "", "all programs")
		at.X, _ = strconv.ParseFloat(names[x].Head, 64) // always an integer
		c.Add(at, r.All.Of("cpu", "role", "bpf").Estimate, nil)
		seen := map[string]int{}
		for k := range r.Programs {
			p := &r.Programs[k]
			if at.Series = page.Known(p.Name); seen[at.Series] > 0 {
				at.Series += " #" + strconv.Itoa(seen[at.Series]+1)
			}
			seen[page.Known(p.Name)]++
			c.Add(at, p.Core.Estimate, nil)
		}
	}
	c.Fold(1 + programsDrawn)
	return c
}

// memoryChart draws the memory of programs and maps by number of services.
func memoryChart(v *Judgement) *page.Chart {
	if len(v.Growth) < 2 {
		return nil
	}
	c := &page.Chart{
		Name: "memory-by-services", Title: "Memory by services", Kind: page.Lines, Caption: "Memory of programs and maps by number of services, each map once.",
		X: page.Axis{Title: "services", Unit: figure.Count}, Y: page.Axis{Title: "memory", Unit: figure.Bytes},
	}
	for i := range v.Growth {
		g := &v.Growth[i]
		for _, of := range []struct {
			series string
			bytes  int64
		}{{"programs", g.Programs}, {"maps", g.Maps}, {"both under load", g.UnderLoad}} {
			if of.bytes >= 0 {
				at := page.At("", "", of.series)
				at.X = float64(g.Services)
				c.Add(at, figure.Exactly(float64(of.bytes)), nil)
			}
		}
	}
	return c
}
