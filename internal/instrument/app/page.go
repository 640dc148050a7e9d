package app

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tare-bench/tare/internal/core/answer"
	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/instrument/terms"
	"github.com/tare-bench/tare/internal/subject/setting"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/record"
)

// Page returns the page of the run.
func (j *Judgement) Page(o page.Options) *page.Page {
	p := page.New(j.Plan.Title, Name)
	p.Head, p.Answer = page.Head(j.Record, j.Plan.Rounds), j.answer()
	tables := j.All.Parts("neighbour")
	for _, t := range tables {
		p.Add(j.requests(t))
	}
	if len(tables) == 0 {
		p.Add(&page.Section{Title: "nothing was loaded"})
	}
	p.Failed(j.Failed, fmt.Sprintf("failed %d/%d windows", j.Failed, j.Total))
	p.Add(page.Findings(j.Found, page.Lanes, o))
	p.AddDetails(j.neighbours())
	for _, t := range tables {
		p.AddDetails(j.cpu(t))
	}
	for _, t := range tables {
		if s := page.Shifts(j.rowsOf(t), j.Plan.Comparing); s != nil {
			s.Title += beside(t)
			p.AddDetails(s)
		}
	}
	p.AddDetails(j.measured(), page.Needed(j.Record.Targets), j.whole(o))
	return p
}

// answer states the requests per second and the CPU time per request of each target,
// one sentence per table.
func (j *Judgement) answer() (out []string) {
	for _, t := range j.All.Parts("neighbour") {
		var rates, costs []answer.Named
		for _, cell := range t.Parts("target") {
			rates = append(rates, answer.Named{Name: cell.Get("target"), Figure: cell.Of("throughput")})
			costs = append(costs, answer.Named{Name: cell.Get("target"), Figure: cell.Of("cpu-per-request", "role", string(allRoles))})
		}
		if rates = answer.Known(rates); len(rates) == 0 {
			continue
		}
		text := "requests a second" + beside(t) + ": " + answer.Values(rates, j.Baseline)
		if answer.Undecided(rates) {
			text += answer.Spoiled(j.Found)
		}
		if costs = answer.Known(costs); len(costs) > 0 {
			text += ". CPU of a request: " + answer.Values(costs, "")
		}
		out = append(out, text+".")
	}
	if out == nil {
		out = []string{"No request was answered in a window."}
	}
	return out
}

// whole describes the environment and the load.
func (j *Judgement) whole(o page.Options) *page.Section {
	loop := "closed loop"
	if j.Plan.Rate > 0 {
		loop = "open loop, " + page.Significant(j.Plan.Rate) + " requests a second"
	}
	s := page.Run(j.Record, j.Plan.Seed, j.Baseline, o.Verbose)
	s.Lists[0].Items = append(s.Lists[0].Items, page.Item{
		Key: "load", Text: page.Dotted(page.Heading(j.Plan.URL), page.Amount(j.Plan.Connections, "connection"), loop, page.Duration(float64(j.Plan.Duration))+" each after "+page.Duration(float64(j.Plan.Warm))+" of warm-up",
			page.Amount(j.Plan.Rounds, "round"), terms.LimitsText(j.Plan.Limits)),
	})
	return s
}

// beside returns the suffix for titles of a table's sections.
func beside(t figure.Set) string {
	if t.Get("neighbour") == "" {
		return ""
	}
	return " beside " + page.Heading(t.Get("neighbour"))
}

// of returns the row that a set of figures belongs to.
func (j *Judgement) of(cell figure.Set) *row { return j.row(cell.Get("target"), cell.Get("neighbour")) }

// requests returns the table of the client's results.
func (j *Judgement) requests(t figure.Set) *page.Section {
	s := page.Grid(&Quantities, t, []string{"target"}, []page.Quantity{
		{Of: "throughput", Titles: []string{"rounds (failed)"}, Cell: func(cell figure.Set) page.Cell {
			r := j.of(cell)
			if len(r.failed) == 0 {
				return page.Words(strconv.Itoa(len(r.windows)))
			}
			return page.Cell{Head: fmt.Sprintf("%d (%d)", len(r.windows), len(r.failed)), Style: term.Red}
		}},
		{Of: "throughput", Titles: []string{"requests/s"}, Beside: page.Estimates, Draw: func(f *figure.Figure) page.Cell { return page.WithHalf(f, page.Significant, page.None) }},
		{Of: "throughput-times", Titles: []string{"× host"}, Draw: times},
		{Of: "latency", Titles: quantiles, Key: "quantile", Values: quantiles, Show: page.Duration},
		{Of: "first-answer", Titles: []string{"first answer"}, Show: page.Duration},
		{Of: "first-request", Titles: []string{"first request"}, Show: page.Duration},
		{Of: "throughput", Titles: []string{"failed"}, Draw: func(f *figure.Figure) page.Cell {
			if f.Failed == 0 {
				return page.Words(page.Dot)
			}
			return page.Cell{Head: fmt.Sprintf("%d/%d", f.Failed, f.Total), Style: term.Red}
		}},
	})
	s.Title, s.Notes = "requests"+beside(t), nil
	var items []page.Item
	c := &page.Chart{Name: "throughput", Title: "Requests per second" + beside(t), Kind: page.Intervals,
		Caption: "Answers per second on each target" + page.WithRounds, X: page.Axis{Title: "target"}, Y: page.Axis{Title: "requests per second", Unit: figure.PerSecond}}
	latency := &page.Chart{Name: "latency", Title: "Latency" + beside(t), Kind: page.Intervals,
		Caption: "Latency at quantiles on each target" + page.WithRounds, X: page.Axis{Title: "quantile"}, Y: page.Axis{Title: "latency", Unit: figure.Nanoseconds}}
	for _, cell := range t.Parts("target") {
		if r := j.of(cell); len(r.failed) > 0 {
			items = append(items, page.FailureItems(page.Heading(r.target), fmt.Sprintf("%d of %d windows failed", len(r.failed), len(r.failed)+len(r.windows)), r.failed[0].Failure)...)
		}
		c.Figure("", "requests per second", cell.Get("target"), cell.Of("throughput"))
	}
	for _, q := range quantiles {
		for _, cell := range t.Parts("target") {
			latency.Figure("", q, cell.Get("target"), cell.Of("latency", "quantile", q))
		}
	}
	if items != nil {
		s.Lists = []page.List{{Items: items}}
	}
	if &t[0] == &j.All[0] {
		s.Notes = []string{j.latencies()}
	}
	s.Draw(c, latency)
	return s
}

