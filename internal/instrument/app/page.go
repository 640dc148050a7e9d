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

// Page is what a person reads of the run.
func (j *Judgement) Page(o page.Options) *page.Page {
	p := page.New(j.Plan.Title, Name)
	p.Head, p.Answer = page.Head(j.Record, j.Plan.Rounds), j.answer()
	for i := range j.Tables {
		p.Add(j.requests(&j.Tables[i]))
	}
	if len(j.Tables) == 0 {
		p.Add(&page.Section{Title: "nothing was loaded"})
	}
	p.Failed(j.Failed, fmt.Sprintf("failed %d/%d windows", j.Failed, j.Total))
	p.Add(page.Findings(j.Found, page.Lanes, o))
	p.AddDetails(j.neighbours())
	for i := range j.Tables {
		p.AddDetails(j.cpu(&j.Tables[i]))
	}
	for i := range j.Tables {
		if s := page.Shifts(j.Tables[i].rows(j.Baseline), j.Plan.Comparing); s != nil {
			s.Title += j.Tables[i].beside()
			p.AddDetails(s)
		}
	}
	p.AddDetails(j.measured(), page.Needed(j.Record.Targets), j.whole(o))
	return p
}

// answer is how many requests a second each target answered, and what CPU time one took: a
// sentence for each table.
func (j *Judgement) answer() (out []string) {
	for i := range j.Tables {
		t := &j.Tables[i]
		var rates, costs []answer.Named
		for _, r := range t.Rows {
			rates = append(rates, answer.Named{Name: r.Target, Figure: &r.Throughput})
			costs = append(costs, answer.Named{Name: r.Target, Figure: r.role(allRoles)})
		}
		if rates = answer.Known(rates); len(rates) == 0 {
			continue
		}
		text := "requests a second" + t.beside() + ": " + answer.Values(rates, j.Baseline)
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

// whole says what ran where, and how it was loaded.
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

// beside ends the title of a table's sections.
func (t *Table) beside() string {
	if t.Neighbour == "" {
		return ""
	}
	return " beside " + page.Heading(t.Neighbour)
}

// names begins a table with a row for each target.
func (t *Table) names() *page.Table {
	m := page.Names("target")
	for _, r := range t.Rows {
		c := page.Words(page.Heading(r.Target))
		if r.Failed > 0 || r.Errors > 0 {
			c.Style = term.Red
		}
		m.Row(c)
	}
	return m
}

// each makes a column of figures.
func (t *Table) each(show func(*Row) page.Cell) []page.Cell {
	return page.Each(t.Rows, func(r **Row) page.Cell { return show(*r) })
}

// requests is what the client says.
func (j *Judgement) requests(t *Table) *page.Section {
	s := &page.Section{Title: "requests" + t.beside(), Style: term.Bold, Table: t.names()}
	m := s.Table
	m.Add("rounds (failed)", t.each(func(r *Row) page.Cell {
		if r.Failed == 0 {
			return page.Words(strconv.Itoa(r.Rounds))
		}
		return page.Cell{Head: fmt.Sprintf("%d (%d)", r.Rounds, r.Failed), Style: term.Red}
	}))
	m.Add("requests/s", t.each(func(r *Row) page.Cell { return page.WithHalf(&r.Throughput, page.Significant, page.None) }))
	m.Draw(page.Estimates)
	m.AddUnless("× host", t.each(func(r *Row) page.Cell { return times(&r.OfHost) }))
	for i, q := range quantiles {
		m.Add(q.Name, t.each(func(r *Row) page.Cell { return page.Value(&r.Latency[i], page.Duration) }))
	}
	m.AddUnless("first answer", t.each(func(r *Row) page.Cell { return page.Value(&r.Ready, page.Duration) }))
	m.AddUnless("first request", t.each(func(r *Row) page.Cell { return page.Value(&r.First, page.Duration) }))
	m.AddIf("failed", t.each(func(r *Row) page.Cell {
		if r.Errors == 0 {
			return page.Words(page.Dot)
		}
		return page.Cell{Head: fmt.Sprintf("%d/%d", r.Errors, r.Requests), Style: term.Red}
	}))
	var items []page.Item
	for _, r := range t.Rows {
		if r.Failure != nil {
			items = append(items, page.FailureItems(page.Heading(r.Target), fmt.Sprintf("%d of %d windows failed", r.Failed, r.Failed+r.Rounds), r.Failure)...)
		}
	}
	if items != nil {
		s.Lists = []page.List{{Items: items}}
	}
	if t == &j.Tables[0] {
		s.Notes = []string{j.latencies()}
	}
	s.Draw(throughputChart(t), latencyChart(t))
	return s
}

// latencies says what the latencies are of.
func (j *Judgement) latencies() string {
	text := "medians over the rounds; a round's latencies are of its answers: of a closed loop those that would have come during a stall are not among them (coordinated omission; --rate counts them)"
	if j.Plan.Rate > 0 {
		text = "medians over the rounds; an open loop's latencies are from when a request was due; what had no answer in time, or was never sent, counts with as long as it was waited for"
	}
	widest, atMost, asked, requested := 0.0, 0, 0, false
	for i := range j.Tables {
		for _, r := range j.Tables[i].Rows {
			widest, atMost, asked = max(widest, r.Resolution), atMost+r.AtMost, asked+r.Asked
			requested = requested || r.First.Known()
		}
	}
	text += "; first answer: from the start of the sandbox until " + j.sign() + ", asked again and again"
	if widest > 0 {
		text += fmt.Sprintf(" (resolution %s at worst)", page.Duration(widest))
	}
	text += page.ReadyAtMost(atMost, asked)
	if requested {
		text += "; first request: that one alone"
	}
	return text
}

// sign is what the first answer is.
func (j *Judgement) sign() string {
	ready := j.Plan.WhenReady(j.Plan.Ready)
	switch by, _, _ := strings.Cut(string(ready), ":"); by {
	case setting.ReadyHTTP:
		return "a request was answered"
	case setting.ReadyTCP:
		return "a connection was accepted, which is no answer yet (" + page.Heading(string(ready)) + ")"
	}
	return "it was ready by its own sign, which is no answer yet (" + page.Heading(string(ready)) + ")"
}

// times is a ratio with its interval.
func times(f *figure.Figure) page.Cell {
	c := page.InBrackets(f, page.Significant)
	if c.Figure != nil {
		c.Head = page.Mark(f.Versus) + c.Head
	}
	return c
}

// neighbours is what each neighbour takes.
func (j *Judgement) neighbours() *page.Section {
	if !slices.ContainsFunc(j.Tables, func(t Table) bool { return t.Neighbour != "" }) {
		return nil
	}
	s := &page.Section{Title: "what a neighbour takes", Style: term.Bold, Table: page.Names("target", "beside")}
	var rows []*Row
	for i := range j.Tables {
		for _, r := range j.Tables[i].Rows {
			if r.Neighbour != "" {
				rows = append(rows, r)
				s.Table.Row(page.Words(page.Heading(r.Target)), page.Words(page.Heading(r.Neighbour)))
			}
		}
	}
	add := func(title string, show func(*Row) page.Cell) {
		s.Table.Add(title, page.Each(rows, func(r **Row) page.Cell { return show(*r) }))
	}
	add("requests/s × alone", func(r *Row) page.Cell { return page.InBrackets(&r.Kept, page.Significant) })
	s.Table.Draw(page.Estimates)
	if j.Baseline != "" {
		add("vs "+page.Heading(j.Baseline), func(r *Row) page.Cell { return page.Change(&r.Kept) })
	}
	add("p99 × alone", func(r *Row) page.Cell { return times(&r.P99OfAlone) })
	s.Table.AddUnless("its CPUs", page.Each(rows, func(r **Row) page.Cell { return page.Value(&(*r).BesideCPU, page.Significant) }))
	for _, of := range waiters {
		for _, resource := range resources {
			s.Table.AddUnless("PSI "+of+" "+resource+" %", page.Each(rows, func(r **Row) page.Cell {
				f := figure.Find((*r).Pressed, "pressure", "of", of, "resource", resource)
				return page.Value(&f, page.Hundred)
			}))
		}
	}
	s.Notes = []string{"× alone: how many times that of the same round without the neighbour, with the 95 % interval; vs: by how much that is more or less than the baseline keeps; its CPUs: what the neighbour's sandbox used; PSI: for which share of the time some task waited, of the whole node and of the cgroups of workload and neighbour"}
	partly, rounds := 0, 0
	for _, r := range rows {
		partly, rounds = partly+r.PartlyBeside, rounds+r.Rounds
	}
	if partly > 0 {
		s.Notes = append(s.Notes, fmt.Sprintf("%d of %d windows are not in its CPUs: what some process of the neighbour used was not known in them", partly, rounds))
	}
	s.Notes = append(s.Notes, unpressed(rows)...)
	return s
}

// unpressed says of whose cgroups no pressure is known, and why.
func unpressed(rows []*Row) (notes []string) {
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
					in[why] = append(in[why], fmt.Sprintf("%s beside %s (%d of %d windows)", page.Heading(r.Target), page.Heading(r.Neighbour), n, r.Rounds))
				}
			}
		}
		for _, why := range reasons[:min(len(reasons), page.MaxListed)] {
			notes = append(notes, "no PSI of the "+waiters[1+of]+"'s cgroup of "+page.Listed(in[why])+": "+page.Short(term.Clean(why), page.LongestTitle))
		}
	}
	return notes
}

