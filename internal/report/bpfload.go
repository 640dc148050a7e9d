package report

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/tare-bench/tare/internal/judge"
	"github.com/tare-bench/tare/internal/term"
)

// pointColumns are what tells points apart: their connections, and whatever else
// the plan varies.
func pointColumns(v *judge.BPF) (columns []term.Column, show func(*judge.BPFRow) []cell) {
	p := &v.Plan
	columns = []term.Column{{Title: "connections", Right: true}}
	heavy, services, limits := len(p.Heavy) > 1, len(p.Services) > 1, false
	for i := range v.Rows {
		limits = limits || v.Rows[i].Asked.CPUs != v.Rows[0].Asked.CPUs
	}
	if heavy {
		columns = append(columns, term.Column{Title: "loop rounds", Right: true})
	}
	if services {
		columns = append(columns, term.Column{Title: "services", Right: true})
	}
	if limits {
		columns = append(columns, term.Column{Title: "limit"})
	}
	return columns, func(r *judge.BPFRow) []cell {
		cells := []cell{plain(strconv.Itoa(r.Asked.Connections))}
		if heavy {
			cells = append(cells, plain(strconv.FormatInt(r.Asked.Heavy, 10)))
		}
		if services {
			cells = append(cells, plain(strconv.Itoa(r.Asked.Services)))
		}
		if limits && r.Asked.CPUs > 0 {
			cells = append(cells, plain(cpuLimit(r.Asked.CPUs)))
		} else if limits {
			cells = append(cells, plain("none"))
		}
		return cells
	}
}

// pointMatrix begins a table with a row for each point.
func pointMatrix(v *judge.BPF) *matrix {
	columns, lead := pointColumns(v)
	m := &matrix{lead: columns}
	for i := range v.Rows {
		r := &v.Rows[i]
		cells := lead(r)
		if r.Rounds == 0 || r.Failed > 0 {
			cells[0].style = term.Red
		}
		m.rows = append(m.rows, matrixRow{lead: cells})
	}
	return m
}

// cpuByLoad is the table of the published report, with both shares of the CPU.
func cpuByLoad(v *judge.BPF) *section {
	if !slices.ContainsFunc(v.Rows, func(r judge.BPFRow) bool { return r.Rounds > 0 }) {
		return nil
	}
	s := &section{title: "CPU by load, in percent of one core and of the node", style: term.Bold}
	if v.CPUs > 0 {
		s.title += fmt.Sprintf(" (%d CPUs)", v.CPUs)
	}
	m := pointMatrix(v)
	for _, c := range []struct {
		title    string
		of       func(*judge.BPFRow) judge.Estimate
		brackets bool
	}{
		{"client", func(r *judge.BPFRow) judge.Estimate { return r.ClientCore }, false},
		{"eBPF", func(r *judge.BPFRow) judge.Estimate { return r.BPFCore }, true},
		{"server", func(r *judge.BPFRow) judge.Estimate { return r.ServerCore }, false},
	} {
		show := valued
		if c.brackets {
			show = inBrackets
		}
		m.unless(c.title+" "+ofACore, each(v.Rows, func(r *judge.BPFRow) cell { return show(c.of(r), hundred) }))
		m.unless(c.title+" "+ofTheNode, each(v.Rows, func(r *judge.BPFRow) cell { return show(ofNode(c.of(r), v.CPUs), hundred) }))
	}
	m.unless("busy "+ofTheNode, each(v.Rows, func(r *judge.BPFRow) cell { return valued(r.NodeBusy, hundred) }))
	s.table = m.spread()
	s.notes = []string{"medians over the rounds, in brackets the 95 % interval; " + none + " not known. client: the app that makes the load; busy: all CPUs that were not idle, by the kernel's ticks of 10 ms, and 100 at most; eBPF: run time of all programs that were chosen, less what they take while idle; part of it is in the client's and the server's, in whose calls they run"}
	return s
}