// latencies describes how latencies and first answers were measured.
func (j *Judgement) latencies() string {
	text := "medians over the rounds; a round's latencies are of its answers: in a closed loop, requests delayed by a stall are missing (coordinated omission; --rate counts them)"
	if j.Plan.Rate > 0 {
		text = "medians over the rounds; an open loop's latencies start when a request was due; timed-out or unsent requests count with their waiting time"
	}
	var windows []*Window
	for _, r := range j.rows {
		windows = append(windows, r.windows...)
	}
	widest, atMost, asked := polled(windows)
	text += "; first answer: from the start of the sandbox until " + j.sign() + ", asked again and again"
	if widest > 0 {
		text += fmt.Sprintf(" (resolution %s at worst)", page.Duration(float64(widest)))
	}
	text += page.ReadyAtMost(atMost, asked)
	if j.All.Of("first-request").Known() {
		text += "; first request: that one alone"
	}
	return text
}

// sign describes what counts as the first answer.
func (j *Judgement) sign() string {
	ready := j.Plan.WhenReady(j.Plan.Ready)
	switch by, _, _ := strings.Cut(string(ready), ":"); by {
	case setting.ReadyHTTP:
		return "a request was answered"
	case setting.ReadyTCP:
		return "a connection was accepted, which is not yet an answer (" + page.Heading(string(ready)) + ")"
	}
	return "it was ready by its own sign, which is not yet an answer (" + page.Heading(string(ready)) + ")"
}

// times formats a ratio with its interval.
func times(f *figure.Figure) page.Cell {
	c := page.InBrackets(f, page.Significant)
	if c.Figure != nil {
		c.Head = page.Mark(f.Versus) + c.Head
	}
	return c
}

// neighbours returns the table of the effect of each neighbour.
func (j *Judgement) neighbours() *page.Section {
	columns := []page.Quantity{
		{Of: "throughput-kept", Titles: []string{"requests/s × alone"}, Beside: page.Estimates, Draw: func(f *figure.Figure) page.Cell { return page.InBrackets(f, page.Significant) }},
		{Of: "throughput-kept", Titles: []string{"vs " + page.Heading(j.Baseline)}, Draw: page.Change},
		{Of: "latency-times", Titles: []string{"p99 × alone"}, Draw: times},
		{Of: "neighbour-cpu", Titles: []string{"its CPUs"}, Show: page.Significant},
	}
	for _, of := range waiters {
		for _, resource := range resources {
			columns = append(columns, page.Quantity{Of: "pressure", Titles: []string{"PSI " + of + " " + resource + " %"}, Cell: func(cell figure.Set) page.Cell {
				return page.Value(cell.Of("pressure", "of", of, "resource", resource), page.Hundred)
			}})
		}
	}
	rows := slices.DeleteFunc(slices.Clone(j.rows), func(r *row) bool { return r.neighbour == "" })
	s := page.Grid(&Quantities, slices.DeleteFunc(slices.Clone(j.All), func(f figure.Figure) bool { return f.Labels.Get("neighbour") == "" }), []string{"target", "neighbour"}, columns)
	if s == nil {
		return nil
	}
	s.Title = "effect of each neighbour"
	s.Notes = []string{"× alone: how many times that of the same round without the neighbour, with the 95 % interval; vs: by how much that is more or less than the baseline keeps; its CPUs: what the neighbour's sandbox used; PSI: for which share of the time some task waited, of the whole node and of the cgroups of workload and neighbour"}
	if partly, all := count(rows, func(w *Window) bool { return w.BesideCPU == nil }); partly > 0 {
		s.Notes = append(s.Notes, fmt.Sprintf("%d of %d windows are not in its CPUs, because the usage of some process of the neighbour is unknown", partly, all))
	}
	s.Notes = append(s.Notes, unpressed(rows)...)
	return s
}

