package notes

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/tare-bench/tare/internal/plan"
	"github.com/tare-bench/tare/record"
)

// maxDescriptions is how many jobs of one fio run are remembered by name.
const maxDescriptions = 256

// fio's text for people. Up to 2.16 its "KB" and "MB" are of 1024; later ones
// write both kinds and mean what they write.
var (
	fioBanner = regexp.MustCompile(`^fio[- ](\d+\.\d+[\w.-]{0,40})$`)
	// "randread: (g=0): rw=randread, bs=(R) 4096B-4096B, …, ioengine=psync, iodepth=1"
	fioDescription = regexp.MustCompile(`^(\S.{0,120}?): \(g=\d+\): rw=(\w+), bs=(?:\([RWT]\) )?(\d+(?:\.\d+)?[KMG]?i?B?)-(\d+(?:\.\d+)?[KMG]?i?B?)[,/ ].*ioengine=([\w-]+), iodepth=(\d+)`)
	// "randread: (groupid=0, jobs=8): err= 0: pid=…"
	fioHead = regexp.MustCompile(`^(.{0,120}?): \(groupid=(\d+), jobs=(\d+)\): err=\s*(-?\d+)`)
	// "read : io=8192.0MB, bw=4300.3MB/s, iops=8600, runt=  1905msec"
	fio2Flow = regexp.MustCompile(`\b(read|write)\s*:\s*io=\s*([\d.]{1,20})([KMGTP]?i?)B?,\s*bw=\s*([\d.]{1,20})([KMGTP]?i?)(B|b|bit)?/s,\s*iops=\s*([\d.]{1,20})([kKMG]?)\s*,\s*runt=\s*(\d{1,15})\s*msec`)
	// "read: IOPS=647, BW=324MiB/s (340MB/s)(8192MiB/25285msec)"
	fio3Flow = regexp.MustCompile(`\b(read|write):\s*IOPS=([\d.]{1,20})([kKMG]?),\s*BW=([\d.]{1,20})([kKMGTP]?i?)(B|b|bit)/s(?:\s*\([^)]{1,30}/s\))?\s*(?:\(([\d.]{1,20})([kKMGTP]?i?)B/(\d{1,15})msec\))?`)
	// "   READ: io=8192.0MB, aggrb=331762KB/s, …, maxt=25285msec", "   READ: bw=324MiB/s (340MB/s), …, run=25285-25285msec"
	fioGroup2 = regexp.MustCompile(`\b(READ|WRITE): io=\s*([\d.]{1,20})([KMGTP]?i?)B?,\s*aggrb=\s*([\d.]{1,20})([KMGTP]?i?)(B|b|bit)?/s,.*maxt=\s*(\d{1,15})\s*msec`)
	fioGroup3 = regexp.MustCompile(`\b(READ|WRITE): bw=([\d.]{1,20})([kKMGTP]?i?)(B|b|bit)/s .*io=([\d.]{1,20})([kKMGTP]?i?)B .*run=\d{1,15}-(\d{1,15})msec`)
	// "    clat (usec): min=68, max=20135, avg=890.93, stdev=1048.53"
	fioLatency  = regexp.MustCompile(`^(clat|lat) \(([num]sec)\)\s*:\s*min=\s*[\d.]+[kKMG]?, max=\s*([\d.]{1,20})([kKMG]?), avg=\s*([\d.]{1,20})([kKMG]?),`)
	fioQuantile = regexp.MustCompile(`(\d{1,3}\.\d+)th=\[\s*(\d{1,18})\]`)
	// "issued rwts: total=1982,2114,0,0 short=…", "issued    : total=r=16384/w=0/d=0, short=…",
	// "issued r/w/d: total=0/31953/0, short=…"
	fioIssued3 = regexp.MustCompile(`^issued rwts?\s*: total=(\d{1,18}),(\d{1,18})`)
	fioIssued2 = regexp.MustCompile(`^issued\s*(?:r/w/d)?: total=(?:r=)?(\d{1,18})/(?:w=)?(\d{1,18})`)
)

// fioRun is fio's text as far as it has been read.
type fioRun struct {
	version      string
	descriptions map[string]plan.Job
	job          *fioJob // under way
	before       *fioJob // ended; others of the same group may add to it
	told         bool    // jobs were read, so the groups' sums say nothing new
	quantiles    bool    // the lines that come are quantiles of completion
	unit         int64   // of the quantiles, in ns
}

