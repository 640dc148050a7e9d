package notes

import (
	"fmt"
	"slices"

	"github.com/tare-bench/tare/internal/plan"
	"github.com/tare-bench/tare/record"
)

// Gathered is what several texts make together.
type Gathered struct {
	Plan     plan.Storage
	Targets  []record.Target
	Cells    []record.Cell
	Findings []record.Finding
}

// Gather makes one record's content of what texts hold. Results of one target,
// volume, cache and job are rounds of one another, in the order of the texts.
func Gather(all ...*Notes) Gathered {
	var g Gathered
	jobs := jobsOf(all)
	rounds := map[[4]string]int{}
	for _, n := range all {
		for _, r := range n.Results {
			c := r.cell(n.Name, jobs.of(r))
			at := [4]string{c.Target, c.Volume, c.Cache, c.Job}
			c.Round = rounds[at]
			rounds[at]++
			g.Cells = append(g.Cells, c)
		}
		g.Findings = append(g.Findings, n.Findings...)
	}
	g.plan(jobs)
	g.Findings = append(g.Findings, record.Finding{Code: FoundUnknown, Level: "note",
		Message: "imported: these are figures that tools printed earlier; nothing was seen at a device, and the machines, their kernels and their runtimes are not known",
		Advice:  "run tare storage to have them with what happened at the device"})
	return g
}

// plan is what would have been asked for.
func (g *Gathered) plan(jobs *jobs) {
	p := plan.Storage{Title: "imported results", Targets: []string{}, Volumes: []string{}, Cache: []string{}, Jobs: jobs.all, Scale: 1}
	for _, c := range g.Cells {
		if !slices.Contains(p.Targets, c.Target) {
			p.Targets = append(p.Targets, c.Target)
			g.Targets = append(g.Targets, record.Target{Name: c.Target, Kind: "imported"})
		}
		if !slices.Contains(p.Volumes, c.Volume) {
			p.Volumes = append(p.Volumes, c.Volume)
		}
		if !slices.Contains(p.Cache, c.Cache) {
			p.Cache = append(p.Cache, c.Cache)
		}
		p.Rounds = max(p.Rounds, c.Round+1)
	}
	g.Plan = p
}

// cell is the record's line of a result.
func (r *Result) cell(source, job string) record.Cell {
	c := record.Cell{
		Type: record.TypeCell, Target: r.Target, Volume: r.Volume, Cache: r.Cache, Job: job,
		Tool: r.Job.Tool, Version: r.Version, Command: r.Command, Source: fmt.Sprintf("%s:%d", source, r.Line),
	}
	if r.Failure != "" {
		c.Failure = &record.Failure{Kind: record.FailExit, Detail: r.Failure, Command: r.Command}
		return c
	}
	claim := r.Claim
	c.Claim = &claim
	return c
}
