package tool

import (
	"errors"
	"fmt"
	"math"
	"path"
	"strconv"

	"github.com/tare-bench/tare/internal/instrument/storage"
	"github.com/tare-bench/tare/record"
)

// sysbenchModes maps I/O patterns to sysbench's modes. The files exist already, so a
// sequential write overwrites them, as with fio.
var sysbenchModes = map[string]string{
	storage.RWRead: "seqrd", storage.RWWrite: "seqrewr",
	storage.RWRandRead: "rndrd", storage.RWRandWrite: "rndwr", storage.RWRandRW: "rndrw",
}

// sysbenchCommand returns a command of sysbench 1.0. sysbench has no option for the
// directory of its files; it uses the working directory.
func sysbenchCommand(j storage.Job, at Place) ([]string, error) {
	files, err := sysbenchFiles(j, at)
	if err != nil {
		return nil, err
	}
	limit := shorter(j.Runtime, at.Limit)
	if limit <= 0 && j.Requests <= 0 {
		return nil, fmt.Errorf("job %q would never end: it has no requests, no runtime and no limit", j.Name)
	}
	// sysbench accepts only whole seconds, and 0 means no limit.
	args := []string{at.Program, "fileio",
		option("file-total-size", files[0].Size*int64(len(files))), option("file-num", len(files)),
		option("file-test-mode", sysbenchModes[j.RW]), option("file-block-size", j.BS),
		option("threads", max(j.NumJobs, 1)), option("events", max(j.Requests, 0)), option("time", int64(math.Ceil(limit.Seconds()))),
		option("file-fsync-freq", j.Fsync), "--percentile=95", "--histogram=on", "--rand-seed=1", // the same requests everywhere
	}
	if at.Direct {
		args = append(args, "--file-extra-flags=direct")
	}
	return at.In(at.Dir, append(args, "run")...), nil
}

