package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tare-bench/tare/internal/judge"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/record"
)

// How many programs of a point, and programs and maps in all, a page shows. Verbose
// it shows all, as JSON and CSV do.
const (
	mostProgramsOfPoint = 12
	mostProgramsShown   = 40
)

// bpfByProgram has every program at every point, the heaviest first.
func bpfByProgram(v *judge.BPF, o Options) *section {
	columns, lead := pointColumns(v)
	m := &matrix{lead: append(columns, term.Column{Title: "program"})}
	var all []*judge.BPFProgramRow
	left := 0
	for i := range v.Rows {
		r := &v.Rows[i]
		for j := range r.Programs {
			p := &r.Programs[j]
			if !o.Verbose && (j >= mostProgramsOfPoint || p.Rate.Known && p.Rate.Value == 0 && p.Misses == 0) {
				left++
				continue
			}
			all = append(all, p)
			m.rows = append(m.rows, matrixRow{lead: append(lead(r), plain(heading(known(p.Name))))})
		}
	}
	if all == nil {
		return nil
	}
	s := &section{title: "eBPF by program, under load", style: term.Bold}
	of := func(title string, show func(*judge.BPFProgramRow) cell) {
		cells := make([]cell, len(all))
		for i, p := range all {
			cells[i] = show(p)
		}
		m.onlyIf(title, cells)
	}
	of("runs/s", func(p *judge.BPFProgramRow) cell { return valued(p.Rate, significant) })
	of("each", func(p *judge.BPFProgramRow) cell { return inBrackets(p.Each, duration) })
	of(ofACore, func(p *judge.BPFProgramRow) cell { return valued(p.Core, hundred) })
	of(ofTheNode, func(p *judge.BPFProgramRow) cell { return valued(ofNode(p.Core, v.CPUs), hundred) })
	of("runs per request", func(p *judge.BPFProgramRow) cell { return valued(p.PerRequest, significant) })
	of("memory", func(p *judge.BPFProgramRow) cell {
		if program := programOf(v, p); program != nil {
			return bytesOf(withMaps(program))
		}
		return plain(dot)
	})
	of("left out", func(p *judge.BPFProgramRow) cell {
		if p.Misses == 0 {
			return plain(dot)
		}
		return cell{head: strconv.FormatInt(p.Misses, 10), style: term.Yellow}
	})
	s.table = m.spread()
	s.notes = []string{"each: time of one run; memory: of the program and its maps, of which a shared one is in each that uses it"}
	if left > 0 {
		s.notes = append(s.notes, fmt.Sprintf("not shown: %s, of programs that did not run, or of which %d took more at the same point; --verbose shows all", amount(left, "row"), mostProgramsOfPoint))
	}
	return s
}

// programOf finds the program of a row, by its name where it was loaded anew since;
// but not with another number of services, with which its maps have another size.
func programOf(v *judge.BPF, row *judge.BPFProgramRow) *record.Program {
	same := func(f func(*record.Program) bool) *record.Program {
		if i := slices.IndexFunc(v.Programs, func(p record.Program) bool { return f(&p) }); i >= 0 {
			return &v.Programs[i]
		}
		return nil
	}
	if p := same(func(p *record.Program) bool { return p.ID == row.ID }); p != nil {
		return p
	}
	if len(v.Plan.Services) > 1 {
		return nil
	}
	return same(func(p *record.Program) bool { return p.Name == row.Name })
}

// withMaps is what a program and its maps occupy.
func withMaps(p *record.Program) int64 {
	sum := p.Memory
	for _, m := range p.Maps {
		sum = both(sum, both(m.Memory, m.InnerMemory))
	}
	return sum
}

