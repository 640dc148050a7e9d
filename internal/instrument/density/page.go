// Package density measures how many sandboxes fit on a node until a given end. It also
// measures the cost of one more sandbox, how starts slow down, what fails first, and
// how the machine recovers.
// This package has the judgement of a record, its figures and its page. Package run
// executes the plan under a guard that predicts usage.
package density

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/instrument/overhead/ledger"
	"github.com/tare-bench/tare/internal/instrument/terms"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/record"
)

// Page returns the page of the run.
func (j *Judgement) Page(o page.Options) *page.Page {
	p := page.New(j.Plan.Title, Name)
	p.Head, p.Answer = page.Head(j.Record, j.Plan.Rounds), j.answer()
	p.Add(j.howFar(), j.foreseen(), page.Configurations(j.Record.Targets), page.Findings(j.Findings, page.Sandboxes, o))
	p.AddDetails(j.oneMore())
	for i := range j.Targets {
		p.AddDetails(j.bySteps(&j.Targets[i]))
	}
	p.AddDetails(page.Needed(j.Record.Targets), j.whole(o))
	return p
}

// answer states the number of sandboxes, why it ended there, and the cost of one more,
// one sentence per target.
func (j *Judgement) answer() (out []string) {
	for i := range j.Targets {
		t := &j.Targets[i]
		count := t.All.Of("reached")
		if !count.Known() {
			continue
		}
		text := fmt.Sprintf("%s: %s at once, ended by %s", page.Heading(t.Info.Name), page.Sandboxes(int(count.Value)), endedBy(t))
		if slices.ContainsFunc(t.Ends, func(d *record.Density) bool { return d.Why == record.EndAsked }) {
			text = fmt.Sprintf("%s: %s at once, as asked", page.Heading(t.Info.Name), page.Sandboxes(int(count.Value)))
		}
		if slopes := t.such("memory-of-one-more"); len(slopes) > 0 {
			e := slopes[len(slopes)-1].Estimate
			between := "[" + page.MiB(e.Lo) + ", " + page.MiB(e.Hi) + "] MiB"
			switch {
			case !e.Bounded:
				text += "; one more costs " + page.MiB(e.Value) + " MiB"
			case e.Lo <= 0 && e.Hi >= 0:
				text += "; what one more costs is not shown " + between
			default:
				text += "; one more costs " + page.Rounded(e, page.MiB[float64]) + " " + between
			}
		}
		if n := len(t.Steps); n > 1 && t.Steps[0].start().Known() && t.Steps[n-1].start().Known() {
			text += fmt.Sprintf("; a start takes %s in the last step, %s in the first", page.Median(t.Steps[n-1].start()).Head, page.Median(t.Steps[0].start()).Head)
		}
		out = append(out, text+".")
	}
	if out == nil && !j.Plan.DryRun {
		out = []string{"No sandbox was started."}
	}
	return out
}

// whole describes the environment and the steps.
func (j *Judgement) whole(o page.Options) *page.Section {
	p := &j.Plan
	s := page.Run(j.Record, p.Seed, "", o.Verbose)
	s.Lists[0].Items = append(s.Lists[0].Items, page.Item{
		Key: "steps", Text: page.Dotted("until "+p.Until, "at most "+page.Sandboxes(p.Most), page.Amount(p.Rounds, "round"), page.Amount(p.AtOnce, "start")+" at once",
			"each step held "+page.Duration(float64(p.Hold)), terms.LimitsText(p.Limits), page.NodeMemory(j.Record)),
	})
	return s
}

// those returns some targets, and a table with their names.
func (j *Judgement) those(are func(*Target) bool) (m *page.Table, rows []Target) {
	m = page.Names("target")
	for t := range ledger.Each(j.Targets) {
		if are(t) {
			m.Row(page.Words(page.Heading(t.Info.Name)))
			rows = append(rows, *t)
		}
	}
	return m, rows
}

// howFar returns the main table: how many sandboxes ran and what ended it.
func (j *Judgement) howFar() *page.Section {
	m, rows := j.those(func(t *Target) bool { return t.All.Of("reached").Known() })
	if rows == nil {
		return nil
	}
	m.Add("sandboxes", page.Each(rows, func(t *Target) page.Cell { return page.Value(t.All.Of("reached"), page.Count) }))
	m.AddText("ended by", page.Each(rows, func(t *Target) page.Cell { return page.Words(endedBy(t)) }))
	m.Add("rounds", page.Each(rows, func(t *Target) page.Cell { return page.Words(page.Count(float64(len(t.Ends)))) }))
	m.Add("least memory left", page.Each(rows, func(t *Target) page.Cell { return page.Words(leastLeft(t)) }))
	m.Add("removed in", page.Each(rows, func(t *Target) page.Cell { return recovered(t.All.Of("recovery", "of", "removal")) }))
	m.Add("memory back in", page.Each(rows, func(t *Target) page.Cell { return recovered(t.All.Of("recovery", "of", "memory")) }))
	m.AddUnless("left", page.Each(rows, func(t *Target) page.Cell { return leftOver(t.such("left")) }))
	return &page.Section{Title: "how far until " + j.Plan.Until, Style: term.Bold, Table: m, Notes: []string{
		"medians of the rounds; least memory left: minimum of all readings, also during starts; memory back: from the start of the removal until the node's usage was as before, within a twentieth of the sandboxes' usage or 16 MiB, without changes by other processes; left: cgroups, processes and mounts that bear the id of a removed sandbox, the most of any round"}}
}

