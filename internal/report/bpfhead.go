package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tare-bench/tare/internal/judge"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/record"
)

// bpfHead says what ran where, and what percent are of: published reports have
// "12.99 %" and "1.62 %" for the same time.
func bpfHead(rec *record.Record, v *judge.BPF, o Options) []string {
	memory := ""
	if env := &rec.Header.Environment; env.Memory > 0 {
		memory = "memory " + size(float64(env.Memory))
	}
	lines := []string{
		dotted(ran(rec, v.Plan.Seed), memory),
		dotted("case "+heading(known(v.Plan.Case)), "programs: "+chosen(v), roundsOf(v.Plan.Rounds), "load "+duration(float64(v.Plan.Duration))+" at each point",
			"idle "+duration(float64(v.Plan.Idle))+" before it and after it", cpuLimits(v)),
	}
	if v.CPUs > 0 {
		lines = append(lines, fmt.Sprintf("%s: of one core, 100 is one CPU all the time · %s: of the node, 100 is all of its %d CPUs · 12.99 %% of a core is %s %% of the node",
			ofACore, ofTheNode, v.CPUs, hundred(0.1299/float64(v.CPUs))))
	}
	if o.Verbose {
		lines = append(lines, surroundings(&rec.Header))
	}
	return lines
}

// chosen says which programs were measured.
func chosen(v *judge.BPF) string {
	p := &v.Plan
	if p.Datapath != "" {
		if p.Datapath == "reference" {
			return "tare's reference datapath"
		}
		return heading(p.Datapath)
	}
	var parts []string
	if p.Kmesh {
		parts = append(parts, "of Kmesh")
	}
	for _, of := range []struct {
		word string
		list []string
	}{{"named", p.Names}, {"pinned at", p.Pins}, {"attached to", p.Cgroups}} {
		if len(of.list) > 0 {
			parts = append(parts, of.word+" "+cleanList(of.list))
		}
	}
	if len(p.Owners) > 0 {
		pids := make([]string, len(p.Owners))
		for i, pid := range p.Owners {
			pids[i] = strconv.Itoa(pid)
		}
		parts = append(parts, "held by "+cleanList(pids))
	}
	if parts == nil {
		return "?"
	}
	return strings.Join(parts, ", ")
}

func cpuLimits(v *judge.BPF) string {
	p := &v.Plan
	if p.CPUs <= 0 {
		return ""
	}
	text := "limit " + cpuLimit(p.CPUs)
	if p.Instances > 1 {
		text += fmt.Sprintf(" (%d clients of %s)", p.Instances, cpuLimit(p.CPUs/float64(p.Instances)))
	}
	return text
}

// bpfMeasured says how the load was made and what the figures are.
func bpfMeasured(v *judge.BPF) *section {
	p := &v.Plan
	s := &section{title: "what was measured", style: term.Bold}
	var items []item
	for i, url := range asked(v) {
		key := ""
		if i == 0 {
			key = "asked"
		}
		items = append(items, item{key: key, text: url})
	}
	if items == nil {
		items = []item{{key: "asked", text: "a server of tare's own, on loopback"}}
	}
	loop := "a closed loop: every connection asks again as soon as it has its answer; latencies are of those requests only that were sent, and a stall delays the next ones unseen (coordinated omission)"
	switch {
	case open(v):
		loop = fmt.Sprintf("an open loop: %s requests a second are due at fixed times, and latencies count from then%s", significant(p.QPS), omitted(v))
	case p.QPS > 0:
		loop = fmt.Sprintf("at most %s requests a second; latencies count from when a request was sent", significant(p.QPS))
	}
	connections := "a new connection for each request"
	if p.KeepAlive {
		connections = "connections that are kept"
	}
	items = append(items, item{key: "load", text: loop + "; " + connections})
	items = append(items,
		item{key: "programs", text: "run counts and run times are the kernel's own (BPF statistics), during the load less those per second while idle before it; the time of a program that is called from another one (tail call) is the first one's"},
		item{key: "client, server", text: "CPU time of their processes, what BPF programs took in their calls included"},
		item{key: "points", text: "in random order in each round; each once more without statistics, which is what they cost"},
	)
	if v.Quota != nil {
		items = append(items, item{key: "limit", text: "a CPU quota of the clients' cgroup, the server outside of it; the verdict goes by what the cgroup was charged, the quota's periods, and the run time of programs in the clients' own calls"})
	}
	if len(v.Growth) > 0 {
		items = append(items, item{key: "memory", text: "as the kernel's fdinfo has it, each map once; maps that are laid out when they are made do not grow with what is in them"})
	}
	s.lists = []list{{items: items}}
	return s
}

// asked are the addresses that the load went to, each once.
func asked(v *judge.BPF) (all []string) {
	if url := short(term.Clean(v.Plan.URL), longestTitle); url != "" {
		return []string{url}
	}
	for i := range v.Rows {
		url := short(term.Clean(v.Rows[i].Asked.URL), longestTitle)
		if url != "" && !slices.Contains(all, url) && len(all) < mostListed {
			all = append(all, url)
		}
	}
	return all
}

// cleanList names the first few of a list that a plan has.
func cleanList(all []string) string {
	clean := make([]string, len(all))
	for i, one := range all {
		clean[i] = middle(term.Clean(one), 2*longestName)
	}
	return listed(clean)
}
