package bpf

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/record"
)

// Maximum numbers of programs per point, and of programs and maps in total, on a page.
// Verbose pages, JSON and CSV show all.
const (
	maxProgramsOfPoint = 12
	maxProgramsShown   = 40
)

// byProgram returns the section with every program at every point, heaviest first.
func byProgram(v *Judgement, o page.Options) *page.Section {
	columns, lead := pointColumns(v)
	m := &page.Table{Columns: append(columns, page.Column{Title: "program"})}
	var all []ProgramRow
	left := 0
	for i := range v.Rows {
		r := &v.Rows[i]
		for j := range r.Programs {
			p := &r.Programs[j]
			if !o.Verbose && (j >= maxProgramsOfPoint || p.Rate.Known() && p.Rate.Value == 0 && p.Misses == 0) {
				left++
				continue
			}
			all = append(all, *p)
			m.Row(append(lead(r), page.Words(page.Heading(page.Known(p.Name))))...)
		}
	}
	if all == nil {
		return nil
	}
	s := &page.Section{Title: "eBPF by program, under load", Style: term.Bold}
	of := func(title string, show func(*ProgramRow) page.Cell) { m.AddIf(title, page.Each(all, show)) }
	of("runs/s", func(p *ProgramRow) page.Cell { return page.Value(&p.Rate, page.Significant) })
	of("each", func(p *ProgramRow) page.Cell { return page.InBrackets(&p.Each, page.Duration) })
	of(ofACore, func(p *ProgramRow) page.Cell { return page.Value(&p.Core, page.Hundred) })
	of(ofTheNode, func(p *ProgramRow) page.Cell { return page.Value(ofNode(&p.Core, v.CPUs), page.Hundred) })
	of("runs per request", func(p *ProgramRow) page.Cell { return page.Value(&p.PerRequest, page.Significant) })
	of("memory", func(p *ProgramRow) page.Cell {
		if program := programOf(v, p); program != nil {
			return page.BytesOf(plus(program.Memory, inMaps(program)))
		}
		return page.Words(page.Dot)
	})
	of("left out", func(p *ProgramRow) page.Cell { return counted(p.Misses, page.Dot) })
	s.Table = m
	s.Notes = []string{"each: time of one run; memory: of the program and its maps; a shared map counts for each program that uses it"}
	if left > 0 {
		s.Notes = append(s.Notes, fmt.Sprintf("not shown: %s, of programs that did not run or are not among the top %d of their point; --details shows all", page.Amount(left, "row"), maxProgramsOfPoint))
	}
	return s
}

// programOf returns the program of a row. A reloaded program is found by name. If the
// number of services varies, it is not: its maps then differ in size.
func programOf(v *Judgement, row *ProgramRow) *record.Program {
	i := slices.IndexFunc(v.Programs, func(p record.Program) bool { return p.ID == row.ID })
	if i < 0 && len(v.Plan.Services) <= 1 {
		i = slices.IndexFunc(v.Programs, func(p record.Program) bool { return p.Name == row.Name })
	}
	if i < 0 {
		return nil
	}
	return &v.Programs[i]
}

// inMaps returns the memory of a program's maps.
func inMaps(p *record.Program) (sum int64) {
	for _, m := range p.Maps {
		sum = plus(sum, plus(m.Memory, m.InnerMemory))
	}
	return sum
}

// unlessNone returns text, or a dot if n is 0.
func unlessNone(n int64, text string) page.Cell {
	if n == 0 {
		text = page.Dot
	}
	return page.Words(text)
}

// shown returns the items that fit on a page. It adds a note with the number of omitted
// items.
func shown[T any](s *page.Section, all []T, o page.Options) []T {
	if o.Verbose || len(all) <= maxProgramsShown {
		return all
	}
	s.Notes = append(s.Notes, fmt.Sprintf("and %d more; --details shows all", len(all)-maxProgramsShown))
	return all[:maxProgramsShown]
}

// counted formats a number that is normally 0 and highlights any other value.
func counted(n int64, none string) page.Cell {
	if n == 0 {
		return page.Words(none)
	}
	return page.Cell{Head: strconv.FormatInt(n, 10), Style: term.Yellow}
}

