package storage_test

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/instrument/storage"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

const (
	direct    = storage.NotDirect
	throttled = storage.Throttled
	noisy     = storage.Noisy
	likely    = storage.NotContradicted
	claimed   = int64(blocks) * 512 * kib
)

// bare removes what an imported cell does not have.
func bare(c *record.Cell) {
	*c = record.Cell{Type: c.Type, Round: c.Round, Target: c.Target, Volume: c.Volume, Cache: c.Cache, Job: c.Job, Tool: c.Tool, Reported: c.Reported, Source: "notes"}
}

// percents are some quantiles of a cell's claims.
func percents(n int64) int64 { return claimed / 100 * n }

func TestVerdicts(t *testing.T) {
	reads := func(bytes int64) func(*storing) {
		return seen(func(o *record.Observed) { o.Device.ReadBytes = bytes })
	}
	limited := func(device string, limits ...record.IOLimit) func(*storing) {
		return seen(func(o *record.Observed) { o.Device.Name, o.Limits = device, limits })
	}
	by := func(device string, bytes int64) record.IOLimit {
		return record.IOLimit{Group: "/pods", Device: device, Value: bytes}
	}
	faster := func(factor float64) func(*storing) {
		return said(func(r *record.Reported) { r.Read.Bandwidth *= factor })
	}
	server := func(s *storing) { s.volume = "nfs=server:/x" }
	serverGives := func(rates ...float64) func(*storing) {
		return func(s *storing) {
			s.volume = "nfs=server:/x"
			for i, rate := range rates {
				s.ceilings = append(s.ceilings, record.Ceiling{Volume: s.volume, When: []string{"before", "after"}[i], Read: rate})
			}
		}
	}
	clock := func(seconds float64, busy int64) func(*storing) {
		return cells(func(c *record.Cell) { c.Reported.Seconds, c.Observed.Device.Busy = seconds, busy*ms })
	}
	for _, x := range []struct {
		name    string
		target  string
		want    storage.Verdict
		because string
		change  func(*storing)
	}{
		{"a direct read that the device saw is the device's", "runc", device, "vda saw 100 % of the 58.59 GiB that the tool read in 6 rounds (58.60 GiB)", nil},
		{"so is one inside a sandbox with its own kernel", "runsc", device, "vda saw 100 %", nil},
		{"so is a buffered one", "runc", device, "vda saw 100 %", buffered},
		{"a tenth that is missing is no cache yet", "runc", device, "saw 91 %", reads(percents(91))},
		{"more is one", "runc", host, "saw 89 % of", all(buffered, reads(percents(89)))},
		{"a direct read that the device did not see was not direct", "runc", direct, "direct I/O was requested", reads(0)},
		{"nor was it with a kernel of its own", "runsc", direct, "saw 0 %", reads(0)},
		{"the page cache is named if it grew", "runc", direct, "page cache grew by 58.59 GiB",
			seen(func(o *record.Observed) { o.Device.ReadBytes, o.Cached = 0, claimed })},
		{"a file system that refuses O_DIRECT is named", "runc", direct, "refuses O_DIRECT", all(reads(0), lying(record.Place{Direct: record.DirectRefused}))},
		{"what was in the page cache below, but was waited for, is the device's", "runsc", device, "but the device was waited for",
			seen(func(o *record.Observed) { o.Cached = claimed })},
		{"what nobody outside of the guest moved came from its memory", "runsc", guest, "its processes outside of the sandbox read", all(buffered,
			seen(func(o *record.Observed) { o.Device.ReadBytes, o.Outside = 0, &record.Transfer{Read: percents(49)} }))},
		{"what they moved came from the host's", "runsc", host, "by system calls", all(buffered,
			seen(func(o *record.Observed) { o.Device.ReadBytes, o.Outside = 0, &record.Transfer{Read: percents(51)} }))},
		{"what they moved to load the tool is none of the job's", "runsc", guest, "of loading the tool", all(buffered, reads(0), seen(func(o *record.Observed) {
			o.Outside, o.Loading = &record.Transfer{Read: percents(300)}, &record.Transfer{Read: percents(290)}
		}))},
		{"what they moved from the device was in no memory", "runsc", guest, "saw 30 %", all(buffered,
			seen(func(o *record.Observed) {
				o.Device.ReadBytes, o.Outside = percents(30), &record.Transfer{Read: percents(60)}
			}))},
		{"a guest of which nothing outside could be read answers by itself", "runsc", guest, "saw 0 %", all(buffered, reads(0))},
		{"buffered writes that were flushed later were the host's", "runsc", host, "when dirty pages were flushed", all(writing, buffered,
			seen(func(o *record.Observed) { o.Device.WriteBytes, o.Flushed = percents(20), percents(79) }))},
		{"and those that nobody flushed the guest's", "runsc", guest, "saw 0 %", all(writing, buffered,
			seen(func(o *record.Observed) { o.Device.WriteBytes, o.Flushed = 0, -1 }))},
		{"a tmpfs is memory", "runc", host, "it is memory of the host", all(buffered, on("tmpfs"))},
		{"and never direct, whatever the disks did", "runc", direct, "O_DIRECT has nothing to reach", on("tmpfs")},
		{"so is a folder on a tmpfs of the host", "runc", direct, "lies on a tmpfs of the host", lying(record.Place{HostType: "tmpfs"})},
		{"and a folder that is one inside", "runc", direct, "/data in the sandbox is a tmpfs",
			lying(record.Place{HostType: "ext4", Mounts: []record.FileSystem{{Path: "/data", Type: "tmpfs"}}})},
		{"a sandbox's /dev/shm is not the volume", "runc", device, "vda",
			lying(record.Place{HostType: "ext4", Mounts: []record.FileSystem{{Path: "/dev/shm", Type: "tmpfs"}, {Path: "/", Type: "tmpfs"}}})},
		{"where the volume is no block device, all disks tell", "runc", direct, "vda+vdb saw 10 %",
			seen(func(o *record.Observed) { o.Device, o.Disks.ReadBytes = record.DeviceUse{}, percents(10) })},
		{"a disk in memory is memory, whatever its requests were", "runc", direct, "loop7 lies on a tmpfs",
			lying(record.Place{HostType: "ext4", Device: "loop7", Answers: "loop7", Memory: "loop7 lies on a tmpfs"})},
		{"and so by its name in old records", "runc", direct, "zram0 is memory", lying(record.Place{HostType: "ext4", Device: "zram0"})},
		{"a loop device of which nobody looked below", "runc", storage.Unjudged, "loop7 is a loop device", all(on("device=/dev/loop7"), limited("loop7"))},
		{"a small direction of a mixture does not count", "runc", device, "that the tool read",
			said(func(r *record.Reported) { r.Write = record.Flow{Bytes: percents(11), IOs: 100} })},
		{"a larger one does", "runc", host, "that the tool wrote", all(buffered,
			said(func(r *record.Reported) { r.Write = record.Flow{Bytes: percents(12), IOs: 100} }))},
		{"under a second is too short", "runc", short, "it ran 0.99 s", took(0.99)},
		{"a second is not", "runc", device, "", took(1)},
		{"99 I/Os are too few", "runc", short, "99 I/Os", said(func(r *record.Reported) { r.Read.IOs = 99 })},
		{"a hundred are enough", "runc", device, "", said(func(r *record.Reported) { r.Read.IOs = 100 })},
		{"a cache is one however short", "runc", host, "", all(buffered, reads(0), took(0.1))},
		{"what others read at the same time is no reading of the job's", "runc", host,
			"vda saw 25 % of the 58.59 GiB that the tool read in 6 rounds (14.65 GiB, and 43.95 GiB for others)",
			all(buffered, lying(record.Place{HostType: "ext4"}), seen(func(o *record.Observed) { o.Fetched = new(percents(25)) }))},
		{"but where the readers' file system has threads of its own nobody counts them", "runc", device, "saw 100 %",
			all(buffered, lying(record.Place{HostType: "zfs"}), seen(func(o *record.Observed) { o.Fetched = new(int64(0)) }))},
		{"a twentieth without CPU is nothing", "runc", device, "", seen(func(o *record.Observed) { o.Throttled = 505 * ms })},
		{"more is a limit's figure", "runc", throttled, "for 5 % of the time", seen(func(o *record.Observed) { o.Throttled = 506 * ms })},
		{"a figure at what its cgroup may do is the limit's", "runc", throttled, "cgroup /pods may read no more than 1.20 GB/s on vda",
			limited("vda", record.IOLimit{Group: "/pods/a", Device: "vdb", Value: 1}, by("vda", 1200*mb))},
		{"far below, or in the other direction, it is not", "runc", device, "",
			limited("vda", by("vda", 2000*mb), record.IOLimit{Group: "/pods", Device: "vda", Write: true, IOs: true, Value: 1})},
		{"a limit on vda is none on vdaa", "runc", device, "", limited("vdaa", by("vda", 1200*mb))},
		{"nor one on nvme0n1 on nvme0n10", "runc", device, "", limited("nvme0n10", by("nvme0n1", 1200*mb))},
		{"but one on its partition", "runc", throttled, "on nvme0n1", limited("nvme0n1p2", by("nvme0n1", 1200*mb))},
		{"and on any of the disks where none is known to be the volume's", "runc", throttled, "on vdb", seen(func(o *record.Observed) {
			o.Device, o.Disks = record.DeviceUse{}, record.DeviceUse{Name: "vda+vdb", ReadBytes: claimed}
			o.Limits = []record.IOLimit{by("vdb", 1200*mb)}
		})},
		{"a limit that was far exceeded was not in effect", "runc", device, "", limited("vda", by("vda", mib))},
		{"a tool that was told to hold back shows that", "runc", throttled, "rate=10m", said(func(r *record.Reported) { r.Paced = "rate=10m" })},
		{"a twentieth of four CPUs stolen is nothing", "runc", device, "", seen(func(o *record.Observed) { o.Steal = 0.2 })},
		{"more is noise", "runc", noisy, "took 5.2 % of all CPUs' time", seen(func(o *record.Observed) { o.Steal = 0.21 })},
		{"waiting for memory for a tenth of the time is nothing", "runc", device, "", seen(func(o *record.Observed) { o.HavePSI, o.PSIMemory = true, 0.1 })},
		{"longer is noise", "runc", noisy, "waited for memory for 12.0 %", seen(func(o *record.Observed) { o.HavePSI, o.PSIMemory = true, 0.12 })},
		{"others may use half as much", "runc", device, "", reads(claimed + claimed/2 + 16*mib)},
		{"but not more", "runc", noisy, "others used it at the same time", reads(claimed + claimed/2 + 17*mib)},
		{"what its own cgroups were charged with was not others'", "runc", device, "saw 300 %",
			seen(func(o *record.Observed) {
				o.Device.ReadBytes, o.Group = 3*claimed, &record.GroupUse{ReadBytes: 3 * claimed}
			})},
		{"a wide interval is noise", "runc", noisy, "the interval of its bandwidth", everySecond(1.8)},
		{"without an interval it is not", "runc", device, "", all(rounds(5), everySecond(1.8))},
		{"unless its rounds are more than twice apart", "runc", noisy, "of its 2 rounds is 42 × apart", all(rounds(2), everySecond(42))},
		{"beyond the ceiling it stays the device's if that saw it", "runc", device, "2.1 × the 500.0 MB/s of the volume's ceiling",
			func(s *storing) {
				s.ceilings = []record.Ceiling{{Volume: "bind", Device: "vda", When: "before", Read: 500 * mb}}
			}},
		{"a server's disks are not here: it is judged by its figures", "runc", likely, "there are no device readings",
			all(server, func(s *storing) { s.every = func(c *record.Cell) { c.Observed.Device = record.DeviceUse{} } })},
		{"beyond a server's ceiling is a cache", "runc", host, "1.8 × the 600.0 MB/s", serverGives(600 * mb)},
		{"up to half more is none", "runc", likely, "1.5 × the 710.0 MB/s", serverGives(600*mb, 710*mb)},
		{"faster inside than on the host is a guest's cache where a server's disks cannot tell", "runsc", guest, "in the same job", all(server, faster(1.6))},
		{"and somebody's on the host where there is no guest", "runc", host, "in the same job", all(server, faster(1.6))},
		{"half faster is none", "runsc", likely, "", all(server, faster(1.49))},
		{"where no disk could be read it is judged by its figures", "runc", likely, "there are no device readings", func(s *storing) {
			s.every = func(c *record.Cell) { c.Observed.Device, c.Observed.Disks = record.DeviceUse{}, record.DeviceUse{} }
		}},
		{"a bare figure, which nothing could contradict, is not judged", "runc", storage.Unjudged, "there is nothing to compare it with", func(s *storing) {
			s.targets, s.cache = []string{"runc"}, "buffered"
			s.every = func(c *record.Cell) { bare(c); c.Reported.Read.Bandwidth = 53e9 }
		}},
		{"one that is direct and answered in no time is a cache's", "runc", host, "250000 direct IOPS with 1 at a time are 4 µs for each", func(s *storing) {
			s.targets, s.job.NumJobs, s.job.BS = []string{"runc"}, 1, 4*kib
			s.every = func(c *record.Cell) { bare(c); c.Reported.Read.IOPS, c.Reported.Read.Latency.Mean = 250_000, 4000 }
		}},
		{"one that a long direct job of its own stands for is not contradicted", "runc", likely, "there are no device readings", func(s *storing) {
			s.targets, s.every = []string{"runc"}, func(c *record.Cell) { bare(c); c.Reported.Seconds = 31 }
		}},
		{"a device that worked three times as long for the tool's bytes contradicts its clock", "runc", storage.Contradicted,
			"the tool reports a run of 3 s, its process took 10 s, and vda was busy for 9.5 s of it with the tool's bytes alone; likewise in 6 of 6 rounds", clock(3, 9500)},
		{"and so of writes", "runc", storage.Contradicted, "was busy for 9.5 s", all(writing, clock(3, 9500))},
		{"buffered writes that the kernel wrote later were the cache's", "runc", host, "was busy for 9.5 s", all(buffered, writing, clock(3, 9500))},
		{"one that worked half as long again does not", "runc", device, "", clock(6.5, 9500)},
		{"nor one that worked for others, too", "runc", device, "", all(clock(3, 9500), reads(percents(130)))},
		{"a process that ended before the tool's time was over contradicts it", "runc", storage.Contradicted, "the tool reports a run of 12 s, but its process lived 10 s", took(12)},
		{"one that ended a little before does not", "runc", device, "", took(11)},
		{"one clock that is off in one round of six is none of the cell's", "runc", device, "", cells(func(c *record.Cell) {
			if c.Round == 2 {
				c.Reported.Seconds = 30
			}
		})},
		{"more requests than the job can have open contradict its latency", "runc", storage.Contradicted, "requests were open at a time, and the job has",
			said(func(r *record.Reported) { r.Read.Latency.Mean *= 100 })},
		{"a tmpfs has no device, but a process", "runc", storage.Contradicted, "its process lived 10 s", all(buffered, on("tmpfs"), took(30))},
		{"imported ones have to run five seconds", "runc", short, "there are no node readings", func(s *storing) {
			s.every = func(c *record.Cell) { bare(c); c.Reported.Seconds = 4.99 }
		}},
	} {
		t.Run(x.name, func(t *testing.T) {
			c := only(t, judged(t, store(x.change)), x.target)
			if text := strings.Join(c.Because, "; "); c.Verdict != x.want || len(c.Because) == 0 || !strings.Contains(text, x.because) {
				t.Errorf("%q because %q; want %q because %q", c.Verdict, text, x.want, x.because)
			}
		})
	}
}

