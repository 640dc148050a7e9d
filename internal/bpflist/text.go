package bpflist

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/record"
)

// unknown stands for what cannot be said, none for what there was none of.
const (
	unknown = "?"
	none    = "-"
)

var programColumns = []term.Column{
	{Title: "ID", Right: true}, {Title: "KIND"}, {Title: "NAME"}, {Title: "RUNS/s", Right: true}, {Title: "AVG ns", Right: true},
	{Title: "CORE%", Right: true}, {Title: "NODE%", Right: true}, {Title: "MISSES", Right: true}, {Title: "MEMORY", Right: true},
	{Title: "IN MAPS", Right: true}, {Title: "MAPS"}, {Title: "OWNER"}, {Title: "ATTACHED"}, {Title: "PINS"},
}

// WriteText prints two tables, programs and the maps that they use, and what they
// are together. The width is where the last column is broken, 0: nowhere.
func (v *View) WriteText(w io.Writer, width int, colour bool) error {
	if len(v.Programs) == 0 {
		t := term.Table{Width: width}
		text := "no program is loaded"
		if v.loaded > 0 {
			text = fmt.Sprintf("%s %s loaded, and none of the kind that was asked for", counted(v.loaded, "program"), are(v.loaded))
		}
		t.AddLine(0, text, term.Plain)
		v.notes(&t)
		return t.Write(w)
	}
	t := term.Table{Colour: colour, Width: width, Columns: programColumns}
	for i := range v.Programs {
		v.Programs[i].row(&t)
	}
	t.AddLine(0, "", term.Plain)
	for _, line := range v.Total.lines(v.CPUs) {
		t.AddLine(0, line, term.Bold)
	}
	v.notes(&t)
	if err := t.Write(w); err != nil || len(v.Maps) == 0 {
		return err
	}
	maps := term.Table{Colour: colour, Width: width, Columns: []term.Column{
		{Title: "MAP", Right: true}, {Title: "KIND"}, {Title: "NAME"}, {Title: "ENTRIES", Right: true}, {Title: "MEMORY", Right: true},
		{Title: "USED BY", Right: true}, {Title: "INNER MAPS"},
	}}
	for i := range v.Maps {
		a := &v.Maps[i]
		inner := ""
		if a.Inner > 0 {
			inner = fmt.Sprintf("%d, %s", a.Inner, size(a.InnerMemory))
		}
		maps.Add(strconv.FormatUint(uint64(a.ID), 10), a.Kind, a.Name, strconv.FormatInt(a.Entries, 10), size(a.Memory), strconv.Itoa(a.Shared), inner)
	}
	fmt.Fprintln(w)
	return maps.Write(w)
}

// lines are what a screen of that height shows: what all are together, and as many
// programs as have room, those first that cost most.
func (v *View) lines(height int) []string {
	head := term.Table{}
	for _, line := range v.Total.lines(v.CPUs) {
		head.AddLine(0, line, term.Plain)
	}
	v.notes(&head)
	order := make([]*Program, 0, len(v.Programs))
	for i := range v.Programs {
		order = append(order, &v.Programs[i])
	}
	slices.SortStableFunc(order, func(a, b *Program) int { return cmp.Compare(b.core(), a.core()) })
	var b strings.Builder
	_ = head.Write(&b) // a strings.Builder takes all
	used := strings.Count(b.String(), "\n")
	room := max(1, height-used-1)
	left := 0
	if len(order) > room {
		left = len(order) - max(1, room-1)
		order = order[:len(order)-left]
	}
	rows := term.Table{Columns: programColumns}
	for _, p := range order {
		p.row(&rows)
	}
	if left > 0 {
		rows.AddLine(0, fmt.Sprintf("%d more", left), term.Plain)
	}
	_ = rows.Write(&b)
	lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	return lines[:min(len(lines), max(1, height))]
}

func (p *Program) core() float64 {
	if p.Rate == nil {
		return 0
	}
	return p.Rate.Core
}

func (p *Program) row(t *term.Table) {
	cells := []string{strconv.FormatUint(uint64(p.ID), 10), p.Kind, p.title()}
	if r := p.Rate; r == nil {
		cells = append(cells, none, none, none, none, strconv.FormatUint(p.Misses, 10))
	} else {
		cells = append(cells, count(r.PerSec), r.mean(), percent(r.Core), percent(r.Node), strconv.FormatUint(r.Misses, 10))
	}
	cells = append(cells, size(p.Memory), p.inMaps(), mapWords(p.Maps), p.whose(), few(p.Attached, 2), few(p.Pins, 1))
	t.Add(cells...)
}

