package storage_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/core/finding"
	"github.com/tare-bench/tare/internal/instrument/storage"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/record"
)

// TestDirectIOIsDistinguishedFromReadahead uses jobs of 20000 direct I/Os. The device transfers
// every byte, but the number of its requests differs.
func TestDirectIOIsDistinguishedFromReadahead(t *testing.T) {
	const k4 = 4 * kib
	asked := func(reads, writes int64) func(*record.Cell) {
		return func(c *record.Cell) { c.Observed.Device.ReadIOs, c.Observed.Device.WriteIOs = reads, writes }
	}
	job := func(rw string, bs int64, threads, depth int) storage.Job {
		return storage.Job{Name: "x", Tool: "fio", RW: rw, BS: bs, Size: blocks * bs, NumJobs: threads, IODepth: depth}
	}
	ofFile := func(options ...storage.FioOption) storage.Job {
		return storage.Job{Name: "x", Tool: "fio", Options: []storage.Section{{Name: "global", Options: options}, {Name: "a", Options: []storage.FioOption{{Name: "rw", Value: "read"}}}}}
	}
	small := job("randread", k4, 8, 8)
	small.Size = 100 * k4
	for _, x := range []struct {
		name  string
		job   storage.Job
		cache string
		cell  func(*record.Cell)
		want  storage.Verdict
	}{
		{"one request per I/O", job("read", k4, 1, 1), "direct", asked(blocks, 0), device},
		{"split large I/Os", job("read", 4*mib, 1, 1), "direct", asked(4*blocks, 0), device},
		{"one request per 100 I/Os", job("read", k4, 1, 1), "direct", asked(blocks/100, 0), direct},
		{"just under one request per two I/Os", job("read", k4, 1, 1), "direct", asked(blocks/2-1, 0), direct},
		{"one request per two I/Os is within the tolerance", job("read", k4, 1, 1), "direct", asked(blocks/2, 0), device},
		{"buffered readahead is expected", job("read", k4, 1, 1), "buffered", asked(blocks/100, 0), device},
		{"reads of dd", storage.Job{Name: "x", Tool: "dd", RW: "read", BS: k4, Count: blocks}, "direct", asked(blocks/32, 0), direct},
		{"writes of dd", storage.Job{Name: "x", Tool: "dd", RW: "write", BS: k4, Count: blocks}, "direct", asked(blocks, blocks/32), direct},
		{"uncounted requests", job("read", k4, 1, 1), "direct", asked(0, 0), device},
		{"8 sequential threads may be merged 8:1", job("read", k4, 8, 1), "direct", asked(blocks/8, 0), device},
		{"8 sequential threads cannot be merged 16:1", job("read", k4, 8, 1), "direct", asked(blocks/16-1, 0), direct},
		{"queue depth allows merging like threads", job("write", k4, 2, 32), "direct", asked(0, blocks/64), device},
		{"random I/Os in a large file cannot be merged", job("randread", k4, 8, 1), "direct", asked(blocks/8, 0), direct},
		{"random I/Os in a small file may be merged", small, "direct", asked(blocks/8, 0), device},
		{"8 threads whose bytes are in the page cache", job("read", 16*kib, 8, 1), "direct", func(c *record.Cell) {
			c.Observed.Device.ReadIOs, c.Observed.Cached = blocks/8, blocks*16*kib
		}, direct},
		{"bytes in the page cache with one request per I/O", job("read", 16*kib, 8, 1), "direct", func(c *record.Cell) {
			c.Observed.Device.ReadIOs, c.Observed.Cached = blocks, blocks*16*kib
		}, device},
		{"threads and depth of a job file allow merging", ofFile(storage.FioOption{Name: "iodepth", Value: "16"}, storage.FioOption{Name: "numjobs", Value: "2"}), "direct", asked(blocks/32, 0), device},
		{"threads and depth of a job file limit merging", ofFile(storage.FioOption{Name: "iodepth", Value: "16"}), "direct", asked(blocks/33, 0), direct},
		{"job file with unknown depth is trusted", ofFile(storage.FioOption{Name: "iodepth", Value: "$depth"}), "direct", asked(blocks/1000, 0), device},
	} {
		t.Run(x.name, func(t *testing.T) {
			c := only(t, judged(t, store(all(cells(x.cell), func(s *storing) {
				if s.job, s.cache = x.job, x.cache; len(x.job.Options) > 0 {
					s.job.BS = k4 // needed for the claims; the plan's job has no block size
				}
			}))), "runc")
			check.That(t, c.Verdict == x.want, "%q because %q, want %q", c.Verdict, c.Because, x.want)
			check.That(t, x.want != direct || strings.Contains(c.Because[0], "20000 I/Os of the tool") || strings.Contains(c.Because[0], "120000 I/Os of the tool"),
				"because %q", c.Because)
		})
	}
}