// latency returns the latency of runc.
func latency(s *storage.Judgement, direction, quantile string) figure.Figure {
	return figure.Find(s.Figures(), "latency", "target", "runc", "direction", direction, "quantile", quantile)
}

func TestFiguresAreMediansOverTheRoundsWithAnInterval(t *testing.T) {
	s := judged(t, store(nil))
	c := only(t, s, "runc")
	base := float64(claimed) / 10
	b := c.Total.Bandwidth
	check.That(t, b.Bounded && math.Abs(b.Value/base-1.01) <= 1e-9 && math.Abs(b.Lo/base-1) <= 1e-9 && math.Abs(b.Hi/base-1.02) <= 1e-9, "%+v", b)
	check.That(t, c.Rounds == 6 && c.Read.Bytes.Value == float64(claimed) && c.Read.IOPS.Value >= 2000 &&
		latency(s, "read", "p99.9").Value == 20*ms && !c.Write.Bandwidth.Known() && !latency(s, "write", "p50").Known(), "%+v", c)
	check.That(t, c.RunTime.Value == 10e9 && c.WorkloadCPU.Value == 0.2 && c.RuntimeCPU.Value == 0.05,
		"%v ns, %v and %v CPUs", c.RunTime.Value, c.WorkloadCPU.Value, c.RuntimeCPU.Value)
	want := 2.5e9 / float64(claimed)
	check.That(t, math.Abs(c.CPUPerByte.Value-want) <= 1e-9, "%v ns of CPU a byte, want %v", c.CPUPerByte.Value, want)
	check.That(t, c.Reached.Value >= 1 && c.Reached.Value <= 1.001 && c.DeviceRead.Value == float64(claimed+mib) &&
		c.DeviceWritten.Value == 0 && slices.Equal(c.Versions, []string{"fio-3.33"}), "%+v", c)
	if x := s.Tables[0]; x.RW != "read" || x.BS != 512*kib || x.Command != "fio --name=x" || x.Base != "host" || s.Total != 18 || s.Failed != 0 || s.Imported {
		t.Errorf("%+v", x)
	}
}

