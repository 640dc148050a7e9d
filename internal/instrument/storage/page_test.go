package storage_test

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/instrument/storage"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

// reported returns the page of a record as text or Markdown.
func reported(t *testing.T, rec *record.Record, format string, o page.Options) string {
	t.Helper()
	var out bytes.Buffer
	shown := judged(t, rec).Page(o)
	o.Verbose = true // details of the text form
	must.OK(t, page.Write(&out, format, []*page.Page{shown}, o))
	return out.String()
}

// sectionOf returns a section of a page in Markdown.
func sectionOf(t *testing.T, out, title string) string {
	t.Helper()
	_, part, ok := strings.Cut(out, "\n### "+title)
	must.That(t, ok, "no section %q in:\n%s", title, out)
	part, _, _ = strings.Cut(part, "\n### ")
	return part
}

func has(t *testing.T, text string, all ...string) {
	t.Helper()
	check.Contains(t, "page", text, all...)
}

// cached returns two jobs on two volumes. Memory serves some of the requests.
func cached() *record.Record {
	rec := store(func(s *storing) {
		s.cache = "buffered"
		s.cell = func(c *record.Cell) {
			c.Reported.Read.IOPS *= 3 // a recognizable figure
			c.Reported.Read.Bandwidth *= 3
			c.Observed.Device.ReadBytes = 0
		}
	})
	for _, more := range []*record.Record{
		store(func(s *storing) { s.volume, s.job = "rootfs", write8 }),
		store(func(s *storing) {
			s.volume, s.job = "tmpfs", write8
			s.every = func(c *record.Cell) { c.Reported.Write.IOPS, c.Reported.Write.Bandwidth = 9999, 9999*512*kib }
		}),
	} {
		rec.Cells = append(rec.Cells, more.Cells...)
	}
	return rec
}

func TestEveryStorageFigureIsInTheJudgement(t *testing.T) {
	rec := store(func(s *storing) {
		mixed(s)
		s.ceilings = []record.Ceiling{{Volume: "bind", Device: "vda", When: "before", Read: 5 * gib, WriteIOPS: 70}}
		s.places = []record.Place{{Target: "runc", Volume: "bind", Mounts: []record.FileSystem{{Path: "/", Type: "overlay", Size: 98 * gib, Free: gib}, {Path: "/dev/shm", Problem: "no permission"}}}}
	})
	seen := map[string]figure.Unit{}
	all := judged(t, rec).Figures()
	for _, f := range all {
		seen[f.Quantity] = f.Unit
	}
	want := map[string]figure.Unit{
		"bandwidth": "bytes/s", "iops": "1/s", "latency": "ns", "transferred": "bytes", "run-time": "ns", "cpu": "cpus", "cpu-per-byte": "ns/byte",
		"iops-ratio": "ratio", "cpu-per-byte-ratio": "ratio", "reached-device": "ratio", "device-bytes": "bytes",
		"file-system-size": "bytes", "file-system-free": "bytes", "ceiling-bandwidth": "bytes/s", "ceiling-iops": "1/s",
	}
	check.Equal(t, "seen", seen, want)
	of := []string{"job", "rndrw", "tool", "sysbench", "rw", "randrw", "bs", "16384", "volume", "bind", "cache", "direct", "target", "runc"}
	for _, x := range []struct {
		quantity string
		labels   []string
		want     float64
	}{
		{"transferred", append(slices.Clip(of), "direction", "both"), 2 * blocks * 16 * kib},
		{"transferred", append(slices.Clip(of), "direction", "write"), blocks * 16 * kib},
		{"latency", append(slices.Clip(of), "direction", "read", "quantile", "p95"), 8e6},
		{"run-time", of, 10e9},
		{"cpu", append(slices.Clip(of), "role", "runtime"), 0.05},
		{"iops-ratio", append(slices.Clip(of), "direction", "both"), 1},
		{"device-bytes", append(slices.Clip(of), "direction", "read"), blocks*16*kib + mib},
		{"ceiling-bandwidth", []string{"volume", "bind", "device", "vda", "direction", "read"}, 5 * gib},
		{"ceiling-iops", []string{"volume", "bind", "device", "vda", "direction", "write"}, 70},
		{"file-system-size", []string{"volume", "bind", "target", "runc", "path", "/", "type", "overlay"}, 98 * gib},
	} {
		if f := figure.Find(all, x.quantity, x.labels...); f.Value != x.want || f.Verdict != "device" && f.Labels.Get("job") != "" {
			t.Errorf("%s of %s is %v, %q; want %v", x.quantity, figure.Of(x.labels...), f.Value, f.Verdict, x.want)
		}
	}
	f := figure.Find(all, "file-system-free", "path", "/dev/shm")
	check.That(t, !f.Known() && f.Quantity != "", "unreadable file system: %+v", f)
}

