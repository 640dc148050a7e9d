// Package beside compares tare's figures with those of a publication, for any
// instrument. It shows each published table as printed, with tare's related figures,
// and the published sentences that the published figures contradict. The published
// figures come from other machines and versions, so nothing is computed across the
// two.
package beside

import (
	"cmp"
	"fmt"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/core/stat"
	"github.com/tare-bench/tare/internal/instrument"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/published"
	"github.com/tare-bench/tare/record"
)

// noVerdict is the note above every comparison.
const noVerdict = "published and own figures come from different machines, kernels and versions: a difference between them says nothing about the engines, so none is computed"

// Page returns the comparison of runs with a publication, and the published figures,
// with the label side=theirs.
func Page(all []instrument.Judged, p *published.Report, o page.Options) (*page.Page, []figure.Figure) {
	out := &page.Page{Title: title(p), Command: "tare " + p.Experiment, Head: []string{noVerdict + "."}}
	runs := make([]run, len(all))
	for i, one := range all {
		runs[i] = run{one.Record, "run " + page.Heading(page.Known(one.Record.Header.RunID)), one.Figures()}
		if points := one.Record.Points; len(points) > 0 {
			runs[i].name += ", " + page.Heading(strings.Replace(points[0].Datapath, "reference", "tare's reference", 1)) + " programs"
		}
	}
	out.Add(sides(p, runs))
	var theirs []figure.Figure
	for i := range p.Tables {
		s, figures := section(p, &p.Tables[i], runs)
		out.Add(s)
		theirs = append(theirs, figures...)
	}
	out.Add(claims(p), method(p))
	for i, one := range all {
		failed, total, found := one.Result()
		s := page.Findings(found, page.Lanes, o)
		s.Title = fmt.Sprintf("%s: failed %d/%d; %s", runs[i].name, failed, total, s.Title)
		out.Add(s)
	}
	return out, theirs
}

// InDocument returns the page for those records of a document that match the
// publication's experiment, or nil if there are none. It has no findings, since the
// document has them.
func InDocument(all []instrument.Judged, p *published.Report, o page.Options) *page.Page {
	all = slices.DeleteFunc(slices.Clone(all), func(j instrument.Judged) bool { return j.Record.Header.Experiment != p.Experiment })
	if len(all) == 0 {
		return nil
	}
	out, _ := Page(all, p, o)
	out.Sections = out.Sections[:len(out.Sections)-len(all)]
	return out
}

// run is one of tare's runs.
type run struct {
	rec     *record.Record
	name    string
	figures []figure.Figure
}

// ours is a column of tare's figures related to a published column. It contains the figures of one run
// and, if figures have targets, of one target.
type ours struct {
	title   string
	run     string // name of the run
	target  string // "" if the figures have no target
	lanes   string // "" if the table's operations do not run in parallel
	figures []figure.Figure
}

