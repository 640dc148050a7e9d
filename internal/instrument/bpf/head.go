package bpf

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/term"
)

// head identifies the run, or the imported outputs.
func head(v *Judgement) []string {
	if v.Imported != nil {
		return page.Imported(v.Record, v.Imported, "the machines, programs, CPU time and limits are unknown")
	}
	return []string{page.Identity(v.Record, v.Plan.Rounds)}
}

// whole states the environment and what percentages refer to, because published reports
// show "12.99 %" and "1.62 %" for the same time. It returns nil for imported results.
func whole(v *Judgement, o page.Options) *page.Section {
	if v.Imported != nil {
		return nil
	}
	s := page.Run(v.Record, v.Plan.Seed, "", o.Verbose)
	items := []page.Item{
		{Key: "points", Text: page.Dotted("case "+page.Heading(page.Known(v.Plan.Case)), "programs: "+chosen(v), page.Amount(v.Plan.Rounds, "round"), page.Amount(max(v.Plan.Instances, 1), "client"), "load "+page.Duration(float64(v.Plan.Duration))+" at each point",
			"idle "+page.Duration(float64(v.Plan.Idle))+" before it and after it", cpuLimits(v), page.NodeMemory(v.Record))},
	}
	if by := v.client(); by != "" {
		items = append(items, page.Item{Key: "tools", Text: by})
	}
	if v.CPUs > 0 {
		items = append(items, page.Item{Key: "units", Text: fmt.Sprintf("%s: of one core, 100 is one CPU all the time · %s: of the node, 100 is all of its %d CPUs · 12.99 %% of a core is %s %% of the node",
			ofACore, ofTheNode, v.CPUs, page.Hundred(0.1299/float64(v.CPUs)))})
	}
	s.Lists[0].Items = append(s.Lists[0].Items, items...)
	return s
}

// chosen describes the selected programs.
func chosen(v *Judgement) string {
	p := &v.Plan
	if p.Datapath != "" {
		if p.Datapath == "reference" {
			return "tare's reference datapath"
		}
		return page.Heading(p.Datapath)
	}
	var parts []string
	if p.Kmesh {
		parts = append(parts, "of Kmesh")
	}
	for _, of := range []struct {
		word string
		list []string
	}{{"named", p.Names}, {"pinned at", p.Pins}, {"attached to", p.Cgroups}, {"held by", words(p.Owners)}, {"with id", words(p.IDs)}} {
		if len(of.list) > 0 {
			parts = append(parts, of.word+" "+cleanList(of.list))
		}
	}
	if parts == nil {
		return "?"
	}
	return strings.Join(parts, ", ")
}

func words[T any](list []T) []string {
	out := make([]string, len(list))
	for i, v := range list {
		out[i] = fmt.Sprint(v)
	}
	return out
}

func cpuLimits(v *Judgement) string {
	p := &v.Plan
	if p.CPUs <= 0 {
		return ""
	}
	text := "limit " + cpuLimit(p.CPUs)
	if p.Instances > 1 {
		text += fmt.Sprintf(" (each %s)", cpuLimit(p.CPUs/float64(p.Instances)))
	}
	return text
}

// howMeasured describes the load and the figures.
func howMeasured(v *Judgement) *page.Section {
	p := &v.Plan
	s := &page.Section{Title: "what was measured", Style: term.Bold, Part: page.Method}
	items := under("asked", asked(v), page.LongestTitle)
	if items == nil && v.Imported != nil {
		items = []page.Item{{Key: "asked", Text: "unknown"}}
	} else if items == nil {
		items = []page.Item{{Key: "asked", Text: "tare's own server, on loopback"}}
	}
	loop := "a closed loop: every connection sends the next request as soon as it has an answer; latencies cover only requests that were sent, so a stall hides the delay of later ones (coordinated omission)"
	switch {
	case open(v):
		loop = fmt.Sprintf("an open loop: %s requests a second are due at fixed times, and latencies count from then%s", page.Significant(p.QPS), omitted(v))
	case p.QPS > 0:
		loop = fmt.Sprintf("at most %s requests a second; latencies count from when a request was sent", page.Significant(p.QPS))
	}
	connections := "a new connection for each request"
	if p.KeepAlive {
		connections = "keep-alive connections"
	}
	if p.URL != "" && p.Datapath == "" && v.Imported == nil {
		found := "once per load, while the fortio command resolves it for each connection (--resolve-each)"
		if p.ResolveEach {
			found = "for each connection"
		}
		connections += "; the host was resolved " + found
	}
	if by := v.client(); by != "" {
		connections += "; sent by " + by
	}
	items = append(items, page.Item{Key: "load", Text: loop + "; " + connections})
	if v.Imported != nil {
		s.Lists = []page.List{{Items: items}}
		return s
	}
	if len(p.Cgroups) > 0 {
		items = append(items, page.Item{Key: "clients", Text: "in the lowest of the chosen cgroups, where its programs see them; its limits are theirs, too"})
	}
	items = append(items,
		page.Item{Key: "programs", Text: "run counts and run times are the kernel's own (BPF statistics), during the load less those per second while idle before it; the time of a program that is called from another one (tail call) is the first one's"},
		page.Item{Key: "client, server", Text: "CPU time of their processes, what BPF programs took in their calls included"},
		page.Item{Key: "points", Text: "in random order in each round; each once more without statistics, which is what they cost"},
	)
	if v.Quota != nil {
		items = append(items, page.Item{Key: "limit", Text: "a CPU quota of the clients' cgroup, the server outside of it; the verdict goes by what the cgroup was charged, the quota's periods, and the run time of programs in the clients' own calls"})
	}
	if len(v.Growth) > 0 {
		items = append(items, page.Item{Key: "memory", Text: "as the kernel's fdinfo has it, each map once; maps that are laid out when they are made do not grow with what is in them"})
	}
	s.Lists = []page.List{{Items: items}}
	return s
}

// under returns one item per text. Only the first item has the key.
func under(key string, texts []string, most int) (items []page.Item) {
	for _, text := range texts {
		items = append(items, page.Item{Key: key, Text: page.Short(term.Clean(text), most)})
		key = ""
	}
	return items
}

// client returns the load generator with its version.
func (j *Judgement) client() string {
	for i := range j.Rows {
		if by := j.Rows[i].Client; by != "" {
			return page.Heading(by)
		}
	}
	return ""
}

// asked returns the distinct addresses of the load.
func asked(v *Judgement) (all []string) {
	if v.Plan.URL != "" {
		return []string{v.Plan.URL}
	}
	for i := range v.Rows {
		url := v.Rows[i].Asked.URL
		if url != "" && !slices.Contains(all, url) && len(all) < page.MaxListed {
			all = append(all, url)
		}
	}
	return all
}

// cleanList lists the first few items of an option.
func cleanList(all []string) string {
	clean := make([]string, len(all))
	for i, one := range all {
		clean[i] = page.Middle(term.Clean(one), 2*page.LongestName)
	}
	return page.Listed(clean)
}