func TestCPUIsThatOfTheJobAndNotOfItsProcessesLife(t *testing.T) {
	short := func(cpu int64) func(*storing) {
		return func(s *storing) {
			s.every = func(c *record.Cell) { c.Ended, c.Reported.CPU = c.Begun+11_100*ms, cpu } // of a job of ten seconds
		}
	}
	if c := only(t, judged(t, store(short(0))), "runc"); c.WorkloadCPU.Known() || c.RuntimeCPU.Known() || c.CPUPerByte.Known() {
		t.Errorf("of a process that lived a ninth longer: %v, %v", c.WorkloadCPU.Value, c.RuntimeCPU.Value)
	}
	s := judged(t, store(short(4000*ms)))
	c := only(t, s, "runc")
	check.That(t, c.WorkloadCPU.Value == 0.4 && !c.RuntimeCPU.Known(), "what the tool says: %v, %v", c.WorkloadCPU.Value, c.RuntimeCPU.Value)
	c = only(t, s, "runsc")
	check.That(t, !c.WorkloadCPU.Known(), "of a guest it is in the sandbox's: %v", c.WorkloadCPU.Value)
}

func TestRatiosAreOfTheRoundsThemselves(t *testing.T) {
	half := func(s *storing) {
		s.every = func(c *record.Cell) { c.Reported.Read.Bandwidth *= 1 + float64(c.Round) } // a machine that speeds up
		s.cell = func(c *record.Cell) { c.Reported.Read.Bandwidth /= 2; c.Observed.CPU[0].NS += 2500 * ms }
	}
	s := judged(t, store(half))
	r := only(t, s, "runc").Ratio
	check.That(t, r.Known() && r.Bounded && math.Abs(r.Value-0.5) <= 1e-9 && math.Abs(r.Hi-0.5) <= 1e-9, "%+v", r)
	r = only(t, s, "runc").CPURatio
	check.That(t, math.Abs(r.Value-2) <= 1e-9, "%+v", r)
	c := only(t, s, "host")
	check.That(t, c.Ratio.Value == 1 && c.CPURatio.Value == 1 && !c.Different(), "%+v", c.Ratio)
	s = judged(t, store(all(rounds(20), said(func(r *record.Reported) { r.Read.Bandwidth /= 2 }))))
	c = only(t, s, "runc")
	check.That(t, c.Different() && c.Ratio.Reasons[0] != "" && c.Total.Bandwidth.Versus != nil, "%+v", c)
}