// fioJob is one job, or several of one name and group.
type fioJob struct {
	line        int
	head        bool // it began with a line of its own; else it is a lone line of figures
	name, group string
	jobs        int
	failed      string
	read, write bool
	claim       record.Claim
	last        *record.Flow
}

// fioLine reads a line of fio's text. It is false for one that is none.
func (s *scanner) fioLine(l line) bool {
	f := &s.fio
	text := l.text
	switch {
	case text == "":
		return false
	case strings.HasPrefix(text, "fio"):
		if m := fioBanner.FindStringSubmatch(text); m != nil {
			s.endFio()
			f.version = "fio-" + m[1]
			return true
		}
	case strings.Contains(text, ": (g="):
		return s.describe(text)
	case strings.Contains(text, ": (groupid="):
		return s.fioHead(l)
	case strings.HasPrefix(text, "Run status group"), strings.HasPrefix(text, "Disk stats"):
		s.flushFio()
		if text[0] == 'D' {
			f.told = false
		}
		return true
	case strings.Contains(text, "bw="), strings.Contains(text, "BW="), strings.Contains(text, "aggrb="):
		return s.fioFigures(l)
	}
	return f.job != nil && f.job.last != nil && s.fioDetail(text)
}

// describe keeps what fio says of a job before it runs.
func (s *scanner) describe(text string) bool {
	m := fioDescription.FindStringSubmatch(text)
	if m == nil {
		return false
	}
	j := plan.Job{Tool: plan.ToolFio, RW: fioRW(m[2]), Engine: m[5], IODepth: count(m[6])}
	if m[3] == m[4] {
		j.BS, _ = size(m[3], plan.ToolFio)
	}
	if s.fio.descriptions == nil || len(s.fio.descriptions) >= maxDescriptions {
		s.fio.descriptions = map[string]plan.Job{}
	}
	s.fio.descriptions[m[1]] = j
	return true
}

func (s *scanner) fioHead(l line) bool {
	m := fioHead.FindStringSubmatch(l.text)
	if m == nil {
		return false
	}
	s.endFioJob()
	s.fio.told = true
	j := &fioJob{line: l.number, head: true, name: m[1], group: m[2], jobs: count(m[3])}
	if m[4] != "0" {
		j.failed = "fio ended with error " + m[4]
	}
	s.fio.job = j
	return true
}

// fioFigures reads the line of one direction.
func (s *scanner) fioFigures(l line) bool {
	if m := fio2Flow.FindStringSubmatch(l.text); m != nil {
		flow, ok := flowOf(m[2], m[3], m[4], m[5], m[6], 1024)
		iops, fits := quantity(m[7], m[8], 1000)
		flow.IOPS = iops
		s.fioFlow(l, m[1], flow, m[9], ok && fits, false)
		return true
	}
	if m := fio3Flow.FindStringSubmatch(l.text); m != nil {
		flow, ok := flowOf(first(m[7], "0"), m[8], m[4], m[5], m[6], 1000)
		iops, fits := quantity(m[2], m[3], 1000)
		flow.IOPS = iops
		s.fioFlow(l, m[1], flow, first(m[9], "0"), ok && fits, false)
		return true
	}
	var flow record.Flow
	var ok bool
	var way, took string
	if m := fioGroup2.FindStringSubmatch(l.text); m != nil {
		flow, ok = flowOf(m[2], m[3], m[4], m[5], m[6], 1024)
		way, took = m[1], m[7]
	} else if m := fioGroup3.FindStringSubmatch(l.text); m != nil {
		flow, ok = flowOf(m[5], m[6], m[2], m[3], m[4], 1000)
		way, took = m[1], m[7]
	} else {
		if strings.Contains(l.text, "iops=") || strings.Contains(l.text, "IOPS=") {
			s.unread(l.number, "a line of fio's that is cut off or of a form that is not known")
		}
		return false
	}
	if !s.fio.told {
		s.fioFlow(l, strings.ToLower(way), flow, took, ok, true)
	}
	return true
}

// flowOf makes a flow of amounts as fio writes them.
func flowOf(io, ioPrefix, bw, bwPrefix, unit string, base float64) (f record.Flow, ok bool) {
	bytes, fits := quantity(io, ioPrefix, base)
	rate, ok := quantity(bw, bwPrefix, base)
	if unit == "b" || unit == "bit" {
		rate /= 8
	}
	return record.Flow{Bytes: int64(bytes), Bandwidth: rate}, ok && fits
}

