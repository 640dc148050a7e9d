package tool

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/tare-bench/tare/internal/instrument/storage"
	"github.com/tare-bench/tare/record"
)

// SysbenchOptions are those that its fileio test prints. What it does not say is
// "" or 0.
type SysbenchOptions struct {
	Mode      string // as --file-test-mode has it: "rndrw"
	Threads   int
	Files     int
	TotalSize int64 // bytes of all files, as printed: rounded
	BlockSize int64 // bytes
	Requests  int64 // that were asked for, 0: by time
	Direct    bool
}

// sysbenchDoing are its words for its modes.
var sysbenchDoing = map[string]string{
	"sequential write (creation)": "seqwr", "sequential rewrite": "seqrewr", "sequential read": "seqrd",
	"random read": "rndrd", "random write": "rndwr", "random r/w": "rndrw",
}

// sysbenchSyncs say when it syncs, besides after so many writes.
var sysbenchSyncs = map[string]string{
	"Calling fsync() at the end of test, Enabled.": "sync end",
	"Calling fsync() after each write operation.":  "sync each",
}

// What sysbench prints. 0.4 and 0.5 call KiB, MiB and GiB Kb, Mb and Gb; they are
// bytes, and powers of 1024, in all versions.
var (
	sbVersion  = storage.Pattern(`^sysbench v?([0-9][0-9A-Za-z.-]{0,30})(?:[: ]|$)`)
	sbThreads  = storage.Pattern(`^Number of threads: ([0-9]{1,9})$`)
	sbFlags    = storage.Pattern(`^Extra file open flags: (.{1,60})$`)
	sbEach     = storage.Pattern(`^([0-9]{1,9}) files, ([0-9.]{1,12}[KMGT]?i?[Bb]) each$`)
	sbTotal    = storage.Pattern(`^([0-9.]{1,12}[KMGT]?i?[Bb]) total file size$`)
	sbBlock    = storage.Pattern(`^Block size ([0-9.]{1,12}[KMGT]?i?[Bb])$`)
	sbRequests = storage.Pattern(`^Number of (?:IO requests|random requests for random IO): ([0-9]{1,18})$`)
	sbDoing    = storage.Pattern(`^Doing (.{1,40}) test$`)

	sbOperations = storage.Pattern(`^Operations performed: +([0-9]{1,18}) [Rr]eads?, ([0-9]{1,18}) [Ww]rites?, ([0-9]{1,18}) Other = ([0-9]{1,18}) Total$`)
	sbMoved      = storage.Pattern(`^Read ([0-9.]{1,18}[KMGT]?b) +Written ([0-9.]{1,18}[KMGT]?b) +Total transferred ([0-9.]{1,18}[KMGT]?b) +\(([0-9.]{1,18}[KMGT]?b)/sec\)$`)
	sbExecuted   = storage.Pattern(`^([0-9.]{1,20}) Requests/sec executed$`)

	sbRate       = storage.Pattern(`^(reads|writes|fsyncs)/s: +([0-9.]{1,20})$`)
	sbThroughput = storage.Pattern(`^(read|written), MiB/s: +([0-9.]{1,20})$`)
	sbIOPS       = storage.Pattern(`^(read|write): +IOPS=([0-9.]{1,20}) ([0-9.]{1,20}) MiB/s \([0-9.]{1,20} MB/s\)$`)
	sbFsync      = storage.Pattern(`^fsync: +IOPS=([0-9.]{1,20})$`)

	sbTime    = storage.Pattern(`^(?:total time|time elapsed): +([0-9.]{1,20})s$`)
	sbEvents  = storage.Pattern(`^total number of events: +([0-9]{1,18})$`)
	sbLatency = storage.Pattern(`^(?:approx\. +)?(min|avg|max|[0-9]{1,3})(?:th)?( percentile)?: +([0-9.]{1,20})(?:ms)?$`)
)