// sysbenchFiles returns the files that sysbench prepare would create, in whole blocks.
// Otherwise the last requests go beyond the end of a file.
func sysbenchFiles(j storage.Job, at Place) ([]File, error) {
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

// claim returns the result if the text is complete and consistent.
func (s *sysbenchText) claim() (c record.Reported, err error) {
	if !s.has("time") && s.has("sum") && s.said["threads"] > 0 { // 1.1 prints no time; each thread always has a request in flight
		s.said["time"] = s.said["sum"] / 1000 / s.said["threads"]
	}
	c.Seconds = s.said["time"]
	switch {
	case !s.has("time"):
		return c, errors.New("the total time is missing: truncated, or not a result of sysbench fileio")
	case c.Seconds <= 0 || c.Seconds > maxRuntime/1000:
		return c, fmt.Errorf("it ran for %g s, which cannot be measured", c.Seconds)
	case s.out.Job.BS <= 0:
		return c, errors.New("the block size is missing")
	}
	if s.has("operations") {
		err = s.counted(&c)
	} else {
		err = s.rated(&c)
	}
	if err != nil {
		return c, err
	}
	for _, f := range []record.Flow{c.Read, c.Write} {
		if f.Bytes > maxBytes || !within(f.Bandwidth, maxBandwidth) || !within(f.IOPS, maxIOPS) {
			return c, fmt.Errorf("%d bytes, %g bytes/s and %g IOPS cannot be", f.Bytes, f.Bandwidth, f.IOPS)
		}
	}
	if c.Read.Bandwidth == 0 && c.Write.Bandwidth == 0 {
		return c, errors.New("it neither read nor wrote anything")
	}
	s.giveLatency(&c)
	return c, nil
}

// counted evaluates reports of 0.4 and 0.5, with counts by direction and one rate.
func (s *sysbenchText) counted(c *record.Reported) error {
	all := s.said["reads"] + s.said["writes"]
	if all+s.said["other"] != s.said["operations"] {
		return fmt.Errorf("%.0f reads and writes and %.0f others are not %.0f: it contradicts itself", all, s.said["other"], s.said["operations"])
	}
	for kind, to := range map[string]*record.Flow{"reads": &c.Read, "writes": &c.Write} {
		if err := s.requests(to, s.said[kind]); err != nil {
			return err
		}
		to.Bandwidth, to.IOPS = float64(to.Bytes)/c.Seconds, s.said[kind]/c.Seconds
	}
	bytes := float64(c.Read.Bytes) + float64(c.Write.Bytes)
	switch {
	case s.has("moved") && !near(s.said["moved"], bytes, 0.01, 1<<10):
		return fmt.Errorf("%.0f requests of %d bytes are not %.0f bytes, in powers of 1024: it contradicts itself", all, s.out.Job.BS, s.said["moved"])
	case s.has("moved") && !s.agree(s.said["moved/s"], bytes/c.Seconds):
		return fmt.Errorf("%.0f bytes in %g s are not %.0f bytes/s: it contradicts itself", bytes, c.Seconds, s.said["moved/s"])
	case s.has("executed") && !s.agree(s.said["executed"], all/c.Seconds):
		return fmt.Errorf("%.0f requests in %g s are not %g a second: it contradicts itself", all, c.Seconds, s.said["executed"])
	}
	return nil
}

// requests sets the requests of a direction and their bytes.
func (s *sysbenchText) requests(to *record.Flow, n float64) error {
	if block := s.out.Job.BS; !within(n, float64(maxBytes/block)) {
		return fmt.Errorf("%g requests of %d bytes cannot be", n, block)
	}
	to.IOs = int64(math.Round(n))
	to.Bytes = to.IOs * s.out.Job.BS
	return nil
}

// agree reports whether a printed and a computed rate agree. It tolerates that the total
// time has only four decimals and is measured slightly later than the rate.
func (s *sysbenchText) agree(printed, computed float64) bool {
	return near(printed, computed, 0.05+0.0005/s.said["time"], 0.02)
}

// rated evaluates reports of 1.0, with rates by direction.
func (s *sysbenchText) rated(c *record.Reported) error {
	took, block := s.interval(), float64(s.out.Job.BS)
	for _, side := range []struct {
		to                *record.Flow
		requests, amounts string
	}{{&c.Read, "reads/s", "read, MiB/s"}, {&c.Write, "writes/s", "written, MiB/s"}} {
		for _, kind := range []string{side.requests, side.amounts} {
			if !s.has(kind) {
				return fmt.Errorf("%s is missing: truncated, or not a result of sysbench fileio", kind)
			}
		}
		rate, moved := s.said[side.requests], s.said[side.amounts]*(1<<20)
		// Both values have two decimals, and blocks at the end of a file may be short.
		if !near(moved, rate*block, 0.01, 0.01*(1<<20)+0.01*block) {
			return fmt.Errorf("%g requests a second of %.0f bytes are not %.2f MiB/s: it contradicts itself", rate, block, moved/(1<<20))
		}
		*side.to = record.Flow{IOPS: rate, Bandwidth: rate * block}
		if err := s.requests(side.to, rate*took); err != nil {
			return err
		}
	}
	return nil
}

// interval returns the time that the rates were divided by, or 0 if unknown. It follows
// from the number of events: reads, writes and the syncs in between. Syncs at the end, of
// every file by every thread, count as syncs but not as events. The interval is close to
// the total time. It is far shorter if threads waited for a CPU before they began. It is
// slightly longer if the counting thread had to wait at the end.
func (s *sysbenchText) interval() float64 {
	events, rate := s.said["events"], s.said["reads/s"]+s.said["writes/s"]+s.said["fsyncs/s"]
	all := s.said["threads"] * s.said["files"]
	switch {
	case s.has("sync each") && s.has("sync between"):
		return 0 // events of the syncs in between do nothing
	case s.has("sync each"):
		rate -= s.said["fsyncs/s"]
	case s.has("sync end") && s.said["writes/s"] > 0 && all == 0:
		return 0
	case s.has("sync end") && s.said["writes/s"] > 0:
		events += all
	}
	if took := events / rate; rate > 0 && took <= 2*s.said["time"]+0.1 {
		return took
	}
	return 0
}

// giveLatency assigns the latency to the only direction, or to all requests. With syncs
// in between it is left out, since they count as requests, too.
func (s *sysbenchText) giveLatency(c *record.Reported) {
	ns := func(kind string) int64 { return nanoseconds(s.said[kind], 1e6) }
	l := record.Latency{Min: ns("min"), Mean: ns("avg"), P50: ns("50"), P95: ns("95"), P99: ns("99"), Max: ns("max")}
	for q, to := range map[float64]*int64{0.5: &l.P50, 0.95: &l.P95, 0.99: &l.P99, 0.999: &l.P999} {
		if v := s.quantile(q); v > 0 { // three decimals instead of the two of the printed value
			*to = nanoseconds(v, 1e6)
		}
	}
	switch {
	case s.has("sync between"):
	case c.Read.IOPS > 0 && c.Write.IOPS == 0:
		c.Read.Latency = l
	case c.Write.IOPS > 0 && c.Read.IOPS == 0:
		c.Write.Latency = l
	default:
		c.Latency = l
	}
}