func TestThreadsSharingAFileExplainACache(t *testing.T) {
	for threads, want := range map[int]bool{1: false, 8: true} {
		few := seen(func(o *record.Observed) { o.Device.ReadBytes = percents(13) })
		c := only(t, judged(t, store(all(buffered, few, func(s *storing) { s.job.NumJobs = threads }))), "runc")
		got := strings.Contains(c.Because[0], "8 threads read the same file")
		check.That(t, got == want && c.Verdict == host, "%d threads: %q because %q", threads, c.Verdict, c.Because)
	}
}

func TestCeilingAppliesOnlyToItsDevice(t *testing.T) {
	for on, want := range map[string]bool{"vda": true, "": false, "vdb": false} {
		s := judged(t, store(func(s *storing) {
			s.volume = "rootfs"
			s.ceilings = []record.Ceiling{{Volume: "rootfs", Device: "vda", When: "before", Read: 500 * mb}}
			s.places = []record.Place{{Target: "runc", Volume: "rootfs", Device: on}}
		}))
		text := strings.Join(only(t, s, "runc").Because, "; ")
		got := strings.Contains(text, "ceiling")
		check.That(t, got == want, "on %q: because %q", on, text)
	}
}

func TestEachTargetHasItsCommandAndVersion(t *testing.T) {
	s := judged(t, store(func(s *storing) {
		s.cell = func(c *record.Cell) {
			c.Command = "fio --of=" + c.Target
			if c.Target == "runsc" {
				c.Version, c.Failure = "fio-2.1", &record.Failure{Kind: record.FailExit, Detail: "it broke"}
			}
		}
	}))
	for target, want := range map[string][2]string{"host": {"fio --name=x", "fio-3.33"}, "runc": {"fio --of=runc", "fio-3.33"}, "runsc": {"fio --of=runsc", "fio-2.1"}} {
		c := only(t, s, target)
		check.That(t, c.Command == want[0] && len(c.Versions) == 1 && c.Versions[0] == want[1], "%s: %q, %v", target, c.Command, c.Versions)
	}
}

