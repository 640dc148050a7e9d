package figure

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/core/stat"
)

// Quantity declares one quantity of an instrument. Its figures, its row in docs/figures.md
// and the legends of tables are generated from it.
type Quantity struct {
	Name     string
	Unit     Unit
	Or       []Unit    // units that some figures use instead of Unit
	Better   Direction // "" if neither direction is better
	Headline bool      // shown in the first table of a report; other quantities are details
	Labels   string    // label keys in addition to those that every figure of the instrument has
	Is       string    // one sentence, shown in legends
	More     string    // additional text for docs/figures.md only, in Markdown
}

// Catalogue lists all quantities of an instrument.
type Catalogue struct {
	Experiment string
	Quantities []Quantity
}

// Quantity returns the quantity with the given name. It panics if there is none.
func (c *Catalogue) Quantity(name string) *Quantity {
	return &c.Quantities[slices.IndexFunc(c.Quantities, func(q Quantity) bool { return q.Name == name })]
}

// New returns a figure of a quantity.
func (c *Catalogue) New(name string, e Estimate, labels Labels) Figure {
	q := c.Quantity(name)
	return Figure{Experiment: c.Experiment, Quantity: name, Unit: q.Unit, Better: q.Better, Labels: labels, Estimate: e}
}

// Over returns a figure whose estimate is the median of the rounds.
func (c *Catalogue) Over(name string, labels Labels, rounds stat.Rounds) Figure {
	f := c.New(name, Median(rounds), labels)
	f.Rounds = ByRound(rounds)
	return f
}

// Markdown returns the instrument's table for docs/figures.md.
func (c *Catalogue) Markdown() string {
	var out strings.Builder
	out.WriteString("| quantity | unit | better | more labels | what it is |\n| --- | --- | --- | --- | --- |\n")
	for _, q := range c.Quantities {
		name := "`" + q.Name + "`"
		if q.Headline {
			name = "**" + name + "**"
		}
		unit := string(q.Unit)
		for _, or := range q.Or {
			unit += ", " + string(or)
		}
		fmt.Fprintf(&out, "| %s | %s | %s | %s | %s |\n", name, unit, q.Better, q.Labels, q.Is+q.More)
	}
	return out.String()
}

// Set is a list of figures of one report.
type Set []Figure

// Get returns the value of a label of the first figure. The set must not be empty.
func (s Set) Get(key string) string { return s[0].Labels.Get(key) }

// Parts splits the set wherever the value of one of the labels changes. The parts share
// the memory of the set.
func (s Set) Parts(keys ...string) (parts []Set) {
	for from, to := 0, 1; from < len(s); to++ {
		if to == len(s) || slices.ContainsFunc(keys, func(key string) bool { return s[to].Labels.Get(key) != s[from].Labels.Get(key) }) {
			parts = append(parts, s[from:to:to])
			from = to
		}
	}
	return parts
}

// Part returns the first part with this label value, or a part of one empty figure.
func (s Set) Part(key, value string) Set {
	for _, part := range s.Parts(key) {
		if part.Get(key) == value {
			return part
		}
	}
	return Set{{}}
}

// Rows groups the set by a label. Each row has one figure per target, in the order of names.
func (s Set) Rows(key string, names []string, base string, of func(cell Set) *Figure) Rows {
	t := Rows{Names: names, At: slices.Index(names, base)}
	for _, part := range s.Parts(key) {
		row := Row{Name: part.Get(key)}
		for _, name := range names {
			row.Of = append(row.Of, of(part.Part("target", name)))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// Of returns the first figure of a quantity with the given labels, or an empty figure. The
// labels are alternating keys and values.
func (s Set) Of(quantity string, labels ...string) *Figure {
	wanted := Of(labels...)
	for i := range s {
		if s[i].Quantity == quantity && !slices.ContainsFunc(wanted, func(l Label) bool { return s[i].Labels.Get(l.Key) != l.Value }) {
			return &s[i]
		}
	}
	return &Figure{}
}
