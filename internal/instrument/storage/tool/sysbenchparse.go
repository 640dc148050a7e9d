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

// sysbenchDoing maps sysbench's descriptions to I/O patterns.
var sysbenchDoing = map[string]string{
	"sequential write (creation)": storage.RWWrite, "sequential rewrite": storage.RWWrite, "sequential read": storage.RWRead,
	"random read": storage.RWRandRead, "random write": storage.RWRandWrite, "random r/w": storage.RWRandRW,
}

// sysbenchSyncs are the lines about syncs at the end of the test or after each write.
// Syncs after a number of writes have other lines.
var sysbenchSyncs = map[string]string{
	"Calling fsync() at the end of test, Enabled.": "sync end",
	"Calling fsync() after each write operation.":  "sync each",
}

// sbForms are the lines with figures that sysbench prints, and names for the figures. 0.4
// and 0.5 write Kb, Mb and Gb for KiB, MiB and GiB. In all versions these are bytes, in
// powers of 1024.
var sbForms = []struct {
	form  func() *regexp.Regexp
	kinds []string
}{
	{sbForm(`Number of threads: {n}`), []string{"threads"}},
	{sbForm(`{n} files, [0-9.]{1,18}[KMGT]?i?[Bb] each`), []string{"files"}},
	{sbForm(`{size} total file size`), []string{"size"}},
	{sbForm(`Block size {size}`), []string{"block"}},
	{sbForm(`Number of (?:IO requests|random requests for random IO): {n}`), []string{"requests"}},
	// 0.4, 0.5
	{sbForm(`Operations performed: +{n} [Rr]eads?, {n} [Ww]rites?, {n} Other = {n} Total`), []string{"reads", "writes", "other", "operations"}},
	{sbForm(`Read [^ ]{1,24} +Written [^ ]{1,24} +Total transferred {size} +\({size}/sec\)`), []string{"moved", "moved/s"}},
	{sbForm(`{n} Requests/sec executed`), []string{"executed"}},
	// later than 1.0
	{sbForm(`read: +IOPS={n} {n} MiB/s \([0-9.]{1,20} MB/s\)`), []string{"reads/s", "read, MiB/s"}},
	{sbForm(`write: +IOPS={n} {n} MiB/s \([0-9.]{1,20} MB/s\)`), []string{"writes/s", "written, MiB/s"}},
	{sbFsync, []string{"fsyncs/s"}},

	{sbForm(`(?:total time|time elapsed): +{n}s`), []string{"time"}},
	{sbForm(`total number of events: +{n}`), []string{"events"}},
}

// sbForm compiles a pattern of a line with numbers, {n}, and sizes, {size}.
func sbForm(form string) func() *regexp.Regexp {
	return storage.Pattern("^" + strings.NewReplacer("{n}", `([0-9.]{1,20})`, "{size}", `([0-9.]{1,18}[KMGT]?i?[Bb])`).Replace(form) + "$")
}

var (
	sbVersion = storage.Pattern(`^sysbench v?([0-9][0-9A-Za-z.-]{0,30})(?:[: ]|$)`)
	sbFlags   = storage.Pattern(`^Extra file open flags: (.{1,60})$`)
	sbDoing   = storage.Pattern(`^Doing (.{1,40}) test$`)
	sbFsync   = sbForm(`fsync: +IOPS={n}`)
	// sbNamed captures the name of a figure and its value: rates of 1.0, and latencies in
	// ms.
	sbNamed   = sbForm(`(?:(reads/s|writes/s|fsyncs/s|read, MiB/s|written, MiB/s|min|avg|max|sum)|(?:approx\. +)?(50|95|99)(?:th)? percentile): +{n}(?:ms)?`)
	sbBin     = storage.Pattern(`^([0-9.]{1,20}) \|\** +([0-9]{1,18})$`)
	sbWritten = storage.Pattern(`^([0-9]{1,18}) bytes written in ([0-9.]{1,20}) seconds \(([0-9.]{1,20}) Mi?[Bb]/sec\)\.?$`)
)

// parsePrepared parses the last line of sysbench prepare. 0.4 and 0.5 write MB for MiB.
func parsePrepared(m []string) (output, error) {
	o := output{Job: storage.Job{Tool: storage.ToolSysbench, RW: storage.RWWrite}, Prepare: true}
	var said [3]float64
	for i := range said {
		var err error
		if said[i], err = sbNumber(m[i+1]); err != nil {
			return o, err
		}
	}
	bytes, seconds, rate := said[0], said[1], said[2]*(1<<20)
	switch {
	case bytes == 0 || seconds == 0 || seconds > maxRuntime/1000:
		return o, fmt.Errorf("%s bytes in %s s cannot be measured", m[1], m[2])
	case !near(rate, bytes/seconds, 0.01, 0.01*(1<<20)):
		return o, fmt.Errorf("%s bytes in %s s are not %s MiB/s: it contradicts itself", m[1], m[2], m[3])
	}
	o.Job.Size = int64(bytes)
	o.Claim = record.Reported{Seconds: seconds, Write: record.Flow{Bytes: o.Job.Size, Bandwidth: bytes / seconds}}
	return o, nil
}

