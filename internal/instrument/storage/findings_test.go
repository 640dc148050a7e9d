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
	unseen := seen(func(o *record.Observed) { o.Device.ReadBytes = 0 })
	ofRunc := func(round int, change func(*record.Cell)) func(*storing) {
		return cells(func(c *record.Cell) {
			if c.Round == round && c.Target == "runc" {
				change(c)
			}
		})
	}
	ceilings := func(all ...record.Ceiling) func(*storing) {
		return func(s *storing) {
			for i, c := range all {
				c.Volume, c.Device, c.When = "bind", "vda", []string{"before", "after"}[i]
				s.ceilings = append(s.ceilings, c)
			}
		}
	}
	wrote := func(atDevice, flushed int64) func(*storing) {
		return all(writing, seen(func(o *record.Observed) { o.Device.WriteBytes, o.Flushed = percents(atDevice), percents(flushed) }))
	}
	kept := cells(func(c *record.Cell) { c.Dropped, c.Layout = "", &record.Layout{Files: 1} })
	tests := []struct {
		name    string
		want    string // codes
		message string
		change  func(*storing)
	}{
		{"a quiet machine whose device sees all yields none", "", "", nil},
		{"one round that is fast does not outrun a ceiling", "too-few-rounds", "", all(rounds(5), ceilings(record.Ceiling{Read: 730 * mb}), cells(func(c *record.Cell) {
			if c.Round == 3 {
				c.Reported.Read.Bandwidth *= 1.9
			}
		}))},
		{"five rounds are too few", "too-few-rounds", "5 rounds give no 95 % interval", rounds(5)},
		{"one is", "too-few-rounds", "note: 1 round gives no", rounds(1)},
		{"cells of one kind are one finding", "not-direct",
			"2 of 3 cells were to be direct, and memory answered: O_DIRECT ended above the device: runc read on bind, direct (vda saw 0 %", unseen},
		{"of many cells a few are named", "not-direct", "and 2 more", all(unseen, func(s *storing) { s.targets = []string{"a", "b", "c", "d", "e", "f", "g"} })},
		{"a tmpfs is worth a note", "not-direct", "note: 3 of 3", on("tmpfs")},
		{"rounds of two kinds are told", "host-cache rounds-disagree", "device: 5, host cache: 1",
			all(buffered, ofRunc(2, func(c *record.Cell) { c.Observed.Device.ReadBytes = 0 }))},
		{"a limit that was set in one round throttled that one alone", "rounds-disagree throttled", "device: 5, throttled: 1", ofRunc(2, func(c *record.Cell) {
			c.Observed.Limits = []record.IOLimit{{Group: "/pods", Device: "vda", Value: 1000 * mb}}
		})},
		{"a device that outruns its ceiling is told", "above-ceiling", "1.06 GB/s read are 1.8 × the 600.0 MB/s", ceilings(record.Ceiling{Read: 600 * mb})},
		{"a device within its ceiling is not", "", "", ceilings(record.Ceiling{Read: 1000 * mb})},
		{"ceilings that moved by more than a fifth are told", "ceiling-drift", "read bandwidth +21 %, read IOPS -21 %",
			ceilings(record.Ceiling{Read: 1000 * mb, Write: 100, ReadIOPS: 100}, record.Ceiling{Read: 1210 * mb, Write: 81, ReadIOPS: 79})},
		{"a ceiling that was not measured is told", "ceiling-not-measured", "before the rounds: fio exited with 1",
			ceilings(record.Ceiling{Failure: &record.Failure{Kind: record.FailExit, Detail: "fio exited with 1"}})},
		{"tools of two versions are told", "tool-versions-differ", "fio-3.33 on host; fio-2.1 on runc, runsc", cells(func(c *record.Cell) { c.Version = "fio-2.1" })},
		{"others at the device are told", "device-shared noisy", "58.6", cells(func(c *record.Cell) {
			if c.Target == "runc" {
				c.Observed.Device.WriteBytes = claimed
			}
		})},
		{"what was flushed after is told", "flushed-after host-cache", "(6.45 GiB of 58.59 GiB)", all(buffered, wrote(80, 11))},
		{"a tenth is not", "host-cache", "", all(buffered, wrote(80, 10))},
		{"others' dirty pages are not the job's", "flushed-after host-cache", "(11.72 GiB of 58.59 GiB)", all(buffered, wrote(80, 300))},
		{"nor were they late where the device saw all", "", "", wrote(100, 300)},
		{"direct writes that were late are told as such", "flushed-after not-direct", "direct writes were not on the device yet", wrote(0, 100)},
		{"nor is what was not looked at", "", "", all(writing, seen(func(o *record.Observed) { o.Flushed = -1 }))},
		{"caches that stayed are told", "caches-not-dropped", "6 of 6 rounds", kept},
		{"where the job made its own files there was nothing to drop", "", "", all(writing, cells(func(c *record.Cell) { c.Dropped = "" }))},
		{"but once if the run said so", "caches-not-dropped", "by the run", all(kept, func(s *storing) {
			s.findings = []record.Finding{{Code: finding.NotDropped, Message: "by the run"}, {Code: "noisy", Message: "made anew"}}
		})},
		{"a device that was not at rest is told", "device-not-at-rest", "1 of 6 rounds", cells(func(c *record.Cell) { c.Quiet = c.Round > 0 })},
		{"what could not be read is told", "incomplete", "6 not permitted",
			seen(func(o *record.Observed) { o.Problems = record.Problems{Denied: 1, Examples: []string{"/proc/7/io"}} })},
		{"what ended meanwhile is not", "", "", seen(func(o *record.Observed) { o.Problems = record.Problems{Gone: 1} })},
		{"a full disk is told with what to do", "failed-operations too-few-rounds",
			"read on bind, direct failed in 1 of 6 rounds; the first: fio exited with 1: No space left on device", ofRunc(3, func(c *record.Cell) {
				c.Failure = &record.Failure{Kind: record.FailExit, Detail: "fio exited with 1", Command: "fio", Output: "No space left on device\n"}
			})},
	}
	for _, x := range tests {
		t.Run(x.name, func(t *testing.T) {
			s := judged(t, store(x.change))
			// Six rounds are few for the two comparisons of a table, see below.
			s.Found = slices.DeleteFunc(s.Found, func(f record.Finding) bool { return strings.HasPrefix(f.Message, "6 rounds cannot show") })
			if got := strings.Join(codes(s), " "); got != x.want {
				t.Errorf("found %s, want %s: %+v", got, x.want, s.Found)
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
		s := judged(t, store(cells(func(c *record.Cell) { c.Failure = &f })))
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
	for n, want := range map[int]string{1: "use --rounds 7 or more", 5: "use --rounds 7 or more", 6: "use --rounds 7 or more", 7: ""} {
		advice := ""
		for _, f := range judged(t, store(rounds(n))).Found {
			if f.Code == "too-few-rounds" {
				advice += f.Advice
			}
		}
		if advice != want {
			t.Errorf("%d rounds: %q, want %q", n, advice, want)
		}
	}
}
