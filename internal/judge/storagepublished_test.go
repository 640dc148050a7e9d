package judge_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/judge"
	"github.com/tare-bench/tare/internal/plan"
	"github.com/tare-bench/tare/record"
)

const (
	mb  = 1e6
	kib = 1 << 10

	gib = 1 << 30
)

// The jobs of the published report of Kata's I/O.
var (
	ddShort  = plan.Job{Name: "dd 4k × 1024000", Tool: "dd", RW: "write", BS: 4096, Count: 1024000}
	ddLong   = plan.Job{Name: "dd 4k × 10240000", Tool: "dd", RW: "write", BS: 4096, Count: 10240000}
	randread = plan.Job{Name: "randread", Tool: "fio", RW: "randread", BS: 512 * kib, Size: gib, NumJobs: 8}
	read     = plan.Job{Name: "read", Tool: "fio", RW: "read", BS: 512 * kib, Size: gib, NumJobs: 8}
	randwr   = plan.Job{Name: "randwrite", Tool: "fio", RW: "randwrite", BS: 512 * kib, Size: gib, NumJobs: 8}
	write8   = plan.Job{Name: "write", Tool: "fio", RW: "write", BS: 512 * kib, Size: gib, NumJobs: 8}
	small    = plan.Job{Name: "small files", Tool: "fio", RW: "randread", BS: 4096, FileSize: 10 * mib, Files: 100, Runtime: time.Minute, TimeBased: true}
	big5     = plan.Job{Name: "5G file", Tool: "fio", RW: "randread", BS: 4096, Size: 5 * gib, Runtime: time.Minute, TimeBased: true}
	big10    = plan.Job{Name: "10G file", Tool: "fio", RW: "randread", BS: 4096, Size: 10 * gib, Runtime: time.Minute, TimeBased: true}
	prepare  = plan.Job{Name: "prepare", Tool: "sysbench", RW: "write", BS: 16 * kib, Size: 5 * gib}
	rndrw    = plan.Job{Name: "rndrw", Tool: "sysbench", RW: "randrw", BS: 16 * kib, Size: 5 * gib, Files: 10, NumJobs: 16, Requests: 5000}
)

// printed is one of the report's figures.
type printed struct {
	job           plan.Job
	volume, cache string
	target        string
	claim         record.Claim
	version       string
	want          judge.Verdict
}

const (
	device = judge.VerdictDevice
	host   = judge.VerdictHostCache
	guest  = judge.VerdictGuestCache
	short  = judge.VerdictTooShort
)

// wrote is what dd prints: bytes and a rate, and the time that follows.
func wrote(blocks int64, rate float64) record.Claim {
	bytes := blocks * 4096
	return record.Claim{Write: record.Flow{Bytes: bytes, IOs: blocks, Bandwidth: rate}, Seconds: float64(bytes) / rate}
}

// fioRead and fioWrote are one line of fio's: KiB/s, IOPS and ms.
func fioRead(bandwidth, iops, ms float64) record.Claim {
	return record.Claim{Read: record.Flow{Bytes: 8 * gib, Bandwidth: bandwidth * kib, IOPS: iops}, Seconds: ms / 1000}
}

func fioWrote(bandwidth, iops, ms float64) record.Claim {
	c := fioRead(bandwidth, iops, ms)
	c.Read, c.Write = c.Write, c.Read
	return c
}

// minute is what a table says of a job of a minute: IOPS, and nothing else.
func minute(iops float64) record.Claim {
	return record.Claim{Read: record.Flow{IOPS: iops}}
}

func prepared(seconds float64) record.Claim {
	return record.Claim{Write: record.Flow{Bytes: 5 * gib, Bandwidth: 5 * gib / seconds}, Seconds: seconds}
}

func mixed(reads, writes int64, seconds float64) record.Claim {
	return record.Claim{Read: record.Flow{Bytes: reads * 16 * kib, IOs: reads}, Write: record.Flow{Bytes: writes * 16 * kib, IOs: writes}, Seconds: seconds}
}