func TestWithoutAHostWhatSharesItsKernelIsTheBaseline(t *testing.T) {
	for name, c := range map[string]struct {
		targets []string
		wanted  string
		base    string
	}{
		"the host":                                  {[]string{"runsc", "runc", "host"}, "", "host"},
		"without it a runtime":                      {[]string{"runsc", "runc"}, "", "runc"},
		"and no guest, unless wanted":               {[]string{"runsc", "runc"}, "runsc", "runsc"},
		"the wanted one before the host":            {[]string{"host", "runc"}, "runc", "runc"},
		"one alone has none":                        {[]string{"runc"}, "runc", ""},
		"imported, a guest has a runtime beside it": {[]string{"runsc", "runc"}, "", "runc"},
		"imported, others may be of any machine":    {[]string{"a", "b"}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			rec := store(func(s *storing) { s.targets, s.baseline = c.targets, c.wanted })
			for i := range rec.Cells {
				if x := &rec.Cells[i]; strings.HasPrefix(name, "imported") {
					bare(x)
					x.Source = fmt.Sprint("notes:", i)
				}
			}
			s := judged(t, rec)
			check.Equal(t, "the baseline", s.Tables[0].Base, c.base)
			for _, one := range s.Tables[0].Cells {
				v := one.Total.Bandwidth.Versus
				if one.Ratio.Known() != (c.base != "") || (v != nil) != (c.base != "" && one.Target != c.base) || v != nil && v.Baseline != c.base {
					t.Errorf("%s: %+v, %+v", one.Target, one.Ratio, v)
				}
			}
		})
	}
}