// section returns one published table with tare's figures.
func section(p *published.Report, t *published.Table, all []run) (*page.Section, []figure.Figure) {
	table, group := page.Names(""), 0
	for i := range t.Rows {
		table.Row(page.Words(page.Short(term.Clean(t.Rows[i].Label), page.LongestName)))
	}
	add := func(title string, cell func(row *published.Row) page.Cell) {
		group++
		table.Columns = append(table.Columns, page.Column{Title: title, Right: true, Group: group})
		for i := range t.Rows {
			table.Rows[i] = append(table.Rows[i], cell(&t.Rows[i]))
		}
	}
	var theirs []figure.Figure
	notes := slices.Clone(t.Notes)
	for place, id := range t.Columns {
		column := p.Column(id)
		add("theirs: "+page.Heading(column.Title), func(row *published.Row) page.Cell {
			value := row.Values[place]
			if value == "" {
				return page.Words(page.None)
			}
			akin := t.Akin(&column, row)
			if f, ok := printed(p, t, row, &column, akin, value); ok {
				theirs = append(theirs, f)
			}
			return page.Words(with(string(value), akin.Unit))
		})
		for _, c := range columns(p, t, &column, all) {
			add("ours: "+c.title, func(row *published.Row) page.Cell { return c.cell(t.Akin(&column, row)) })
		}
		if column.Note != "" {
			notes = append(notes, column.Title+": "+column.Note)
		}
	}
	if t.Versus != nil {
		notes = append(notes, "VS: (subject − other) ÷ other, theirs as printed; our own reports have the verdicts on our differences")
	}
	if t.Lanes > 0 {
		for _, c := range columns(p, t, nil, all) {
			add("ours: "+c.title, func(row *published.Row) page.Cell { return c.cell(t.Akin(nil, row)) })
		}
	}
	for i, id := range t.Versus {
		other, subject := p.Column(id), p.Column(t.Subject)
		add("theirs: VS "+page.Heading(other.Title), func(row *published.Row) page.Cell {
			if len(row.Versus) <= i {
				return page.Words(page.None)
			}
			return page.Words(term.Clean(row.Versus[i]))
		})
		for _, to := range columns(p, t, &subject, all) {
			for _, from := range columns(p, t, &other, all) {
				if !comparable(&to, &from) {
					continue
				}
				add("ours: "+to.title+" VS "+page.Heading(from.target), func(row *published.Row) page.Cell {
					a, b := from.cell(t.Akin(&other, row)).Figure, to.cell(t.Akin(&subject, row)).Figure
					if a == nil || b == nil {
						return page.Words(page.None)
					}
					return page.Words(stat.FormatVersus(a.Value, b.Value))
				})
			}
		}
	}
	for _, row := range t.Rows {
		if row.Note != "" {
			notes = append(notes, row.Label+": "+row.Note)
		}
	}
	return &page.Section{Title: t.Title + "; theirs on " + p.Machine(t.Machine).Name, Style: term.Bold, Table: table, Notes: notes}, theirs
}

// comparable reports whether two of tare's columns come from the same run, have the same lanes and,
// for CRI engines, were driven in the same way.
func comparable(a, b *ours) bool {
	ways := strings.Contains(a.target, "+cli/") != strings.Contains(b.target, "+cli/")
	return a.run == b.run && a.lanes == b.lanes && !(ways && strings.HasPrefix(a.target, "cri+"))
}

// printed returns a published value as a figure, if tare has the quantity.
func printed(p *published.Report, t *published.Table, row *published.Row, c *published.Column, akin published.Ours, value published.Figure) (figure.Figure, bool) {
	v, err := strconv.ParseFloat(string(value), 64)
	unit := published.Units[akin.Unit]
	if err != nil || akin.Quantity == "" {
		return figure.Figure{}, false
	}
	f := figure.Figure{Experiment: p.Experiment, Quantity: akin.Quantity, Unit: figure.Unit(unit.Base),
		Labels: figure.Of("side", "theirs", "table", t.ID, "row", row.Label, "column", c.ID)}
	f.Estimate = figure.Exactly(v * unit.Factor)
	if row.Note != "" {
		f.Reasons = []string{row.Note}
	}
	return f, true
}

// columns returns tare's columns for a published column: those with a related figure in any row. If c
// is nil, it returns the columns of targets that are related to no published column.
func columns(p *published.Report, t *published.Table, c *published.Column, all []run) (out []ours) {
	if c != nil && len(c.Targets) == 0 && c.Quantity == "" && c.Labels == nil {
		return nil // nothing is related
	}
	for _, one := range all {
		found := ofRun(p, t, c, one, "")
		if lanes := t.Nears(); lanes != "" {
			exact := found
			found = append(found, slices.DeleteFunc(ofRun(p, t, c, one, lanes), func(near ours) bool {
				return slices.ContainsFunc(exact, func(o ours) bool { return o.target == near.target })
			})...)
		}
		for i := range found {
			found[i].run = one.name
			switch o := &found[i]; {
			case o.target == "":
				o.title = one.name
			case len(all) > 1:
				o.title = page.Heading(o.target) + o.title + ", " + one.name
			default:
				o.title = page.Heading(o.target) + o.title
			}
		}
		out = append(out, found...)
	}
	return out
}

