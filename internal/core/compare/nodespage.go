package compare

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/core/stat"
	"github.com/tare-bench/tare/internal/term"
)

// Limits of what a page shows. It counts the rest.
const (
	mostOutliers = 30
	mostValues   = 8 // values of a circumstance
	mostDrawn    = 8 // groups in a chart
)

// Pages returns a page for each measurement.
func (n *Nodes) Pages() (out []*page.Page) {
	for _, m := range n.kinds {
		shown := n.shown(m)
		m.unnamed = n.Unnamed
		p := page.New(m.title, m.experiment)
		failed, total, _ := m.failures()
		p.Head = []string{page.Dotted(m.experiment+" over "+m.amount(len(m.names)), page.Amount(m.records, "record"), fmt.Sprintf("failed %d/%d", failed, total))}
		parted, apart := m.parted(), m.outliers(shown)
		p.Answer = m.answer(shown, apart, parted)
		p.Add(m.outlierSection(apart, parted, shown), m.distribution(shown), m.groupSection(parted, apart, shown), m.findingSection())
		out = append(out, p)
	}
	return out
}

// failures returns the failed and total operations, and the nodes with failures.
func (m *measured) failures() (failed, total int, nodes []string) {
	for i, name := range m.names {
		if failed, total = failed+m.failed[i], total+m.total[i]; m.failed[i] > 0 {
			nodes = append(nodes, page.Heading(name))
		}
	}
	return failed, total, nodes
}

// noun returns the word for a record's group. Records of a single machine are not nodes.
func (m *measured) noun() string {
	machine := m.circumstance["\x00"+machineField]
	if m.unnamed && !slices.ContainsFunc(machine.values, func(v string) bool { return v != machine.values[0] }) {
		return "record"
	}
	return m.over
}

func (m *measured) amount(n int) string { return page.Amount(n, m.noun()) }

func (m *measured) outlierSection(apart []apartNode, parted []*circumstance, shown []*overNodes) *page.Section {
	s := &page.Section{Title: "outliers: none", Style: term.Bold, Notes: []string{
		fmt.Sprintf("an outlier is at least 5 %% from the median of similar nodes, with a modified z-score (median absolute deviation; Iglewicz and Hoaglin) of at least 3.5; the threshold rises with the number of tested values, so that 1 in 20 uniform fleets has an outlier; similar nodes are those with the same machine type and kernel if there are %d or more, else those with the same machine type, else all", stat.FewestForOutliers)}}
	if !slices.ContainsFunc(shown, func(o *overNodes) bool { return len(o.values) >= stat.FewestForOutliers }) {
		s.Title = fmt.Sprintf("outliers: not detectable with fewer than %d nodes", stat.FewestForOutliers)
	}
	if len(apart) == 0 {
		return s
	}
	s.Title, s.Style = fmt.Sprintf("outliers: %d of %s", len(apart), m.amount(len(m.names))), term.Yellow
	var items []page.Item
	for i := range apart[:min(len(apart), mostOutliers)] {
		a := &apart[i]
		unlike := m.unlike(a.node, parted)
		text := "distinguishing facts: " + strings.Join(unlike[:min(len(unlike), page.MaxListed)], "; ")
		items = append(items, page.Item{Key: page.Heading(m.names[a.node]), Text: term.Clean(a.String())}, page.Item{Text: term.Clean(text)})
	}
	if more := len(apart) - mostOutliers; more > 0 {
		items = append(items, page.Item{Text: fmt.Sprintf("and %d more, in the findings of --format json", more)})
	}
	s.Lists = []page.List{{Items: items}}
	return s
}

// distribution shows a row for each figure.
func (m *measured) distribution(shown []*overNodes) *page.Section {
	table := page.Names("figure", "of")
	levels := make([][]figure.Figure, len(shown))
	for i, o := range shown {
		table.Row(page.Words(o.Quantity), page.Words(page.Middle(o.Labels.String(), 3*page.LongestName)))
		levels[i] = o.levels(m)
	}
	table.Add("nodes", page.Each(shown, func(o **overNodes) page.Cell { return page.Words(fmt.Sprint(len((*o).values))) }))
	for at, title := range levelNames {
		table.Add(title, page.Each(levels, func(all *[]figure.Figure) page.Cell {
			f := &(*all)[at]
			show := func(v float64) string { return page.Text(v, f.Unit) }
			if at >= between {
				show = func(v float64) string { return "±" + page.Share(v) }
			}
			c := page.Value(f, show)
			if at == least || at == most {
				c.Tail = page.Middle(term.Clean(f.Labels.Get(m.over)), page.LongestName/2)
			}
			return c
		}))
	}
	s := &page.Section{Title: "over " + m.noun() + "s", Style: term.Bold, Table: table, Notes: []string{
		"min to max: values of single nodes, with the node's name; between: range around the median that contains 95 % of the nodes (1.96 · 1.4826 · median absolute deviation); within: half the 95 % interval of a typical node's value"}}
	s.Draw(m.charts(shown)...)
	return s
}

