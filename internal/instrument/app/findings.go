package app

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/finding"
	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/core/stat"
	"github.com/tare-bench/tare/record"
)

// Codes of findings that only app runs have.
const (
	foundErrors      = "requests-failed"
	foundRateMissed  = "rate-not-reached"
	foundUnsent      = "requests-not-sent"
	foundClientBound = "client-bound"
	foundNodeFull    = "node-saturated"
	foundLimit       = "limit-saturated"
	foundFewSamples  = "few-samples"
)

const (
	full    = 0.95 // share of its CPUs from which a process or node counts as saturated
	reached = 0.99 // share of the requested rate that counts as reached
	tailed  = 1000 // minimum answers for a p99.9 below the maximum
)

// where returns the start of a message about a row. The target is shown before it.
func (r *row) where() string {
	if r.neighbour == "" {
		return ""
	}
	return "beside " + r.neighbour + ": "
}

func (j *Judgement) findings() []record.Finding {
	var out finding.List
	out.TakeOver(j.Record)
	out.Whole(j.Record)
	var steal, pressed []float64
	least, fewest := 0, int64(-1)
	for _, r := range j.rows {
		j.failures(r, out.Add)
		j.saturated(r, out.Add)
		for _, w := range r.windows {
			if n := w.answers(); fewest < 0 || n < fewest {
				fewest = n
			}
			if share, known := w.pressedByOthers(); known {
				pressed = append(pressed, share)
			}
			if stat.Finite(w.Seen.Steal) {
				steal = append(steal, w.Seen.Steal/float64(max(j.CPUs, 1)))
			}
		}
		if n := len(r.windows); n > 0 && (least == 0 || n < least) {
			least = n
		}
	}
	out.Above(finding.Steal, finding.Rounds{Each: "window", Shares: steal}, finding.StealBound, finding.StolenTime, "use a machine with CPUs of its own, or add rounds; long tails here are not the runtime's")
	out.Above(finding.Pressure, finding.Rounds{Each: "window", Shares: pressed}, finding.PSICPUBound,
		"tasks waited for a CPU (PSI), while a third or more of its CPU time was neither the client's nor a sandbox's", finding.Suspect(j.Record, "something else runs on this machine: stop it, or pin it away"))
	if fewest >= 0 && fewest < tailed {
		out.Add(record.Finding{Code: foundFewSamples, Level: finding.Note,
			Message: fmt.Sprintf("a window has only %d answers, so its p99.9 is the slowest one", fewest), Advice: fmt.Sprintf("use a longer load (-t): p99.9 needs %d answers in each window", tailed)})
	}
	if f, few := finding.TooFew(least, j.need(), 0); few && least < stat.MinRounds(figure.Confidence) {
		out.Add(f)
	}
	j.tooFew(out.Add)
	return out
}

// need returns the rounds required by the table with the most comparisons.
func (j *Judgement) need() (most int) {
	for _, c := range j.compared {
		most = max(most, j.Plan.RoundsFor(c.comparisons))
	}
	return most
}

// tooFew reports tables with too few rounds to show a difference. Tables that need the
// same number share a finding.
func (j *Judgement) tooFew(add func(record.Finding)) {
	type few struct{ rounds, need int }
	var order []few
	titles := map[few][]string{}
	for _, c := range j.compared {
		f := few{c.rounds, j.Plan.RoundsFor(c.comparisons)}
		if c.rounds < stat.MinRounds(figure.Confidence) || c.rounds >= f.need {
			continue // fewer rounds do not even give an interval
		}
		if titles[f] == nil {
			order = append(order, f)
		}
		titles[f] = append(titles[f], c.title)
	}
	for _, f := range order {
		found := finding.TooFewToCompare(f.rounds, f.need, 0)
		found.Message = page.Listed(titles[f]) + ": " + found.Message
		add(found)
	}
}

// pressedByOthers returns the share of the window in which some task waited for a CPU.
// It is 0 if client, tare and sandboxes used most of the CPU time themselves. known is
// false if their usage is unknown.
func (w *Window) pressedByOthers() (share float64, known bool) {
	if !w.Seen.HavePSI || w.CPUPartly || w.Neighbour != "" && w.BesideCPU == nil {
		return 0, false
	}
	ours := w.ClientCPU + w.Seen.OwnCPU
	for _, r := range w.Seen.CPU {
		ours += r.NS
	}
	if w.BesideCPU != nil {
		ours += *w.BesideCPU
	}
	if float64(ours) > w.Seen.Busy*float64(w.Seen.Took)*2/3 {
		return 0, true
	}
	return w.Seen.PSICPU, true
}

