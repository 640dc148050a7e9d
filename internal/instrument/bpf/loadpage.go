package bpf

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/record"
)

// pointColumns returns the columns that identify a point: the number of connections and
// everything else the plan varies.
func pointColumns(v *Judgement) (columns []page.Column, show func(*Row) []page.Cell) {
	var cells []func(*record.Asked) string
	column := func(varies bool, title string, right bool, cell func(*record.Asked) string) {
		if varies {
			columns, cells = append(columns, page.Column{Title: title, Right: right}), append(cells, cell)
		}
	}
	column(true, "connections", true, func(a *record.Asked) string { return strconv.Itoa(a.Connections) })
	column(v.Plan.Instances > 1, "clients", true, func(a *record.Asked) string { return strconv.Itoa(max(a.Instances, 1)) })
	column(len(v.Plan.Heavy) > 1 || len(v.Plan.Heavy) == 1 && v.Plan.Heavy[0] > 0, "loop rounds", true, func(a *record.Asked) string { return strconv.FormatInt(a.Heavy, 10) })
	column(len(v.Plan.Services) > 1, "services", true, func(a *record.Asked) string { return strconv.Itoa(a.Services) })
	column(slices.ContainsFunc(v.Rows, func(r Row) bool { return r.Asked.CPUs != v.Rows[0].Asked.CPUs }), "limit", false, func(a *record.Asked) string {
		if a.CPUs <= 0 {
			return "none"
		}
		return cpuLimit(a.CPUs)
	})
	return columns, func(r *Row) (out []page.Cell) {
		for _, cell := range cells {
			out = append(out, page.Words(cell(&r.Asked)))
		}
		return out
	}
}

// pointMatrix returns a table with one row per point.
func pointMatrix(v *Judgement) *page.Table {
	columns, lead := pointColumns(v)
	m := &page.Table{Columns: columns}
	for i := range v.Rows {
		r := &v.Rows[i]
		cells := lead(r)
		if r.Rounds == 0 || r.Failed > 0 {
			cells[0].Style = term.Red
		}
		m.Row(cells...)
	}
	return m
}

// ownTable returns a table with one row per value of a setting, such as the number of
// services. Only tare's own programs have such settings; for other programs the row
// says "as they are".
func ownTable[T any](v *Judgement, title string, all []T, number func(*T) int64) *page.Table {
	m := &page.Table{Columns: []page.Column{{Title: title, Right: true}}}
	if v.Plan.Datapath == "" {
		m.Columns[0] = page.Column{Title: "programs"}
	}
	for i := range all {
		if v.Plan.Datapath == "" {
			m.Row(page.Words("as they are"))
		} else {
			m.Row(page.Words(strconv.FormatInt(number(&all[i]), 10)))
		}
	}
	return m
}

// cpuByLoad returns the table of the published report, with CPU as a share of a core
// and of the node.
func cpuByLoad(v *Judgement) *page.Section {
	if v.Imported != nil || !slices.ContainsFunc(v.Rows, func(r Row) bool { return r.Rounds > 0 }) {
		return nil
	}
	s := &page.Section{Title: "CPU by load, in percent of one core and of the node", Style: term.Bold}
	if v.CPUs > 0 {
		s.Title += fmt.Sprintf(" (%d CPUs)", v.CPUs)
	}
	m := pointMatrix(v)
	for _, c := range []struct {
		title, role string
		show        func(*figure.Figure, func(float64) string) page.Cell
	}{{"client", "client", page.Value}, {"eBPF", "bpf", page.InBrackets}, {"server", "server", page.Value}} {
		of := func(r *Row) *figure.Figure { return r.All.Of("cpu", "role", c.role) }
		m.AddUnless(c.title+" "+ofACore, page.Each(v.Rows, func(r *Row) page.Cell { return c.show(of(r), page.Hundred) }))
		m.AddUnless(c.title+" "+ofTheNode, page.Each(v.Rows, func(r *Row) page.Cell { return c.show(ofNode(of(r), v.CPUs), page.Hundred) }))
	}
	m.AddUnless("usage, of the limit %", page.Each(v.Rows, func(r *Row) page.Cell { return page.Value(r.All.Of("limit-usage"), page.Hundred) }))
	m.AddUnless("throttled periods %", page.Each(v.Rows, func(r *Row) page.Cell { return page.Value(r.All.Of("limit-throttled"), page.Hundred) }))
	m.AddUnless("busy "+ofTheNode, page.Each(v.Rows, func(r *Row) page.Cell { return page.Value(r.All.Of("node-busy"), page.Hundred) }))
	s.Table = m
	s.Notes = []string{"medians over the rounds, in brackets the 95 % interval; " + page.None + " unknown. client: the load generator; busy: CPUs that were not idle, by the kernel's ticks of 10 ms, at most 100; eBPF: run time of all selected programs minus their idle run time; client and server include it for runs in their own calls"}
	s.Draw(cpuChart(v))
	return s
}