// published are the tables of the report, and what is to be said of each figure.
// Kinds of a cache are told apart as far as figures alone can.
var published = []printed{
	{ddShort, "rootfs", "direct", "host", wrote(1024000, 128.5*mb), "", device},
	{ddShort, "rootfs", "direct", "runc", wrote(1024000, 127.5*mb), "", device},
	{ddShort, "rootfs", "direct", "kata", wrote(1024000, 132.5*mb), "", device},
	{ddLong, "rootfs", "direct", "host", wrote(10240000, 111*mb), "", device},
	{ddLong, "rootfs", "direct", "runc", wrote(10240000, 114.9*mib), "", device},
	{ddLong, "rootfs", "direct", "kata", wrote(10240000, 128*mib), "", device},
	{ddShort, "bind", "direct", "runc", wrote(1024000, 114*mb), "", device},
	{ddShort, "bind", "direct", "kata", wrote(1024000, 134*mb), "", device},
	{ddShort, "nfs", "direct", "runc", wrote(1024000, 16.4*mb), "", device},
	{ddShort, "nfs", "direct", "kata", wrote(1024000, 89.3*mb), "", guest}, // 5.4 × runc's over the same mount: somebody gathers its small writes

	{randread, "rootfs", "direct", "kata", fioRead(4300.3*kib, 8600, 1905), "", guest},
	{randread, "rootfs", "direct", "runc", fioRead(331762, 647, 25285), "", device},
	{randread, "rootfs", "direct", "host", fioRead(860900, 1681, 9744), "", device}, // eight at a time, 5.5 × the IOPS of one
	{read, "rootfs", "direct", "kata", fioRead(4694.6*kib, 9389, 1745), "", guest},
	{read, "rootfs", "direct", "runc", fioRead(749786, 1464, 11188), "", device}, // doubtful: eight threads read one file, and nothing bounds reads
	{read, "rootfs", "direct", "host", fioRead(2238.9*kib, 4477, 3659), "", short},
	{randwr, "rootfs", "direct", "kata", fioWrote(379850, 741, 22084), "", host}, // 3 × the disk
	{randwr, "rootfs", "direct", "runc", fioWrote(6579.1*kib, 13159, 1245), "", host},
	{randwr, "rootfs", "direct", "host", fioWrote(5425.2*kib, 10850, 1510), "", host},
	{write8, "rootfs", "direct", "kata", fioWrote(387518, 756, 21647), "", host},
	{write8, "rootfs", "direct", "runc", fioWrote(3193.8*kib, 6387, 2565), "", host},
	{write8, "rootfs", "direct", "host", fioWrote(4833.4*kib, 9666, 1695), "", host},

	{small, "rootfs", "buffered", "kata", minute(766021), "", guest},
	{small, "rootfs", "buffered", "runc", minute(136547), "", host},
	{small, "rootfs", "buffered", "host", minute(93862), "", host},
	{big5, "rootfs", "buffered", "kata", minute(35584), "", guest},
	{big5, "rootfs", "buffered", "runc", minute(316), "", device},
	{big5, "rootfs", "buffered", "host", minute(300), "", device},
	{big10, "rootfs", "buffered", "kata", minute(38707), "", guest},
	{big10, "rootfs", "buffered", "runc", minute(267), "", device},
	{big10, "rootfs", "buffered", "host", minute(284), "", device},
	{small, "nfs", "buffered", "kata", minute(733795), "", guest},
	{small, "nfs", "buffered", "runc", minute(436715), "", host}, // 2.3 µs each: no network
	{big5, "nfs", "buffered", "kata", minute(35251), "", guest},
	{big5, "nfs", "buffered", "runc", minute(13729), "", device}, // 73 µs each: a server's memory, or this one's in part; nothing tells
	{small, "rootfs", "direct", "kata", minute(41716), "", guest},
	{small, "rootfs", "direct", "runc", minute(22031), "", host}, // 72 × what larger files give: a controller's memory, if direct I/O was
	{small, "rootfs", "direct", "host", minute(21828), "", host},
	{big5, "rootfs", "direct", "kata", minute(39963), "", guest},
	{big5, "rootfs", "direct", "runc", minute(305), "", device},
	{big5, "rootfs", "direct", "host", minute(307), "", device},
	{big10, "rootfs", "direct", "kata", minute(39312), "", guest},
	{big10, "rootfs", "direct", "runc", minute(276), "", device},
	{big10, "rootfs", "direct", "host", minute(231), "", device},
}

// publishedSysbench is of another machine.
var publishedSysbench = []printed{
	{prepare, "rootfs", "buffered", "runc", prepared(44.82), "sysbench 0.5", device},
	{prepare, "rootfs", "buffered", "kata", prepared(106.52), "sysbench 0.5", device},
	{prepare, "rootfs", "buffered", "host", prepared(40.07), "sysbench 1.0.20", device},
	{rndrw, "rootfs", "direct", "runc", mixed(3002, 1998, 0.2828), "sysbench 0.5", short},
	{rndrw, "rootfs", "direct", "kata", mixed(2996, 2004, 2.6090), "sysbench 0.5", short},
	{rndrw, "rootfs", "direct", "host", mixed(2997, 2003, 0.2545), "sysbench 1.0.20", short},
}