// failures reports windows without figures and requests without an answer.
func (j *Judgement) failures(r *row, add func(record.Finding)) {
	if i := slices.IndexFunc(r.failed, func(w *Window) bool { return w.Failure != nil }); i >= 0 {
		f := r.failed[i].Failure
		message := fmt.Sprintf("%s%d of %d windows failed; the first: %s", r.where(), len(r.failed), len(r.failed)+len(r.windows), f.Detail)
		if strings.TrimSpace(f.Output) != "" {
			message += ": " + finding.LastLine(f.Output)
		}
		add(record.Finding{Code: finding.Failed, Level: finding.Error, Target: r.target, Message: message, Advice: finding.Advice(f), Tried: f.Command})
	}
	errors, requests, of := int64(0), int64(0), map[string]int64{}
	for _, w := range r.windows {
		errors, requests = errors+w.Sent.Errors, requests+w.Sent.Requests
		for why, n := range w.Sent.Failures {
			of[why] += n
		}
	}
	if errors > 0 {
		var causes []string
		oftenest := func(a, b string) int { return cmp.Or(cmp.Compare(of[b], of[a]), cmp.Compare(a, b)) }
		for _, why := range slices.SortedFunc(maps.Keys(of), oftenest) {
			causes = append(causes, fmt.Sprintf("%s (%d)", why, of[why]))
		}
		add(record.Finding{Code: foundErrors, Level: finding.Error, Target: r.target,
			Message: fmt.Sprintf("%s%d of %d requests failed: %s", r.where(), errors, requests, page.Listed(causes)),
			Advice:  "they are not in latencies, except timed-out requests of an open loop, which count with their waiting time; see the server's log"})
	}
}

// saturated reports whether the client, the node or the limit was saturated.
func (j *Judgement) saturated(r *row, add func(record.Finding)) {
	put := func(code, level, message, advice string) {
		add(record.Finding{Code: code, Level: level, Target: r.target, Message: r.where() + message, Advice: advice})
	}
	cell := j.All.Part("neighbour", r.neighbour).Part("target", r.target)
	nodeBusy, throughput := cell.Of("node-busy"), cell.Of("throughput")
	cpus, rate := float64(j.CPUs), j.Plan.Rate
	// Maxima over rounds. Throttled time is summed over all CPUs.
	client, limit, held, unsent := 0.0, 0.0, 0.0, int64(0)
	for _, w := range r.windows {
		unsent += w.Sent.Unsent
		if took := float64(w.Seen.Took); took > 0 {
			client, held = max(client, float64(w.ClientCPU)/took), max(held, float64(w.Seen.Throttled)/took)
			if most := j.Plan.Limits.CPU; most > 0 {
				limit = max(limit, float64(inside(w.Seen.CPU))/took/most)
			}
		}
	}
	busy := cpus > 0 && nodeBusy.Known() && nodeBusy.Value >= full*cpus
	switch {
	case cpus > 0 && client >= full*cpus || busy && client >= cpus/2:
		put(foundClientBound, finding.Warning, fmt.Sprintf("the client used %.2f of %d CPUs, and no more were available", client, j.CPUs),
			"the throughput is what the client can send, not what the server can answer: set a rate (--rate), or use a machine with more CPUs")
	case busy:
		put(foundNodeFull, finding.Note, fmt.Sprintf("the node was saturated (%.2f of %d CPUs); the client used at most %.2f in any round", min(nodeBusy.Value, cpus), j.CPUs, client),
			"client and server share its CPUs: latencies include waiting for a CPU, and CPU per request is more meaningful than throughput")
	}
	if limit >= full || held >= 1-full {
		put(foundLimit, finding.Note, fmt.Sprintf("the server used up to %.0f %% of its CPU limit, and its CPUs, all of them together, were held back for up to %.2f s of a second", 100*limit, held),
			"the limit determines the throughput; raise --limit cpu=, or use the CPU per request")
	}
	if rate > 0 && throughput.Known() && throughput.Value < reached*rate {
		put(foundRateMissed, finding.Warning, fmt.Sprintf("%s of %s requests a second were answered", page.Significant(throughput.Value), page.Significant(rate)),
			"the server cannot keep up, or its connections are too few (-c): latencies grow with the length of the load")
	}
	if unsent > 0 {
		put(foundUnsent, finding.Warning, fmt.Sprintf("%d requests were due and never sent, because no connection was free", unsent),
			"they count in the latencies with their waiting time; use more connections (-c), or a lower --rate")
	}
}
