package app

import (
	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/page"
)

func throughputChart(t *Table) *page.Chart {
	c := &page.Chart{Name: "throughput", Title: "Requests per second" + t.beside(), Kind: page.Intervals,
		Caption: "Answers per second on each target" + page.WithRounds, X: page.Axis{Title: "target"}, Y: page.Axis{Title: "requests per second", Unit: figure.PerSecond}}
	for _, r := range t.Rows {
		c.Figure("", "requests per second", r.Target, &r.Throughput)
	}
	return c
}

func latencyChart(t *Table) *page.Chart {
	c := &page.Chart{Name: "latency", Title: "Latency" + t.beside(), Kind: page.Intervals,
		Caption: "Latency at quantiles on each target" + page.WithRounds, X: page.Axis{Title: "quantile"}, Y: page.Axis{Title: "latency", Unit: figure.Nanoseconds}}
	for i, q := range quantiles {
		for _, r := range t.Rows {
			c.Figure("", q.Name, r.Target, &r.Latency[i])
		}
	}
	return c
}

func cpuChart(t *Table) *page.Chart {
	c := &page.Chart{Name: "cpu-per-request", Title: "CPU of a request" + t.beside(), Kind: page.Stacked,
		Caption: "Whose CPU time an answer takes on each target, medians over the rounds; the client's is beside it.", X: page.Axis{Title: "target"}, Y: page.Axis{Title: "CPU time", Unit: figure.Nanoseconds}}
	for _, r := range t.Rows {
		for i := range r.CPU {
			if role := r.CPU[i].Labels.Get("role"); role != string(allRoles) {
				c.Add(page.At("", r.Target, role), r.CPU[i].Estimate, nil)
			}
		}
		c.Add(page.At("", r.Target, "client"), r.ClientCPU.Estimate, nil)
	}
	return c
}
