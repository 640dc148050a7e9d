package published_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/instrument/startup"
	"github.com/tare-bench/tare/internal/instrument/storage"
	"github.com/tare-bench/tare/internal/testing/golden"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

// Two publications are records, which tare report shows: figures that tools printed,
// and starts that somebody took apart by hand.
func stored(t *testing.T, name string) *record.Record {
	t.Helper()
	rec, err := record.Load(name + ".jsonl")
	if err != nil || rec.ProblemCount != 0 || rec.End == nil {
		t.Fatalf("%+v, %v", rec, err)
	}
	return rec
}

func cells(t *testing.T, rec *record.Record, each func(table *storage.Table, cell *storage.Cell)) *storage.Judgement {
	t.Helper()
	s, err := storage.Judge(rec)
	if err != nil || !s.Imported {
		t.Fatalf("%+v, %v", s, err)
	}
	for _, table := range s.Tables {
		for _, c := range table.Cells {
			if c.Rounds > 0 {
				each(table, c)
			}
		}
	}
	return s
}

// What else the golden file shows: which findings there are, and that direct I/O is named
// where a cache answered all the same.
func TestPublishedFiguresThatNoDeviceCanGiveAreFlagged(t *testing.T) {
	var said strings.Builder
	for _, name := range []string{"kata-io/record", "kata-io/sysbench"} { // which is of another machine
		s := cells(t, stored(t, name), func(table *storage.Table, c *storage.Cell) {
			rates := fmt.Sprintf("read %.1f MB/s, write %.1f MB/s", c.Read.Bandwidth.Value/1e6, c.Write.Bandwidth.Value/1e6)
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

func TestFiguresOfNoVolumeAreJudgedAsTheMachinesOwn(t *testing.T) {
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
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

// recomputed are the sum of a start's parts, the wall time that was measured, and the
// engine's credits, which are the wall time less the runtime's calls.
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

// Of each mistake two figures are wrong: 2.2776 for the wall time of 2.776 s, and a
// sum that lacks 0.2247 s.
func TestThePublishedSumsOfTheBootHaveTwoMistakes(t *testing.T) {
	rec := stored(t, "kata-boot-2018/record")
	wrong, claims := map[string]string{}, 0
	for i := range rec.Starts {
		s := &rec.Starts[i]
		follows := recomputed(s)
		for _, c := range s.Claims {
			claims++
			off := c.Value - follows[c.Name]
			if off = max(off, -off); off > 10e6 && off > follows[c.Name]/100 { // figures that were rounded by hand
				wrong[s.Name] += fmt.Sprintf("%s %.4f not %.4f; ", c.Name, float64(c.Value)/1e9, float64(follows[c.Name])/1e9)
			}
		}
	}
	want := map[string]string{
		"w/ vm template":  "wall 2.2776 not 2.7760; credits 0.5526 not 1.0500; ",
		"w/o vm template": "sum 1.1360 not 1.3607; credits 0.5880 not 0.3633; ",
	}
	if fmt.Sprint(wrong) != fmt.Sprint(want) || claims != 12 {
		t.Errorf("of %d figures %v, want %v", claims, wrong, want)
	}
}

func TestTheReportOfTheBootTellsBothMistakes(t *testing.T) {
	rec := stored(t, "kata-boot-2018/record")
	s, err := startup.Judge(rec)
	must.OK(t, err)
	told := map[string]int{}
	for _, f := range s.Found {
		if f.Code == "claim-does-not-follow" {
			told[f.Target]++
		}
	}
	if len(s.Targets) != 4 || len(told) != 2 || told["w/ vm template"] != 2 || told["w/o vm template"] != 2 {
		t.Errorf("%d targets, %v", len(s.Targets), told)
	}
	for i, credits := range []float64{1050, 693, 363.3, 691.1} {
		if got := s.Targets[i].EngineTime.Value / 1e6; got < credits-0.05 || got > credits+0.05 || s.Targets[i].Engine != "docker" {
			t.Errorf("%s: %.1f ms of %s, want %.1f", s.Targets[i].Target, got, s.Targets[i].Engine, credits)
		}
	}
}