func TestBlocksUpTo64KiBAreComparedByIOPS(t *testing.T) {
	for bs, want := range map[int64]float64{64 * kib: 0.5, 64*kib + 512: 1} {
		s := judged(t, store(all(func(s *storing) { s.job.BS = bs }, said(func(r *record.Reported) { r.Read.IOPS /= 2 }))))
		r := only(t, s, "runc").Ratio
		check.That(t, math.Abs(r.Value-want) <= 1e-9, "%d: %v, want %v", bs, r.Value, want)
	}
}

func TestAMixtureHasNoLatency(t *testing.T) {
	s := judged(t, store(mixed))
	c := only(t, s, "runc")
	check.That(t, !latency(s, "both", "p50").Known() && latency(s, "read", "p50").Known() && latency(s, "write", "p50").Known() &&
		c.Total.IOPS.Value == 2*c.Read.IOPS.Value, "%+v", c)
}

func TestTablesAreInTheOrderOfTheRun(t *testing.T) {
	p := storage.Options{Volumes: []string{"rootfs", "nfs=server:/x"}, Cache: []string{"buffered", "direct"}, Jobs: []storage.Job{write8, read}}
	rec := blank(p, "host", "runc")
	for _, at := range []string{"nfs=server:/x read direct", "rootfs other direct", "rootfs read direct", "rootfs write direct", "rootfs write buffered"} {
		words := strings.Fields(at)
		for _, target := range []string{"runc", "host", "left"} {
			rec.Cells = append(rec.Cells, record.Cell{Type: record.TypeCell, Target: target, Volume: words[0], Job: words[1], Cache: words[2], Tool: "fio",
				Failure: &record.Failure{Kind: record.FailExit, Detail: "it broke"}})
		}
	}
	s := judged(t, rec)
	var got []string
	for _, x := range s.Tables {
		got = append(got, x.Volume+" "+x.Job+" "+x.Cache)
		check.That(t, len(x.Cells) == 3 && x.Cells[0].Target == "host" && x.Cells[1].Target == "runc" && x.Cells[2].Target == "left",
			"%+v", x.Cells)
	}
	want := []string{"rootfs write buffered", "rootfs write direct", "rootfs read direct", "rootfs other direct", "nfs=server:/x read direct"}
	check.That(t, slices.Equal(got, want), "%q", got)
	check.That(t, s.Failed == 15 && s.Total == 15 && len(s.Targets) == 3, "%d of %d, %d targets", s.Failed, s.Total, len(s.Targets))
}

