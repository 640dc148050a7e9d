package tool

import (
	"errors"
	"fmt"
	"math"
	"path"
	"strconv"
	"time"

	"github.com/tare-bench/tare/internal/instrument/storage"
	"github.com/tare-bench/tare/internal/probe"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/record"
)

// sysbenchModes are its names for what a job does. Files are there already, so
// that a sequential write is one over what they hold, as fio's.
var sysbenchModes = map[string]string{
	storage.RWRead: "seqrd", storage.RWWrite: "seqrewr",
	storage.RWRandRead: "rndrd", storage.RWRandWrite: "rndwr", storage.RWRandRW: "rndrw",
}

// sysbenchCommand is for sysbench 1.0. Its files lie in its working folder, which
// it has no option for: the probe goes there first, and becomes it.
func sysbenchCommand(j storage.Job, at Place) ([]string, error) {
	files, err := sysbenchFiles(j, at)
	if err != nil {
		return nil, err
	}
	limit := shorter(j.Runtime, at.Limit)
	if limit <= 0 && j.Requests <= 0 {
		return nil, fmt.Errorf("job %q would never end: it has no requests, no runtime and no limit", j.Name)
	}
	args := []string{at.Program, "fileio",
		option("file-total-size", files[0].Size*int64(len(files))), option("file-num", len(files)),
		option("file-test-mode", sysbenchModes[j.RW]), option("file-block-size", j.BS),
		option("threads", max(j.NumJobs, 1)), option("events", max(j.Requests, 0)), option("time", wholeSeconds(limit)),
		option("file-fsync-freq", j.Fsync), "--percentile=99", "--rand-seed=1", // the same requests everywhere
	}
	if at.Direct {
		args = append(args, "--file-extra-flags=direct")
	}
	return probe.InArgs(at.Dir, append(args, "run")...), nil
}

// wholeSeconds rounds up: sysbench has no parts of them, and 0 is for ever.
func wholeSeconds(d time.Duration) int64 {
	return int64((d + time.Second - 1) / time.Second)
}

// sysbenchFiles are those that its "prepare" would make, of whole blocks: with
// others its last requests go beyond the end of a file.
func sysbenchFiles(j storage.Job, at Place) ([]File, error) {
	if err := at.check(); err != nil {
		return nil, err
	}
	size, err := fileSize(j)
	switch {
	case err != nil:
		return nil, err
	case sysbenchModes[j.RW] == "":
		return nil, fmt.Errorf("job %q: sysbench has no %q", j.Name, j.RW)
	case at.Device != "":
		return nil, fmt.Errorf("job %q: sysbench makes files and has no use for a device", j.Name)
	}
	all := make([]File, max(j.Files, 1))
	for i := range all {
		all[i] = File{Path: path.Join(at.Dir, "test_file."+strconv.Itoa(i)), Size: size}
	}
	return all, nil
}

func parseSysbenchRun(_ storage.Job, e subject.Executed) (record.Reported, string, error) {
	c, _, version, err := ParseSysbench(e.Output)
	if version != "" {
		version = "sysbench " + version
	}
	return c, version, err
}

// claim makes one of what was found, if it is all there and fits together.
func (s *sysbenchText) claim() (record.Reported, error) {
	switch {
	case !s.said["time"]:
		return record.Reported{}, errors.New("it has no total time: it is cut off, or no result of sysbench's fileio")
	case s.seconds <= 0 || s.seconds > maxRuntime/1000:
		return record.Reported{}, fmt.Errorf("it ran for %g s, which cannot be measured", s.seconds)
	case s.options.BlockSize <= 0:
		return record.Reported{}, errors.New("it does not say its block size")
	}
	var c record.Reported
	var err error
	if s.said["operations"] {
		c, err = s.counted()
	} else {
		c, err = s.rated()
	}
	if err != nil {
		return record.Reported{}, err
	}
	for _, f := range []record.Flow{c.Read, c.Write} {
		if f.Bytes < 0 || f.Bytes > maxBytes || !within(f.Bandwidth, maxBandwidth) || !within(f.IOPS, maxIOPS) {
			return record.Reported{}, fmt.Errorf("%d bytes, %g bytes/s and %g IOPS cannot be", f.Bytes, f.Bandwidth, f.IOPS)
		}
	}
	if c.Read.Bandwidth == 0 && c.Write.Bandwidth == 0 {
		return record.Reported{}, errors.New("it neither read nor wrote anything")
	}
	c.Seconds = s.seconds
	s.giveLatency(&c)
	return c, nil
}

