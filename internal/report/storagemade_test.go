package report

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/tare-bench/tare/internal/judge"
	"github.com/tare-bench/tare/internal/plan"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/record"
)

// stored is a judgement of storage made by hand, with figures that are easy to
// check.
type stored struct {
	rec *record.Record
	v   judge.Storage
}

func newStored(targets ...string) *stored {
	s := &stored{rec: newRun(nil).rec}
	s.rec.Header.Experiment, s.rec.Header.Command = "storage", []string{"tare", "storage"}
	s.rec.End.Elapsed = 312_000_000_000
	s.v.Plan = plan.DefaultsOfStorage()
	s.v.Plan.Seed, s.v.Plan.Targets = 42, targets
	versions := map[string]string{"runc": "1.2.4", "crun": "1.20", "runsc": "release-20250601.0", "containerd/kata": "3.11.0"}
	for _, name := range targets {
		s.v.Targets = append(s.v.Targets, record.Target{Type: record.TypeTarget, Name: name, Version: versions[name]})
	}
	return s
}

// around is an estimate with an interval of so many percent on either side.
func around(v, percent float64) judge.Estimate {
	return judge.Estimate{Value: rounded(v), Lo: rounded(v * (1 - percent/100)), Hi: rounded(v * (1 + percent/100)), Known: true, Bounded: percent > 0}
}

// rounded leaves out the digits in which processors differ.
func rounded(v float64) float64 { return math.Round(v*1e6) / 1e6 }

// flowing is a direction with so many blocks of bs a second in 10 s; latencies
// are those of threads that wait for one block at a time.
func flowing(iops, bs, threads float64) judge.StorageFlow {
	mean := threads / iops * 1e9
	return judge.StorageFlow{
		Bytes: math.Round(iops * bs * 10), Bandwidth: around(iops*bs, 2), IOPS: around(iops, 2), Mean: around(mean, 1),
		P50: around(0.9*mean, 3), P95: around(1.8*mean, 3), P99: around(2.5*mean, 5), P999: around(6*mean, 20),
	}
}

// measured is a cell of a job that reads, in three rounds.
func measured(target string, verdict judge.Verdict, f judge.StorageFlow, because ...string) judge.StorageCell {
	perCPU := map[string]float64{"host": 0.1, "runc": 0.1, "crun": 0.1, "runsc": 0.9, "containerd/kata": 0.6}[target]
	c := judge.StorageCell{
		Target: target, Rounds: 3, Versions: []string{"fio-3.33"}, Total: f, Read: f, Seconds: around(10, 0.5),
		WorkloadCPU: around(0.42, 4), Verdict: verdict, Because: because,
		ReachedKnown: true, SeenRead: f.Bytes, SeenWrite: 12 << 10, Reached: 1,
	}
	if target != "host" {
		c.RuntimeCPU = around(perCPU, 4)
	}
	c.CPUPerGiB = around((0.42+perCPU)*10/(f.Bytes/(1<<30)), 5)
	if verdict != judge.VerdictDevice {
		c.SeenRead, c.Reached = 0, 0
	}
	return c
}

// compared fills in each cell's ratio to the first, and what the plan ran.
func compared(t judge.StorageTable) judge.StorageTable {
	for i := range t.Cells {
		if c := &t.Cells[i]; c.Rounds > 0 {
			c.Command = t.Command
			if c.Target == "host" {
				c.Command = strings.ReplaceAll(t.Command, "/data", "/srv/tare/host/0")
			}
		}
	}
	if len(t.Cells) == 0 {
		return t
	}
	t.Base = t.Cells[0].Target
	base := &t.Cells[0]
	for i := 1; i < len(t.Cells); i++ {
		c := &t.Cells[i]
		if c.Rounds == 0 || base.Rounds == 0 {
			continue
		}
		r := c.Total.Bandwidth.Value / base.Total.Bandwidth.Value
		c.Ratio = around(r, 4)
		c.Different = r < 0.95 || r > 1.05
		if !c.Different {
			c.Why = "p is 0.40"
		}
		if base.CPUPerGiB.Known && c.CPUPerGiB.Known {
			c.CPURatio = around(c.CPUPerGiB.Value/base.CPUPerGiB.Value, 6)
		}
	}
	return t
}