func TestFigureHasVerdictAndReason(t *testing.T) {
	failure := &record.Failure{Kind: record.FailExit, Detail: "fio exited with 1"}
	rec := store(func(s *storing) {
		s.cell = func(c *record.Cell) {
			if c.Observed.Device.ReadBytes = 0; c.Target == "runsc" {
				c.Failure, c.Reported = failure, nil
			}
		}
		s.places = []record.Place{{Target: "crun", Volume: "bind", Absent: "no such mounts"}}
	})
	rec.Targets = append(rec.Targets, record.Target{Name: "crun"})
	all := judged(t, rec).Figures()
	for target, want := range map[string][2]string{"host": {"device", "saw 100 %"}, "runc": {"not direct", "saw 0 %"}, "runsc": {"failed", "exited with 1"}, "crun": {"absent", "no such mounts"}} {
		f := figure.Find(all, "bandwidth", "target", target)
		check.That(t, f.Verdict == want[0] && len(f.Reasons) != 0 && strings.Contains(f.Reasons[0], want[1]) &&
			f.Known() == (target == "host" || target == "runc"), "%s: %q because %q, %+v", target, f.Verdict, f.Reasons, f.Estimate)
	}
	f := figure.Find(all, "bandwidth", "target", "runsc")
	check.That(t, f.Failed == 6 && f.Total == 6, "%d of %d failed", f.Failed, f.Total)
}

func TestCachedFigureIsPrefixedWithItsVerdict(t *testing.T) {
	forms := map[string]string{"md": sectionOf(t, reported(t, cached(), "md", page.Options{}), "in short")}
	for _, width := range []int{0, 80, 120} {
		_, short, _ := strings.Cut(reported(t, cached(), "text", page.Options{Width: width}), "in short")
		forms["text at "+strconv.Itoa(width)], _, _ = strings.Cut(short, "read, bind")
	}
	for form, out := range forms {
		seen := map[string]int{}
		for line := range strings.Lines(out) {
			for number, word := range map[string]string{"6060 (": "cache ", "9999 (": "not direct "} {
				if before, _, ok := strings.Cut(line, number); ok {
					if seen[number]++; !strings.HasSuffix(before, word) {
						t.Errorf("%s: no %q before %s in %q", form, word, number, line)
					}
				}
			}
			if before, _, ok := strings.Cut(line, "2020 ("); ok && !strings.HasSuffix(before, "  ") && !strings.HasSuffix(before, "| ") {
				t.Errorf("%s: unexpected text before a device figure: %q", form, line)
			}
		}
		check.That(t, seen["6060 ("] == 2 && seen["9999 ("] == 3, "%s: %v in:\n%s", form, seen, out)
	}
}