// recovered formats the recovery time. Rounds without recovery have no time; their
// number is shown.
func recovered(f *figure.Figure) page.Cell {
	c := page.Value(f, page.Duration)
	if f.Failed > 0 {
		c.Tail = fmt.Sprintf("(%d not back)", f.Failed)
	}
	return c
}

// leftOver formats the total number of leftovers. It names the kinds that could not be
// read in every round.
func leftOver(left []*figure.Figure) page.Cell {
	n, rounds := 0.0, 0
	for i := range left {
		n, rounds = n+left[i].Estimate.Value, max(rounds, len(left[i].Rounds))
	}
	if rounds == 0 {
		return page.Words(page.None)
	}
	c := page.Words(page.Count(n))
	for i := range left {
		if len(left[i].Rounds) < rounds {
			c.Tail += "(" + left[i].Labels.Get("of") + " unknown)"
		}
	}
	return c
}

// endedBy lists why the visits ended, each reason once.
func endedBy(t *Target) string {
	var all []string
	for _, d := range t.Ends {
		word := map[string]string{record.EndAsked: "as asked", record.EndTripped: "guard, touched", record.EndOthers: "others took memory", record.EndFailure: "failure", record.EndMost: "most", record.EndBudget: "budget"}[d.Why]
		switch {
		case d.Why == record.EndResource:
			word = d.Resource
		case word == "":
			word = page.Heading(d.Why)
		}
		if !slices.Contains(all, word) {
			all = append(all, word)
		}
	}
	return term.Clean(strings.Join(all, ", "))
}

// memoryOf returns the node's memory in a visit, or nil.
func memoryOf(d *record.Density) *record.Room {
	return ledger.Find(d.Rooms, func(r *record.Room) bool { return r.Name == Memory })
}

func leastLeft(t *Target) string {
	var all []int64
	for _, d := range t.Ends {
		if r := memoryOf(d); r != nil {
			all = append(all, r.Least)
		}
	}
	if all == nil {
		return page.None
	}
	return page.Memory(float64(slices.Min(all)))
}

// foreseen returns the predictions of a dry run. Other runs measure the number instead.
func (j *Judgement) foreseen() *page.Section {
	if !j.Plan.DryRun {
		return nil
	}
	m, rows := j.those(func(t *Target) bool { return t.Trial != nil && t.Trial.Why == record.EndTrial })
	memory := func(title string, of func(*record.Room) int64) {
		m.Add(title, page.Each(rows, func(t *Target) page.Cell {
			return page.Words(page.Memory(float64(of(cmp.Or(memoryOf(t.Trial), new(record.Room))))))
		}))
	}
	m.Add("at least", page.Each(rows, func(t *Target) page.Cell { return page.Words(page.Count(float64(t.Trial.Fit))) }))
	m.AddText("bounded by", page.Each(rows, func(t *Target) page.Cell {
		if by := t.Trial.Resource; by != "" {
			return page.Words(page.Heading(by))
		}
		return page.Words("request")
	}))
	memory("one takes at most", func(r *record.Room) int64 { return r.Each })
	memory("left now", func(r *record.Room) int64 { return r.Before })
	memory("never touched", func(r *record.Room) int64 { return r.Floor })
	memory("kept above", func(r *record.Room) int64 { return r.Spare })
	return &page.Section{Title: "dry run: how far it would go until " + j.Plan.Until, Style: term.Bold, Table: m, Notes: []string{
		"from a trial of 3 sandboxes on each target, which were removed; nothing else was started. One takes at most: the maximum usage of one of them, including changes by other processes, so more may fit"}}
}