// ofRun returns tare's columns of one run, one per target. If lanes is set, it is a pattern for
// numbers of lanes other than the table's. There is then one column per target and number of lanes.
func ofRun(p *published.Report, t *published.Table, c *published.Column, one run, lanes string) (out []ours) {
	if lanes == "" && t.Lanes > 0 {
		lanes = strconv.Itoa(t.Lanes)
	}
	for _, f := range one.figures {
		name := f.Labels.Get("target")
		if !belongs(p, t, c, one.rec, name) || !slices.ContainsFunc(t.Rows, func(r published.Row) bool { return akinTo(&f, at(lanes, t.Akin(c, &r))) }) {
			continue
		}
		o := ours{target: name, lanes: lanes}
		if n := f.Labels.Get("lanes"); lanes != "" && n != strconv.Itoa(t.Lanes) {
			o.lanes, o.title = n, ", "+n+" lanes"
		}
		i := slices.IndexFunc(out, func(other ours) bool { return other.target == name && other.lanes == o.lanes })
		if i < 0 {
			i, out = len(out), append(out, o)
		}
		out[i].figures = append(out[i].figures, f)
	}
	return out
}

// at adds the given lanes to the labels of akin, unless lanes is empty.
func at(lanes string, akin published.Ours) published.Ours {
	if lanes != "" {
		akin.Labels["lanes"] = lanes
	}
	return akin
}

// belongs reports whether a target's figures fit a column. A column that names no targets accepts
// all. If c is nil, only targets that no column names fit: those with pods in tables of pod
// operations, those without pods in other tables.
func belongs(p *published.Report, t *published.Table, c *published.Column, rec *record.Record, target string) bool {
	if c != nil {
		return len(c.Targets) == 0 || c.Akin(target)
	}
	i := slices.IndexFunc(rec.Targets, func(info record.Target) bool { return info.Name == target })
	if i < 0 || slices.ContainsFunc(p.Columns, func(c published.Column) bool { return c.Akin(target) }) {
		return false
	}
	runp, known := rec.Targets[i].Operations["runp"]
	return t.Pods == (known && runp.Absent == "")
}

// akinTo reports whether a figure measures the same as a published value.
func akinTo(f *figure.Figure, akin published.Ours) bool {
	if f.Quantity != akin.Quantity || akin.Quantity == "" || string(f.Unit) != published.Units[akin.Unit].Base || !f.Known() {
		return false
	}
	for key, patterns := range akin.Labels {
		if !slices.ContainsFunc(strings.Split(patterns, "|"), func(pattern string) bool {
			ok, err := path.Match(pattern, f.Labels.Get(key))
			return ok && err == nil
		}) {
			return false
		}
	}
	return true
}

// cell formats the related figures in the published unit. A judged figure is shown with its verdict.
// At most three figures are shown.
func (c *ours) cell(akin published.Ours) page.Cell {
	var texts []string
	var shown *figure.Figure
	for i := range c.figures {
		f := &c.figures[i]
		if !akinTo(f, at(c.lanes, akin)) {
			continue
		}
		text := with(number(f.Value/published.Units[akin.Unit].Factor), akin.Unit)
		if f.Verdict != "" && f.Verdict != "device" {
			text = f.Verdict + " " + text
		}
		if f.Failed > 0 {
			text = fmt.Sprintf("%d/%d failed, %s", f.Failed, f.Total, text)
		}
		texts, shown = append(texts, text), f
	}
	switch {
	case texts == nil:
		return page.Words(page.None)
	case len(texts) > 3:
		texts = append(texts[:3], "…")
	}
	return page.Cell{Head: strings.Join(texts, ", "), Figure: shown}
}