// sysbenchText is the content of a report: figures by the names of sbForms, and syncs.
type sysbenchText struct {
	out  output
	said map[string]float64
	bins []sbCount // from --histogram, ascending
}

// sbCount is the number of requests with about the latency value, in ms.
type sbCount struct{ value, count float64 }

func (s *sysbenchText) has(kind string) bool { _, there := s.said[kind]; return there }

// parseSysbench parses the output of "sysbench fileio run" of 0.4, 0.5, 1.0 and later.
//
// A direction's bytes are its requests times the block size. The MiB that sysbench prints
// are rounded, and serve as a check. 1.0 prints rates by direction instead of counts. It
// does not print the interval of these rates, which follows from the rates and the number
// of events. If that is not close to the total time, requests and bytes are 0.
//
// Latencies cover all requests. They belong to a direction only if the job had one
// direction and no syncs in between.
func parseSysbench(text string) (output, error) {
	s := sysbenchText{out: output{Job: storage.Job{Tool: storage.ToolSysbench}, Cache: record.CacheBuffered}, said: map[string]float64{}}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "FATAL:") {
			return output{}, fmt.Errorf("sysbench gave up: %.200q", line)
		}
		if len(line) > 200 {
			continue
		}
		if err := s.take(line); err != nil {
			return output{}, fmt.Errorf("%.100q: %w", line, err)
		}
	}
	j := &s.out.Job
	for kind, to := range map[string]*int64{"size": &j.Size, "block": &j.BS, "requests": &j.Requests} {
		*to = int64(math.Round(min(s.said[kind], maxBytes)))
	}
	j.NumJobs, j.Files = int(min(s.said["threads"], 1<<30)), int(min(s.said["files"], 1<<30))
	var err error
	s.out.Claim, err = s.claim()
	return s.out, err
}

// take parses one line. A second line of the same kind belongs to another run and is an
// error.
func (s *sysbenchText) take(line string) error {
	if m := sbVersion().FindStringSubmatch(line); m != nil && s.out.Version == "" {
		s.out.Version = "sysbench " + m[1]
	} else if m := sbFlags().FindStringSubmatch(line); m != nil {
		s.out.Cache = cacheOf[s.direct(m[1])]
	} else if m := sbDoing().FindStringSubmatch(line); m != nil {
		s.out.Job.RW = sysbenchDoing[m[1]]
	} else if kind := sysbenchSyncs[line]; kind != "" {
		s.said[kind] = 1
	} else if strings.HasPrefix(line, "Periodic FSYNC enabled") {
		s.said["sync between"] = 1
	} else if m := sbBin().FindStringSubmatch(line); m != nil {
		return s.bin(m)
	}
	if m := sbNamed().FindStringSubmatch(line); m != nil {
		return s.say(m[1]+m[2], m[3])
	}
	for _, f := range sbForms {
		m := f.form().FindStringSubmatch(line)
		for i := 1; i < len(m); i++ {
			if err := s.say(f.kinds[i-1], m[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *sysbenchText) say(kind, number string) error {
	v, err := sbNumber(number)
	if err == nil && s.has(kind) {
		err = errors.New("it reports this twice: pass one run at a time")
	}
	s.said[kind] = v
	return err
}

// bin parses a line of the histogram.
func (s *sysbenchText) bin(m []string) error {
	value, err := sbNumber(m[1])
	count, err2 := sbNumber(m[2])
	if err = errors.Join(err, err2); err == nil && len(s.bins) > 0 && value < s.bins[len(s.bins)-1].value {
		err = errors.New("its histogram is not ascending: pass one run at a time")
	}
	s.bins = append(s.bins, sbCount{value, count})
	return err
}

// quantile computes a quantile of the histogram as sysbench does, in ms; 0 without one.
func (s *sysbenchText) quantile(q float64) float64 {
	all := 0.0
	for _, b := range s.bins {
		all += b.count
	}
	sofar, at := 0.0, math.Floor(all*q+0.5)
	for _, b := range s.bins {
		if sofar += b.count; sofar >= at && sofar > 0 {
			return b.value
		}
	}
	return 0
}

// direct reports whether the flags mean direct I/O. 1.0 prints words. 0.5 prints its own
// numbers, with 3 for direct. 0.4 prints the flags of open(2), with O_DIRECT of x86 or
// ARM.
func (s *sysbenchText) direct(flags string) bool {
	n, err := strconv.ParseInt(flags, 0, 64)
	if err != nil {
		return strings.Contains(flags, "direct")
	}
	return strings.HasPrefix(s.out.Version, "sysbench 0.5") && n == 3 || n&(0o40000|0o200000) != 0
}

// sbNumber parses a number, or a size in bytes, that matched a form.
func sbNumber(text string) (float64, error) {
	v, err := amount(strings.TrimRight(text, "bB"), 1024)
	if err != nil || v > maxBytes {
		return 0, fmt.Errorf("%.40q is not a number, or too large", text)
	}
	return v, nil
}