// programsTable returns the section with the loaded programs.
func programsTable(v *Judgement, o page.Options) *page.Section {
	if len(v.Programs) == 0 {
		return nil
	}
	title := "programs: " + strconv.Itoa(len(v.Programs))
	if v.Memory >= 0 {
		title += ", with their maps " + page.Size(float64(v.Memory)) + ", each map once"
	}
	s := &page.Section{Title: title, Style: term.Bold}
	shown := shown(s, v.Programs, o)
	m := &page.Table{Columns: []page.Column{{Title: "id", Right: true}, {Title: "program"}}}
	for i := range shown {
		p := &shown[i]
		m.Row(page.Words(strconv.FormatUint(uint64(p.ID), 10)), page.Words(page.Heading(page.Known(cmp.Or(p.Full, p.Name)))))
	}
	m.AddText("kind", page.Each(shown, func(p *record.Program) page.Cell { return page.Words(page.Heading(p.Kind)) }))
	before := len(m.Columns)
	m.AddIf("of", page.Each(shown, func(p *record.Program) page.Cell { return page.Words(cmp.Or(page.Heading(p.Owner), page.Dot)) }))
	for i := range m.Columns[before:] {
		m.Columns[before+i].Right = false
	}
	m.AddIf("instructions", page.Each(shown, func(p *record.Program) page.Cell {
		return unlessNone(p.Instructions, strconv.FormatInt(p.Instructions, 10))
	}))
	m.AddIf("machine code", page.Each(shown, func(p *record.Program) page.Cell { return unlessNone(p.Jited, page.BytesOf(p.Jited).Head) }))
	m.Add("memory", page.Each(shown, func(p *record.Program) page.Cell { return page.BytesOf(p.Memory) }))
	m.AddIf("in maps", page.Each(shown, func(p *record.Program) page.Cell {
		if len(p.Maps) == 0 {
			return page.Words(page.Dot)
		}
		return page.BytesOf(inMaps(p))
	}))
	m.AddText("maps", page.Each(shown, func(p *record.Program) page.Cell { return page.Words(mapIDs(p)) }))
	m.AddText("attached to", page.Each(shown, func(p *record.Program) page.Cell {
		if len(p.Attached) == 0 {
			return page.Words(page.None)
		}
		text := page.Middle(term.Clean(p.Attached[0]), 2*page.LongestName)
		if more := len(p.Attached) - 1; more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
		return page.Words(text)
	}))
	s.Table = m
	if o.Verbose {
		s.Lists = bpfHolders(shown)
	}
	return s
}

// mapIDs lists the ids of a program's maps.
func mapIDs(p *record.Program) string {
	var ids []string
	for _, m := range p.Maps {
		ids = append(ids, strconv.FormatUint(uint64(m.ID), 10))
	}
	return cmp.Or(page.Listed(ids), page.None)
}

// bpfHolders lists the owners of the programs.
func bpfHolders(all []record.Program) []page.List {
	var items []page.Item
	for i := range all {
		p := &all[i]
		var parts []string
		if len(p.Holders) > 0 {
			parts = append(parts, "held by "+cleanList(p.Holders))
		}
		if len(p.Pins) > 0 {
			parts = append(parts, "pinned at "+cleanList(p.Pins))
		}
		if p.Tag != "" {
			parts = append(parts, "tag "+page.Heading(p.Tag))
		}
		if parts != nil {
			items = append(items, page.Item{Key: strconv.FormatUint(uint64(p.ID), 10) + " " + page.Heading(p.Name), Text: strings.Join(parts, "; ")})
		}
	}
	if items == nil {
		return nil
	}
	return []page.List{{Items: items}}
}

// mapsTable returns the section with all maps that a program uses or a process holds,
// each once.
func mapsTable(v *Judgement, o page.Options) *page.Section {
	if v.Maps == nil {
		return nil
	}
	s := &page.Section{Title: fmt.Sprintf("maps: %d, %d of them shared", len(v.Maps), v.Shared), Style: term.Bold}
	keeper := func(of *mapRow) page.Cell { return page.Words(cmp.Or(of.keeper, "programs")) }
	unused := slices.DeleteFunc(slices.Clone(v.Maps), func(of mapRow) bool { return of.keeper == "" })
	if len(unused) > 0 {
		s.Title += fmt.Sprintf(", %d used by no loaded program", len(unused))
	}
	shown := shown(s, v.Maps, o)
	m := &page.Table{Columns: []page.Column{{Title: "id", Right: true}, {Title: "map"}}}
	for i := range shown {
		m.Row(page.Words(strconv.FormatUint(uint64(shown[i].ID), 10)), page.Words(page.Heading(page.Known(shown[i].Name))))
	}
	m.AddText("kind", page.Each(shown, func(of *mapRow) page.Cell { return page.Words(page.Heading(of.Kind)) }))
	m.Add("entries at most", page.Each(shown, func(of *mapRow) page.Cell { return page.Words(strconv.FormatInt(of.Entries, 10)) }))
	m.Add("memory", page.Each(shown, func(of *mapRow) page.Cell { return page.BytesOf(of.Memory) }))
	m.AddIf("maps in it", page.Each(shown, func(of *mapRow) page.Cell {
		if of.Inner == 0 {
			return page.Words(page.Dot)
		}
		return page.Cell{Head: strconv.Itoa(of.Inner), Tail: "(" + page.BytesOf(of.InnerMemory).Head + ")"}
	}))
	m.AddIf("shared by", page.Each(shown, func(of *mapRow) page.Cell {
		if of.Shared > 1 {
			return page.Words(strconv.Itoa(of.Shared))
		}
		return page.Words(page.Dot)
	}))
	if len(unused) > 0 {
		m.AddText("kept by", page.Each(shown, keeper))
	}
	s.Table = m
	return s
}
