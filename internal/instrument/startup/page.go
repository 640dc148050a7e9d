package startup

import (
	"fmt"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/record"
)

// Page returns the report of the run. It does not need the starts of the record, since
// the judgement has the ones that are drawn.
func (j *Judgement) Page(o page.Options) *page.Page {
	p := page.New(j.Plan.Title, Name)
	p.Head, p.Answer = head(j.Record, j), j.answer()
	p.Add(startsTable(j, false))
	failed := fmt.Sprintf("failed %d/%s", j.Failed, page.Amount(j.Total, "start"))
	if noEnd := j.noEnd(); noEnd > 0 {
		failed += fmt.Sprintf(", %d without an end", noEnd)
	}
	p.Failed(j.Failed+j.noEnd(), failed)
	p.Add(page.Findings(j.Found, page.Lanes, o))
	p.AddDetails(page.Configurations(j.Record.Targets), startsTable(j, true), page.Shifts(j.compared(), figure.Comparing{}), stepsBeside(j), phasesBeside(j))
	for i := range j.Targets {
		p.AddDetails(every(&j.Targets[i], j.Plan.Slowest, o))
	}
	for i := range j.Targets {
		t := &j.Targets[i]
		p.AddDetails(drawnStart(j, t, o), inOrder(t, o), byWork(t, o), waits(t, o))
	}
	p.AddDetails(logsRead(j), guests(j), startsTimed(j.Record, j), page.Needed(j.Record.Targets), whole(j.Record, j, o))
	return p
}

// ofTarget returns an empty section about one target.
func ofTarget(t *Target, about string) *page.Section {
	return &page.Section{Title: page.Heading(page.Known(t.Target)) + ": " + about, Style: term.Bold}
}

// Result returns the failed and the total number of starts, and the findings.
func (j *Judgement) Result() (failed, total int, findings []record.Finding) {
	return j.Failed, j.Total, j.Found
}

func (j *Judgement) noEnd() (n int) {
	for i := range j.Targets {
		n += j.Targets[i].NoEnd
	}
	return n
}

// Figures returns all figures: those of the targets, their steps, phases and gaps.
func (j *Judgement) Figures() (all []figure.Figure) {
	for i := range j.Targets {
		t := &j.Targets[i]
		all = append(all, t.Wall, t.First, t.Calls, t.EngineTime, t.CPU, t.Watching, t.WatchingCPU)
		for _, f := range []figure.Figure{t.FirstBy, t.Ready, t.ReadyTo, t.Request} {
			if f.Known() {
				all = append(all, f)
			}
		}
		for _, steps := range [][]Step{t.Table, t.Phases} {
			for _, s := range steps {
				all = append(all, s.Took, s.CPU)
			}
		}
		for _, g := range t.Gaps {
			all = append(all, g.Took)
		}
	}
	return all
}