// cpu is whose CPU time a request takes.
func (j *Judgement) cpu(t *Table) *page.Section {
	s := &page.Section{Title: "CPU of a request" + t.beside(), Style: term.Bold, Table: t.names()}
	for _, role := range t.roles() {
		s.Table.Add(string(role), t.each(func(r *Row) page.Cell {
			show := page.Value
			if role == allRoles {
				show = page.InBrackets
			}
			return show(r.role(role), page.Duration)
		}))
	}
	s.Table.Add("client", t.each(func(r *Row) page.Cell { return page.Value(&r.ClientCPU, page.Duration) }))
	s.Table.Add("node busy, CPUs", t.each(func(r *Row) page.Cell { return page.Value(&r.Busy, page.Significant) }))
	if t == &j.Tables[0] {
		s.Notes = []string{"CPU time of the window by whose processes used it, for each answer; all: of the target's roles together, without the client; the kernel's work for a process is in that process's time, and what it does in interrupts in nobody's"}
	}
	partly, rounds := 0, 0
	for _, r := range t.Rows {
		partly, rounds = partly+r.Partly, rounds+r.Rounds
	}
	if partly > 0 {
		s.Notes = append(s.Notes, fmt.Sprintf("%d of %d windows are not in all: what some role used was not known in them", partly, rounds))
	}
	if t.Neighbour != "" && slices.Contains(t.roles(), record.RoleDaemon) {
		s.Notes = append(s.Notes, "daemon, and so all: also what it does for the neighbour, which cannot be told apart")
	}
	s.Draw(cpuChart(t))
	return s
}

