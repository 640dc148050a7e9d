package published_test

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/instrument/all"
	"github.com/tare-bench/tare/internal/instrument/lifecycle"
	"github.com/tare-bench/tare/internal/instrument/startup"
	"github.com/tare-bench/tare/internal/instrument/storage"
	"github.com/tare-bench/tare/internal/instrument/terms"
	"github.com/tare-bench/tare/internal/plan"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/golden"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/published"
	"github.com/tare-bench/tare/record"
)

// stored loads one of the publications that are records: figures printed by tools, and
// starts analyzed by hand.
func stored(t *testing.T, name string) *record.Record {
	t.Helper()
	rec, err := record.Load(name + ".jsonl")
	must.That(t, err == nil && rec.ProblemCount == 0 && rec.End != nil, "%+v, %v", rec, err)
	return rec
}

// cells calls a function with every measured cell of an imported record.
func cells(t *testing.T, rec *record.Record, each func(table *storage.Table, cell *storage.Cell)) *storage.Judgement {
	t.Helper()
	s, err := storage.Judge(rec)
	must.That(t, err == nil && s.Imported, "%+v, %v", s, err)
	for _, table := range s.Tables {
		for _, c := range table.Cells {
			if c.Rounds > 0 {
				each(table, c)
			}
		}
	}
	return s
}

// The golden file also has the list of findings. It shows that direct I/O served by a
// cache is reported.
func TestImplausiblePublishedFiguresAreFlagged(t *testing.T) {
	var said strings.Builder
	for _, name := range []string{"kata-io/record", "kata-io/sysbench"} { // sysbench is of another machine
		s := cells(t, stored(t, name), func(table *storage.Table, c *storage.Cell) {
			rates := fmt.Sprintf("read %.1f MB/s, write %.1f MB/s", c.Of("bandwidth", "direction", "read").Value/1e6, c.Of("bandwidth", "direction", "write").Value/1e6)
			fmt.Fprintln(&said, table.Job, table.Volume, table.Cache, c.Target+":", rates+":", c.Verdict)
			for _, why := range c.Because {
				fmt.Fprintln(&said, "\t"+why)
			}
		})
		for _, f := range s.Found {
			fmt.Fprintln(&said, f.Code+":", f.Message)
		}
	}
	golden.Same(t, "testdata/verdicts.txt", said.String())
}

func TestFiguresWithoutVolumeAreJudgedAsRootfs(t *testing.T) {
	want, got := map[string]storage.Verdict{}, map[string]storage.Verdict{}
	cells(t, stored(t, "kata-io/record"), func(table *storage.Table, c *storage.Cell) {
		want[table.Job+table.Volume+table.Cache+c.Target] = c.Verdict
	})
	rec := stored(t, "kata-io/record")
	for i := range rec.Cells {
		if c := &rec.Cells[i]; c.Volume == "rootfs" && c.Cache == "direct" {
			c.Volume = ""
		}
	}
	cells(t, rec, func(table *storage.Table, c *storage.Cell) {
		volume := table.Volume
		if volume == "" {
			volume = "rootfs"
		}
		got[table.Job+volume+table.Cache+c.Target] = c.Verdict
	})
	check.That(t, fmt.Sprint(got) == fmt.Sprint(want), "got  %v\nwant %v", got, want)
}

// recomputed returns the sum of a start's parts, the measured wall time, and the engine
// time, which is the wall time less the runtime's calls.
func recomputed(s *record.Start) map[string]int64 {
	var sum, calls int64
	for _, x := range s.Spans {
		sum += x.Ended - x.Began
		if x.Kind == record.KindCall {
			calls += x.Ended - x.Began
		}
	}
	return map[string]int64{"sum": sum, "wall": s.Ended, "credits": s.Ended - calls}
}

// Each error affects two figures: 2.2776 instead of the wall time of 2.776 s, and a sum
// without 0.2247 s. The golden file has the wrong claims with the correct values, the
// findings, and the engine time of the report.
func TestBothErrorsInThePublishedBootSumsAreReported(t *testing.T) {
	rec := stored(t, "kata-boot-2018/record")
	var said strings.Builder
	for i := range rec.Starts {
		s := &rec.Starts[i]
		follows := recomputed(s)
		for _, c := range s.Claims {
			verdict := "follows"
			if off := math.Abs(float64(c.Value - follows[c.Name])); off > 10e6 && off > float64(follows[c.Name])/100 { // tolerates rounding by hand
				verdict = "does not follow"
			}
			fmt.Fprintf(&said, "%s: %s %.4f of %.4f %s\n", s.Name, c.Name, float64(c.Value)/1e9, float64(follows[c.Name])/1e9, verdict)
		}
	}
	j := must.Get(startup.Judge(rec))(t)
	for _, target := range j.Targets {
		fmt.Fprintf(&said, "%s: %.1f ms of %s\n", target.Target, target.EngineTime.Value/1e6, target.Engine)
	}
	for _, f := range j.Found {
		fmt.Fprintf(&said, "%s: %s: %s\n", f.Code, f.Target, f.Message)
	}
	golden.Same(t, "testdata/boot.txt", said.String())
}

func TestISuladPlanCoversEveryTable(t *testing.T) {
	text := must.Get(os.ReadFile("../plans/isulad-2020.yaml"))(t)
	p := must.Get(plan.Parse("isulad-2020.yaml", text, all.Instruments))(t)
	r := load(t, isulad)
	check.That(t, p.Name == r.Name && len(p.Measure) == 3, "plan %s of %d measures", p.Name, len(p.Measure))
	for _, table := range r.Tables {
		check.That(t, slices.ContainsFunc(p.Measure, func(m plan.Measure) bool { return gives(r, m.Options.(*lifecycle.Options), table) }),
			"no measure covers %s", table.ID)
	}
	for _, m := range p.Measure {
		l := m.Options.(*lifecycle.Options)
		check.That(t, l.Rounds == 10 && l.Missing == terms.MissingSkip && slices.Contains(l.Targets, l.Subject) && l.Title != "", "%+v", l)
	}
}

// gives reports whether a measure covers a table: its operations, its lanes, a target for
// each column, and the target compared with the others.
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