// charts draws the figures with the largest spread between nodes, by machine type and kernel.
func (m *measured) charts(shown []*overNodes) (out []*page.Chart) {
	widest := proven(shown)
	slices.SortStableFunc(widest, func(a, b *overNodes) int { return cmp.Compare(stat.Scatter(b.values), stat.Scatter(a.values)) })
	machine, kernel := m.circumstance["\x00"+machineField], m.circumstance["\x00"+kernelField]
	group, groups := make([]string, len(m.names)), map[string]int{}
	for node := range m.names {
		group[node] = page.Dotted(shortly(machine.value(node)), "Linux "+shortly(kernel.value(node)))
		groups[group[node]]++
	}
	order := slices.SortedFunc(maps.Keys(groups), func(a, b string) int { return cmp.Or(groups[b]-groups[a], strings.Compare(a, b)) })
	for _, o := range widest[:min(len(widest), mostCharts)] {
		c := &page.Chart{Name: m.over + "s-" + o.Quantity, Title: o.Quantity + " " + o.Labels.String(), Kind: page.Cumulative,
			X: page.Axis{Title: o.Quantity, Unit: o.Unit}, Y: page.Axis{Title: "share of the " + m.over + "s", Unit: figure.Ratio},
			Caption: fmt.Sprintf("Cumulative share of the %ss by %s, for each machine and kernel.", m.over, o.Quantity)}
		values := map[string][]float64{}
		for i, node := range o.of {
			name := group[node]
			if len(order) > mostDrawn && !slices.Contains(order[:mostDrawn-1], name) {
				name = "others"
			}
			values[name] = append(values[name], o.values[i])
		}
		for _, name := range append(slices.Clip(order[:min(len(order), mostDrawn)]), "others") {
			c.Distribution(page.At("", "", name), values[name])
			delete(values, name)
		}
		out = append(out, c)
	}
	return out
}

// groupSection shows the facts that differ between nodes, the size of each group and its
// results.
func (m *measured) groupSection(parted []*circumstance, apart []apartNode, shown []*overNodes) *page.Section {
	if parted == nil {
		return &page.Section{Title: "the " + m.noun() + "s are alike: no recorded fact differs", Style: term.Bold}
	}
	var quantities []string
	for _, o := range shown {
		quantities = page.Union(quantities, o.Quantity)
	}
	table := page.Names("fact", "value")
	table.Columns = append(table.Columns, page.Column{Title: "nodes", Right: true}, page.Column{Title: "outliers", Right: true})
	for _, q := range quantities {
		table.Columns = append(table.Columns, page.Column{Title: q, Right: true})
	}
	far := map[int]bool{}
	for _, a := range apart {
		far[a.node] = true
	}
	var notes []string
	for _, c := range parted {
		values, nodes := m.groups(c)
		if len(values) > mostValues && 2*len(values) > len(m.names) {
			notes = append(notes, "differs from node to node: "+c.name())
			continue
		}
		for i, v := range values[:min(len(values), mostValues)] {
			name := c.field
			if i > 0 {
				name = ""
			}
			cells := []page.Cell{{Head: page.Short(name, page.LongestName), Label: c.field}, page.Words(shortly(v)), page.Words(fmt.Sprint(len(nodes[v])))}
			n := 0
			for _, node := range nodes[v] {
				if far[node] {
					n++
				}
			}
			cells = append(cells, page.Words(fmt.Sprint(n)))
			for _, q := range quantities {
				cells = append(cells, against(shown, q, nodes[v]))
			}
			table.Row(cells...)
		}
		if more := len(values) - mostValues; more > 0 {
			notes = append(notes, fmt.Sprintf("%s has %d more values", c.field, more))
		}
		if c.with != nil {
			notes = append(notes, c.field+" is confounded with "+page.Listed(c.with)+": both split the nodes in the same way")
		}
	}
	notes = append(notes, "each quantity: the group's median relative to that of all nodes (geometric mean over figures); differences are not tested, and facts shared by the same nodes are confounded")
	return &page.Section{Title: "differences between the " + m.noun() + "s", Style: term.Bold, Table: table, Notes: notes}
}

// against returns the median of some nodes relative to all nodes, as a geometric mean over the
// figures of a quantity.
func against(shown []*overNodes, quantity string, nodes []int) page.Cell {
	logs, n := 0.0, 0
	member := map[int]bool{}
	for _, node := range nodes {
		member[node] = true
	}
	for _, o := range shown {
		if o.Quantity != quantity || o.AtMost {
			continue
		}
		var own []float64
		for i, node := range o.of {
			if member[node] {
				own = append(own, o.values[i])
			}
		}
		ratio := stat.Quantiles(own, 0.5)[0] / stat.Quantiles(o.values, 0.5)[0]
		if log := math.Log(ratio); stat.Finite(log) {
			logs, n = logs+log, n+1
		}
	}
	if n == 0 {
		return page.Words(page.None)
	}
	return page.Words(page.Percent(100 * math.Expm1(logs/float64(n))))
}

// findingSection lists each finding with the nodes that have it.
func (m *measured) findingSection() *page.Section {
	if len(m.found) == 0 {
		return nil
	}
	table := page.Names("finding", "nodes", "on")
	codes := slices.SortedFunc(maps.Keys(m.found), func(a, b string) int {
		return cmp.Or(len(m.found[b])-len(m.found[a]), strings.Compare(a, b))
	})
	for _, code := range codes {
		var names []string
		for _, node := range slices.Sorted(maps.Keys(m.found[code])) {
			names = append(names, page.Heading(m.names[node]))
		}
		table.Row(page.Texts(page.Heading(code), fmt.Sprint(len(names)), page.Listed(names))...)
	}
	return &page.Section{Title: "findings of the nodes' records", Style: term.Bold, Table: table, Part: page.Mistrust}
}