func TestAVolumeThatCannotBeHadIsInItsTables(t *testing.T) {
	rec := store(func(s *storing) {
		s.targets = []string{"host", "runc"}
		s.places = []record.Place{{Target: "runsc", Volume: "bind", Absent: "no such mounts"}, {Target: "runc", Volume: "rootfs", Absent: "another one"}}
	})
	rec.Targets = append(rec.Targets, record.Target{Name: "runsc"})
	s := judged(t, rec)
	c := only(t, s, "runsc")
	check.That(t, c.Absent == "no such mounts" && c.Rounds == 0 && c.Verdict == storage.Unjudged, "%+v", c)
	c = only(t, s, "runc")
	check.That(t, c.Absent == "", "%+v", c)
}

func TestAJobThatThePlanDoesNotHoldIsReadFromItsClaims(t *testing.T) {
	rec := store(func(s *storing) { s.job.Name = "randread of notes" })
	rec.Header.Plan = json.RawMessage(`{}`)
	x := judged(t, rec).Tables[0]
	check.That(t, x.RW == "read" && x.BS == 512*kib, "%q %d", x.RW, x.BS)
}

func TestRoundsThatFailedOrWereInterruptedGiveNoFigures(t *testing.T) {
	s := judged(t, store(cells(func(c *record.Cell) {
		switch c.Round {
		case 1:
			c.Failure = &record.Failure{Kind: record.FailExit, Detail: "fio exited with 1"}
		case 2:
			c.Failure = &record.Failure{Kind: record.FailInterrupted}
		}
	})))
	c := only(t, s, "runc")
	check.That(t, c.Rounds == 4 && c.Failed == 1 && c.Failure != nil && s.Failed == 2 && s.Total == 16, "%+v; %d of %d", c, s.Failed, s.Total)
}