func codes(s *storage.Judgement) []string {
	var out []string
	for _, f := range s.Found {
		out = append(out, f.Code)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func TestStorageFindings(t *testing.T) {
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
	for _, x := range []struct {
		name    string
		want    string // codes
		message string
		change  func(*storing)
	}{
		{"no finding on an idle machine", "", "", nil},
		{"one fast round does not exceed the ceiling", "too-few-rounds", "", all(rounds(5), ceilings(record.Ceiling{Read: 730 * mb}), cells(func(c *record.Cell) {
			if c.Round == 3 {
				c.Reported.Read.Bandwidth *= 1.9
			}
		}))},
		{"five rounds have no interval", "too-few-rounds", "5 rounds give no 95 % interval", rounds(5)},
		{"one round has no interval", "too-few-rounds", "note: 1 round gives no", rounds(1)},
		{"equal cells share a finding", "not-direct",
			"2 of 3 cells requested direct I/O, but memory answered: O_DIRECT did not reach the device: runc read on bind, direct (vda saw 0 %", unseen},
		{"a few of many cells are named", "not-direct", "and 2 more", all(unseen, func(s *storing) { s.targets = []string{"a", "b", "c", "d", "e", "f", "g"} })},
		{"tmpfs is a note", "not-direct", "note: 3 of 3", on("tmpfs")},
		{"disagreeing rounds are reported", "host-cache rounds-disagree", "device: 5, host cache: 1",
			all(buffered, ofRunc(2, func(c *record.Cell) { c.Observed.Device.ReadBytes = 0 }))},
		{"limit set in one round throttles only that round", "rounds-disagree throttled", "device: 5, throttled: 1", ofRunc(2, func(c *record.Cell) {
			c.Observed.Limits = []record.IOLimit{{Group: "/pods", Device: "vda", Value: 1000 * mb}}
		})},
		{"bandwidth above the ceiling is reported", "above-ceiling", "1.06 GB/s read are 1.8 × the 600.0 MB/s", ceilings(record.Ceiling{Read: 600 * mb})},
		{"bandwidth below the ceiling is not reported", "", "", ceilings(record.Ceiling{Read: 1000 * mb})},
		{"ceilings that drift by more than 20 % are reported", "ceiling-drift", "read bandwidth +21 %, read IOPS -21 %",
			ceilings(record.Ceiling{Read: 1000 * mb, Write: 100, ReadIOPS: 100}, record.Ceiling{Read: 1210 * mb, Write: 81, ReadIOPS: 79})},
		{"failed ceiling is reported", "ceiling-not-measured", "before the rounds: fio exited with 1",
			ceilings(record.Ceiling{Failure: &record.Failure{Kind: record.FailExit, Detail: "fio exited with 1"}})},
		{"different tool versions are reported", "tool-versions-differ", "fio-3.33 on host; fio-2.1 on runc, runsc", cells(func(c *record.Cell) { c.Version = "fio-2.1" })},
		{"other use of the device is reported", "device-shared noisy", "58.6", cells(func(c *record.Cell) {
			if c.Target == "runc" {
				c.Observed.Device.WriteBytes = claimed
			}
		})},
		{"11 % flushed later is reported", "flushed-after host-cache", "(6.45 GiB of 58.59 GiB)", all(buffered, wrote(80, 11))},
		{"10 % flushed later is not reported", "host-cache", "", all(buffered, wrote(80, 10))},
		{"other dirty pages do not count as the job's", "flushed-after host-cache", "(11.72 GiB of 58.59 GiB)", all(buffered, wrote(80, 300))},
		{"other dirty pages are not reported if the device saw all bytes", "", "", wrote(100, 300)},
		{"late direct writes are reported", "flushed-after not-direct", "direct writes had not reached the device", wrote(0, 100)},
		{"unmeasured flushes are not reported", "", "", all(writing, seen(func(o *record.Observed) { o.Flushed = -1 }))},
		{"caches that were not dropped are reported", "caches-not-dropped", "6 of 6 rounds", kept},
		{"job that creates its own files has nothing to drop", "", "", all(writing, cells(func(c *record.Cell) { c.Dropped = "" }))},
		{"caches reported by the run are reported once", "caches-not-dropped", "by the run", all(kept, func(s *storing) {
			s.findings = []record.Finding{{Code: finding.NotDropped, Message: "by the run"}, {Code: "noisy", Message: "made anew"}}
		})},
		{"busy device before the job is reported", "device-not-at-rest", "1 of 6 rounds", cells(func(c *record.Cell) { c.Quiet = c.Round > 0 })},
		{"unreadable files are reported", "incomplete", "6 not permitted",
			seen(func(o *record.Observed) { o.Problems = record.Problems{Denied: 1, Examples: []string{"/proc/7/io"}} })},
		{"exited processes are not reported", "", "", seen(func(o *record.Observed) { o.Problems = record.Problems{Gone: 1} })},
		{"full disk is reported with advice", "failed-operations too-few-rounds",
			"read on bind, direct failed in 1 of 6 rounds; the first: fio exited with 1: No space left on device", ofRunc(3, func(c *record.Cell) {
				c.Failure = &record.Failure{Kind: record.FailExit, Detail: "fio exited with 1", Command: "fio", Output: "No space left on device\n"}
			})},
	} {
		t.Run(x.name, func(t *testing.T) {
			s := judged(t, store(x.change))
			// Ignore the finding that six rounds are too few for the two comparisons of a
			// table, see below.
			s.Found = slices.DeleteFunc(s.Found, func(f record.Finding) bool { return strings.HasPrefix(f.Message, "6 rounds cannot show") })
			got := strings.Join(codes(s), " ")
			check.That(t, got == x.want, "found %s, want %s: %+v", got, x.want, s.Found)
			var all []string
			for _, f := range s.Found {
				all = append(all, f.Level+": "+f.Message)
				check.That(t, f.Type == record.TypeFinding && (f.Advice != "" || f.Message == "by the run"), "%+v", f)
			}
			check.Contains(t, "findings", strings.Join(all, "\n"), x.message)
		})
	}
}

func TestFailureAdviceDependsOnTheToolsOutput(t *testing.T) {
	seen := map[string]string{}
	for _, f := range []record.Failure{
		{Kind: record.FailExit, Output: "No space left on device", Command: "fio"}, {Kind: record.FailExit, Output: "Read-only file system", Command: "fio"},
		{Kind: record.FailError, Detail: "the files of 12 MiB do not fit in 90 % of the 1 MiB that are free on the volume"},
		{Kind: record.FailState, Detail: "nothing was written: /dev/sdb is in use: below the loop device /dev/loop0"},
		{Kind: record.FailExit, Output: "Invalid argument", Command: "fio"}, {Kind: record.FailTimeout, Command: "fio"}, {Kind: record.FailExit, Command: "fio"},
	} {
		s := judged(t, store(cells(func(c *record.Cell) { c.Failure = &f })))
		advice := found(t, s, "failed-operations").Advice
		other, twice := seen[advice]
		check.That(t, !twice, "%q and %q have the same advice", f.Output, other)
		seen[advice] = f.Output
	}
}

func TestImportedRoundsHaveNoRoundsAdvice(t *testing.T) {
	got := codes(judged(t, imported(t)))
	check.That(t, !slices.Contains(got, "too-few-rounds") && !slices.Contains(got, "caches-not-dropped"), "%v", got)
}

func TestTooFewRoundsAreReported(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{1: "use --rounds 7 or more", 5: "use --rounds 7 or more", 6: "use --rounds 7 or more", 7: ""} {
		advice := ""
		for _, f := range judged(t, store(rounds(n))).Found {
			if f.Code == "too-few-rounds" {
				advice += f.Advice
			}
		}
		check.Equal(t, fmt.Sprintf("%d rounds", n), advice, want)
	}
}
