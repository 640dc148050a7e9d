package notes

import (
	"strconv"
	"strings"

	"github.com/tare-bench/tare/internal/plan"
	"github.com/tare-bench/tare/record"
)

// The fields of fio's terse line for one direction (fio(1), "Terse output"):
// KiB, KiB/s, IOPS, ms, 4 of submission, 4 of completion, 20 quantiles, 4 of
// total latency, and 5 of bandwidth, which version 5 has 6 more of. Latencies are
// in µs.
const (
	terseFlow  = 41
	terseFlow5 = 47
)

// terseLine reads a line of --minimal, of version 2 to 5. The second has no
// field with fio's own version.
func (s *scanner) terseLine(l line) bool {
	if len(l.text) < 2 || l.text[0] < '2' || l.text[0] > '5' || l.text[1] != ';' {
		return false
	}
	fields := strings.Split(l.text, ";")
	if len(fields) < 40 {
		return false
	}
	head, stride := 5, terseFlow
	switch fields[0] {
	case "2":
		head = 4
	case "5":
		stride = terseFlow5
	}
	if head == 5 && !strings.HasPrefix(fields[1], "fio") {
		return false
	}
	if len(fields) < head+2*stride || !strings.Contains(fields[head+12], "%=") || !strings.Contains(fields[head+stride+12], "%=") {
		s.unread(l.number, "a terse line of fio's with other fields than its version has")
		return true
	}
	r := Result{Line: l.number, Job: plan.Job{Tool: plan.ToolFio, Name: fields[head-3]}}
	if head == 5 {
		r.Version = fields[1]
	}
	read, took, ok := terseOf(fields[head : head+stride])
	write, also, fits := terseOf(fields[head+stride : head+2*stride])
	if !ok || !fits {
		s.unread(l.number, "a terse line of fio's with a field that is no number")
		return true
	}
	r.Claim = record.Claim{Read: read, Write: write, Seconds: max(took, also)}
	if fields[head-1] != "0" {
		r.Failure = "fio ended with error " + fields[head-1]
	}
	s.flushFio()
	s.fio.told = true
	if c, ok := s.command(func(c command) bool {
		return c.job.Tool == plan.ToolFio && directions(c.job.RW, read.Bytes > 0, write.Bytes > 0)
	}); ok {
		r = r.of(c)
	}
	if said, ok := s.fio.descriptions[r.Job.Name]; ok {
		r.Job = filled(r.Job, said)
	}
	s.add(r)
	return true
}

func terseOf(fields []string) (f record.Flow, seconds float64, ok bool) {
	var n [16]float64
	for i := range 12 {
		v, err := strconv.ParseFloat(fields[i], 64)
		if err != nil || !(v >= 0 && v < most/1024) {
			return f, 0, false
		}
		n[i] = v
	}
	f.Bytes, f.Bandwidth, f.IOPS = int64(n[0])*1024, n[1]*1024, n[2]
	f.Latency.Max, f.Latency.Mean = spanOf(n[9]*1000), spanOf(n[10]*1000)
	for _, field := range fields[12:32] {
		percent, value, _ := strings.Cut(field, "%=")
		v, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return f, 0, false
		}
		switch percent {
		case "50.000000":
			f.Latency.P50 = spanOf(v * 1000)
		case "95.000000":
			f.Latency.P95 = spanOf(v * 1000)
		case "99.000000":
			f.Latency.P99 = spanOf(v * 1000)
		case "99.900000":
			f.Latency.P999 = spanOf(v * 1000)
		}
	}
	return f, n[3] / 1000, true
}