// count returns the number of windows that match, and the total.
func count(rows []*row, such func(*Window) bool) (n, all int) {
	for _, r := range rows {
		for _, w := range r.windows {
			if all++; such(w) {
				n++
			}
		}
	}
	return n, all
}

// unpressed lists the cgroups without pressure data, with the reason.
func unpressed(rows []*row) (notes []string) {
	for of, reason := range []func(*Window) string{func(w *Window) string { return w.Unpressed }, func(w *Window) string { return w.UnpressedBeside }} {
		var reasons []string
		in := map[string][]string{}
		for _, r := range rows {
			windows := map[string]int{}
			for _, w := range r.windows {
				why := reason(w)
				if windows[why]++; why != "" && !slices.Contains(reasons, why) {
					reasons = append(reasons, why)
				}
			}
			for _, why := range reasons {
				if n := windows[why]; n > 0 {
					in[why] = append(in[why], fmt.Sprintf("%s beside %s (%d of %d windows)", page.Heading(r.target), page.Heading(r.neighbour), n, len(r.windows)))
				}
			}
		}
		for _, why := range reasons[:min(len(reasons), page.MaxListed)] {
			notes = append(notes, "no PSI of the "+waiters[1+of]+"'s cgroup of "+page.Listed(in[why])+": "+page.Short(term.Clean(why), page.LongestTitle))
		}
	}
	return notes
}

// cpu returns the table of CPU time per request by role.
func (j *Judgement) cpu(t figure.Set) *page.Section {
	var roles []string
	var rows []*row
	c := &page.Chart{Name: "cpu-per-request", Title: "CPU of a request" + beside(t), Kind: page.Stacked,
		Caption: "CPU time per answer by role on each target, medians over the rounds; the client's is separate.", X: page.Axis{Title: "target"}, Y: page.Axis{Title: "CPU time", Unit: figure.Nanoseconds}}
	for i := range t {
		role := t[i].Labels.Get("role")
		if role != "" && role != "client" && !slices.Contains(roles, role) {
			roles = append(roles, role)
		}
		if role != "" && role != string(allRoles) {
			c.Add(page.At("", t[i].Labels.Get("target"), role), t[i].Estimate, nil)
		}
	}
	for _, cell := range t.Parts("target") {
		rows = append(rows, j.of(cell))
	}
	s := page.Grid(&Quantities, t, []string{"target"}, []page.Quantity{
		{Of: "cpu-per-request", Titles: roles[:1], Draw: func(f *figure.Figure) page.Cell { return page.InBrackets(f, page.Duration) }}, // the role all comes first
		{Of: "cpu-per-request", Titles: append(roles[1:], "client"), Key: "role", Values: append(roles[1:], "client"), Show: page.Duration},
		{Of: "node-busy", Titles: []string{"node busy, CPUs"}, Show: page.Significant},
	})
	if s == nil {
		return nil
	}
	s.Title, s.Notes = "CPU of a request"+beside(t), nil
	if &t[0] == &j.All[0] {
		s.Notes = []string{"CPU time of the window per answer, by role; all: all roles of the target, without the client; kernel work for a process counts as that process's time, interrupts do not count"}
	}
	if partly, all := count(rows, func(w *Window) bool { return w.CPUPartly }); partly > 0 {
		s.Notes = append(s.Notes, fmt.Sprintf("%d of %d windows are not in all, because the usage of some role is unknown", partly, all))
	}
	if t.Get("neighbour") != "" && slices.Contains(roles, string(record.RoleDaemon)) {
		s.Notes = append(s.Notes, "daemon, and thus all, includes its work for the neighbour, which cannot be separated")
	}
	s.Draw(c)
	return s
}

// measured describes the method.
func (j *Judgement) measured() *page.Section {
	var asked, clients []string
	for _, r := range j.rows {
		for _, w := range slices.Concat(r.failed, r.windows) {
			if w.URL != "" {
				asked = append(asked, page.Short(term.Clean(w.URL), page.LongestTitle))
			}
			if w.Sent != nil && w.Sent.Client != "" {
				clients = append(clients, page.Heading(w.Sent.Client))
			}
		}
	}
	connections := "keep-alive connections"
	if j.Plan.Anew {
		connections = "a new connection for each request"
	}
	items := []page.Item{
		{Key: "asked", Text: page.Known(page.Listed(asked))},
		{Key: "load", Text: page.Dotted(connections, "sent by "+page.Known(page.Listed(clients)), "an answer that is not 2xx, is truncated or takes longer than "+page.Duration(float64(j.Plan.Answer))+" is a failure")},
		{Key: "windows", Text: "a new sandbox for each, in random order in each round: start, first answer, warm-up, window"},
	}
	if len(j.Plan.Neighbours) > 0 {
		items = append(items, page.Item{Key: "neighbours", Text: "in another sandbox of the same target, at work before the warm-up and until after the window"})
	}
	return &page.Section{Title: "what was measured", Style: term.Bold, Part: page.Method, Lists: []page.List{{Items: items}}}
}