// sysbenchText is what is found in it. Of figures that are not there the count in
// said is missing.
type sysbenchText struct {
	version string
	options SysbenchOptions
	said    map[string]bool

	reads, writes, other, total     int64   // 0.4, 0.5
	moved                           float64 // bytes of all
	bandwidth                       float64 // bytes/s of all
	rate                            float64 // requests/s
	readRate, writeRate, otherRate  float64 // 1.0
	readBandwidth, writtenBandwidth float64 // bytes/s

	seconds float64
	events  int64
	latency record.Latency
}

// ParseSysbench reads the output of "sysbench fileio run", of 0.4, 0.5, 1.0 and of
// what comes after it.
//
// A direction's bytes are its requests times the block size; what sysbench prints
// in MiB is rounded, and is compared. 1.0 counts no requests by direction, but
// their rates; the time that it divides by is that between its counts, which it
// does not print: the rates and the number of events tell it, where that
// lies within its total time. Else requests and bytes are 0.
//
// Latencies are of all requests together, so only those of a job that went one
// way, and did not sync in between, are one direction's. Version is "1.0.20".
func ParseSysbench(text string) (c record.Reported, o SysbenchOptions, version string, err error) {
	if len(text) > maxText {
		return c, o, "", fmt.Errorf("it is %d bytes long: at most %d are read", len(text), maxText)
	}
	s := sysbenchText{said: map[string]bool{}}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "FATAL:") {
			return c, o, "", fmt.Errorf("sysbench gave up: %.200q", line)
		}
		if len(line) > 200 {
			continue
		}
		if err := s.take(line); err != nil {
			return c, o, "", fmt.Errorf("%.100q: %w", line, err)
		}
	}
	if c, err = s.claim(); err != nil {
		return record.Reported{}, o, "", err
	}
	return c, s.options, s.version, nil
}

// take reads one line. The first of a kind in the output of one run is the only
// one; a second one is of another run.
func (s *sysbenchText) take(line string) error {
	if s.takeHead(line) {
		return nil
	}
	if kind := sysbenchSyncs[line]; kind != "" {
		s.said[kind] = true
		return nil
	}
	for _, one := range []struct {
		kind  string
		form  *regexp.Regexp
		parse func(m []string) error
	}{
		{"operations", sbOperations(), func(m []string) error {
			return errors.Join(integer(m[1], &s.reads), integer(m[2], &s.writes), integer(m[3], &s.other), integer(m[4], &s.total))
		}},
		{"moved", sbMoved(), func(m []string) error { return errors.Join(size(m[3], &s.moved), size(m[4], &s.bandwidth)) }},
		{"executed", sbExecuted(), func(m []string) error { return figure(m[1], 1, &s.rate) }},
		{"time", sbTime(), func(m []string) error { return figure(m[1], 1, &s.seconds) }},
		{"events", sbEvents(), func(m []string) error { return integer(m[1], &s.events) }},
	} {
		if m := one.form.FindStringSubmatch(line); m != nil {
			return s.once(one.kind, func() error { return one.parse(m) })
		}
	}
	if m := sbRate().FindStringSubmatch(line); m != nil {
		to := map[string]*float64{"reads": &s.readRate, "writes": &s.writeRate, "fsyncs": &s.otherRate}[m[1]]
		return s.once(m[1]+"/s", func() error { return figure(m[2], 1, to) })
	}
	if m := sbThroughput().FindStringSubmatch(line); m != nil {
		to := map[string]*float64{"read": &s.readBandwidth, "written": &s.writtenBandwidth}[m[1]]
		return s.once(m[1]+" MiB/s", func() error { return figure(m[2], 1<<20, to) })
	}
	if m := sbIOPS().FindStringSubmatch(line); m != nil {
		rate, moved, word := &s.readRate, &s.readBandwidth, "read"
		if m[1] == "write" {
			rate, moved, word = &s.writeRate, &s.writtenBandwidth, "written"
		}
		return errors.Join(s.once(m[1]+"s/s", func() error { return figure(m[2], 1, rate) }),
			s.once(word+" MiB/s", func() error { return figure(m[3], 1<<20, moved) }))
	}
	if m := sbFsync().FindStringSubmatch(line); m != nil {
		return s.once("fsyncs/s", func() error { return figure(m[1], 1, &s.otherRate) })
	}
	if m := sbLatency().FindStringSubmatch(line); m != nil {
		return s.once("latency "+m[1], func() error { return s.takeLatency(m[1], m[3]) })
	}
	return nil
}