// title is the program's name; one that has none is known by its tag.
func (p *Program) title() string {
	name := p.Full
	if name == "" {
		name = p.Name
	}
	if name == "" {
		name = "tag " + p.Tag
	}
	if p.Gone {
		name += " (went)"
	}
	return name
}

// whose is the owner that is recognised, and the processes that hold it.
func (p *Program) whose() string {
	switch holders := few(p.Holders, 1); {
	case p.Owner == "":
		return holders
	case len(p.Holders) == 0:
		return p.Owner
	default:
		return p.Owner + ": " + holders
	}
}

// inMaps is the memory of the program's maps, marked where others use one too.
func (p *Program) inMaps() string {
	sum, shared, known := int64(0), "", true
	for _, a := range p.Maps {
		known = known && a.Memory >= 0
		sum += max(0, a.Memory) + max(0, a.InnerMemory)
		if a.Shared > 1 {
			shared = "*"
		}
	}
	if !known {
		return unknown
	}
	return size(sum) + shared
}

// mapWords are ids, marked where others use the map too.
func mapWords(maps []record.ProgramMap) string {
	words := make([]string, 0, len(maps))
	for _, a := range maps {
		word := strconv.FormatUint(uint64(a.ID), 10)
		if a.Shared > 1 {
			word += "*"
		}
		words = append(words, word)
	}
	if len(words) > 4 {
		words = append(words[:4], fmt.Sprintf("+%d", len(words)-4))
	}
	return strings.Join(words, " ")
}

// few are the first of a list, and how many more there are.
func few(list []string, most int) string {
	if len(list) <= most {
		return strings.Join(list, ", ")
	}
	return fmt.Sprintf("%s, +%d", strings.Join(list[:most], ", "), len(list)-most)
}

// lines are what all programs are together: their share, where there is one, and
// what they occupy.
func (t *Total) lines(cpus int) (lines []string) {
	if r := t.Rate; r != nil {
		lines = append(lines, fmt.Sprintf("%s %% of a core, which is %s %% of the node's %d; %s runs/s", percent(r.Core), percent(r.Node), cpus, count(r.PerSec)))
	}
	line := counted(t.Programs, "program")
	if t.Maps > 0 {
		line += ", " + counted(t.Maps, "map")
		if t.Shared > 0 {
			line += fmt.Sprintf(" (* %d shared)", t.Shared)
		}
	}
	line += fmt.Sprintf(", together %s with each map once", size(t.Memory))
	if t.Unknown > 0 {
		line += fmt.Sprintf(" and without %d whose memory is not known", t.Unknown)
	}
	return append(lines, line)
}

// counted is a number of things, in words.
func counted(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}

func are(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// notes say what stands behind the figures, and what is missing.
func (v *View) notes(t *term.Table) {
	switch {
	case !v.Counted:
		t.AddLine(0, "one reading, without rates; misses are since loading, as far as statistics were on", term.Dim)
	case v.Interval > 0:
		text := fmt.Sprintf("over %.2f s; a tail call's time is its caller's; statistics cost about 20 ns a run", v.Interval)
		if v.Before {
			text += ", and were on before"
		}
		t.AddLine(0, text, term.Dim)
	}
	if v.Came+v.Went > 0 {
		t.AddLine(0, fmt.Sprintf("programs that came in the interval: %d, that went: %d", v.Came, v.Went), term.Yellow)
	}
	for _, problem := range v.Problems {
		t.AddLine(0, problem, term.Yellow)
	}
}

func (r *Rate) mean() string {
	if r.Runs == 0 {
		return none
	}
	return count(r.Mean)
}

// count writes a number with a digit behind the point where it is small.
func count(v float64) string {
	if v > 0 && v < 99.95 {
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 0, 64)
}

// percent writes a share of one: two digits, and more where these would say nothing.
func percent(v float64) string {
	if v > 0 && v < 0.0001 {
		return "<0.01"
	}
	return strconv.FormatFloat(v*100, 'f', 2, 64)
}

// size writes bytes; units are powers of 1024.
func size(n int64) string {
	if n < 0 {
		return unknown
	}
	v := float64(n)
	if v < 1024 {
		return strconv.FormatInt(n, 10)
	}
	for _, unit := range "KMGT" {
		if v /= 1024; v < 1023.95 || unit == 'T' {
			return strconv.FormatFloat(v, 'f', 1, 64) + string(unit)
		}
	}
	return unknown
}