// fioFlow takes the figures of one direction. One that has no head line is a
// result of its own, unless its command mixes directions.
func (s *scanner) fioFlow(l line, way string, flow record.Flow, ms string, ok, group bool) {
	if !ok {
		s.unread(l.number, "a figure of fio's beyond all that can be")
		return
	}
	j := s.fio.job
	if j == nil || j.read && way == "read" || j.write && way == "write" || !j.head && !group && !s.mixed() {
		s.endFioJob()
		j = &fioJob{line: l.number}
		s.fio.job = j
	}
	took, _ := strconv.ParseFloat(ms, 64)
	j.claim.Seconds = max(j.claim.Seconds, took/1000)
	if way == "read" {
		j.read, j.claim.Read, j.last = true, flow, &j.claim.Read
	} else {
		j.write, j.claim.Write, j.last = true, flow, &j.claim.Write
	}
	s.fio.quantiles = false
}

// mixed says whether the command that is next reads and writes.
func (s *scanner) mixed() bool {
	open := s.where.commands[min(s.where.begin, len(s.where.commands)):]
	at := s.where.next
	if len(open) == 1 {
		at = 0
	}
	return at < len(open) && open[at].mixed
}

// endFioJob ends the job under way. Jobs of one name and group ran at the same
// time, numjobs of them, and are one result: their rates add up.
func (s *scanner) endFioJob() {
	j, before := s.fio.job, s.fio.before
	s.fio.job = nil
	if j == nil || !j.read && !j.write && j.failed == "" {
		if j != nil {
			s.unread(j.line, "a job of fio's without figures")
		}
		return
	}
	if before != nil && j.head && before.head && j.name == before.name && j.group == before.group {
		before.add(j)
		return
	}
	s.emitFio(before)
	s.fio.before = j
}

func (j *fioJob) add(o *fioJob) {
	j.jobs += o.jobs
	j.read, j.write = j.read || o.read, j.write || o.write
	j.failed = first(j.failed, o.failed)
	j.claim.Seconds = max(j.claim.Seconds, o.claim.Seconds)
	for _, both := range [][2]*record.Flow{{&j.claim.Read, &o.claim.Read}, {&j.claim.Write, &o.claim.Write}} {
		sum, one := both[0], both[1]
		sum.Latency = joined(*sum, *one)
		sum.Bytes += one.Bytes
		sum.IOs += one.IOs
		sum.Bandwidth += one.Bandwidth
		sum.IOPS += one.IOPS
	}
}

// joined is the latency of two flows: quantiles of two cannot be made one, the
// mean by their rates and the largest can.
func joined(a, b record.Flow) record.Latency {
	l := record.Latency{Max: max(a.Latency.Max, b.Latency.Max)}
	if rate := a.IOPS + b.IOPS; rate > 0 {
		l.Mean = spanOf((float64(a.Latency.Mean)*a.IOPS + float64(b.Latency.Mean)*b.IOPS) / rate)
	}
	return l
}

// flushFio ends all jobs that were read.
func (s *scanner) flushFio() {
	s.endFioJob()
	s.emitFio(s.fio.before)
	s.fio.before = nil
}

// endFio is before the text of another run begins.
func (s *scanner) endFio() {
	s.flushFio()
	s.fio.told, s.fio.version = false, ""
}

func (s *scanner) emitFio(j *fioJob) {
	if j == nil {
		return
	}
	r := Result{Line: j.line, Claim: j.claim, Version: s.fio.version, Failure: j.failed, Job: plan.Job{Tool: plan.ToolFio, Name: j.name}}
	c, ok := s.command(func(c command) bool { return c.job.Tool == plan.ToolFio && directions(c.job.RW, j.read, j.write) })
	if ok {
		r = r.of(c)
	}
	if said, ok := s.fio.descriptions[j.name]; ok {
		r.Job = filled(r.Job, said)
	}
	if j.head && r.Job.NumJobs == 0 && j.jobs > 1 {
		r.Job.NumJobs = j.jobs
	}
	s.add(r)
}

// directions says whether a job can have moved bytes that way.
func directions(rw string, read, write bool) bool {
	switch rw {
	case "read", "randread":
		return !write
	case "write", "randwrite":
		return !read
	}
	return true
}
