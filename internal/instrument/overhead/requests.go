package overhead

import (
	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/core/stat"
	"github.com/tare-bench/tare/internal/instrument/overhead/ledger"
)

// everyTarget replaces the target's name if all targets have the same requests.
const everyTarget = "every"

// requests computes pod requests without overhead, with the overheads in the plan, and with
// each recommended one. Without limits there are no requests: a kubelet uses limits as
// defaults of requests.
func (j *Judgement) requests() {
	limits := &j.Plan.Limits
	if limits.CPU == 0 && limits.Memory == 0 {
		return
	}
	cpus, memory, _ := j.allocatable()
	add := func(target, overhead string, moreCPU, moreMemory float64) {
		l := listed{labels: figure.Of("target", target, "overhead", overhead)}
		for _, of := range []struct {
			resource         string
			unit             figure.Unit
			sum, allocatable float64
		}{{"cpu", figure.CPUs, limits.CPU + moreCPU, cpus}, {"memory", figure.Bytes, float64(limits.Memory) + moreMemory, memory}} {
			if of.sum > 0 {
				l.add("request", of.sum, "resource", of.resource).Unit = of.unit
			}
			if share := of.sum / of.allocatable; share > 0 && stat.Finite(share) {
				l.add("request-share", share, "resource", of.resource)
			}
		}
		j.Requests = append(j.Requests, l.all...)
	}
	add(everyTarget, "none", 0, 0)
	if limits.OverheadCPU > 0 || limits.OverheadMemory > 0 {
		add(everyTarget, "limits", limits.OverheadCPU, float64(limits.OverheadMemory))
	}
	for i := range j.Targets {
		if k := j.Targets[i].Kubernetes; k != nil && k.Overhead != nil {
			add(j.Targets[i].Name, declared, float64(k.Overhead.CPU)/1000, float64(k.Overhead.Memory))
		}
	}
	if of := j.Plan.Check; of != nil && !of.Declared && (float64(of.CPU)/1000 != limits.OverheadCPU || of.Memory != limits.OverheadMemory) {
		add(everyTarget, "check", float64(of.CPU)/1000, float64(of.Memory))
	}
	for c := range ledger.Each(j.Classes) {
		add(c.Target, "recommended", float64(c.CPU)/1000, float64(c.Memory))
	}
}

// allocatable returns what the node offers to pods, in CPUs and bytes, and the source. It
// returns 0 if unknown.
func (j *Judgement) allocatable() (cpus, memory float64, whose string) {
	if of := j.Plan.Allocatable; of != nil {
		return float64(of.CPU) / 1000, float64(of.Memory), "as in the plan"
	}
	for i := range j.Targets {
		if k := j.Targets[i].Kubernetes; k != nil && k.Allocatable != nil {
			return float64(k.Allocatable.CPU) / 1000, float64(k.Allocatable.Memory), "as reported by the cluster for this node"
		}
	}
	env := &j.Record.Header.Environment
	return float64(env.CPUs), float64(env.Memory), "all resources of the node"
}

// requestsPage shows the requests in the form of kubectl describe node.
func requestsPage(v *Judgement) *page.Section {
	cpuOf, memoryOf := []string{"cpu"}, []string{"memory"}
	s := page.Grid(&Quantities, v.Requests, []string{"target", "overhead"}, []page.Quantity{
		{Of: "request", Titles: []string{"CPU m"}, Key: "resource", Values: cpuOf, Show: page.Milli},
		{Of: "request-share", Titles: []string{"of allocatable"}, Key: "resource", Values: cpuOf, Show: page.Share},
		{Of: "request", Titles: []string{"memory MiB"}, Key: "resource", Values: memoryOf, Show: page.MiB[float64]},
		{Of: "request-share", Titles: []string{"of allocatable"}, Key: "resource", Values: memoryOf, Show: page.Share},
	})
	if s == nil {
		return nil
	}
	for _, row := range s.Table.Rows {
		name := map[string]string{"none": "none", "limits": "with the limits' overhead", "check": "with the checked overhead", declared: "as declared by its RuntimeClass", "recommended": "recommended"}[row[1].Head]
		row[1].Head, row[1].Label = name, name
	}
	cpu, memory, of := v.allocatable()
	s.Title = "requests, with overhead"
	s.Notes = []string{"requests that the scheduler counts for a pod whose container has the limits of this run, including overhead.podFixed, as in kubectl describe node; allocatable: " +
		page.Milli(cpu) + " m and " + page.Size(memory) + ", " + of + " (override with --allocatable)"}
	return s
}
