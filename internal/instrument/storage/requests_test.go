package storage_test

import (
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/instrument/storage"
	"github.com/tare-bench/tare/record"
)

// TestDirectIOIsToldFromReadingAhead has jobs of 20000 direct I/Os of which the
// device saw every byte, and differ in how many requests it was asked for them.
func TestDirectIOIsToldFromReadingAhead(t *testing.T) {
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
		{"as many requests as I/Os", job("read", k4, 1, 1), "direct", asked(blocks, 0), device},
		{"more, where large ones are split", job("read", 4*mib, 1, 1), "direct", asked(4*blocks, 0), device},
		{"a hundredth of them", job("read", k4, 1, 1), "direct", asked(blocks/100, 0), direct},
		{"just under half", job("read", k4, 1, 1), "direct", asked(blocks/2-1, 0), direct},
		{"half, which others' and the kernel's own could hide", job("read", k4, 1, 1), "direct", asked(blocks/2, 0), device},
		{"a hundredth of buffered ones is reading ahead, as it should", job("read", k4, 1, 1), "buffered", asked(blocks/100, 0), device},
		{"dd has one at a time", storage.Job{Name: "x", Tool: "dd", RW: "read", BS: k4, Count: blocks}, "direct", asked(blocks/32, 0), direct},
		{"and so when it writes", storage.Job{Name: "x", Tool: "dd", RW: "write", BS: k4, Count: blocks}, "direct", asked(blocks, blocks/32), direct},
		{"what was not counted says nothing", job("read", k4, 1, 1), "direct", asked(0, 0), device},
		{"eight at a time in sequence can be joined to an eighth", job("read", k4, 8, 1), "direct", asked(blocks/8, 0), device},
		{"and no further", job("read", k4, 8, 1), "direct", asked(blocks/16-1, 0), direct},
		{"depth joins as threads do", job("write", k4, 2, 32), "direct", asked(0, blocks/64), device},
		{"random ones far apart do not", job("randread", k4, 8, 1), "direct", asked(blocks/8, 0), direct},
		{"random ones in a small file may", small, "direct", asked(blocks/8, 0), device},
		{"a page cache that grew by all of it tells eight at a time, too", job("read", 16*kib, 8, 1), "direct", func(c *record.Cell) {
			c.Observed.Device.ReadIOs, c.Observed.Cached = blocks/8, blocks*16*kib
		}, direct},
		{"but not beside as many requests as I/Os", job("read", 16*kib, 8, 1), "direct", func(c *record.Cell) {
			c.Observed.Device.ReadIOs, c.Observed.Cached = blocks, blocks*16*kib
		}, device},
		{"a job file's threads and depth count", ofFile(storage.FioOption{Name: "iodepth", Value: "16"}, storage.FioOption{Name: "numjobs", Value: "2"}), "direct", asked(blocks/32, 0), device},
		{"and bound what is joined", ofFile(storage.FioOption{Name: "iodepth", Value: "16"}), "direct", asked(blocks/33, 0), direct},
		{"one that does not say how many is believed", ofFile(storage.FioOption{Name: "iodepth", Value: "$depth"}), "direct", asked(blocks/1000, 0), device},
	} {
		t.Run(x.name, func(t *testing.T) {
			c := only(t, judged(t, store(all(cells(x.cell), func(s *storing) {
				if s.job, s.cache = x.job, x.cache; len(x.job.Options) > 0 {
					s.job.BS = k4 // for the claims; the plan's job has none
				}
			}))), "runc")
			if c.Verdict != x.want {
				t.Errorf("%q because %q, want %q", c.Verdict, c.Because, x.want)
			}
			if x.want == direct && !strings.Contains(c.Because[0], "20000 I/Os of the tool") && !strings.Contains(c.Because[0], "120000 I/Os of the tool") {
				t.Errorf("because %q", c.Because)
			}
		})
	}
}

func TestThreadsOverOneFileAreNamedWhereACacheAnswered(t *testing.T) {
	for threads, want := range map[int]bool{1: false, 8: true} {
		few := seen(func(o *record.Observed) { o.Device.ReadBytes = percents(13) })
		c := only(t, judged(t, store(all(buffered, few, func(s *storing) { s.job.NumJobs = threads }))), "runc")
		if got := strings.Contains(c.Because[0], "8 threads go through the same file"); got != want || c.Verdict != host {
			t.Errorf("%d threads: %q because %q", threads, c.Verdict, c.Because)
		}
	}
}

func TestACeilingBoundsWhatLiesOnItsDevice(t *testing.T) {
	for on, want := range map[string]bool{"vda": true, "": false, "vdb": false} {
		s := judged(t, store(func(s *storing) {
			s.volume = "rootfs"
			s.ceilings = []record.Ceiling{{Volume: "rootfs", Device: "vda", When: "before", Read: 500 * mb}}
			s.places = []record.Place{{Target: "runc", Volume: "rootfs", Device: on}}
		}))
		text := strings.Join(only(t, s, "runc").Because, "; ")
		if got := strings.Contains(text, "ceiling"); got != want {
			t.Errorf("on %q: because %q", on, text)
		}
	}
}

func TestEveryTargetHasItsOwnCommandAndFailedRoundsHaveVersions(t *testing.T) {
	s := judged(t, store(func(s *storing) {
		s.cell = func(c *record.Cell) {
			c.Command = "fio --of=" + c.Target
			if c.Target == "runsc" {
				c.Version, c.Failure = "fio-2.1", &record.Failure{Kind: record.FailExit, Detail: "it broke"}
			}
		}
	}))
	for target, want := range map[string][2]string{"host": {"fio --name=x", "fio-3.33"}, "runc": {"fio --of=runc", "fio-3.33"}, "runsc": {"fio --of=runsc", "fio-2.1"}} {
		if c := only(t, s, target); c.Command != want[0] || len(c.Versions) != 1 || c.Versions[0] != want[1] {
			t.Errorf("%s: %q, %v", target, c.Command, c.Versions)
		}
	}
}