// roles are those of a table, all of them together first.
func (t *Table) roles() (all []record.Role) {
	for _, r := range t.Rows {
		for i := range r.CPU {
			if role := record.Role(r.CPU[i].Labels.Get("role")); !slices.Contains(all, role) {
				all = append(all, role)
			}
		}
	}
	return all
}

// role is the CPU time of a request that a role used.
func (r *Row) role(role record.Role) *figure.Figure {
	f := figure.Find(r.CPU, "cpu-per-request", "role", string(role))
	return &f
}

// measured says what was done.
func (j *Judgement) measured() *page.Section {
	var asked, clients []string
	for i := range j.Tables {
		for _, r := range j.Tables[i].Rows {
			if r.URL != "" {
				asked = append(asked, page.Short(term.Clean(r.URL), page.LongestTitle))
			}
			if r.Client != "" {
				clients = append(clients, page.Heading(r.Client))
			}
		}
	}
	connections := "connections that are kept"
	if j.Plan.Anew {
		connections = "a new connection for each request"
	}
	items := []page.Item{
		{Key: "asked", Text: page.Known(page.Listed(asked))},
		{Key: "load", Text: page.Dotted(connections, "sent by "+page.Known(page.Listed(clients)), "an answer that is no 2xx, is cut off or does not come within "+page.Duration(float64(j.Plan.Answer))+" is a failure")},
		{Key: "windows", Text: "a sandbox of its own for each, in random order in each round: start, first answer, warm-up, window"},
	}
	if len(j.Plan.Neighbours) > 0 {
		items = append(items, page.Item{Key: "neighbours", Text: "in another sandbox of the same target, at work before the warm-up and until after the window"})
	}
	return &page.Section{Title: "what was measured", Style: term.Bold, Part: page.Method, Lists: []page.List{{Items: items}}}
}