// requestsByLoad is what the client says, and what of a request's time is the
// programs'.
func requestsByLoad(v *judge.BPF) *section {
	if len(v.Rows) == 0 {
		return nil
	}
	s := &section{title: "requests by load", style: term.Bold}
	m := pointMatrix(v)
	m.column("rounds (failed)", each(v.Rows, func(r *judge.BPFRow) cell {
		if r.Failed == 0 {
			return plain(strconv.Itoa(r.Rounds))
		}
		return cell{head: fmt.Sprintf("%d (%d)", r.Rounds, r.Failed), style: term.Red}
	}))
	m.column("QPS", each(v.Rows, func(r *judge.BPFRow) cell { return inBrackets(r.QPS, significant) }))
	for _, q := range []struct {
		title string
		of    func(*judge.BPFRow) judge.Estimate
	}{
		{"p50", func(r *judge.BPFRow) judge.Estimate { return r.P50 }}, {"p90", func(r *judge.BPFRow) judge.Estimate { return r.P90 }},
		{"p99", func(r *judge.BPFRow) judge.Estimate { return r.P99 }}, {"p99.9", func(r *judge.BPFRow) judge.Estimate { return r.P999 }},
	} {
		m.column(q.title, each(v.Rows, func(r *judge.BPFRow) cell { return valued(q.of(r), duration) }))
	}
	m.column("eBPF per request", each(v.Rows, func(r *judge.BPFRow) cell { return inBrackets(r.PerRequest, duration) }))
	m.onlyIf("errors", each(v.Rows, func(r *judge.BPFRow) cell {
		if r.Errors == 0 {
			return plain(dot)
		}
		return cell{head: strconv.FormatInt(r.Errors, 10), style: term.Yellow}
	}))
	m.unless("not sent", each(v.Rows, func(r *judge.BPFRow) cell {
		if r.Unsent == 0 {
			return plain(none)
		}
		return cell{head: strconv.FormatInt(r.Unsent, 10), style: term.Yellow}
	}))
	m.unless("QPS × by statistics", each(v.Rows, priceCell))
	s.table = m.spread()
	for i := range v.Rows {
		if r := &v.Rows[i]; r.Failure != nil {
			s.lists = []list{{items: append(itemsOf(s), failureItems(pointName(v, r), amount(r.Failed, "time")+" failed", r.Failure)...)}}
		}
	}
	if slices.ContainsFunc(v.Rows, func(r judge.BPFRow) bool { return r.P50.Known }) {
		s.notes = []string{loopNote(v)}
	}
	if all := pricePairs(v); all >= fewestPairs {
		s.notes = append(s.notes, "QPS × by statistics: QPS with the kernel's statistics over QPS without, in the same round; ~ where no difference was shown")
	} else if all > 0 {
		s.notes = append(s.notes, fmt.Sprintf("what the kernel's statistics cost is not shown: of fewer than %d rounds it is noise (--rounds)", fewestPairs))
	}
	return s
}

func itemsOf(s *section) []item {
	if len(s.lists) == 0 {
		return nil
	}
	return s.lists[0].items
}

// fewestPairs is how many rounds a price takes. The ratio of one or two pairs is
// whatever the machine did meanwhile; of three the median leaves an outlier out.
const fewestPairs = 3

func priceCell(r *judge.BPFRow) cell {
	if !r.Price.Known || r.PriceRounds < fewestPairs {
		return plain(none)
	}
	c := plain(significant(r.Price.Value) + "×")
	if r.Price.Bounded {
		c.tail = "[" + significant(r.Price.Lo) + ", " + significant(r.Price.Hi) + "]"
	}
	switch {
	case !r.Different:
		c.head = "~ " + c.head
	case r.Price.Value < 1:
		c.style = term.Yellow
	}
	return c
}

// pricePairs is the most rounds that a price is of.
func pricePairs(v *judge.BPF) (most int) {
	for i := range v.Rows {
		most = max(most, v.Rows[i].PriceRounds)
	}
	return most
}

// open tells whether the load came at a fixed rate, whatever became of the answers.
func open(v *judge.BPF) bool {
	return slices.ContainsFunc(v.Rows, func(r judge.BPFRow) bool { return r.Open })
}

func loopNote(v *judge.BPF) string {
	if open(v) {
		return "latencies of an open loop, from when a request was due" + omitted(v)
	}
	return "latencies of a closed loop: those that would have come during a stall are not among them (coordinated omission)"
}

// omitted says whether an open loop's latencies are those of all requests.
func omitted(v *judge.BPF) string {
	var uncounted, bounds int64
	for i := range v.Rows {
		uncounted, bounds = uncounted+v.Rows[i].Uncounted(), bounds+v.Rows[i].Bounds()
	}
	text := ""
	if uncounted > 0 {
		text += fmt.Sprintf("; %s failed and %s in none of them", amount(uncounted, "request"), are(uncounted))
	}
	if bounds > 0 {
		text += fmt.Sprintf("; %s had no answer in time or %s never sent, and count with as long as they were waited for, which is the least", amount(bounds, "request"), were(bounds))
	}
	if text == "" {
		return ": free of coordinated omission"
	}
	return text
}

func are(n int64) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

func were(n int64) string {
	if n == 1 {
		return "was"
	}
	return "were"
}

// pointName names a point in a list.
func pointName(v *judge.BPF, r *judge.BPFRow) string {
	name := amount(r.Asked.Connections, "connection")
	if len(v.Plan.Heavy) > 1 {
		name += ", " + amount(r.Asked.Heavy, "round")
	}
	if len(v.Plan.Services) > 1 {
		name += ", " + amount(r.Asked.Services, "service")
	}
	if v.Plan.CPUs > 0 && r.Asked.CPUs == 0 {
		name += ", no limit"
	}
	return name
}