func TestEveryPartOfASplitTableHasTheVerdict(t *testing.T) {
	parts := 0
	for line := range strings.Lines(reported(t, cached(), "text", page.Options{Width: 80})) {
		if strings.HasPrefix(line, "  target ") && (strings.Contains(line, "MB/s") || strings.Contains(line, "p99") || strings.Contains(line, "GiB")) {
			parts++
			fields := strings.Fields(line)
			check.That(t, fields[1] == "verdict", "figures without a verdict: %q", line)
		}
	}
	check.That(t, parts >= 2*3, "%d parts; the tables of three jobs do not fit in 80 columns", parts)
}

func TestSummaryHasThePublishedLayout(t *testing.T) {
	out := reported(t, imported(t), "md", page.Options{Verbose: true})
	has(t, sectionOf(t, out, "in short"), "| kata × host | (\\~ 1.03×) |", "| (\\~ 5.12×) |", "| guest cache 8600 (4509.2 MB/s) |", "| not contradicted 1681 (881.6 MB/s) |", "| not contradicted 134.2 MB/s |")
	has(t, out, "; there are no node readings")
	check.Lacks(t, "unmeasured values", out, "Linux", "cgroup", "new sandbox", "at the device:", "CPU m", "0 CPUs", "caches dropped")
}

func TestRatioOfCachedFiguresIsInParentheses(t *testing.T) {
	half := func(c *record.Cell) {
		if c.Target != "host" {
			c.Reported.Read.Bandwidth /= 2
			c.Reported.Read.IOPS /= 2
		}
	}
	unseen := func(c *record.Cell, target string) {
		if c.Target == target {
			c.Observed.Device.ReadBytes = 0
		}
	}
	for _, x := range []struct {
		name   string
		rounds int
		every  func(*record.Cell)
		want   string
	}{
		{"both on the device", 20, half, "| 0.50× 0.50…0.50 |"},
		{"both on the device, no difference shown", 3, half, "| ~ 0.50× |"},
		{"target cached", 20, func(c *record.Cell) { half(c); unseen(c, "runc") }, "| (0.50×) 0.50…0.50 |"},
		{"baseline cached", 20, func(c *record.Cell) { half(c); unseen(c, "host") }, "| (0.50×) 0.50…0.50 |"},
		{"both cached, no difference shown", 3, func(c *record.Cell) { half(c); unseen(c, "runc"); unseen(c, "host") }, "| (\\~ 0.50×) |"},
	} {
		t.Run(x.name, func(t *testing.T) {
			rec := store(func(s *storing) { s.rounds, s.every, s.targets = x.rounds, x.every, []string{"host", "runc"} })
			has(t, sectionOf(t, reported(t, rec, "md", page.Options{}), "read, bind, direct"), x.want)
		})
	}
}

func TestTableWithoutHostNamesItsBaseline(t *testing.T) {
	rec := cached()
	rec.Cells = slices.DeleteFunc(rec.Cells, func(c record.Cell) bool { return c.Target == "host" && c.Volume == "bind" })
	out := reported(t, rec, "md", page.Options{})
	has(t, sectionOf(t, out, "in short"), "| runc × host |  | ", "| runsc × runc | (\\~ 1.00×) ±0 % |  |", "× runc, × host: ratio")
	has(t, sectionOf(t, out, "read, bind, buffered"), "| × runc |")
}

func TestMissingFigureIsADashWithItsReason(t *testing.T) {
	rec := store(func(s *storing) {
		s.rounds = 3
		s.every = func(c *record.Cell) {
			if c.Target == "runc" || c.Target == "host" && c.Round == 1 {
				c.Failure = &record.Failure{Kind: record.FailExit, Detail: "fio exited with 1", Command: "fio", Output: "No space left on device"}
			}
		}
		s.targets = []string{"host", "runc"}
		s.places = []record.Place{{Target: "host", Volume: "bind", Mounts: []record.FileSystem{{Path: "/dev/shm", Problem: "permission denied"}}},
			{Target: "crun", Volume: "bind", Absent: "this kernel has no NFS client", Advice: "modprobe nfs"}}
	})
	rec.Targets = append(rec.Targets, record.Target{Name: "crun"}, record.Target{Name: "runsc"})
	for _, format := range []string{"text", "md"} {
		has(t, reported(t, rec, format, page.Options{}), "failed 4/6 cells", "this kernel has no NFS client", "→ modprobe nfs", "1/3 rounds failed; the first: fio exited with 1",
			"3/3 rounds failed", "No space left on device", "no figures", "1/3 failed, 2", "– /dev/shm on host")
	}
	has(t, reported(t, rec, "md", page.Options{}), "| runc | – |", "| crun | – |", "| runsc | – |", "| runc | failed | – |", "| crun | absent | – |")
	has(t, reported(t, store(nil), "text", page.Options{}), "failed 0/18 cells")
}

