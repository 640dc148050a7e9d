package density

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tare-bench/tare/internal/core/finding"
	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/record"
)

// Codes of findings that only density runs have.
const (
	codeGuard      = "guard-stopped"
	codeTripped    = "guard-tripped"
	codeOthers     = "others-took-memory"
	codeFailure    = "sandbox-failed"
	codeNotReached = "end-not-reached"
	codeBend       = "memory-bends"
	codeNotBack    = "memory-not-back"
	codeLeft       = "sandboxes-left-something"
	codeNotDecided = "latency-not-decided"
)

func (j *Judgement) find() {
	var l finding.List
	l.Whole(j.Record)
	l.TakeOver(j.Record)
	for i := range j.Targets {
		t := &j.Targets[i]
		j.findEnds(&l, t)
		j.findLatency(&l, t)
		slopes := t.such("memory-of-one-more")
		for k := 1; k < len(slopes); k++ {
			from, _ := strconv.Atoi(slopes[k].Labels.Get("from"))
			l.Add(record.Finding{Code: codeBend, Level: finding.Note, Target: t.Info.Name,
				Message: fmt.Sprintf("memory bends at %s: one more costs %s below and %s above", page.Sandboxes(from), page.Growth(slopes[k-1].Value), page.Growth(slopes[k].Value)),
				Advice:  "the table by role shows which role uses it"})
		}
		findRecovery(&l, t)
	}
	j.Findings = l
}

// findEnds reports why visits ended, each reason once.
func (j *Judgement) findEnds(l *finding.List, t *Target) {
	said := map[string]bool{}
	for _, d := range t.Ends {
		f, ok := j.findEnd(d)
		if key := f.Code + d.Resource; ok && !said[key] {
			said[key] = true
			f.Target = t.Info.Name
			l.Add(f)
		}
	}
}

func (j *Judgement) findEnd(d *record.Density) (f record.Finding, ok bool) {
	there := fmt.Sprintf("round %d ended at %s", d.Round+1, page.Sandboxes(d.Sandboxes))
	text := func(what string) string { return there + what + ": " + term.Clean(d.Detail) }
	switch d.Why {
	case record.EndTripped:
		return record.Finding{Code: codeTripped, Level: finding.Warning, Message: text(", when the reserve was touched; nothing more was started, and all sandboxes were removed"),
			Advice: "the cost rose unexpectedly, or other processes used it: raise --keep-free"}, true
	case record.EndOthers:
		return record.Finding{Code: codeOthers, Level: finding.Warning, Message: text(""), Advice: "measure on a node without other load, and check whether the workload grows while idle"}, true
	case record.EndFailure:
		f = record.Finding{Code: codeFailure, Level: finding.Error, Message: text(", when one failed"), Advice: finding.Advice(d.Failure), Tried: d.Failure.Command}
		if out := finding.LastLine(d.Failure.Output); out != "" {
			f.Message += ": " + out
		}
		if j.Until.Failure {
			f.Level = finding.Note
		}
		return f, true
	case record.EndResource:
		if d.Resource == j.Until.Resource {
			return f, false // the requested end
		}
		return record.Finding{Code: codeGuard, Level: finding.Warning, Message: text(" by the guard, before " + j.Plan.Until), Advice: "use a node with more of it"}, true
	case record.EndMost, record.EndBudget:
		return record.Finding{Code: codeNotReached, Level: finding.Warning, Message: text(", before " + j.Plan.Until), Advice: "raise --most or --budget to go further"}, true
	}
	return f, false
}

// findLatency adds a finding if no round reached the requested slowdown and some step
// leaves it undecided. The finding names the first such step. A step is undecided if its
// interval contains the requested slowdown, if it has no interval, or if its start times
// are only upper bounds.
func (j *Judgement) findLatency(l *finding.List, t *Target) {
	decided := slices.ContainsFunc(t.Ends, func(d *record.Density) bool { return d.Why == record.EndAsked })
	if j.Until.Latency == 0 || decided {
		return
	}
	for i := 1; i < len(t.Steps); i++ {
		s, why := &t.Steps[i], ""
		e := s.All.Of("start-latency-times").Estimate
		switch {
		case t.Steps[0].start().AtMost || s.start().AtMost:
			why = "most workloads were ready at the first poll, so their start times are only upper bounds"
		case !e.Known() || e.Bounded && (e.Lo >= j.Until.Latency || e.Hi < j.Until.Latency):
			continue
		case e.Bounded:
			why = page.Significant(e.Value) + " times, " + page.Between(e, page.Significant)
		default:
			why = page.Significant(e.Value) + " times, of too few starts for an interval"
		}
		l.Add(record.Finding{Code: codeNotDecided, Level: finding.Note, Target: t.Info.Name,
			Message: fmt.Sprintf("not decided whether a start takes %s times as long with %s as at first: %s", page.Significant(j.Until.Latency), page.Sandboxes(s.Sandboxes), why),
			Advice:  "use more --rounds, or a larger --step"})
		return
	}
}

// findRecovery reports memory that did not recover, and leftovers.
func findRecovery(l *finding.List, t *Target) {
	for _, d := range t.Ends {
		if d.Back < 0 {
			l.Add(record.Finding{Code: codeNotBack, Level: finding.Warning, Target: t.Info.Name,
				Message: fmt.Sprintf("round %d: the node still used %s more than before, and not within %s of it, when it was no longer waited", d.Round+1, page.Memory(float64(d.Remaining)), page.Memory(float64(d.Within))),
				Advice:  "raise --recover; the rest belongs to the kernel, the engine, or the listed leftovers"})
		}
	}
	// The finding runtime-left lists the cgroups that the run removed.
	removed := slices.ContainsFunc(*l, func(f record.Finding) bool { return f.Code == finding.RuntimeLeft && f.Target == t.Info.Name })
	var left []string
	for _, f := range t.such("left") {
		if f.Known() && f.Estimate.Value > 0 && (f.Labels.Get("of") != "cgroups" || !removed) {
			left = append(left, page.Count(f.Estimate.Value)+" "+f.Labels.Get("of"))
		}
	}
	if left != nil {
		l.Add(record.Finding{Code: codeLeft, Level: finding.Warning, Target: t.Info.Name,
			Message: "left with the id of a removed sandbox: " + strings.Join(left, ", "), Advice: "report it to the runtime; tare clean removes leftovers with a run's id"})
	}
}