func placed(name, volume, inside, host string, bytes int64, shm int64) record.Place {
	p := record.Place{
		Type: record.TypePlace, Target: name, Volume: volume, HostType: host, Device: "vda", Direct: record.DirectTaken,
		Mounts: []record.FileSystem{
			{Path: "/", Type: "overlay", Size: 98 << 30, Free: 61 << 30},
			{Path: "/dev/shm", Type: "tmpfs", Size: shm, Free: shm},
			{Path: volumePath, Type: inside, Size: bytes, Free: bytes / 2},
		},
	}
	if name == "host" {
		p.Mounts[0].Type = "ext4"
	}
	if volume == record.VolumeTmpfs {
		p.HostType, p.Device = "", ""
	}
	return p
}

// volumePath is where a container finds its volume.
const volumePath = subject.VolumePath

const (
	k4, k16, k512 = 4 << 10, 16 << 10, 512 << 10
	fioCommand    = "/bin/fio --name=tare --directory=/data --rw=randread --bs=512k --numjobs=8 --size=1G --direct=1 --ioengine=psync --group_reporting --output-format=json"
)

// storages are three kinds of volume with both caches, for host, runc, crun and gVisor, and one job of each
// tool.
func storages() *stored {
	s := newStored("host", "runc", "crun", "runsc")
	s.v.Plan.Volumes, s.v.Plan.Cache = []string{"rootfs", "bind", "tmpfs"}, []string{"direct", "buffered"}
	s.v.Plan.Limits = subject.Limits{CPU: 2}
	const device, host, guest, direct = judge.VerdictDevice, judge.VerdictHostCache, judge.VerdictGuestCache, judge.VerdictNotDirect
	read := func(volume, cache string, iops [4]float64, verdicts [4]judge.Verdict, because string) {
		t := judge.StorageTable{Job: "randread 512k", Tool: "fio", RW: "randread", BS: k512, Volume: volume, Cache: cache, Command: fioCommand}
		for i := range iops {
			reason := because
			if verdicts[i] == device {
				reason = "the device read all that fio claims"
			}
			t.Cells = append(t.Cells, measured(s.v.Targets[i].Name, verdicts[i], flowing(iops[i], k512, 8), reason, "it ran 10.0 s"))
		}
		s.v.Tables = append(s.v.Tables, compared(t))
	}
	all := func(v judge.Verdict) [4]judge.Verdict { return [4]judge.Verdict{v, v, v, v} }
	read("rootfs", "direct", [4]float64{1681, 1647, 1690, 8600}, [4]judge.Verdict{device, device, device, guest},
		"the device read 0 B of the 42.0 GiB that fio claims")
	read("rootfs", "buffered", [4]float64{9100, 9200, 9150, 4300}, [4]judge.Verdict{host, host, host, guest},
		"the device read 0 B of what fio claims, and the node's page cache holds the files")
	read("bind", "direct", [4]float64{1690, 1671, 1688, 741}, all(device), "the device read all that fio claims")
	read("tmpfs", "direct", [4]float64{13159, 12877, 13010, 10850}, all(direct), "tmpfs takes O_DIRECT and has no device")
	mixed := judge.StorageTable{Job: "rndrw 16k", Tool: "fio", RW: "randrw", BS: k16, Volume: "bind", Cache: "direct", Command: "/bin/fio --name=tare --rw=randrw"}
	dd := judge.StorageTable{Job: "dd write 4k", Tool: "dd", RW: "write", BS: k4, Volume: "bind", Cache: "direct", Command: "/bin/dd if=/dev/zero of=/data/file bs=4096 count=1024000 oflag=direct"}
	sysbench := judge.StorageTable{Job: "rndrw 16k sysbench", Tool: "sysbench", RW: "randrw", BS: k16, Volume: "bind", Cache: "direct", Command: "/bin/sysbench fileio --file-test-mode=rndrw run"}
	for i, name := range []string{"host", "runc", "crun", "runsc"} {
		part := 1 - 0.2*float64(i)
		c := measured(name, device, flowing(9800*part, k16, 16), "the device read and wrote all that fio claims")
		c.Read, c.Write = flowing(5880*part, k16, 10), flowing(3920*part, k16, 6)
		for _, e := range []*judge.Estimate{&c.Total.Mean, &c.Total.P50, &c.Total.P95, &c.Total.P99, &c.Total.P999} {
			*e = judge.Estimate{}
		}
		c.SeenRead, c.SeenWrite = c.Read.Bytes, c.Write.Bytes
		if i == 3 {
			c.Verdict, c.Because, c.SeenRead, c.Reached = judge.VerdictThrottled, []string{"its groups were kept from the CPU for 4.20 s of 10.0 s"}, c.Read.Bytes, 1
		}
		mixed.Cells = append(mixed.Cells, c)

		c = measured(name, device, judge.StorageFlow{Bytes: 4194304000, Bandwidth: around(128.4e6*part, 1)}, "the device wrote all that dd claims")
		c.Write, c.Read, c.Versions = c.Read, judge.StorageFlow{}, []string{"dd (coreutils) 9.1"}
		c.SeenRead, c.SeenWrite = 0, 4194304000
		dd.Cells = append(dd.Cells, c)

		c = mixed.Cells[i]
		c.Read.P50, c.Read.P99, c.Read.P999 = judge.Estimate{}, judge.Estimate{}, judge.Estimate{}
		c.Write.P50, c.Write.P99, c.Write.P999 = judge.Estimate{}, judge.Estimate{}, judge.Estimate{}
		c.Verdict, c.Because, c.Versions = judge.VerdictTooShort, []string{"it ran 0.283 s"}, []string{"sysbench 1.0.20"}
		c.Seconds = around(0.2828*float64(i+1), 3)
		sysbench.Cells = append(sysbench.Cells, c)
	}
	s.v.Tables = append(s.v.Tables, compared(mixed), compared(dd), compared(sysbench))
	for _, name := range []string{"host", "runc", "crun", "runsc"} {
		inside, shm := "overlay", int64(64<<20)
		if name == "host" {
			inside, shm = "ext4", 992<<20
		}
		if name == "runsc" {
			shm = 1 << 30
		}
		s.v.Places = append(s.v.Places, placed(name, "rootfs", inside, "ext4", 98<<30, shm),
			placed(name, "bind", map[bool]string{true: "9p", false: "ext4"}[name == "runsc"], "ext4", 98<<30, shm), placed(name, "tmpfs", "tmpfs", "", 8<<30, shm))
	}
	for i := range s.v.Places {
		if p := &s.v.Places[i]; p.Target == "runsc" {
			p.Mounts[0].Size, p.Mounts[0].Free = 1e18, 1e18 // as gVisor has it
		}
	}
	for _, volume := range []string{"rootfs", "bind"} {
		s.v.Ceilings = append(s.v.Ceilings, record.Ceiling{Type: record.TypeCeiling, Volume: volume, Device: "vda", When: "before",
			Read: 961.4e6, Write: 512.8e6, ReadIOPS: 51230, WriteIOPS: 40110, Seconds: 2, Command: "/usr/bin/fio --name=ceiling --filename=/srv/tare/ceiling --rw=read --bs=1M --iodepth=32"})
	}
	s.v.Total = 84
	s.v.Findings = []record.Finding{{
		Code: "storage-cache", Level: "warning", Target: "runsc", Op: "randread 512k, rootfs, direct",
		Message: "8600 IOPS are 5.1 times what the device gives", Advice: "run it with --volume bind, or compare buffered figures only with each other",
	}}
	for i := range s.v.Tables {
		t := &s.v.Tables[i]
		for round := range 3 {
			for order, c := range t.Cells {
				s.rec.Cells = append(s.rec.Cells, record.Cell{Type: record.TypeCell, Round: round, Order: order, Target: c.Target, Volume: t.Volume, Cache: t.Cache, Job: t.Job,
					Tool: t.Tool, Layout: &record.Layout{Files: 8, Bytes: 8 << 30, Took: int64(12 * time.Second)}, Dropped: "node", Quiet: round > 0, SetUp: int64(900 * time.Millisecond)})
			}
		}
	}
	return s
}

