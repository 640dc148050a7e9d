package report

import (
	"fmt"
	"strconv"

	"github.com/tare-bench/tare/internal/judge"
	"github.com/tare-bench/tare/internal/term"
)

// quotaTable answers whose limit pays, and shows why.
func quotaTable(v *judge.BPF) *section {
	q := v.Quota
	if q == nil {
		return nil
	}
	s := &section{title: "whose limit pays: eBPF time " + heading(string(q.Verdict)), style: term.Bold}
	switch q.Verdict {
	case judge.QuotaUndecided:
		s.title, s.style = "whose limit pays: "+string(q.Verdict), term.Yellow
	case judge.QuotaBeside:
		s.style = term.Yellow
	}
	if len(q.Steps) > 0 {
		s.table = quotaMatrix(v, q).spread()
	}
	var items []item
	for i, because := range q.Because {
		key := ""
		if i == 0 {
			key = "because"
		}
		items = append(items, item{key: key, text: short(term.Clean(because), longestMessage)})
	}
	if q.Rounds > 0 {
		items = append(items, item{key: "rounds", text: fmt.Sprintf("%d of %d lead to this by themselves", q.Agree, q.Rounds)})
	}
	s.lists = []list{{items: items}}
	if v.CPUs > 0 && q.Limit > 0 {
		s.notes = []string{fmt.Sprintf("the limit of %s is %s %% of a core and %s %% of the node; usage: what the clients' cgroup was charged; workload: that less eBPF", cpuLimit(q.Limit), hundred(q.Limit), hundred(q.Limit/float64(v.CPUs)))}
	}
	return s
}

func quotaMatrix(v *judge.BPF, q *judge.BPFQuota) *matrix {
	m := &matrix{lead: []term.Column{{Title: "weight (loop rounds)", Right: true}}}
	for i := range q.Steps {
		m.rows = append(m.rows, matrixRow{lead: []cell{plain(strconv.FormatInt(q.Steps[i].Heavy, 10))}})
	}
	of := func(title string, show func(*judge.BPFQuotaStep) cell) { m.unless(title, each(q.Steps, show)) }
	of("usage "+ofACore, func(t *judge.BPFQuotaStep) cell { return inBrackets(t.Usage, hundred) })
	of("by tick "+ofACore, func(t *judge.BPFQuotaStep) cell { return valued(t.Ticks, hundred) })
	// Chosen programs run for others, too: that is no part of the clients' usage.
	programs := "of it eBPF "
	if v.Plan.Datapath == "" {
		programs = "eBPF of all "
	}
	of(programs+ofACore, func(t *judge.BPFQuotaStep) cell { return inBrackets(t.BPF, hundred) })
	of("workload "+ofACore, func(t *judge.BPFQuotaStep) cell { return valued(t.Workload, hundred) })
	of("usage "+ofTheNode, func(t *judge.BPFQuotaStep) cell { return valued(ofNode(t.Usage, v.CPUs), hundred) })
	of(programs+ofTheNode, func(t *judge.BPFQuotaStep) cell { return valued(ofNode(t.BPF, v.CPUs), hundred) })
	of("throttled periods %", func(t *judge.BPFQuotaStep) cell { return valued(t.Throttled, hundred) })
	of("QPS", func(t *judge.BPFQuotaStep) cell { return valued(t.QPS, significant) })
	return m
}
