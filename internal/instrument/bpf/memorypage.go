package bpf

import (
	"fmt"
	"strconv"

	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/record"
)

// growthTable returns the table of memory by number of services.
func growthTable(v *Judgement) *page.Section {
	if len(v.Growth) == 0 {
		return nil
	}
	s := &page.Section{Title: "memory by services", Style: term.Bold}
	if v.Plan.Datapath == "" { // the number of services in their maps is unknown
		s.Title = "memory"
	}
	m := ownTable(v, "services", v.Growth, func(g *MemoryRow) int64 { return int64(g.Services) })
	for i, title := range []string{"programs MiB", "maps MiB", "both MiB", "both under load MiB"} {
		m.Add(title, page.Each(v.Growth, func(g *MemoryRow) page.Cell {
			return mebibytes([]int64{g.Programs, g.Maps, plus(g.Programs, g.Maps), g.UnderLoad}[i])
		}))
	}
	s.Table = m
	var items []page.Item
	if text := growthText(v.Growth); text != "" {
		items = append(items, page.Item{Key: "services", Text: text})
	}
	if text := underLoad(v.Growth); text != "" {
		items = append(items, page.Item{Key: "load", Text: text})
	}
	if items != nil {
		s.Lists = []page.List{{Items: items}}
	}
	s.Notes = []string{"each map once, before the load; " + page.None + " unknown, or not loaded; the maximum if rounds differ"}
	s.Draw(memoryChart(v))
	return s
}

// mebibytes formats an amount in MiB without the unit, which is in the column title.
func mebibytes(n int64) page.Cell {
	if n < 0 {
		return page.Words(page.None)
	}
	return page.Words(page.Significant(float64(n) / (1 << 20)))
}

// growthText compares the smallest number of services with the largest.
func growthText(all []MemoryRow) string {
	few, many := &all[0], &all[0]
	for i := range all {
		if g := &all[i]; g.Services < few.Services {
			few = g
		} else if g.Services > many.Services {
			many = g
		}
	}
	a, b := plus(few.Programs, few.Maps), plus(many.Programs, many.Maps)
	switch more := many.Services - few.Services; {
	case more == 0 || a < 0 || b < 0:
		return ""
	case a == b:
		return fmt.Sprintf("the same with %d as with %d", many.Services, few.Services)
	default:
		return fmt.Sprintf("%s with %d than with %d: %s each", moreOrLess(b-a), many.Services, few.Services, page.Size(float64(b-a)/float64(more)))
	}
}

func moreOrLess(bytes int64) string {
	if bytes < 0 {
		return page.Size(float64(-bytes)) + " less"
	}
	return page.Size(float64(bytes)) + " more"
}

// underLoad describes the largest change in memory under load, in either direction.
func underLoad(all []MemoryRow) string {
	var most int64
	known := false
	for i := range all {
		g := &all[i]
		idle := plus(g.Programs, g.Maps)
		if idle < 0 || g.UnderLoad < 0 {
			continue
		}
		known = true
		if off := g.UnderLoad - idle; max(off, -off) > max(most, -most) {
			most = off
		}
	}
	switch {
	case !known:
		return ""
	case most == 0:
		return "the same under load"
	}
	return "up to " + moreOrLess(most) + " under load"
}

// growthEach returns the maps and programs whose memory depends on the number of
// services. Verbose pages list all of them.
func growthEach(v *Judgement, o page.Options) *page.Section {
	type key struct {
		isMap bool
		name  string
		nth   int // index among equal names
	}
	var order []key
	of := map[key][]*record.ProgramMem{} // by number of services
	for i := range v.Growth {
		seen := map[key]bool{}
		for _, mem := range v.Growth[i].Each {
			k := key{isMap: mem.Map, name: mem.Name}
			for seen[k] {
				k.nth++
			}
			seen[k] = true
			if of[k] == nil {
				of[k], order = make([]*record.ProgramMem, len(v.Growth)), append(order, k)
			}
			of[k][i] = &mem
		}
	}
	s := &page.Section{Title: "memory by services: what differs", Style: term.Bold}
	if o.Verbose {
		s.Title = "memory by services: each"
	}
	if v.Plan.Datapath == "" {
		s.Title = "memory: each"
	}
	m := &page.Table{Columns: []page.Column{{Title: "map or program"}}}
	for i := range v.Growth {
		title := page.Amount(v.Growth[i].Services, "service")
		if v.Plan.Datapath == "" {
			title = "memory"
		}
		m.Columns = append(m.Columns, page.Column{Title: title, Right: true, Group: i + 1})
	}
	for _, k := range order {
		first, differs := of[k][0], false
		cells := []page.Cell{page.Words(page.Heading(page.Known(k.name)))}
		for _, mem := range of[k] {
			cell := page.Words(page.Dot)
			if mem != nil {
				cell = page.BytesOf(mem.Memory)
				if mem.Used > 0 {
					cell.Tail = "(" + strconv.FormatInt(mem.Used, 10) + " in it)"
				}
			}
			differs = differs || mem == nil || first == nil || mem.Memory != first.Memory
			cells = append(cells, cell)
		}
		if (differs || o.Verbose) && (o.Verbose || len(m.Rows) < maxProgramsShown) {
			m.Row(cells...)
		}
	}
	if len(m.Rows) == 0 {
		return nil
	}
	s.Table = m
	return s
}
