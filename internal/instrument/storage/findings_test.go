package storage_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/core/finding"
	"github.com/tare-bench/tare/internal/instrument/storage"
	"github.com/tare-bench/tare/record"
)

func codes(s *storage.Judgement) []string {
	var out []string
	for _, f := range s.Found {
		out = append(out, f.Code)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func TestFindingsOfStorage(t *testing.T) {
	writing := func(s *storing) { s.job = write8 }
	tests := []struct {
		name    string
		change  func(*storing)
		want    []string
		message string
	}{
		{"a quiet machine whose device sees all yields none", nil, nil, ""},
		{"five rounds are too few", func(s *storing) { s.rounds = 5 }, []string{"too-few-rounds"}, "5 rounds give no 95 % interval"},
		{"one is", func(s *storing) { s.rounds = 1 }, []string{"too-few-rounds"}, "note: 1 round gives no"},
		{"cells of one kind are one finding", func(s *storing) { s.cell = func(c *record.Cell) { c.Observed.Device.ReadBytes = 0 } },
			[]string{"not-direct"}, "2 of 3 cells were to be direct, and memory answered: O_DIRECT ended above the device: runc read on bind, direct (vda saw 0 %"},
		{"of many cells a few are named", func(s *storing) {
			s.targets = []string{"a", "b", "c", "d", "e", "f", "g"}
			s.cell = func(c *record.Cell) { c.Observed.Device.ReadBytes = 0 }
		}, []string{"not-direct"}, "and 2 more"},
		{"a tmpfs is worth a note", func(s *storing) { s.volume = "tmpfs" }, []string{"not-direct"}, "note: 3 of 3"},
		{"rounds of two kinds are told", func(s *storing) {
			s.cache = "buffered"
			s.cell = func(c *record.Cell) {
				if c.Round == 2 && c.Target == "runc" {
					c.Observed.Device.ReadBytes = 0
				}
			}
		}, []string{"host-cache", "rounds-disagree"}, "device: 5, host cache: 1"},
		{"a limit that was set in one round throttled that one alone", func(s *storing) {
			s.cell = func(c *record.Cell) {
				if c.Round == 2 && c.Target == "runc" {
					c.Observed.Limits = []record.IOLimit{{Group: "/pods", Device: "vda", Value: 1000 * mb}}
				}
			}
		}, []string{"rounds-disagree", "throttled"}, "device: 5, throttled: 1"},
		{"a device that outruns its ceiling is told", func(s *storing) {
			s.ceilings = []record.Ceiling{{Volume: "bind", Device: "vda", When: "before", Read: 600 * mb}}
		}, []string{"above-ceiling"}, "1.06 GB/s read are 1.8 × the 600.0 MB/s"},
		{"a device within its ceiling is not", func(s *storing) {
			s.ceilings = []record.Ceiling{{Volume: "bind", Device: "vda", When: "before", Read: 1000 * mb}}
		}, nil, ""},
		{"ceilings that moved by more than a fifth are told", func(s *storing) {
			s.ceilings = []record.Ceiling{{Volume: "bind", Device: "vda", When: "before", Read: 1000 * mb, Write: 100, ReadIOPS: 100},
				{Volume: "bind", Device: "vda", When: "after", Read: 1210 * mb, Write: 81, ReadIOPS: 79}}
		}, []string{"ceiling-drift"}, "read bandwidth +21 %, read IOPS -21 %"},
		{"a ceiling that was not measured is told", func(s *storing) {
			s.ceilings = []record.Ceiling{{Volume: "bind", Device: "vda", When: "before", Failure: &record.Failure{Kind: record.FailExit, Detail: "fio exited with 1"}}}
		}, []string{"ceiling-not-measured"}, "before the rounds: fio exited with 1"},
		{"tools of two versions are told", func(s *storing) {
			s.cell = func(c *record.Cell) { c.Version = "fio-2.1" }
		}, []string{"tool-versions-differ"}, "fio-3.33 on host; fio-2.1 on runc, runsc"},
		{"others at the device are told", func(s *storing) {
			s.cell = func(c *record.Cell) {
				if c.Target == "runc" {
					c.Observed.Device.WriteBytes = claimed
				}
			}
		}, []string{"device-shared", "noisy"}, "58.6"},
		{"what was flushed after is told", func(s *storing) {
			writing(s)
			s.cache = "buffered"
			s.cell = func(c *record.Cell) { c.Observed.Device.WriteBytes, c.Observed.Flushed = percents(80), percents(11) }
		}, []string{"flushed-after", "host-cache"}, "(6.45 GiB of 58.59 GiB)"},
		{"a tenth is not", func(s *storing) {
			writing(s)
			s.cache = "buffered"
			s.cell = func(c *record.Cell) { c.Observed.Device.WriteBytes, c.Observed.Flushed = percents(80), percents(10) }
		}, []string{"host-cache"}, ""},
		{"others' dirty pages are not the job's", func(s *storing) {
			writing(s)
			s.cache = "buffered"
			s.cell = func(c *record.Cell) { c.Observed.Device.WriteBytes, c.Observed.Flushed = percents(80), percents(300) }
		}, []string{"flushed-after", "host-cache"}, "(11.72 GiB of 58.59 GiB)"},
		{"nor were they late where the device saw all", func(s *storing) {
			writing(s)
			s.cell = func(c *record.Cell) { c.Observed.Flushed = percents(300) }
		}, nil, ""},
		{"direct writes that were late are told as such", func(s *storing) {
			writing(s)
			s.cell = func(c *record.Cell) { c.Observed.Device.WriteBytes, c.Observed.Flushed = 0, percents(100) }
		}, []string{"flushed-after", "not-direct"}, "direct writes were not on the device yet"},
		{"nor is what was not looked at", func(s *storing) {
			writing(s)
			s.cell = func(c *record.Cell) { c.Observed.Flushed = -1 }
		}, nil, ""},
		{"caches that stayed are told", func(s *storing) { s.cell = func(c *record.Cell) { c.Dropped, c.Layout = "", &record.Layout{Files: 1} } }, []string{"caches-not-dropped"}, "6 of 6 rounds"},
		{"where the job made its own files there was nothing to drop", func(s *storing) { writing(s); s.cell = func(c *record.Cell) { c.Dropped = "" } }, nil, ""},
		{"but once if the run said so", func(s *storing) {
			s.cell = func(c *record.Cell) { c.Dropped, c.Layout = "", &record.Layout{Files: 1} }
			s.findings = []record.Finding{{Code: finding.NotDropped, Message: "by the run"}, {Code: "noisy", Message: "made anew"}}
		}, []string{"caches-not-dropped"}, "by the run"},
		{"a device that was not at rest is told", func(s *storing) {
			s.cell = func(c *record.Cell) { c.Quiet = c.Round > 0 }
		}, []string{"device-not-at-rest"}, "1 of 6 rounds"},
		{"what could not be read is told", func(s *storing) {
			s.cell = func(c *record.Cell) {
				c.Observed.Problems = record.Problems{Denied: 1, Examples: []string{"/proc/7/io"}}
			}
		}, []string{"incomplete"}, "6 not permitted"},
		{"what ended meanwhile is not", func(s *storing) {
			s.cell = func(c *record.Cell) { c.Observed.Problems = record.Problems{Gone: 1} }
		}, nil, ""},
		{"a full disk is told with what to do", func(s *storing) {
			s.cell = func(c *record.Cell) {
				if c.Round == 3 && c.Target == "runc" {
					c.Failure = &record.Failure{Kind: record.FailExit, Detail: "fio exited with 1", Command: "fio", Output: "No space left on device\n"}
				}
			}
		}, []string{"failed-operations", "too-few-rounds"}, "read on bind, direct failed in 1 of 6 rounds; the first: fio exited with 1: No space left on device"},
	}
	for _, x := range tests {
		t.Run(x.name, func(t *testing.T) {
			s := judged(t, store(x.change))
			// Six rounds are few for the two comparisons of a table, see below.
			s.Found = slices.DeleteFunc(s.Found, func(f record.Finding) bool { return strings.HasPrefix(f.Message, "6 rounds cannot show") })
			if got := codes(s); !slices.Equal(got, x.want) {
				t.Errorf("found %v, want %v: %+v", got, x.want, s.Found)
			}
			var all []string
			for _, f := range s.Found {
				all = append(all, f.Level+": "+f.Message)
				if f.Type != record.TypeFinding || f.Advice == "" && f.Message != "by the run" {
					t.Errorf("%+v", f)
				}
			}
			if text := strings.Join(all, "\n"); !strings.Contains(text, x.message) {
				t.Errorf("%q does not say %q", text, x.message)
			}
		})
	}
}

func TestAdviceOnAFailureFollowsWhatTheToolSaid(t *testing.T) {
	seen := map[string]string{}
	for _, f := range []record.Failure{
		{Kind: record.FailExit, Output: "No space left on device", Command: "fio"}, {Kind: record.FailExit, Output: "Read-only file system", Command: "fio"},
		{Kind: record.FailError, Detail: "the files of 12 MiB do not fit in 90 % of the 1 MiB that are free on the volume"},
		{Kind: record.FailState, Detail: "nothing was written: /dev/sdb is in use, and is left alone: below the loop device /dev/loop0"},
		{Kind: record.FailExit, Output: "Invalid argument", Command: "fio"}, {Kind: record.FailTimeout, Command: "fio"}, {Kind: record.FailExit, Command: "fio"},
	} {
		s := judged(t, store(func(s *storing) {
			s.cell = func(c *record.Cell) { c.Failure = &f }
		}))
		advice := found(t, s, "failed-operations").Advice
		if other, twice := seen[advice]; twice {
			t.Errorf("%q and %q have the same advice", f.Output, other)
		}
		seen[advice] = f.Output
	}
}

func TestImportedRoundsAreNotAskedForMore(t *testing.T) {
	if got := codes(judged(t, imported(t))); slices.Contains(got, "too-few-rounds") || slices.Contains(got, "caches-not-dropped") {
		t.Errorf("%v", got)
	}
}

func TestRoundsThatCannotShowADifferenceAreTold(t *testing.T) {
	t.Parallel()
	for rounds, want := range map[int]string{1: "use --rounds 7 or more", 5: "use --rounds 7 or more", 6: "use --rounds 7 or more", 7: ""} {
		advice := ""
		for _, f := range judged(t, store(func(s *storing) { s.rounds = rounds })).Found {
			if f.Code == "too-few-rounds" {
				advice += f.Advice
			}
		}
		if advice != want {
			t.Errorf("%d rounds: %q, want %q", rounds, advice, want)
		}
	}
}
