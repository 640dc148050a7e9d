package bpf

import (
	"fmt"
	"strconv"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/record"
)

// Page returns the page of the run.
func (j *Judgement) Page(o page.Options) *page.Page {
	p := page.New(j.Plan.Title, Name)
	p.Head, p.Answer = head(j), j.answer()
	cpu := cpuByLoad(j)
	p.Add(quotaTable(j), growthTable(j))
	if j.Quota == nil { // the quota table already has CPU
		p.Add(cpu)
		cpu = nil
	}
	requests := requestsByLoad(j)
	if j.Imported != nil {
		p.Add(requests)
		requests = nil
	}
	if len(j.Rows) == 0 && len(j.Growth) == 0 {
		p.Add(&page.Section{Title: "no point was measured"})
	}
	p.Failed(j.Failed, fmt.Sprintf("failed %d/%d points, round by round", j.Failed, j.Total))
	p.Add(page.Findings(j.Found, page.Lanes, o))
	p.AddDetails(quotaWhy(j), cpu, growthEach(j, o), requests, byProgram(j, o), programsTable(j, o), mapsTable(j, o), howMeasured(j), page.Needed(j.Record.Targets), whole(j, o))
	return p
}

// Result returns the number of failed points, the total, and the findings.
func (j *Judgement) Result() (failed, total int, findings []record.Finding) {
	return j.Failed, j.Total, j.Found
}

// Figures returns all figures of the run: points, programs, quota steps and memory.
func (j *Judgement) Figures() (all []figure.Figure) {
	for i := range j.Rows {
		r := &j.Rows[i]
		all = append(all, r.All...)
		if r.Rounds > 0 {
			all = append(all, exactly("request-errors", labelsOf(&r.Asked), r.Errors), exactly("requests-not-sent", labelsOf(&r.Asked), r.Unsent))
		}
		if r.Lag > 0 {
			all = append(all, exactly("send-lag", labelsOf(&r.Asked), r.Lag))
		}
		for _, p := range r.Programs {
			all = append(all, p.Rate, p.Each, p.Core, p.PerRequest, exactly("program-misses", p.Rate.Labels, p.Misses))
		}
	}
	if q := j.Quota; q != nil {
		for _, s := range q.Steps {
			for _, f := range []figure.Figure{s.Usage, s.Ticks, s.BPF, s.Workload, s.Throttled, s.QPS} {
				f.Verdict, f.Reasons = string(q.Verdict), q.Because
				all = append(all, f)
			}
		}
	}
	all = append(all, j.memory()...)
	return all
}

// memory returns the memory figures: in total, per program and map, and per number of
// services.
func (j *Judgement) memory() (all []figure.Figure) {
	all = append(all, exactly("memory", figure.Of("of", "both"), j.Memory))
	for i := range j.Programs {
		p := &j.Programs[i]
		labels := figure.Of("program", p.Name, "id", strconv.FormatUint(uint64(p.ID), 10))
		all = append(all, exactly("program-memory", labels, p.Memory))
		if p.Instructions > 0 {
			all = append(all, exactly("program-instructions", labels, p.Instructions))
		}
		if p.Jited > 0 {
			all = append(all, exactly("program-machine-code", labels, p.Jited))
		}
		for _, m := range p.Maps {
			all = append(all, exactly("map-memory", labels.With("map", m.Name).With("map-id", strconv.FormatUint(uint64(m.ID), 10)), plus(m.Memory, m.InnerMemory)))
		}
	}
	for i := range j.Record.Maps {
		m := &j.Record.Maps[i].Map
		labels := figure.Of("map", m.Name, "map-id", strconv.FormatUint(uint64(m.ID), 10))
		all = append(all, exactly("map-memory", labels, plus(m.Memory, m.InnerMemory)))
	}
	for i := range j.Growth {
		g := &j.Growth[i]
		services := figure.Of("services", strconv.Itoa(g.Services))
		if j.Plan.Datapath == "" {
			services = nil
		}
		all = append(all, exactly("memory", services.With("of", "programs"), g.Programs),
			exactly("memory", services.With("of", "maps"), g.Maps),
			exactly("memory", services.With("of", "both").With("when", "under load"), g.UnderLoad))
		for _, m := range g.Each {
			kind, id := "program", "id"
			if m.Map {
				kind, id = "map", "map-id"
			}
			all = append(all, exactly(kind+"-memory", services.With(kind, m.Name).With(id, strconv.FormatUint(uint64(m.ID), 10)), m.Memory))
		}
	}
	return all
}

// exactly returns a figure with a value that was read, not estimated. It is unknown if
// n is negative.
func exactly(quantity string, labels figure.Labels, n int64) figure.Figure {
	f := Quantities.New(quantity, figure.Estimate{}, labels)
	if n >= 0 {
		f.Estimate = figure.Exactly(float64(n))
	}
	return f
}
