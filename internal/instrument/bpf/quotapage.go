package bpf

import (
	"fmt"
	"slices"

	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/term"
)

// quotaTable states whether eBPF time counts against the limit, with the figures behind
// the verdict.
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
		s.Notes = append(s.Notes, "eBPF is above usage in a step: a program's clock continues while it is preempted, but only its run time is charged, or the kernel charged another task: it is not part of usage there")
	}
	return s
}

// quotaWhy lists the facts behind the verdict.
func quotaWhy(v *Judgement) *page.Section {
	q := v.Quota
	if q == nil {
		return nil
	}
	items := under("because", q.Because, page.LongestMessage)
	if q.Rounds > 0 {
		items = append(items, page.Item{Key: "rounds", Text: fmt.Sprintf("%d of %d reach this verdict on their own", q.Agree, q.Rounds)})
	}
	return &page.Section{Title: "whose limit pays: why", Style: term.Bold, Lists: []page.List{{Items: items}}}
}

// clockAhead reports whether programs ran longer in a step than the cgroup was charged.
// The run-time clock continues while other tasks have the CPU; the charge does not.
func (q *Quota) clockAhead() bool {
	return slices.ContainsFunc(q.Steps, func(t QuotaStep) bool { return t.Usage.Known() && t.BPF.Value > t.Usage.Value })
}

func quotaMatrix(v *Judgement, q *Quota) *page.Table {
	m := ownTable(v, "weight (loop rounds)", q.Steps, func(t *QuotaStep) int64 { return t.Heavy })
	of := func(title string, show func(*QuotaStep) page.Cell) { m.AddUnless(title, page.Each(q.Steps, show)) }
	of("usage "+ofACore, func(t *QuotaStep) page.Cell { return page.InBrackets(&t.Usage, page.Hundred) })
	of("by tick "+ofACore, func(t *QuotaStep) page.Cell { return page.Value(&t.Ticks, page.Hundred) })
	// Programs that also run for others are not part of the clients' usage.
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