// requestsByLoad returns the table of what the client reported, with the programs' time
// per request.
func requestsByLoad(v *Judgement) *page.Section {
	if len(v.Rows) == 0 {
		return nil
	}
	s := &page.Section{Title: "requests by load", Style: term.Bold}
	m := pointMatrix(v)
	m.Add("rounds (failed)", page.Each(v.Rows, func(r *Row) page.Cell {
		if r.Failed == 0 {
			return page.Words(strconv.Itoa(r.Rounds))
		}
		return page.Cell{Head: fmt.Sprintf("%d (%d)", r.Rounds, r.Failed), Style: term.Red}
	}))
	m.Add("QPS", page.Each(v.Rows, func(r *Row) page.Cell { return page.InBrackets(r.All.Of("requests"), page.Significant) }))
	m.Draw(page.Estimates)
	for _, q := range []string{"p50", "p90", "p99", "p99.9"} {
		m.Add(q, page.Each(v.Rows, func(r *Row) page.Cell { return page.Value(r.All.Of("latency", "quantile", q), page.Duration) }))
	}
	if v.Imported == nil {
		m.Add("eBPF per request", page.Each(v.Rows, func(r *Row) page.Cell { return page.InBrackets(r.All.Of("bpf-time-per-request"), page.Duration) }))
	}
	m.AddIf("errors", page.Each(v.Rows, func(r *Row) page.Cell { return counted(r.Errors, page.Dot) }))
	m.AddUnless("not sent", page.Each(v.Rows, func(r *Row) page.Cell { return counted(r.Unsent, page.None) }))
	m.AddUnless("QPS × by statistics", page.Each(v.Rows, priceCell))
	s.Table = m
	var failures []page.Item
	for i := range v.Rows {
		if r := &v.Rows[i]; r.Failure != nil {
			failures = append(failures, page.FailureItems(v.where(&r.Asked), page.Amount(r.Failed, "time")+" failed", r.Failure)...)
		}
	}
	if failures != nil {
		s.Lists = []page.List{{Items: failures}}
	}
	if slices.ContainsFunc(v.Rows, func(r Row) bool { return r.All.Of("latency", "quantile", "p50").Known() }) {
		note := "latencies of a closed loop: requests delayed by a stall are missing (coordinated omission)"
		if open(v) {
			note = "latencies of an open loop, from when a request was due" + omitted(v)
		}
		s.Notes = []string{note}
	}
	all := 0 // rounds that the overhead of statistics is estimated from, at most
	for i := range v.Rows {
		all = max(all, v.Rows[i].PriceRounds)
	}
	if all >= fewestPairs {
		s.Notes = append(s.Notes, "QPS × by statistics: QPS with the kernel's statistics over QPS without, in the same round; ~ where no difference was shown")
	} else if all > 0 {
		s.Notes = append(s.Notes, fmt.Sprintf("the overhead of the kernel's statistics is not shown: with fewer than %d rounds it is noise (--rounds)", fewestPairs))
	}
	return s
}

// fewestPairs is the minimum number of rounds for a statistics overhead. With one or
// two pairs the ratio is mostly noise. The median of three ignores one outlier.
const fewestPairs = 3

func priceCell(r *Row) page.Cell {
	if !r.All.Of("requests-with-statistics-ratio").Known() || r.PriceRounds < fewestPairs {
		return page.Words(page.None)
	}
	c := page.Words(page.Significant(r.All.Of("requests-with-statistics-ratio").Value) + "×")
	if r.All.Of("requests-with-statistics-ratio").Bounded {
		c.Tail = "[" + page.Significant(r.All.Of("requests-with-statistics-ratio").Lo) + ", " + page.Significant(r.All.Of("requests-with-statistics-ratio").Hi) + "]"
	}
	c.Head = page.Mark(r.All.Of("requests-with-statistics-ratio").Versus) + c.Head
	if r.All.Of("requests-with-statistics-ratio").Versus.Different() && r.All.Of("requests-with-statistics-ratio").Value < 1 {
		c.Style = term.Yellow
	}
	return c
}

// open reports whether the load was an open loop: requests due at a fixed rate,
// regardless of the answers.
func open(v *Judgement) bool {
	return slices.ContainsFunc(v.Rows, func(r Row) bool { return r.Open })
}

// omitted states whether an open loop's latencies cover all requests.
func omitted(v *Judgement) string {
	var uncounted, bounds int64
	for i := range v.Rows {
		uncounted, bounds = uncounted+v.Rows[i].uncounted(), bounds+v.Rows[i].Bounds()
	}
	text := ""
	if uncounted > 0 {
		text += fmt.Sprintf("; %s failed and %s in none of them", page.Amount(uncounted, "request"), plural(uncounted, "is", "are"))
	}
	if bounds > 0 {
		text += fmt.Sprintf("; %s had no answer in time or %s never sent, and count with as long as they were waited for, which is the least", page.Amount(bounds, "request"), plural(bounds, "was", "were"))
	}
	if text == "" {
		return ": free of coordinated omission"
	}
	return text
}

// plural returns one if n is 1, else several.
func plural(n int64, one, several string) string {
	if n == 1 {
		return one
	}
	return several
}