// bySteps returns the table of a target's steps.
func (j *Judgement) bySteps(t *Target) *page.Section {
	if len(t.Steps) == 0 {
		return nil
	}
	of, roles := []string{"node"}, []string{"MiB each"}
	for _, f := range t.such("memory-per-sandbox") {
		if role := f.Labels.Get("of"); !slices.Contains(of, role) {
			of, roles = append(of, role), append(roles, role)
		}
	}
	s := page.Grid(&Quantities, t.All, []string{"sandboxes"}, []page.Quantity{
		{Of: "start-latency", Titles: []string{"start"}, Draw: page.Median},
		{Of: "start-latency-times", Titles: []string{"× first"}, Draw: func(f *figure.Figure) page.Cell {
			c := page.Value(f, page.Significant)
			c.Tail = page.Between(f.Estimate, page.Significant)
			return c
		}},
		{Of: "memory-per-sandbox", Titles: roles, Key: "of", Values: of, Show: page.MiB[float64]},
		{Of: "cpu-per-sandbox", Titles: []string{"CPU m each"}, Show: page.Milli},
	})
	if s == nil {
		return nil
	}
	for i := range t.Steps {
		if t.Steps[i].Last {
			s.Table.Rows[i][0] = page.Words(page.Count(float64(t.Steps[i].Sandboxes)) + ", the last")
		}
	}
	rounds := "median of the rounds' medians"
	if t.Visited == 1 {
		rounds = "median of the one round's starts"
	}
	s.Title = page.Heading(t.Info.Name) + " by step"
	s.Notes = []string{
		"start: " + started(t) + rounds + ", with the larger half of its 95 % interval; × first: ratio to the first step, of all starts, each compared within its round, with its interval; MiB each: growth of the node's memory usage per sandbox, without other processes, and of it by role; CPU: of all roles, while idle"}
	s.Draw(j.charts(t)...)
	return s
}

// started describes the precision of start times that end at readiness.
func started(t *Target) (text string) {
	var all []*seen
	for i := range t.Steps {
		all = append(all, t.Steps[i].seen...)
	}
	worst, atMost, asked := polled(all)
	if asked == 0 {
		return ""
	}
	text = "until the workload was ready"
	if worst > 0 {
		text += ", known to " + page.Duration(worst) + " at worst"
	}
	return text + page.ReadyAtMost(atMost, asked) + "; "
}

// charts draws start latency and memory by number of sandboxes.
func (j *Judgement) charts(t *Target) []*page.Chart {
	name := page.Heading(t.Info.Name)
	latency := &page.Chart{Name: "start-latency", Title: name + ": start latency", Kind: page.Lines,
		Caption: "How long a start took in each step, over how many sandboxes were there after it, with the 95 % interval where there is one.",
		X:       page.Axis{Title: "sandboxes"}, Y: page.Axis{Title: "start latency", Unit: figure.Nanoseconds}}
	memory := &page.Chart{Name: "memory-per-sandbox", Title: name + ": memory by sandbox", Kind: page.Lines,
		Caption: "Growth of the node's memory usage per sandbox, without other processes, in total and by role.",
		X:       page.Axis{Title: "sandboxes"}, Y: page.Axis{Title: "memory by sandbox", Unit: figure.Bytes}}
	for i := range t.Steps {
		s := &t.Steps[i]
		add := func(c *page.Chart, series string, f *figure.Figure) {
			at := page.At("", "", series)
			at.X, at.Bound = float64(s.Sandboxes), f.Bound()
			c.Add(at, f.Estimate, nil)
		}
		add(latency, name, s.start())
		for k := range s.All {
			if f := &s.All[k]; f.Quantity == "memory-per-sandbox" {
				add(memory, f.Labels.Get("of"), f)
			}
		}
	}
	return []*page.Chart{latency, memory}
}

// oneMore returns the table of the cost of one more sandbox, between bends.
func (j *Judgement) oneMore() *page.Section {
	m := page.Names("target", "sandboxes")
	var rows []*figure.Figure
	for i := range j.Targets {
		name := page.Heading(j.Targets[i].Info.Name)
		for _, f := range j.Targets[i].such("memory-of-one-more") {
			m.Row(page.Words(name), page.Words(f.Labels.Get("from")+" to "+f.Labels.Get("to")))
			rows, name = append(rows, f), ""
		}
	}
	if rows == nil {
		return nil
	}
	m.Add("MiB", page.Each(rows, func(f **figure.Figure) page.Cell {
		e := (*f).Estimate
		return page.Cell{Head: page.Rounded(e, page.MiB[float64]), Tail: page.Between(e, page.MiB[float64]), Figure: *f}
	}))
	notes := []string{"the slope of the node's memory over the steps of all rounds, with its 95 % interval; a target has several rows where it bends: where the slopes before and after have intervals apart, adjusted for all counts that were tried, and differ by a fifth or more"}
	for _, f := range rows {
		for _, why := range f.Reasons {
			if !slices.Contains(notes, why) {
				notes = append(notes, why)
			}
		}
	}
	return &page.Section{Title: "one more sandbox costs", Style: term.Bold, Table: m, Notes: notes}
}
