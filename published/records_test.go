package published_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/instrument/startup"
	"github.com/tare-bench/tare/internal/instrument/storage"
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

// verdicts are those of the published I/O figures that are not the device's: "target
// verdict" for each job, volume and cache. Kinds of a cache are told apart as far
// as figures alone can.
var verdicts = map[string]string{
	"dd 4k × 1024000 nfs direct":  "kata guest cache", // 5.4 × runc's over the same mount: somebody gathers its small writes
	"randread rootfs direct":      "kata guest cache",
	"read rootfs direct":          "kata guest cache, host too short", // runc's are doubtful: eight threads read one file, and nothing bounds reads
	"randwrite rootfs direct":     "kata host cache, runc host cache, host host cache",
	"write rootfs direct":         "kata host cache, runc host cache, host host cache",
	"small files rootfs buffered": "kata guest cache, runc host cache, host host cache",
	"5G file rootfs buffered":     "kata guest cache",
	"10G file rootfs buffered":    "kata guest cache",
	"small files nfs buffered":    "kata guest cache, runc host cache", // 2.3 µs each: no network
	"5G file nfs buffered":        "kata guest cache",
	"small files rootfs direct":   "kata guest cache, runc host cache, host host cache", // 72 × what larger files give
	"5G file rootfs direct":       "kata guest cache",
	"10G file rootfs direct":      "kata guest cache",
	"rndrw rootfs direct":         "runc too short, kata too short, host too short",
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

func TestPublishedFiguresThatNoDeviceCanGiveAreFlagged(t *testing.T) {
	judged, flagged := 0, 0
	for _, name := range []string{"kata-io/record", "kata-io/sysbench"} { // which is of another machine
		cells(t, stored(t, name), func(table *storage.Table, c *storage.Cell) {
			want := "not contradicted"
			at := table.Job + " " + table.Volume + " " + table.Cache
			for verdict := range strings.SplitSeq(verdicts[at], ", ") {
				if target, said, _ := strings.Cut(verdict, " "); target == c.Target {
					want, flagged = said, flagged+1
				}
			}
			judged++
			if string(c.Verdict) != want {
				t.Errorf("%s, %s: %q because %q; want %q", at, c.Target, c.Verdict, c.Because, want)
			}
			cache := want == "guest cache" || want == "host cache"
			if direct := strings.Contains(strings.Join(c.Because, " "), "through direct I/O"); direct != (cache && table.Cache == "direct") {
				t.Errorf("%s, %s: direct I/O is named: %t, in %q", at, c.Target, direct, c.Because)
			}
		})
	}
	if judged != 50 || flagged != 26 {
		t.Errorf("%d figures, %d flagged", judged, flagged)
	}
}

func TestToolsOfTwoVersionsAreAFinding(t *testing.T) {
	s := cells(t, stored(t, "kata-io/sysbench"), func(*storage.Table, *storage.Cell) {})
	if !slices.ContainsFunc(s.Found, func(f record.Finding) bool {
		return f.Code == "tool-versions-differ" && f.Message == "sysbench is not of one version: sysbench 0.5 on runc, kata; sysbench 1.0.20 on host"
	}) {
		t.Errorf("%+v", s.Found)
	}
}

func TestWhatDDPrintedIsNotContradicted(t *testing.T) {
	n := 0
	cells(t, stored(t, "kata-io/record"), func(table *storage.Table, c *storage.Cell) {
		if rate := c.Write.Bandwidth.Value / 1e6; strings.HasPrefix(table.Job, "dd") && table.Volume == "rootfs" {
			if n++; rate < 111 || rate > 135 || c.Verdict != storage.NotContradicted {
				t.Errorf("%s: %.1f MB/s are %q because %q", c.Target, rate, c.Verdict, c.Because)
			}
		}
	})
	if n != 6 {
		t.Errorf("%d figures", n)
	}
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

func TestTheFactThatDecidesIsToldWithItsFigures(t *testing.T) {
	want := map[string]string{
		"randread rootfs direct kata":   "8600 IOPS read are 3.5 × the 2456 of host's 5G file, which ran 60 s",
		"read rootfs direct kata":       "4.92 GB/s inside are 2.1 × the 2.35 GB/s of host in the same job",
		"randwrite rootfs direct kata":  "389.0 MB/s written are 3 × the 128.5 MB/s of host's dd 4k × 1024000",
		"small files nfs buffered runc": "436715 random IOPS with 1 at a time are 2.3 µs for each",
		"5G file rootfs buffered kata":  "35584 IOPS read are 116 × the 307 of host's 5G file",
	}
	cells(t, stored(t, "kata-io/record"), func(table *storage.Table, c *storage.Cell) {
		at := strings.Join([]string{table.Job, table.Volume, table.Cache, c.Target}, " ")
		if says := want[at]; says != "" && !strings.HasPrefix(c.Because[0], says) {
			t.Errorf("%s: %q, want %q", at, c.Because[0], says)
		}
		delete(want, at)
	})
	if len(want) != 0 {
		t.Errorf("no figures: %v", want)
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