// bpfPrograms are the programs as they are loaded.
func bpfPrograms(v *judge.BPF, o Options) *section {
	if len(v.Programs) == 0 {
		return nil
	}
	title := "programs: " + strconv.Itoa(len(v.Programs))
	if v.Memory >= 0 {
		title += ", with their maps " + size(float64(v.Memory)) + ", each map once"
	}
	s := &section{title: title, style: term.Bold}
	shown := v.Programs
	if !o.Verbose {
		shown = shown[:min(len(shown), mostProgramsShown)]
	}
	m := &matrix{lead: []term.Column{{Title: "id", Right: true}, {Title: "program"}}}
	for i := range shown {
		p := &shown[i]
		name := p.Name
		if p.Full != "" {
			name = p.Full
		}
		m.rows = append(m.rows, matrixRow{lead: []cell{plain(strconv.FormatUint(uint64(p.ID), 10)), plain(heading(known(name)))}})
	}
	m.text("kind", each(shown, func(p *record.Program) cell { return plain(heading(p.Kind)) }))
	before := len(m.columns)
	m.onlyIf("of", each(shown, func(p *record.Program) cell {
		if p.Owner == "" {
			return plain(dot)
		}
		return plain(heading(p.Owner))
	}))
	for i := range m.columns[before:] {
		m.columns[before+i].Right = false
	}
	m.column("memory", each(shown, func(p *record.Program) cell { return bytesOf(p.Memory) }))
	m.text("maps", each(shown, func(p *record.Program) cell { return plain(mapIDs(p)) }))
	m.text("attached to", each(shown, func(p *record.Program) cell {
		if len(p.Attached) == 0 {
			return plain(none)
		}
		text := middle(term.Clean(p.Attached[0]), 2*longestName)
		if more := len(p.Attached) - 1; more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
		return plain(text)
	}))
	s.table = m.spread()
	if o.Verbose {
		s.lists = bpfHolders(shown)
	}
	if left := len(v.Programs) - len(shown); left > 0 {
		s.notes = append(s.notes, fmt.Sprintf("and %d more; --verbose shows all", left))
	}
	return s
}

// mapIDs names a program's maps by their numbers.
func mapIDs(p *record.Program) string {
	ids := make([]string, 0, len(p.Maps))
	for _, m := range p.Maps {
		ids = append(ids, strconv.FormatUint(uint64(m.ID), 10))
	}
	if len(ids) == 0 {
		return none
	}
	return listed(ids)
}

// bpfHolders are who keeps the programs.
func bpfHolders(all []record.Program) []list {
	var items []item
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
			parts = append(parts, "tag "+heading(p.Tag))
		}
		if parts != nil {
			items = append(items, item{key: strconv.FormatUint(uint64(p.ID), 10) + " " + heading(p.Name), text: strings.Join(parts, "; ")})
		}
	}
	if items == nil {
		return nil
	}
	return []list{{items: items}}
}

// bpfMaps are all maps of the programs, each once.
func bpfMaps(v *judge.BPF, o Options) *section {
	var all []record.ProgramMap
	users := map[uint32]int{}
	for i := range v.Programs {
		for _, m := range v.Programs[i].Maps {
			if users[m.ID]++; users[m.ID] == 1 {
				all = append(all, m)
			}
		}
	}
	if all == nil {
		return nil
	}
	s := &section{title: fmt.Sprintf("maps: %d, %d of them shared", len(all), v.Shared), style: term.Bold}
	shown := all
	if !o.Verbose {
		shown = shown[:min(len(shown), mostProgramsShown)]
	}
	m := &matrix{lead: []term.Column{{Title: "id", Right: true}, {Title: "map"}}}
	for i := range shown {
		m.rows = append(m.rows, matrixRow{lead: []cell{plain(strconv.FormatUint(uint64(shown[i].ID), 10)), plain(heading(known(shown[i].Name)))}})
	}
	m.text("kind", each(shown, func(of *record.ProgramMap) cell { return plain(heading(of.Kind)) }))
	m.column("entries at most", each(shown, func(of *record.ProgramMap) cell { return plain(strconv.FormatInt(of.Entries, 10)) }))
	m.column("memory", each(shown, func(of *record.ProgramMap) cell { return bytesOf(of.Memory) }))
	m.onlyIf("maps in it", each(shown, func(of *record.ProgramMap) cell {
		if of.Inner == 0 {
			return plain(dot)
		}
		return cell{head: strconv.Itoa(of.Inner), tail: "(" + bytesOf(of.InnerMemory).head + ")"}
	}))
	m.onlyIf("shared by", each(shown, func(of *record.ProgramMap) cell {
		if n := max(of.Shared, users[of.ID]); n > 1 {
			return plain(strconv.Itoa(n))
		}
		return plain(dot)
	}))
	s.table = m.spread()
	if left := len(all) - len(shown); left > 0 {
		s.notes = append(s.notes, fmt.Sprintf("and %d more; --verbose shows all", left))
	}
	return s
}