// smallStorage is one table, which is as small as a report gets.
func smallStorage() *stored {
	s := storages()
	s.v.Tables, s.v.Places, s.v.Findings, s.v.Total = s.v.Tables[:1], s.v.Places[:2], nil, 12
	s.v.Plan.Limits, s.v.Plan.Scale = subject.Limits{}, 0.01
	return s
}

// brokenStorage has cells that failed now and then, one that failed always, a
// volume that cannot be had, and a target that is not there.
func brokenStorage() *stored {
	s := storages()
	s.v.Tables = s.v.Tables[2:3]
	failure := &record.Failure{Kind: record.FailExit, Detail: "fio exited with 1", Command: "runc exec c-0 " + fioCommand, Exit: 1,
		Output: "fio: io_u error on file /data/tare.0.0: No space left on device: write offset=1048576\nfio: pid=12, err=28"}
	cells := s.v.Tables[0].Cells[:3]
	cells[0].Rounds, cells[0].Failed, cells[0].Failure = 2, 1, failure
	cells[1] = judge.StorageCell{Target: "runc", Failed: 3, Failure: failure}
	cells[2] = judge.StorageCell{Target: "crun", Absent: "this kernel has no NFS client"}
	s.v.Tables[0].Cells, s.v.Tables[0].Volume = cells, record.VolumeNFS
	s.v.Places = append(s.v.Places[:3], record.Place{Target: "crun", Volume: record.VolumeNFS, Absent: "this kernel has no NFS client", Advice: "modprobe nfs, or leave nfs out of --volume"})
	s.v.Places[0].Mounts[1] = record.FileSystem{Path: "/dev/shm", Problem: "statfs /dev/shm: permission denied"}
	s.v.Ceilings = append(s.v.Ceilings[:1], record.Ceiling{Volume: record.VolumeNFS, Failure: &record.Failure{Kind: record.FailTimeout, Detail: "no answer within 10 s", Command: "stat /srv/nfs"}})
	s.v.Failed, s.v.Total, s.v.Findings = 4, 12, nil
	s.rec.End = nil
	return s
}