// imported makes a record of what was printed, as tare import does.
func imported(all []printed) *record.Record {
	p := plan.Storage{Scale: 1}
	var targets []string
	has := map[string]bool{}
	var cells []record.Cell
	for i, x := range all {
		if !has[x.job.Name] {
			has[x.job.Name] = true
			p.Jobs = append(p.Jobs, x.job)
		}
		if !has["target "+x.target] {
			has["target "+x.target] = true
			targets = append(targets, x.target)
		}
		claim := x.claim
		cells = append(cells, record.Cell{Type: record.TypeCell, Target: x.target, Volume: x.volume, Cache: x.cache, Job: x.job.Name, Tool: x.job.Tool,
			Version: x.version, Claim: &claim, Source: fmt.Sprintf("notes.txt:%d", i+1)})
	}
	rec := storageRecord(p, targets...)
	for i := range rec.Targets {
		rec.Targets[i].Kind, rec.Targets[i].Clock = "imported", ""
	}
	rec.Cells = cells
	return rec
}

func TestThePublishedFiguresAreToldFromTheDevices(t *testing.T) {
	together := append(append([]printed{}, published...), publishedSysbench...)
	for name, all := range map[string][]printed{"storage report": published, "sysbench": publishedSysbench, "both as one": together} {
		s := storageJudged(t, imported(all))
		if !s.Imported {
			t.Errorf("%s: not said to be imported", name)
		}
		for _, x := range all {
			c := storageCell(t, s, x.job.Name, x.volume, x.cache, x.target)
			if c.Verdict != x.want {
				t.Errorf("%s: %s %s on %s, %s: %q because %q; want %q", name, x.target, x.job.Name, x.volume, x.cache, c.Verdict, c.Because, x.want)
			}
			if direct := strings.Contains(strings.Join(c.Because, " "), "through direct I/O"); direct != (x.cache == "direct" && (x.want == host || x.want == guest)) {
				t.Errorf("%s: %s %s: direct I/O is named: %t, in %q", name, x.target, x.job.Name, direct, c.Because)
			}
		}
	}
}

func TestNotesThatDoNotSayWhereSpeakOfTheMachinesOwnStorage(t *testing.T) {
	unlabelled := append([]printed{}, published...)
	for i := range unlabelled {
		if x := &unlabelled[i]; x.volume == "rootfs" && x.cache == "direct" {
			x.volume = ""
		}
	}
	s := storageJudged(t, imported(unlabelled))
	for _, x := range unlabelled {
		if c := storageCell(t, s, x.job.Name, x.volume, x.cache, x.target); c.Verdict != x.want {
			t.Errorf("%s %s on %q, %s: %q because %q; want %q", x.target, x.job.Name, x.volume, x.cache, c.Verdict, c.Because, x.want)
		}
	}
}

func TestTheFactThatDecidesIsToldWithItsFigures(t *testing.T) {
	s := storageJudged(t, imported(published))
	for _, x := range []struct{ job, volume, cache, target, want string }{
		{"randread", "rootfs", "direct", "kata", "8600 IOPS read are 3.5 × the 2456 of host's 5G file, which ran 60 s"},
		{"read", "rootfs", "direct", "kata", "4.92 GB/s inside are 2.1 × the 2.35 GB/s of host in the same job"},
		{"randwrite", "rootfs", "direct", "kata", "389.0 MB/s written are 3 × the 128.5 MB/s of host's dd 4k × 1024000"},
		{"small files", "nfs", "buffered", "runc", "436715 random IOPS with 1 at a time are 2.3 µs for each"},
		{"5G file", "rootfs", "buffered", "kata", "35584 IOPS read are 116 × the 307 of host's 5G file"},
	} {
		c := storageCell(t, s, x.job, x.volume, x.cache, x.target)
		if !strings.HasPrefix(c.Because[0], x.want) {
			t.Errorf("%s: %q, want %q", x.job, c.Because[0], x.want)
		}
	}
}

func TestToolsOfTwoVersionsAreAFinding(t *testing.T) {
	f := storageFinding(t, storageJudged(t, imported(publishedSysbench)), "tool-versions-differ")
	if want := "sysbench is not of one version: sysbench 0.5 on runc, kata; sysbench 1.0.20 on host"; f.Message != want {
		t.Errorf("%q, want %q", f.Message, want)
	}
}
