package report

import (
	"fmt"
	"strconv"

	"github.com/tare-bench/tare/internal/judge"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/record"
)

// growthTable is what programs and maps occupy as services grow.
func growthTable(v *judge.BPF) *section {
	if len(v.Growth) == 0 {
		return nil
	}
	s := &section{title: "memory by services", style: term.Bold}
	m := &matrix{lead: []term.Column{{Title: "services", Right: true}}}
	for i := range v.Growth {
		m.rows = append(m.rows, matrixRow{lead: []cell{plain(strconv.Itoa(v.Growth[i].Services))}})
	}
	m.column("programs MiB", each(v.Growth, func(g *judge.BPFMemory) cell { return mebibytes(g.Programs) }))
	m.column("maps MiB", each(v.Growth, func(g *judge.BPFMemory) cell { return mebibytes(g.Maps) }))
	m.column("both MiB", each(v.Growth, func(g *judge.BPFMemory) cell { return mebibytes(both(g.Programs, g.Maps)) }))
	m.column("both under load MiB", each(v.Growth, func(g *judge.BPFMemory) cell { return mebibytes(g.UnderLoad) }))
	s.table = m.spread()
	var items []item
	if text := growthText(v.Growth); text != "" {
		items = append(items, item{key: "services", text: text})
	}
	if text := underLoad(v.Growth); text != "" {
		items = append(items, item{key: "load", text: text})
	}
	if items != nil {
		s.lists = []list{{items: items}}
	}
	s.notes = []string{"each map once, before the load; " + none + " not known, or not loaded; where rounds differ the largest"}
	return s
}

// mebibytes is an amount in MiB without its unit, which stands in the title.
func mebibytes(n int64) cell {
	if n < 0 {
		return plain(none)
	}
	return plain(significant(float64(n) / (1 << 20)))
}

// growthText compares the fewest services with the most.
func growthText(all []judge.BPFMemory) string {
	few, many := &all[0], &all[0]
	for i := range all {
		if g := &all[i]; g.Services < few.Services {
			few = g
		} else if g.Services > many.Services {
			many = g
		}
	}
	a, b := both(few.Programs, few.Maps), both(many.Programs, many.Maps)
	switch more := many.Services - few.Services; {
	case more == 0 || a < 0 || b < 0:
		return ""
	case a == b:
		return fmt.Sprintf("the same with %d as with %d", many.Services, few.Services)
	default:
		return fmt.Sprintf("%s with %d than with %d: %s each", moreOrLess(b-a), many.Services, few.Services, sizeOf(float64(b-a)/float64(more)))
	}
}

func moreOrLess(bytes int64) string {
	if bytes < 0 {
		return size(float64(-bytes)) + " less"
	}
	return size(float64(bytes)) + " more"
}

// sizeOf is size for amounts on both sides of zero.
func sizeOf(n float64) string {
	if n < 0 {
		return "-" + size(-n)
	}
	return size(n)
}

// underLoad is the largest difference that the load made.
func underLoad(all []judge.BPFMemory) string {
	var most int64
	known := false
	for i := range all {
		g := &all[i]
		idle := both(g.Programs, g.Maps)
		if idle < 0 || g.UnderLoad < 0 {
			continue
		}
		known = true
		if off := g.UnderLoad - idle; off > most || most == 0 {
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

// growthEach are the maps that are not of the same size everywhere; all of them
// where that is asked for.
func growthEach(v *judge.BPF, o Options) *section {
	type key struct {
		isMap bool
		name  string
		nth   int // of its name
	}
	var order []key
	of := map[key]map[int]record.ProgramMem{}
	for i := range v.Growth {
		seen := map[key]bool{}
		for _, mem := range v.Growth[i].Each {
			k := key{isMap: mem.Map, name: mem.Name}
			for seen[k] {
				k.nth++
			}
			seen[k] = true
			if of[k] == nil {
				of[k] = map[int]record.ProgramMem{}
				order = append(order, k)
			}
			of[k][i] = mem
		}
	}
	s := &section{title: "memory by services: what differs", style: term.Bold}
	if o.Verbose {
		s.title = "memory by services: each"
	}
	m := &matrix{lead: []term.Column{{Title: "map or program"}}}
	for i := range v.Growth {
		m.columns = append(m.columns, term.Column{Title: amount(v.Growth[i].Services, "service"), Right: true})
	}
	for _, k := range order {
		differs := len(of[k]) != len(v.Growth)
		cells := make([]cell, len(v.Growth))
		for i := range v.Growth {
			mem, there := of[k][i]
			cells[i] = plain(dot)
			if !there {
				continue
			}
			cells[i] = bytesOf(mem.Memory)
			if mem.Used > 0 {
				cells[i].tail = "(" + strconv.FormatInt(mem.Used, 10) + " in it)"
			}
			differs = differs || mem.Memory != of[k][0].Memory
		}
		if (differs || o.Verbose) && (o.Verbose || len(m.rows) < mostProgramsShown) {
			m.rows = append(m.rows, matrixRow{lead: []cell{plain(heading(known(k.name)))}, cells: cells})
		}
	}
	if len(m.rows) == 0 {
		return nil
	}
	s.table = m.spread()
	return s
}