// counted is of 0.4 and 0.5, which count requests by direction, and print one
// rate of all.
func (s *sysbenchText) counted() (record.Reported, error) {
	if s.reads+s.writes+s.other != s.total {
		return record.Reported{}, fmt.Errorf("%d reads, %d writes and %d others are not %d: it contradicts itself", s.reads, s.writes, s.other, s.total)
	}
	read, err := s.flow(s.reads)
	if err != nil {
		return record.Reported{}, err
	}
	write, err := s.flow(s.writes)
	if err != nil {
		return record.Reported{}, err
	}
	bytes := float64(read.Bytes) + float64(write.Bytes)
	switch {
	case s.said["moved"] && !near(s.moved, bytes, 0.01, 1<<10):
		return record.Reported{}, fmt.Errorf("%d requests of %d bytes are not %.0f bytes, in powers of 1024: it contradicts itself", s.reads+s.writes, s.options.BlockSize, s.moved)
	case s.said["moved"] && !s.agree(s.bandwidth, bytes/s.seconds):
		return record.Reported{}, fmt.Errorf("%.0f bytes in %g s are not %.0f bytes/s: it contradicts itself", bytes, s.seconds, s.bandwidth)
	case s.said["executed"] && !s.agree(s.rate, float64(s.reads+s.writes)/s.seconds):
		return record.Reported{}, fmt.Errorf("%d requests in %g s are not %g a second: it contradicts itself", s.reads+s.writes, s.seconds, s.rate)
	}
	return record.Reported{Read: read, Write: write}, nil
}

func (s *sysbenchText) flow(requests int64) (record.Flow, error) {
	if requests > maxBytes/s.options.BlockSize {
		return record.Flow{}, fmt.Errorf("%d requests of %d bytes cannot be", requests, s.options.BlockSize)
	}
	bytes := requests * s.options.BlockSize
	return record.Flow{
		Bytes: bytes, IOs: requests, Bandwidth: float64(bytes) / s.seconds, IOPS: float64(requests) / s.seconds,
	}, nil
}

// agree is wide enough for a total time with four places, and for one that was
// taken a little later than the rate was.
func (s *sysbenchText) agree(printed, computed float64) bool {
	return near(printed, computed, 0.05+0.0005/s.seconds, 0.02)
}

// rated is of 1.0, which prints rates by direction.
func (s *sysbenchText) rated() (record.Reported, error) {
	for _, kind := range []string{"reads/s", "writes/s", "read MiB/s", "written MiB/s"} {
		if !s.said[kind] {
			return record.Reported{}, fmt.Errorf("it does not say %s: it is cut off, or no result of sysbench's fileio", kind)
		}
	}
	var c record.Reported
	took := s.interval()
	for _, side := range []struct {
		to          *record.Flow
		rate, moved float64
	}{{&c.Read, s.readRate, s.readBandwidth}, {&c.Write, s.writeRate, s.writtenBandwidth}} {
		block := float64(s.options.BlockSize)
		// Both have two places, and blocks at the end of a file may be short.
		if !near(side.moved, side.rate*block, 0.01, 0.01*(1<<20)+0.01*block) {
			return record.Reported{}, fmt.Errorf("%g requests a second of %d bytes are not %.2f MiB/s: it contradicts itself", side.rate, s.options.BlockSize, side.moved/(1<<20))
		}
		*side.to = record.Flow{IOPS: side.rate, Bandwidth: side.rate * block}
		requests := math.Round(side.rate * took)
		if !within(requests, float64(maxBytes/s.options.BlockSize)) {
			return record.Reported{}, fmt.Errorf("%g requests of %d bytes cannot be", requests, s.options.BlockSize)
		}
		side.to.IOs = int64(requests)
		side.to.Bytes = side.to.IOs * s.options.BlockSize
	}
	return c, nil
}

// interval is what the rates were divided by, 0 where it cannot be told. Events
// are reads, writes and the syncs in between; those at the end, of every file by
// every thread, are counted as syncs and are no events. It lies within the total
// time, and is far shorter where threads waited for a CPU before they began.
func (s *sysbenchText) interval() float64 {
	o := &s.options
	events, rate := float64(s.events), s.readRate+s.writeRate+s.otherRate
	switch {
	case s.said["sync each"] && s.said["sync between"]:
		return 0 // the events of those in between do nothing
	case s.said["sync each"]:
		rate -= s.otherRate
	case s.said["sync end"] && s.writeRate > 0 && (o.Threads == 0 || o.Files == 0):
		return 0
	case s.said["sync end"] && s.writeRate > 0:
		events += float64(o.Threads) * float64(o.Files)
	}
	if took := events / rate; rate > 0 && (took <= s.seconds || s.agree(took, s.seconds)) {
		return took
	}
	return 0
}

// giveLatency gives it to the direction whose it is, or to all requests. Syncs in
// between are requests, too, and then it is nobody's.
func (s *sysbenchText) giveLatency(c *record.Reported) {
	switch {
	case s.said["sync between"]:
	case c.Read.IOPS > 0 && c.Write.IOPS == 0:
		c.Read.Latency = s.latency
	case c.Write.IOPS > 0 && c.Read.IOPS == 0:
		c.Write.Latency = s.latency
	default:
		c.Latency = s.latency
	}
}