func TestDoubledLinesCountOnceAndImportedOnesAreRounds(t *testing.T) {
	rec := store(nil)
	rec.Cells = append(rec.Cells, rec.Cells[1])
	s := judged(t, rec)
	c := only(t, s, "runc")
	check.That(t, c.Rounds == 6, "%d rounds", c.Rounds)
	found(t, s, "damaged-record")

	all := imported(t)
	again := all.Cells[0]
	again.Source = "notes.txt:99"
	all.Cells = append(all.Cells, again, all.Cells[1])
	s = judged(t, all)
	a, b := cell(t, s, "dd 4k × 1024000", "rootfs", "direct", "host"), cell(t, s, "dd 4k × 1024000", "rootfs", "direct", "runc")
	check.That(t, a.Rounds == 2 && b.Rounds == 1, "%d and %d rounds", a.Rounds, b.Rounds)
}

func TestOfCeilingsTheBestIsKept(t *testing.T) {
	rec := store(func(s *storing) {
		s.ceilings = []record.Ceiling{{Volume: "bind", Device: "vda", When: "before", Read: 5, WriteIOPS: 7},
			{Volume: "bind", Device: "vda", When: "after", Read: 4, Write: 9, WriteIOPS: 8}, {Volume: "rootfs", Device: "vda", When: "after", Failure: &record.Failure{Kind: record.FailTimeout}}}
	})
	s := judged(t, rec)
	check.That(t, len(s.Ceilings) == 1 && s.Ceilings[0].Read == 5 && s.Ceilings[0].Write == 9 && s.Ceilings[0].WriteIOPS == 8,
		"%+v", s.Ceilings)
}

func TestNothingIsSaidOfARecordWithoutCells(t *testing.T) {
	s := judged(t, blank(storage.Options{}, "host"))
	check.That(t, len(s.Tables) == 0 && len(s.Found) == 0 && !s.Imported, "%+v", s)
}

// The values are the extremes that a record may contain.
func TestExtremeClaimsGiveNoInfiniteFigures(t *testing.T) {
	for _, seconds := range []float64{0, 5e-324, 1e-300, 366 * 86400} {
		for _, rate := range []float64{0, 5e-324, 1e18} {
			rec := store(nil)
			for i := range rec.Cells {
				c := &rec.Cells[i]
				c.Reported.Seconds, c.Reported.Read.Bandwidth, c.Reported.Read.IOPS = seconds, rate, rate
				c.Observed.Took = int64(i % 2)
				if i%3 == 0 {
					c.Observed = nil
				}
				must.OK(t, record.Validate(&c))
			}
			for _, c := range judged(t, rec).Tables[0].Cells {
				if text := strings.Join(c.Because, " "); len(c.Because) == 0 || strings.Contains(text, "Inf") || strings.Contains(text, "NaN") {
					t.Errorf("%g s, %g: %q because %q", seconds, rate, c.Verdict, text)
				}
			}
		}
	}
}