func TestMixedJobHasARowPerDirection(t *testing.T) {
	rec := store(func(s *storing) {
		s.job = rndrw
		s.every = func(c *record.Cell) {
			c.Reported.Read.Latency = record.Latency{Mean: 5 * ms, P95: 8 * ms}
			c.Reported.Write, c.Observed.Device.WriteBytes = c.Reported.Read, c.Observed.Device.ReadBytes
		}
	})
	table := sectionOf(t, reported(t, rec, "md", page.Options{}), "rndrw, bind, direct")
	has(t, table, "| host | device | both | 66.2 ±1 % | 4040 | · | · |", "| host | device | read | 33.1 ±1 % | 2020 | 5.00 ms | 8.00 ms |", "| host | device | write | 33.1")
	check.That(t, strings.Contains(table, "| IOPS | mean | p95 |") && !strings.Contains(table, "| p99 |"),
		"want the columns mean and p95 of sysbench:\n%s", table)
	table = sectionOf(t, reported(t, store(nil), "md", page.Options{}), "read, bind")
	check.That(t, !strings.Contains(table, "| both |") && !strings.Contains(table, "| mean |") && !strings.Contains(table, "| p95 |"),
		"want neither both directions nor columns mean and p95:\n%s", table)
	has(t, sectionOf(t, reported(t, store(nil), "md", page.Options{Verbose: true}), "read, bind"), "| mean | p50 | p95 | p99 | p99.9 |")
}

func TestEqualVolumesArePrintedOnceWithSizesOfDf(t *testing.T) {
	at := func(target, volume, inside string) record.Place {
		return record.Place{Target: target, Volume: volume, HostType: "ext4", Device: "vda", Direct: record.DirectTaken, Mounts: []record.FileSystem{
			{Path: "/", Type: "overlay", Size: 98 * gib, Free: 61 * gib}, {Path: "/dev/shm", Type: "tmpfs", Size: 64 * mib, Free: 1e18},
			{Path: "/data", Type: inside, Size: 98 * gib, Free: 1}}}
	}
	rec := store(func(s *storing) {
		s.places = []record.Place{at("host", "rootfs", "overlay"), at("host", "bind", "ext4"), at("runc", "rootfs", "overlay"), {Target: "runsc", Volume: "device", Absent: "it has none", Advice: "leave it out"}}
	})
	out := reported(t, rec, "text", page.Options{})
	has(t, out, "  rootfs  host, runc: overlay inside, ext4 on the host, device vda, O_DIRECT taken, 98.0 GiB\n",
		"  bind    host: ext4, device vda, O_DIRECT taken, 98.0 GiB\n", "  device  runsc: – it has none\n          → leave it out\n")
	has(t, sectionOf(t, reported(t, rec, "md", page.Options{}), "sizes"), "| target | / | available | type | /dev/shm | available | type |", "| runc | 98.0 GiB | 61.0 GiB | overlay | 64.0 MiB | no limit | tmpfs |")
}

func TestEmptyRecordHasAReport(t *testing.T) {
	has(t, reported(t, blank(storage.Defaults(), "host"), "text", page.Options{Width: 80}), "no job ran", "failed 0/0 cells", "findings: none")
}
