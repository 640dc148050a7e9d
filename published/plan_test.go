package published_test

import (
	"os"
	"slices"
	"testing"

	"github.com/tare-bench/tare/internal/instrument/all"
	"github.com/tare-bench/tare/internal/instrument/lifecycle"
	"github.com/tare-bench/tare/internal/instrument/terms"
	"github.com/tare-bench/tare/internal/plan"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/published"
)

func TestThePlanOfTheISuladReportGivesEveryTable(t *testing.T) {
	text, err := os.ReadFile("../plans/isulad-2020.yaml")
	must.OK(t, err)
	p, err := plan.Parse("isulad-2020.yaml", text, all.Instruments)
	must.OK(t, err)
	r := load(t, isulad)
	if p.Name != r.Name || len(p.Measure) != 3 {
		t.Errorf("plan %s of %d measures", p.Name, len(p.Measure))
	}
	for _, table := range r.Tables {
		if !slices.ContainsFunc(p.Measure, func(m plan.Measure) bool { return gives(r, m.Options.(*lifecycle.Options), table) }) {
			t.Errorf("no measure gives %s", table.ID)
		}
	}
	for _, m := range p.Measure {
		l := m.Options.(*lifecycle.Options)
		if l.Rounds != 10 || l.Missing != terms.MissingSkip || !slices.Contains(l.Targets, l.Subject) || l.Title == "" {
			t.Errorf("%+v", l)
		}
	}
}

// gives tells whether a measure has all of a table: its operations, its lanes,
// a target for each of its columns, and the one that is set against the others.
func gives(r *published.Report, l *lifecycle.Options, table published.Table) bool {
	for _, row := range table.Rows {
		if !slices.Contains(l.Ops, subject.Op(row.Op)) {
			return false
		}
	}
	for _, id := range table.Columns {
		column := r.Column(id)
		if !slices.ContainsFunc(l.Targets, column.Akin) {
			return false
		}
	}
	subject := r.Column(table.Subject)
	return slices.Contains(l.Lanes, table.Lanes) && subject.Akin(l.Subject)
}
