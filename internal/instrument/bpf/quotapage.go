package bpf

import (
	"fmt"
	"slices"

	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/term"
)

// quotaTable answers whose limit pays, and shows why.
func quotaTable(v *Judgement) *page.Section {
	q := v.Quota
	if q == nil {
		return nil
	}
	s := &page.Section{Title: "whose limit pays: eBPF time " + page.Heading(string(q.Verdict)), Style: term.Bold}
	switch q.Verdict {
	case QuotaUndecided:
		s.Title, s.Style = "whose limit pays: "+string(q.Verdict), term.Yellow
	case QuotaBeside:
		s.Style = term.Yellow
	}
	if len(q.Steps) > 0 {
		s.Table = quotaMatrix(v, q)
	}
	if v.CPUs > 0 && q.Limit > 0 {
		s.Notes = []string{fmt.Sprintf("the limit of %s is %s %% of a core and %s %% of the node; usage: what the clients' cgroup was charged; workload: that less eBPF", cpuLimit(q.Limit), page.Hundred(q.Limit), page.Hundred(q.Limit/float64(v.CPUs)))}
	}
	if !q.Shared && q.clockAhead() {
		s.Notes = append(s.Notes, "eBPF is above usage in a step: a program's clock goes on while others have its CPU, and only what it ran is charged, or the kernel booked it to another task: it is no part of usage there")
	}
	return s
}

// quotaWhy are the facts behind the answer.
func quotaWhy(v *Judgement) *page.Section {
	q := v.Quota
	if q == nil {
		return nil
	}
	items := under("because", q.Because, page.LongestMessage)
	if q.Rounds > 0 {
		items = append(items, page.Item{Key: "rounds", Text: fmt.Sprintf("%d of %d lead to this by themselves", q.Agree, q.Rounds)})
	}
	return &page.Section{Title: "whose limit pays: why", Style: term.Bold, Lists: []page.List{{Items: items}}}
}

// clockAhead tells whether programs ran for longer than the cgroup was charged in a step:
// their clock goes on while others have the CPU, which the charge does not.
func (q *Quota) clockAhead() bool {
	return slices.ContainsFunc(q.Steps, func(t QuotaStep) bool { return t.Usage.Known() && t.BPF.Value > t.Usage.Value })
}

func quotaMatrix(v *Judgement, q *Quota) *page.Table {
	m := ownTable(v, "weight (loop rounds)", q.Steps, func(t *QuotaStep) int64 { return t.Heavy })
	of := func(title string, show func(*QuotaStep) page.Cell) { m.AddUnless(title, page.Each(q.Steps, show)) }
	of("usage "+ofACore, func(t *QuotaStep) page.Cell { return page.InBrackets(&t.Usage, page.Hundred) })
	of("by tick "+ofACore, func(t *QuotaStep) page.Cell { return page.Value(&t.Ticks, page.Hundred) })
	// What ran for others, too, is no part of the clients' usage.
	programs := "of it eBPF "
	switch {
	case q.Shared:
		programs = "eBPF of all "
	case q.clockAhead():
		programs = "eBPF by its clock "
	}
	of(programs+ofACore, func(t *QuotaStep) page.Cell { return page.InBrackets(&t.BPF, page.Hundred) })
	of("workload "+ofACore, func(t *QuotaStep) page.Cell { return page.Value(&t.Workload, page.Hundred) })
	of("usage "+ofTheNode, func(t *QuotaStep) page.Cell { return page.Value(ofNode(&t.Usage, v.CPUs), page.Hundred) })
	of(programs+ofTheNode, func(t *QuotaStep) page.Cell { return page.Value(ofNode(&t.BPF, v.CPUs), page.Hundred) })
	of("throttled periods %", func(t *QuotaStep) page.Cell { return page.Value(&t.Throttled, page.Hundred) })
	of("QPS", func(t *QuotaStep) page.Cell { return page.Value(&t.QPS, page.Significant) })
	return m
}
