package overhead

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/core/answer"
	"github.com/tare-bench/tare/internal/core/finding"
	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/instrument/overhead/ledger"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/record"
)

// answer returns one sentence per target: the usage of one idle sandbox, and whether the
// overhead in the plan is sufficient.
func (j *Judgement) answer() (out []string) {
	idle := j.fewestIdle()
	for t := range ledger.Each(j.Targets) {
		if (t.Kind == "host" || t.Kind == "floor") && len(j.Targets) > 1 {
			continue
		}
		if text := j.answerOf(t, idle); text != "" {
			out = append(out, text)
		}
	}
	if out == nil {
		out = []string{"No idle sandbox was measured."}
	}
	return out
}

func (j *Judgement) answerOf(t *record.Target, idle *Table) string {
	text := ""
	if why := j.why(t.Name, idle); why != "" {
		return page.Heading(t.Name) + ": failed: " + why + "."
	}
	if idle != nil {
		c := idle.of(t.Name)
		if c == nil {
			return ""
		}
		l, per := &c.Ledger, func(v float64) float64 { return v / float64(max(1, idle.Sandboxes)) }
		cpus, some := l.CPU()
		least := ""
		if !l.Complete || some {
			least = "at least "
		}
		text = fmt.Sprintf("%s: %s%s MiB and %s m of CPU per idle sandbox", page.Heading(t.Name), least, page.MiB(per(float64(l.Sum))), page.Milli(per(cpus)))
		if out := outsidePod(l); page.MiB(per(float64(out))) != "0.0" {
			text += fmt.Sprintf(", %s MiB of it charged outside the pod", page.MiB(per(float64(out))))
		}
	}
	if c := j.class(t.Name); c != nil {
		said := fmt.Sprintf("podFixed %dMi, %dm", (c.Memory+1<<20-1)>>20, c.CPU)
		switch {
		case c.Not != "":
			said = c.Not
		case c.Open && slices.ContainsFunc(j.Check, func(x Check) bool { return x.Target == t.Name && x.Answer == Enough }):
			said = "" // the checked overhead is larger than podFixed
		case c.Open:
			said += ", not shown to be enough: unexplained memory exceeds its margin"
		}
		text = answer.Join(text, said)
	}
	for c := range ledger.Each(j.Check) {
		if c.Target == t.Name {
			text = answer.Join(text, fmt.Sprintf("%dm and %s: %s", c.CPU, page.Size(float64(c.Memory)), c.Answer))
		}
	}
	if text == "" {
		return ""
	}
	return text + "."
}

// why returns the reason why a target has no idle figures. It returns "" if the target
// has some, or if the reason is unknown.
func (j *Judgement) why(target string, idle *Table) string {
	reason := ""
	if i := slices.IndexFunc(j.Record.Findings, func(f record.Finding) bool { return f.Target == target && gone(&f) }); i >= 0 {
		reason, _, _ = strings.Cut(j.Record.Findings[i].Message, "; tried: ")
	}
	if idle != nil {
		if c := idle.of(target); c != nil && c.Rounds > 0 {
			return ""
		} else if c != nil && c.Failure != nil {
			reason = c.Failure.Detail
		}
	}
	return page.Short(term.Clean(reason), 2*page.LongestName)
}

// gone reports whether a finding means that a target was given up.
func gone(f *record.Finding) bool { return f.Code == finding.OpenFailed || f.Code == finding.GivenUp }
