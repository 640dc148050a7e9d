package overhead

import (
	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/core/stat"
	"github.com/tare-bench/tare/internal/term"
)

// Request is what the scheduler counts for a pod whose container has the plan's
// limits, with an overhead, and which share of the node's allocatable that is.
type Request struct {
	Target   string // everyTarget where it is that of all of them
	Overhead string // whose it is: "none", "limits", "check", "declared" or "recommended"
	CPU      PodAmount
	Memory   PodAmount
}

// everyTarget stands for a target's name where all have the same.
const everyTarget = "every"

// PodAmount is of one resource: CPUs or bytes. What is 0 is not requested.
type PodAmount struct {
	Container, Overhead float64
	Allocatable         float64 // 0: not known
}

// Sum is what is counted.
func (a PodAmount) Sum() float64 { return a.Container + a.Overhead }

// share is that of what the node gives to pods.
func (a PodAmount) share() float64 { return a.Sum() / a.Allocatable }

// requests are those without an overhead, with those that the plan names, and with
// each one that is recommended. Where nothing is limited nothing is requested: a
// kubelet takes limits for requests where those are not given.
func (j *judging) requests() {
	limits, env := &j.Plan.Limits, &j.rec.Header.Environment
	if limits.CPU == 0 && limits.Memory == 0 {
		return
	}
	cpus, memory := float64(env.CPUs), float64(env.Memory)
	if of, _ := j.allocatable(); of != nil {
		cpus, memory = float64(of.CPU)/1000, float64(of.Memory)
	}
	add := func(target, overhead string, moreCPU, moreMemory float64) {
		j.Requests = append(j.Requests, Request{Target: target, Overhead: overhead,
			CPU: PodAmount{limits.CPU, moreCPU, cpus}, Memory: PodAmount{float64(limits.Memory), moreMemory, memory}})
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
	for i := range j.Classes {
		c := &j.Classes[i]
		add(c.Target, "recommended", float64(c.CPU)/1000, float64(c.Memory))
	}
}

// allocatable is what this node gives to pods, and who says so; nil: nobody does.
func (j *Judgement) allocatable() (of *PodFixed, whose string) {
	if j.Plan.Allocatable != nil {
		return j.Plan.Allocatable, "as the plan says"
	}
	for i := range j.Targets {
		if k := j.Targets[i].Kubernetes; k != nil && k.Allocatable != nil {
			return &PodFixed{CPU: k.Allocatable.CPU, Memory: k.Allocatable.Memory}, "as the cluster says of this node"
		}
	}
	return nil, "all that the node has"
}

// figures are what is counted and its share.
func (r *Request) figures() []figure.Figure {
	l := listed{labels: figure.Of("target", r.Target, "overhead", r.Overhead)}
	for _, of := range []struct {
		resource string
		unit     figure.Unit
		PodAmount
	}{{"cpu", figure.CPUs, r.CPU}, {"memory", figure.Bytes, r.Memory}} {
		if of.Sum() > 0 {
			l.neither("request", of.unit, of.Sum(), "resource", of.resource)
			if stat.Finite(of.share()) {
				l.neither("request-share", figure.Ratio, of.share(), "resource", of.resource)
			}
		}
	}
	return l.all
}

// requestsPage shows them as kubectl describe node does.
func requestsPage(v *Judgement) *page.Section {
	if len(v.Requests) == 0 {
		return nil
	}
	m := page.Names("target", "overhead")
	for i := range v.Requests {
		r := &v.Requests[i]
		m.Row(page.Words(page.Heading(r.Target)), page.Words(map[string]string{
			"none": "none", "limits": "as limited", "check": "as checked", declared: "as its RuntimeClass declares", "recommended": "recommended"}[r.Overhead]))
	}
	for _, of := range []struct {
		title  string
		amount func(*Request) PodAmount
		show   func(float64) string
	}{
		{"CPU m", func(r *Request) PodAmount { return r.CPU }, page.Milli},
		{"memory MiB", func(r *Request) PodAmount { return r.Memory }, page.MiB[float64]},
	} {
		m.Add(of.title, page.Each(v.Requests, func(r *Request) page.Cell { return orDot(of.amount(r).Sum() > 0, of.show(of.amount(r).Sum())) }))
		m.Add("of allocatable", page.Each(v.Requests, func(r *Request) page.Cell {
			share := of.amount(r).share()
			return orDot(stat.Finite(share) && share > 0, page.Share(share))
		}))
	}
	cpu, memory := v.Requests[0].CPU.Allocatable, v.Requests[0].Memory.Allocatable
	_, of := v.allocatable()
	return &page.Section{Title: "requests, with overhead", Style: term.Bold, Table: m,
		Notes: []string{"what the scheduler counts for a pod whose container has the limits of this run, and its overhead.podFixed, as kubectl describe node shows it; allocatable: " +
			page.Milli(cpu) + " m and " + page.Size(memory) + ", " + of + " (--allocatable says otherwise)"}}
}