func (s *sysbenchText) once(kind string, parse func() error) error {
	if s.said[kind] {
		return errors.New("it says this twice: give one run at a time")
	}
	s.said[kind] = true
	return parse()
}

// takeHead reads what a run begins with.
func (s *sysbenchText) takeHead(line string) bool {
	o := &s.options
	if m := sbVersion().FindStringSubmatch(line); m != nil && s.version == "" {
		s.version = m[1]
	} else if m := sbThreads().FindStringSubmatch(line); m != nil {
		o.Threads = numberOrNone(m[1])
	} else if m := sbFlags().FindStringSubmatch(line); m != nil {
		o.Direct = s.direct(m[1])
	} else if m := sbEach().FindStringSubmatch(line); m != nil {
		o.Files = numberOrNone(m[1])
	} else if m := sbTotal().FindStringSubmatch(line); m != nil {
		o.TotalSize = rounded(m[1])
	} else if m := sbBlock().FindStringSubmatch(line); m != nil {
		o.BlockSize = rounded(m[1])
	} else if m := sbRequests().FindStringSubmatch(line); m != nil {
		o.Requests, _ = strconv.ParseInt(m[1], 10, 64)
	} else if strings.HasPrefix(line, "Periodic FSYNC enabled") {
		s.said["sync between"] = true
	} else if m := sbDoing().FindStringSubmatch(line); m != nil {
		o.Mode = sysbenchDoing[m[1]]
	} else {
		return false
	}
	return true
}

// direct reads the flags: words in 1.0, a number of its own in 0.5, of which 3 is
// direct, and the bits of open(2) in 0.4, O_DIRECT of x86 and of ARM.
func (s *sysbenchText) direct(flags string) bool {
	n, err := strconv.ParseInt(flags, 0, 64)
	if err != nil {
		return strings.Contains(flags, "direct")
	}
	return strings.HasPrefix(s.version, "0.5") && n == 3 || n&(0o40000|0o200000) != 0
}

func (s *sysbenchText) takeLatency(which, value string) error {
	var ns float64
	if err := figure(value, 1e6, &ns); err != nil {
		return err
	}
	if !within(ns, maxLatency) {
		return errors.New("a latency cannot be so long")
	}
	// Others are not asked for by anybody.
	to := map[string]*int64{
		"min": &s.latency.Min, "avg": &s.latency.Mean, "max": &s.latency.Max, "50": &s.latency.P50, "95": &s.latency.P95, "99": &s.latency.P99,
	}[which]
	if to != nil {
		*to = int64(math.Round(ns))
	}
	return nil
}

// integer, figure and size read numbers that the patterns have let through.
func integer(text string, to *int64) error {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n > maxIOs {
		return fmt.Errorf("%.40q is too much", text)
	}
	*to = n
	return nil
}

func figure(text string, unit float64, to *float64) error {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || !within(v*unit, maxLatency) {
		return fmt.Errorf("%.40q is no number, or too much", text)
	}
	*to = v * unit
	return nil
}

func size(text string, to *float64) error {
	number := strings.TrimRight(text, "KMGTibB")
	unit, power := text[len(number):], 0
	if unit != "" {
		power = strings.Index("KMGT", unit[:1]) + 1
	}
	return figure(number, math.Pow(1024, float64(power)), to)
}

// rounded is a size of the head, in bytes.
func rounded(text string) int64 {
	var v float64
	if err := size(text, &v); err != nil || v > maxBytes {
		return 0
	}
	return int64(math.Round(v))
}
