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

// percents returns n percent of a cell's bytes.
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
		{"direct read that reaches the device is the device's", "runc", device, "vda saw 100 % of the 58.59 GiB that the tool read in 6 rounds (58.60 GiB)", nil},
		{"direct read of a guest that reaches the device is the device's", "runsc", device, "vda saw 100 %", nil},
		{"buffered read that reaches the device is the device's", "runc", device, "vda saw 100 %", buffered},
		{"device sees 91 %: not a cache", "runc", device, "saw 91 %", reads(percents(91))},
		{"device sees 89 %: a cache", "runc", host, "saw 89 % of", all(buffered, reads(percents(89)))},
		{"direct read that the device does not see is not direct", "runc", direct, "direct I/O was requested", reads(0)},
		{"direct read of a guest that the device does not see is not direct", "runsc", direct, "saw 0 %", reads(0)},
		{"growth of the page cache is reported", "runc", direct, "page cache grew by 58.59 GiB",
			seen(func(o *record.Observed) { o.Device.ReadBytes, o.Cached = 0, claimed })},
		{"file system that refuses O_DIRECT is reported", "runc", direct, "refuses O_DIRECT", all(reads(0), lying(record.Place{Direct: record.DirectRefused}))},
		{"guest read that fills the page cache but waits for the device is the device's", "runsc", device, "but the device was waited for",
			seen(func(o *record.Observed) { o.Cached = claimed })},
		{"bytes that no process outside the guest read are from its cache", "runsc", guest, "its processes outside of the sandbox read", all(buffered,
			seen(func(o *record.Observed) { o.Device.ReadBytes, o.Outside = 0, &record.Transfer{Read: percents(49)} }))},
		{"bytes that processes outside the guest read are from the host's cache", "runsc", host, "by system calls", all(buffered,
			seen(func(o *record.Observed) { o.Device.ReadBytes, o.Outside = 0, &record.Transfer{Read: percents(51)} }))},
		{"reads outside the guest to load the tool are not the job's", "runsc", guest, "of loading the tool", all(buffered, reads(0), seen(func(o *record.Observed) {
			o.Outside, o.Loading = &record.Transfer{Read: percents(300)}, &record.Transfer{Read: percents(290)}
		}))},
		{"reads outside the guest that reach the device are not from the host's cache", "runsc", guest, "saw 30 %", all(buffered,
			seen(func(o *record.Observed) {
				o.Device.ReadBytes, o.Outside = percents(30), &record.Transfer{Read: percents(60)}
			}))},
		{"guest without outside readings is its own cache", "runsc", guest, "saw 0 %", all(buffered, reads(0))},
		{"buffered writes flushed later are in the host's cache", "runsc", host, "when dirty pages were flushed", all(writing, buffered,
			seen(func(o *record.Observed) { o.Device.WriteBytes, o.Flushed = percents(20), percents(79) }))},
		{"buffered writes of a guest that are not flushed are in its cache", "runsc", guest, "saw 0 %", all(writing, buffered,
			seen(func(o *record.Observed) { o.Device.WriteBytes, o.Flushed = 0, -1 }))},
		{"buffered tmpfs is the host's cache", "runc", host, "it is memory of the host", all(buffered, on("tmpfs"))},
		{"direct tmpfs is not direct despite disk reads", "runc", direct, "O_DIRECT has nothing to reach", on("tmpfs")},
		{"folder on a tmpfs of the host is not direct", "runc", direct, "lies on a tmpfs of the host", lying(record.Place{HostType: "tmpfs"})},
		{"folder on a tmpfs in the sandbox is not direct", "runc", direct, "/data in the sandbox is a tmpfs",
			lying(record.Place{HostType: "ext4", Mounts: []record.FileSystem{{Path: "/data", Type: "tmpfs"}}})},
		{"tmpfs on /dev/shm of the sandbox is not the volume", "runc", device, "vda",
			lying(record.Place{HostType: "ext4", Mounts: []record.FileSystem{{Path: "/dev/shm", Type: "tmpfs"}, {Path: "/", Type: "tmpfs"}}})},
		{"volume without block device uses readings of all disks", "runc", direct, "vda+vdb saw 10 %",
			seen(func(o *record.Observed) { o.Device, o.Disks.ReadBytes = record.DeviceUse{}, percents(10) })},
		{"loop device on a tmpfs is memory", "runc", direct, "loop7 lies on a tmpfs",
			lying(record.Place{HostType: "ext4", Device: "loop7", Answers: "loop7", Memory: "loop7 lies on a tmpfs"})},
		{"zram device in an old record is memory", "runc", direct, "zram0 is memory", lying(record.Place{HostType: "ext4", Device: "zram0"})},
		{"loop device with unknown backing is not judged", "runc", storage.Unjudged, "loop7 is a loop device", all(on("device=/dev/loop7"), limited("loop7"))},
		{"mixture with 9.9 % writes is judged by its reads", "runc", device, "that the tool read",
			said(func(r *record.Reported) { r.Write = record.Flow{Bytes: percents(11), IOs: 100} })},
		{"mixture with 10.7 % writes is judged by both", "runc", host, "that the tool wrote", all(buffered,
			said(func(r *record.Reported) { r.Write = record.Flow{Bytes: percents(12), IOs: 100} }))},
		{"run of 0.99 s is too short", "runc", short, "it ran 0.99 s", took(0.99)},
		{"run of 1 s is long enough", "runc", device, "", took(1)},
		{"99 I/Os are too few", "runc", short, "99 I/Os", said(func(r *record.Reported) { r.Read.IOs = 99 })},
		{"100 I/Os are enough", "runc", device, "", said(func(r *record.Reported) { r.Read.IOs = 100 })},
		{"short run from a cache is a cache", "runc", host, "", all(buffered, reads(0), took(0.1))},
		{"concurrent reads of other processes are not the job's", "runc", host,
			"vda saw 25 % of the 58.59 GiB that the tool read in 6 rounds (14.65 GiB, and 43.95 GiB for others)",
			all(buffered, lying(record.Place{HostType: "ext4"}), seen(func(o *record.Observed) { o.Fetched = new(percents(25)) }))},
		{"ZFS reads by its own threads count as the job's", "runc", device, "saw 100 %",
			all(buffered, lying(record.Place{HostType: "zfs"}), seen(func(o *record.Observed) { o.Fetched = new(int64(0)) }))},
		{"throttled for 5.0 % of the time: ignored", "runc", device, "", seen(func(o *record.Observed) { o.Throttled = 505 * ms })},
		{"throttled for more than 5 % of the time: throttled", "runc", throttled, "for 5 % of the time", seen(func(o *record.Observed) { o.Throttled = 506 * ms })},
		{"bandwidth at the cgroup's limit is throttled", "runc", throttled, "cgroup /pods may read no more than 1.20 GB/s on vda",
			limited("vda", record.IOLimit{Group: "/pods/a", Device: "vdb", Value: 1}, by("vda", 1200*mb))},
		{"bandwidth far below the read limit is not throttled", "runc", device, "",
			limited("vda", by("vda", 2000*mb), record.IOLimit{Group: "/pods", Device: "vda", Write: true, IOs: true, Value: 1})},
		{"limit on vda does not apply to vdaa", "runc", device, "", limited("vdaa", by("vda", 1200*mb))},
		{"limit on nvme0n1 does not apply to nvme0n10", "runc", device, "", limited("nvme0n10", by("nvme0n1", 1200*mb))},
		{"limit on nvme0n1 applies to its partition", "runc", throttled, "on nvme0n1", limited("nvme0n1p2", by("nvme0n1", 1200*mb))},
		{"limit on any disk applies to a volume without known device", "runc", throttled, "on vdb", seen(func(o *record.Observed) {
			o.Device, o.Disks = record.DeviceUse{}, record.DeviceUse{Name: "vda+vdb", ReadBytes: claimed}
			o.Limits = []record.IOLimit{by("vdb", 1200*mb)}
		})},
		{"far exceeded limit is not in effect", "runc", device, "", limited("vda", by("vda", mib))},
		{"rate option of the tool is throttled", "runc", throttled, "rate=10m", said(func(r *record.Reported) { r.Paced = "rate=10m" })},
		{"5 % steal: ignored", "runc", device, "", seen(func(o *record.Observed) { o.Steal = 0.2 })},
		{"more than 5 % steal: noisy", "runc", noisy, "took 5.2 % of all CPUs' time", seen(func(o *record.Observed) { o.Steal = 0.21 })},
		{"10 % memory pressure: ignored", "runc", device, "", seen(func(o *record.Observed) { o.HavePSI, o.PSIMemory = true, 0.1 })},
		{"12 % memory pressure: noisy", "runc", noisy, "waited for memory for 12.0 %", seen(func(o *record.Observed) { o.HavePSI, o.PSIMemory = true, 0.12 })},
		{"other use up to 50 % of the job's bytes: ignored", "runc", device, "", reads(claimed + claimed/2 + 16*mib)},
		{"other use above 50 % of the job's bytes: noisy", "runc", noisy, "others used it at the same time", reads(claimed + claimed/2 + 17*mib)},
		{"bytes charged to the job's cgroup are not other use", "runc", device, "saw 300 %",
			seen(func(o *record.Observed) {
				o.Device.ReadBytes, o.Group = 3*claimed, &record.GroupUse{ReadBytes: 3 * claimed}
			})},
		{"wide interval is noisy", "runc", noisy, "the interval of its bandwidth", everySecond(1.8)},
		{"without an interval: not noisy", "runc", device, "", all(rounds(5), everySecond(1.8))},
		{"two rounds that differ by more than a factor of 2: noisy", "runc", noisy, "of its 2 rounds is 42 × apart", all(rounds(2), everySecond(42))},
		{"bandwidth above the ceiling that the device saw is the device's", "runc", device, "2.1 × the 500.0 MB/s of the volume's ceiling",
			func(s *storing) {
				s.ceilings = []record.Ceiling{{Volume: "bind", Device: "vda", When: "before", Read: 500 * mb}}
			}},
		{"NFS without device readings is judged by its figures", "runc", likely, "there are no device readings",
			all(server, func(s *storing) { s.every = func(c *record.Cell) { c.Observed.Device = record.DeviceUse{} } })},
		{"NFS above 1.5 × the ceiling is a cache", "runc", host, "1.8 × the 600.0 MB/s", serverGives(600 * mb)},
		{"NFS up to 1.5 × the ceiling is not a cache", "runc", likely, "1.5 × the 710.0 MB/s", serverGives(600*mb, 710*mb)},
		{"NFS faster in a guest than on the host is the guest's cache", "runsc", guest, "in the same job", all(server, faster(1.6))},
		{"NFS faster in a container than on the host is the host's cache", "runc", host, "in the same job", all(server, faster(1.6))},
		{"NFS less than 1.5 × as fast as on the host is not a cache", "runsc", likely, "", all(server, faster(1.49))},
		{"without disk readings it is judged by its figures", "runc", likely, "there are no device readings", func(s *storing) {
			s.every = func(c *record.Cell) { c.Observed.Device, c.Observed.Disks = record.DeviceUse{}, record.DeviceUse{} }
		}},
		{"imported figure without a reference is not judged", "runc", storage.Unjudged, "there is nothing to compare it with", func(s *storing) {
			s.targets, s.cache = []string{"runc"}, "buffered"
			s.every = func(c *record.Cell) { bare(c); c.Reported.Read.Bandwidth = 53e9 }
		}},
		{"imported direct figure of 4 µs per I/O is a cache", "runc", host, "250000 direct IOPS with 1 at a time are 4 µs for each", func(s *storing) {
			s.targets, s.job.NumJobs, s.job.BS = []string{"runc"}, 1, 4*kib
			s.every = func(c *record.Cell) { bare(c); c.Reported.Read.IOPS, c.Reported.Read.Latency.Mean = 250_000, 4000 }
		}},
		{"imported direct figure of a long run is not contradicted", "runc", likely, "there are no device readings", func(s *storing) {
			s.targets, s.every = []string{"runc"}, func(c *record.Cell) { bare(c); c.Reported.Seconds = 31 }
		}},
		{"device busy three times as long as the reported run contradicts it", "runc", storage.Contradicted,
			"the tool reports a run of 3 s, its process took 10 s, and vda was busy for 9.5 s of it with the tool's bytes alone; likewise in 6 of 6 rounds", clock(3, 9500)},
		{"device busy with writes longer than the reported run contradicts it", "runc", storage.Contradicted, "was busy for 9.5 s", all(writing, clock(3, 9500))},
		{"buffered writes that the kernel wrote later are in the cache", "runc", host, "was busy for 9.5 s", all(buffered, writing, clock(3, 9500))},
		{"device busy 1.5 × the reported run does not contradict it", "runc", device, "", clock(6.5, 9500)},
		{"device also busy for others does not contradict the reported run", "runc", device, "", all(clock(3, 9500), reads(percents(130)))},
		{"device busy with writes of others does not contradict a read", "runc", direct, "vda saw 0 %", all(clock(3, 9500), seen(func(o *record.Observed) { o.Device.ReadBytes, o.Device.WriteBytes = 0, claimed }))},
		{"process that lived shorter than the reported run contradicts it", "runc", storage.Contradicted, "the tool reports a run of 12 s, but its process lived 10 s", took(12)},
		{"process that lived slightly shorter does not contradict the reported run", "runc", device, "", took(11)},
		{"one contradicted round of six does not affect the verdict", "runc", device, "", cells(func(c *record.Cell) {
			if c.Round == 2 {
				c.Reported.Seconds = 30
			}
		})},
		{"more open requests than the job has contradict its latency", "runc", storage.Contradicted, "requests were open at a time, and the job has",
			said(func(r *record.Reported) { r.Read.Latency.Mean *= 100 })},
		{"process on a tmpfs that lived shorter than the reported run contradicts it", "runc", storage.Contradicted, "its process lived 10 s", all(buffered, on("tmpfs"), took(30))},
		{"imported run under 5 s is too short", "runc", short, "there are no node readings", func(s *storing) {
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

func TestFiguresAreMediansWithIntervals(t *testing.T) {
	s := judged(t, store(nil))
	c := only(t, s, "runc")
	base := float64(claimed) / 10
	b := c.Of("bandwidth")
	check.That(t, b.Bounded && math.Abs(b.Value/base-1.01) <= 1e-9 && math.Abs(b.Lo/base-1) <= 1e-9 && math.Abs(b.Hi/base-1.02) <= 1e-9, "%+v", b)
	check.That(t, c.Rounds == 6 && c.Of("transferred", "direction", "read").Value == float64(claimed) && c.Of("iops", "direction", "read").Value >= 2000 &&
		latency(s, "read", "p99.9").Value == 20*ms && !c.Of("bandwidth", "direction", "write").Known() && !latency(s, "write", "p50").Known(), "%+v", c)
	check.That(t, c.Of("run-time").Value == 10e9 && c.Of("cpu", "role", "workload").Value == 0.2 && c.Of("cpu", "role", "runtime").Value == 0.05,
		"%v ns, %v and %v CPUs", c.Of("run-time").Value, c.Of("cpu", "role", "workload").Value, c.Of("cpu", "role", "runtime").Value)
	want := 2.5e9 / float64(claimed)
	check.That(t, math.Abs(c.Of("cpu-per-byte").Value-want) <= 1e-9, "%v ns of CPU a byte, want %v", c.Of("cpu-per-byte").Value, want)
	check.That(t, c.Of("reached-device").Value >= 1 && c.Of("reached-device").Value <= 1.001 && c.Of("device-bytes", "direction", "read").Value == float64(claimed+mib) &&
		c.Of("device-bytes", "direction", "write").Value == 0 && slices.Equal(c.Versions, []string{"fio-3.33"}), "%+v", c)
	if x := s.Tables[0]; x.RW != "read" || x.BS != 512*kib || x.Base != "host" || s.Total != 18 || s.Failed != 0 || s.Imported {
		t.Errorf("%+v", x)
	}
}

func TestCPUTimeExcludesStartAndExitOfTheTool(t *testing.T) {
	short := func(cpu int64) func(*storing) {
		return func(s *storing) {
			s.every = func(c *record.Cell) { c.Ended, c.Reported.CPU = c.Begun+11_100*ms, cpu } // the job itself lasts ten seconds
		}
	}
	if c := only(t, judged(t, store(short(0))), "runc"); c.Of("cpu", "role", "workload").Known() || c.Of("cpu", "role", "runtime").Known() || c.Of("cpu-per-byte").Known() {
		t.Errorf("CPU of a process that lived 11 %% longer than the job: %v, %v", c.Of("cpu", "role", "workload").Value, c.Of("cpu", "role", "runtime").Value)
	}
	s := judged(t, store(short(4000*ms)))
	c := only(t, s, "runc")
	check.That(t, c.Of("cpu", "role", "workload").Value == 0.4 && !c.Of("cpu", "role", "runtime").Known(), "CPU reported by the tool: %v, %v", c.Of("cpu", "role", "workload").Value, c.Of("cpu", "role", "runtime").Value)
	c = only(t, s, "runsc")
	check.That(t, !c.Of("cpu", "role", "workload").Known(), "CPU of a guest's workload is known: %v", c.Of("cpu", "role", "workload").Value)
}

func TestRatioPairsValuesOfTheSameRound(t *testing.T) {
	half := func(s *storing) {
		s.every = func(c *record.Cell) { c.Reported.Read.Bandwidth *= 1 + float64(c.Round) } // as if the machine became faster in each round
		s.cell = func(c *record.Cell) { c.Reported.Read.Bandwidth /= 2; c.Observed.CPU[0].NS += 2500 * ms }
	}
	s := judged(t, store(half))
	r := only(t, s, "runc").Of("bandwidth-ratio")
	check.That(t, r.Known() && r.Bounded && math.Abs(r.Value-0.5) <= 1e-9 && math.Abs(r.Hi-0.5) <= 1e-9, "%+v", r)
	r = only(t, s, "runc").Of("cpu-per-byte-ratio")
	check.That(t, math.Abs(r.Value-2) <= 1e-9, "%+v", r)
	c := only(t, s, "host")
	check.That(t, c.Of("bandwidth-ratio").Value == 1 && c.Of("cpu-per-byte-ratio").Value == 1 && !c.Different(), "%+v", c.Of("bandwidth-ratio"))
	s = judged(t, store(all(rounds(20), said(func(r *record.Reported) { r.Read.Bandwidth /= 2 }))))
	c = only(t, s, "runc")
	check.That(t, c.Different() && c.Of("bandwidth-ratio").Reasons[0] != "" && c.Of("bandwidth").Versus != nil, "%+v", c)
}

func TestBaselineIsTheHostOrARuntimeOnItsKernel(t *testing.T) {
	for name, c := range map[string]struct {
		targets []string
		wanted  string
		base    string
	}{
		"host":                                {[]string{"runsc", "runc", "host"}, "", "host"},
		"without host: runtime":               {[]string{"runsc", "runc"}, "", "runc"},
		"requested guest":                     {[]string{"runsc", "runc"}, "runsc", "runsc"},
		"requested target before the host":    {[]string{"host", "runc"}, "runc", "runc"},
		"single target has none":              {[]string{"runc"}, "runc", ""},
		"imported: runtime before guest":      {[]string{"runsc", "runc"}, "", "runc"},
		"imported: clh is a guest":            {[]string{"fio-clh", "runc"}, "", "runc"},
		"imported: Dragonball is a guest":     {[]string{"Dragonball 3.2", "runc"}, "", "runc"},
		"imported: kata is a guest":           {[]string{"kata-fc", "runc"}, "", "runc"},
		"imported: QEMU is a guest":           {[]string{"on-qemu", "runc"}, "", "runc"},
		"imported: unknown targets have none": {[]string{"a", "b"}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			rec := store(func(s *storing) { s.targets, s.baseline = c.targets, c.wanted })
			for i := range rec.Cells {
				if x := &rec.Cells[i]; strings.HasPrefix(name, "imported:") {
					bare(x)
					x.Source = fmt.Sprint("notes:", i)
				}
			}
			s := judged(t, rec)
			check.Equal(t, "the baseline", s.Tables[0].Base, c.base)
			for _, one := range s.Tables[0].Cells {
				v := one.Of("bandwidth").Versus
				if one.Of("bandwidth-ratio").Known() != (c.base != "") || (v != nil) != (c.base != "" && one.Target != c.base) || v != nil && v.Baseline != c.base {
					t.Errorf("%s: %+v, %+v", one.Target, one.Of("bandwidth-ratio"), v)
				}
			}
		})
	}
}

func TestBlocksUpTo64KiBAreComparedByIOPS(t *testing.T) {
	for bs, want := range map[int64]struct {
		quantity string
		ratio    float64
	}{64 * kib: {"iops-ratio", 0.5}, 64*kib + 512: {"bandwidth-ratio", 1}} {
		s := judged(t, store(all(func(s *storing) { s.job.BS = bs }, said(func(r *record.Reported) { r.Read.IOPS /= 2 }))))
		r := only(t, s, "runc").Of(want.quantity)
		check.That(t, math.Abs(r.Value-want.ratio) <= 1e-9, "%d: %v, want %v", bs, r.Value, want)
	}
}

func TestMixedJobHasNoTotalLatency(t *testing.T) {
	s := judged(t, store(mixed))
	c := only(t, s, "runc")
	check.That(t, !latency(s, "both", "p50").Known() && latency(s, "read", "p50").Known() && latency(s, "write", "p50").Known() &&
		c.Of("iops").Value == 2*c.Of("iops", "direction", "read").Value, "%+v", c)
}

func TestTablesKeepTheOrderOfTheRun(t *testing.T) {
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

func TestMissingVolumeIsInItsTables(t *testing.T) {
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

func TestJobMissingFromPlanIsDerivedFromItsResults(t *testing.T) {
	rec := store(func(s *storing) { s.job.Name = "randread of notes" })
	rec.Header.Plan = json.RawMessage(`{}`)
	x := judged(t, rec).Tables[0]
	check.That(t, x.RW == "read" && x.BS == 512*kib, "%q %d", x.RW, x.BS)
}

func TestFailedAndInterruptedRoundsHaveNoFigures(t *testing.T) {
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

func TestDuplicateLinesCountOnceAndImportedOnesAreRounds(t *testing.T) {
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

func TestBestCeilingIsUsed(t *testing.T) {
	rec := store(func(s *storing) {
		s.ceilings = []record.Ceiling{{Volume: "bind", Device: "vda", When: "before", Read: 5, WriteIOPS: 7},
			{Volume: "bind", Device: "vda", When: "after", Read: 4, Write: 9, WriteIOPS: 8}, {Volume: "rootfs", Device: "vda", When: "after", Failure: &record.Failure{Kind: record.FailTimeout}}}
	})
	s := judged(t, rec)
	check.That(t, len(s.Ceilings) == 1 && s.Ceilings[0].Read == 5 && s.Ceilings[0].Write == 9 && s.Ceilings[0].WriteIOPS == 8,
		"%+v", s.Ceilings)
}

func TestRecordWithoutCellsHasNoTables(t *testing.T) {
	s := judged(t, blank(storage.Options{}, "host"))
	check.That(t, len(s.Tables) == 0 && len(s.Found) == 0 && !s.Imported, "%+v", s)
}

// The values are the extremes that a record may contain.
func TestExtremeResultsHaveFiniteFigures(t *testing.T) {
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