// kataPublished is what the published report of Kata's I/O says, imported and
// without anything that was seen from outside.
func kataPublished() *stored {
	s := newStored("kata", "runc", "host")
	s.v.Imported = true
	s.rec.Header.Environment = record.Environment{}
	s.rec.End.Elapsed = 0
	for i, job := range []struct {
		name string
		iops [3]float64
		bw   [3]float64 // KiB/s
		ms   [3]float64
	}{
		{"randread 512k", [3]float64{8600, 647, 1681}, [3]float64{4300.3 * 1024, 331762, 860900}, [3]float64{1905, 25285, 9744}},
		{"read 512k", [3]float64{9389, 1464, 4477}, [3]float64{4694.6 * 1024, 749786, 2238.9 * 1024}, [3]float64{1745, 11188, 3659}},
		{"randwrite 512k", [3]float64{741, 13159, 10850}, [3]float64{379850, 6579.1 * 1024, 5425.2 * 1024}, [3]float64{22084, 1245, 1510}},
		{"write 512k", [3]float64{756, 6387, 9666}, [3]float64{387518, 3193.8 * 1024, 4833.4 * 1024}, [3]float64{21647, 2565, 1695}},
		{"dd write 4k", [3]float64{}, [3]float64{128 * 1024, 114.9 * 1024, 111e6 / 1024}, [3]float64{312486, 347990, 376446}},
	} {
		t := judge.StorageTable{Job: job.name, Tool: "fio", BS: k512, Volume: "rootfs", Cache: "direct"}
		if job.iops[0] == 0 {
			t.Tool, t.BS = "dd", k4
		}
		for j, name := range []string{"kata", "runc", "host"} {
			f := judge.StorageFlow{Bytes: 8 << 30, Bandwidth: around(job.bw[j]*1024, 0)}
			if job.iops[j] > 0 {
				f.IOPS = around(job.iops[j], 0)
			}
			c := judge.StorageCell{Target: name, Rounds: 1, Total: f, Seconds: around(job.ms[j]/1000, 0), Verdict: judge.VerdictDevice, Because: []string{"nothing speaks against it"}}
			if (i < 2) == (name == "kata") && i < 4 {
				c.Verdict, c.Because = judge.VerdictHostCache, []string{"it is more than three times what dd wrote to this disk"}
			}
			if i > 1 {
				c.Write = f
			} else {
				c.Read = f
			}
			t.Cells = append(t.Cells, c)
			s.rec.Cells = append(s.rec.Cells, record.Cell{Type: record.TypeCell, Target: name, Volume: "rootfs", Cache: "direct", Job: job.name, Tool: t.Tool, Source: fmt.Sprintf("notes.txt:%d", 100+10*i+j)})
		}
		t.Base = "host"
		base := t.Cells[2].Total.Bandwidth.Value
		for j := range 2 {
			t.Cells[j].Ratio = around(t.Cells[j].Total.Bandwidth.Value/base, 0)
		}
		s.v.Tables = append(s.v.Tables, t)
	}
	s.v.Total = 15
	return s
}

