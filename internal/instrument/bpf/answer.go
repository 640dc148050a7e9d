package bpf

import (
	"fmt"

	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/term"
)

// answer returns one sentence each about CPU, the limit and memory, if they were
// measured.
func (j *Judgement) answer() (out []string) {
	if q := j.Quota; q != nil {
		text := "Whether a CPU limit counts eBPF time is not decided"
		if q.Verdict != QuotaUndecided {
			text = "eBPF time " + page.Heading(string(q.Verdict))
		}
		if q.Rounds > 0 {
			text += fmt.Sprintf(" (%d of %s)", q.Agree, page.Amount(q.Rounds, "round"))
		}
		out = append(out, text+".")
	}
	if text := j.cpuAnswer(); text != "" && j.Quota == nil {
		out = append(out, text)
	}
	if len(j.Growth) > 0 {
		g := &j.Growth[len(j.Growth)-1]
		text := "Memory: " + page.Size(float64(plus(g.Programs, g.Maps)))
		if more := growthText(j.Growth); more != "" {
			text += " with the most services, " + more
		}
		out = append(out, text+".")
	} else if j.Memory >= 0 && len(j.Programs) > 0 {
		out = append(out, fmt.Sprintf("Memory: %s in %s and %s.", page.Size(float64(j.Memory)), page.Amount(len(j.Programs), "program"), page.Amount(len(j.Maps), "map")))
	}
	if j.Failed > 0 {
		out = append(out, fmt.Sprintf("Failed: %d of %s%s.", j.Failed, page.Amount(j.Total, "point"), j.reason()))
	}
	for i := range j.Rows {
		if r := &j.Rows[i]; out == nil && j.Imported != nil && r.All.Of("requests").Known() {
			out = append(out, fmt.Sprintf("%s, %s: %s requests a second, p99 %s.", page.Heading(r.Client), page.Amount(r.Asked.Connections, "connection"),
				page.Rounded(r.All.Of("requests").Estimate, page.Significant), page.Rounded(r.All.Of("latency", "quantile", "p99").Estimate, page.Duration)))
		}
	}
	if out == nil {
		out = []string{"No point was measured."}
	}
	return out
}

// reason returns why the first failed point, or its requests, failed.
func (j *Judgement) reason() string {
	for i := range j.Rows {
		switch r := &j.Rows[i]; {
		case r.Failure != nil:
			return ": " + page.Short(term.Clean(r.Failure.Detail), page.LongestTitle)
		case r.Failed > 0 && r.reasons() != "":
			return r.reasons()
		}
	}
	return ""
}

// cpuAnswer describes the point without a limit that served the most requests.
func (j *Judgement) cpuAnswer() string {
	var most *Row
	for i := range j.Rows {
		r := &j.Rows[i]
		if r.All.Of("cpu", "role", "bpf").Known() && r.All.Of("requests").Known() && (most == nil || r.All.Of("requests").Value > most.All.Of("requests").Value) {
			most = r
		}
	}
	if most == nil {
		return ""
	}
	text := fmt.Sprintf("%s %% of one core at %s requests a second", page.Rounded(most.All.Of("cpu", "role", "bpf").Estimate, page.Hundred), page.Rounded(most.All.Of("requests").Estimate, page.Significant))
	text = "programs (" + chosen(j) + "): " + text
	if most.All.Of("bpf-time-per-request").Known() {
		text += ", " + page.Rounded(most.All.Of("bpf-time-per-request").Estimate, page.Duration) + " a request"
	}
	if all := most.Programs; len(all) > 1 && all[0].Core.Known() && most.All.Of("cpu", "role", "bpf").Value > 0 { // the heaviest is first
		text += fmt.Sprintf(", %.0f %% of it in %s", 100*all[0].Core.Value/most.All.Of("cpu", "role", "bpf").Value, page.Heading(all[0].Name))
	}
	return text + "."
}