// number formats a number with four significant digits, or with all digits before the decimal point.
func number(v float64) string {
	if math.Abs(v) >= 1000 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}

func with(number, unit string) string {
	if unit == "" || unit == "count" {
		return number
	}
	return number + " " + unit
}

// title returns the title of a publication.
func title(p *published.Report) string {
	title := p.Title
	if p.OriginalTitle != "" {
		title += " (" + p.OriginalTitle + ")"
	}
	parts := slices.DeleteFunc([]string{title, p.Author, p.Date}, func(s string) bool { return s == "" })
	return "Beside " + page.Short(term.Clean(strings.Join(parts, ", ")), 200)
}

// sides lists the machines and versions of both sides.
func sides(p *published.Report, all []run) *page.Section {
	s := &page.Section{Title: "machines and versions", Style: term.Bold}
	theirs := page.List{Heading: "theirs"}
	for _, m := range p.Machines {
		theirs.Items = append(theirs.Items, page.Item{Key: page.Heading(m.Name), Text: page.Dotted(m.OS, m.Kernel, m.CPU, m.Memory)})
	}
	for _, e := range p.Engines {
		theirs.Items = append(theirs.Items, page.Item{Key: page.Heading(e.Name), Text: page.Dotted(slices.Concat([]string{cmp.Or(e.Version, "version not stated")}, e.Parts, e.Notes)...)})
	}
	s.Lists = []page.List{theirs}
	for _, one := range all {
		env := &one.rec.Header.Environment
		machine := page.Dotted(env.OS, "Linux "+page.Known(env.Kernel), page.Processor(env), "memory "+page.Size(float64(env.Memory)), page.Cgroups(env.Cgroup))
		if env.Kernel == "" {
			machine = "unknown" // imported
		}
		ours := page.List{Heading: "ours, " + one.name, Items: []page.Item{
			{Key: "machine", Text: machine},
		}}
		for _, t := range one.rec.Targets {
			ours.Items = append(ours.Items, page.Item{Key: page.Heading(t.Name), Text: page.Dotted(cmp.Or(t.Version, "no version"), t.Config["runtime"], t.Config["runtime version"])})
		}
		s.Lists = append(s.Lists, ours)
	}
	return s
}

// claims returns the published sentences that the published figures contradict, each
// with these figures. It is nil if none is known.
func claims(p *published.Report) *page.Section {
	if p.Claims == nil {
		return nil
	}
	s := &page.Section{Title: "published claims that their own figures contradict", Style: term.Bold}
	for _, c := range p.Claims {
		l := page.List{Items: []page.Item{{Key: "they say", Text: c.Says}}}
		for _, but := range c.But {
			text := but.What
			if but.Formula != "" {
				text += ": " + but.Formula
			}
			l.Items = append(l.Items, page.Item{Key: but.Gives, Text: text})
		}
		s.Lists = append(s.Lists, l)
	}
	return s
}

// method returns the publication's own description of its method, and what it omits.
func method(p *published.Report) *page.Section {
	s := &page.Section{Title: "how they measured", Style: term.Bold}
	var items []page.Item
	if p.Statistic != "" {
		items = append(items, page.Item{Key: "theirs", Text: p.Statistic})
	}
	for _, text := range slices.Concat(p.Method, p.Notes) {
		items = append(items, page.Item{Key: "theirs", Text: text})
	}
	var ours []string
	for _, t := range p.Tables {
		if t.Quantity != "" && !slices.Contains(ours, t.Quantity) {
			ours = append(ours, t.Quantity)
		}
	}
	if ours != nil {
		items = append(items, page.Item{Key: "ours", Text: strings.Join(ours, ", ") + "; see docs/figures.md"})
	}
	if items == nil {
		s.Title += ": not said"
		return s
	}
	s.Lists = []page.List{{Items: items}}
	return s
}