// dozenStorage are twelve targets of long names and as many jobs.
func dozenStorage() *stored {
	var names []string
	for i := range 12 {
		names = append(names, fmt.Sprintf("cri+containerd/runtime-number-%d", i+1))
	}
	s := newStored(names...)
	for j := range 12 {
		t := judge.StorageTable{Job: fmt.Sprintf("%dG-bigfile-random-read-numjobs-%d", j, j), Tool: "fio", BS: k4, Volume: []string{"rootfs", "bind"}[j%2], Cache: []string{"direct", "buffered"}[j/6]}
		for i, name := range names {
			verdict := []judge.Verdict{judge.VerdictDevice, judge.VerdictNoisy, judge.VerdictGuestCache}[(i+j)%3]
			c := measured(name, verdict, flowing(float64(300*(i+1)*(j+1)), k4, 1), "a reason")
			t.Cells = append(t.Cells, c)
		}
		s.v.Tables = append(s.v.Tables, compared(t))
	}
	for _, name := range names {
		s.v.Places = append(s.v.Places, placed(name, "rootfs", "overlay", "ext4", 98<<30, 64<<20))
	}
	s.v.Total = 432
	return s
}

// vileStorage is text of others wherever there can be some.
func vileStorage() *stored {
	s := storages()
	s.rec.Header.Version, s.rec.Header.RunID = hostileVersion, hostileVersion
	s.v.Plan.Title = hostileVersion
	s.v.Tables = s.v.Tables[:2]
	for i := range s.v.Targets {
		s.v.Targets[i].Version, s.v.Targets[i].Notes = hostileVersion, []string{hostileName}
	}
	s.v.Targets[0].Name = hostileName
	failure := &record.Failure{Kind: hostileVersion, Detail: hostileVersion, Command: hostileName, Output: hostileName + "\n" + hostileVersion}
	for i := range s.v.Tables {
		t := &s.v.Tables[i]
		t.Job, t.Command, t.Base = hostileName, hostileName, hostileName
		t.Tool, t.Volume, t.Cache, t.RW = hostileVersion, hostileVersion, hostileName, hostileName
		t.Cells[0].Target = hostileName
		for j := range t.Cells {
			c := &t.Cells[j]
			c.Verdict, c.Because, c.Why, c.Versions, c.Command = hostileName, []string{hostileVersion, hostileName}, hostileVersion, []string{hostileVersion}, hostileName
		}
		t.Cells[1].Failed, t.Cells[1].Failure = 1, failure
		t.Cells[2] = judge.StorageCell{Target: t.Cells[2].Target, Failed: 3, Failure: failure}
		t.Cells[3] = judge.StorageCell{Target: t.Cells[3].Target, Absent: hostileVersion}
	}
	for i := range s.v.Places {
		p := &s.v.Places[i]
		p.Volume, p.HostType, p.Device, p.Direct = hostileVersion, hostileName, hostileVersion, hostileName
		p.Mounts[0].Type, p.Mounts[1].Problem, p.Mounts[2].Type = hostileVersion, hostileName, hostileVersion
	}
	s.v.Places[3].Absent, s.v.Places[3].Advice = hostileVersion, hostileName
	s.v.Ceilings[0].Device, s.v.Ceilings[0].Volume, s.v.Ceilings[0].Command = hostileName, hostileVersion, hostileName
	s.v.Ceilings[1].Volume, s.v.Ceilings[1].Failure = hostileName, failure
	for i := range s.rec.Cells {
		c := &s.rec.Cells[i]
		c.Source, c.Job, c.Volume, c.Cache = hostileName, hostileName, hostileVersion, hostileName
	}
	s.v.Findings = []record.Finding{{Code: hostileName, Level: hostileVersion, Target: hostileName, Op: hostileName, Message: hostileVersion, Advice: hostileVersion, Tried: hostileName}}
	return s
}
