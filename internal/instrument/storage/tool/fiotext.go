package tool

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/tare-bench/tare/internal/instrument/storage"
	"github.com/tare-bench/tare/record"
)

// Patterns of fio's text output. Up to 2.16, "KB" and "MB" are powers of 1024. Later
// versions use both kinds of units correctly.
var (
	fioBanner = storage.Pattern(`^fio[- ](\d+\.\d+[\w.-]{0,40})$`)
	// "mix: (g=0): rw=randrw, bs=(R) 4096B-4096B, …, ioengine=psync, iodepth=1"
	fioDescription = storage.Pattern(`^(\S.{0,120}?): \(g=\d+\): rw=(\w+), bs=(?:\([RWT]\) )?([\d.]+[KMG]?)i?B?-([\d.]+[KMG]?)i?B?[,/ ].*ioengine=([\w-]{1,40}), iodepth=(\d{1,9})`)
	// "mix: (groupid=0, jobs=8): err= 0: pid=…"
	fioHead = storage.Pattern(`^(.{0,120}?): \(groupid=(\d{1,9}), jobs=(\d{1,9})\): err=\s*(-?\d{1,9})`)
	// "read : io=8192.0MB, bw=4300.3MB/s, iops=8600, runt=  1905msec"
	fio2Flow = storage.Pattern(`\b(read|write)\s*:\s*io=\s*([\d.]{1,20})([KMGTP]?i?)B?, *bw=\s*([\d.]{1,20})([KMGTP]?i?)(B|b|bit)?/s, *iops=\s*([\d.]{1,20})([kKMG]?)\s*, *runt=\s*(\d{1,15})\s*msec`)
	// "read: IOPS=647, BW=324MiB/s (340MB/s)(8192MiB/25285msec)", of all clients "BW=235Mi (246M)(469MiB/2001msec)"
	fio3Flow = storage.Pattern(`\b(read|write):\s*IOPS=([\d.]{1,20})([kKMG]?), *BW=([\d.]{1,20})([kKMGTP]?i?)(?:(B|b|bit)/s)?(?:\s*\([^)/]{1,30}(?:/s)?\))?\s*\(([\d.]{1,20})([kKMGTP]?i?)B/(\d{1,15})msec\)`)
	fioCut   = storage.Pattern(`\b(?:read|write)\s*: *(?:io=.*bw=|IOPS=.*BW=)`)
	// "clat (usec): min=68, max=20135, avg=890.93, stdev=1048.53"
	fioSpread    = storage.Pattern(`^(clat|lat) \(([num]sec)\)\s*:\s*min=\s*([\d.]{1,20}[kKMG]?), max=\s*([\d.]{1,20}[kKMG]?), avg=\s*([\d.]{1,20}[kKMG]?),`)
	fioQuantiles = storage.Pattern(`^(clat|lat) percentiles \(([num]sec)\)`)
	// "99.90th=[ 1221]", with more decimals if --percentile_list needs them
	fioPercentile = storage.Pattern(`(?:^|[\s,|])(50|95|99|99\.9)(?:\.0{1,6}|0{1,6})?th=\[\s*(\d{1,18})\]`)
	// "issued rwts: total=1982,2114,0,0 short=…", "issued    : total=r=16384/w=0/d=0, short=…"
	fioIssued = storage.Pattern(`^issued\s*(?:rwts?|r/w/d)?\s*: total=(?:r=)?(\d{1,18})[,/](?:w=)?(\d{1,18})`)
)

// roundedText is the relative tolerance between figures of three digits.
const roundedText = 0.05

// fioText is the state of parsing fio's text.
type fioText struct {
	version   string
	described map[string]storage.Job
	run       *fioTextRun
}

// fioTextRun is a run: all jobs of one name and group, which ran concurrently. A line of
// figures without a head is a run of its own.
type fioTextRun struct {
	at          int // its line
	name, group string
	head        bool
	jobs        int
	sides       [2][]flow // reads and writes
	last        *flow     // the flow that the next details belong to
	clat, lat   record.Latency
	quantiles   *record.Latency
	unit        float64 // ns, of the quantiles
	err         error
}

// line parses the current line of the finder.
func (t *fioText) line(f *finder) {
	l := f.Lines[f.at]
	if len(l.Text) > 1000 {
		return
	}
	if m := fioBanner().FindStringSubmatch(l.Text); m != nil {
		f.flush()
		t.version = "fio-" + m[1]
	} else if m := fioDescription().FindStringSubmatch(l.Text); m != nil {
		f.flush()
		t.describe(m)
	} else if m := fioHead().FindStringSubmatch(l.Text); m != nil {
		t.begin(f, m)
	} else if m := fio2Flow().FindStringSubmatch(l.Text); m != nil {
		t.figures(f, m[1], [4]string{m[2] + m[3], m[4] + m[5], m[6], m[7] + m[8]}, m[9], 1024)
	} else if m := fio3Flow().FindStringSubmatch(l.Text); m != nil {
		t.figures(f, m[1], [4]string{m[7] + m[8], m[4] + m[5], m[6], m[2] + m[3]}, m[9], 1000)
	} else if fioCut().MatchString(l.Text) {
		f.flush()
		f.add(output{Line: l.Number, Err: errors.New("a line of fio that is truncated or of an unknown format")})
	} else if strings.HasPrefix(l.Text, "Run status group") {
		f.flush()
	} else if t.run != nil && t.run.last != nil {
		t.run.detail(l.Text)
	}
}

// describe stores fio's description of a job.
func (t *fioText) describe(m []string) {
	j := storage.Job{RW: fioRW(m[2]), Engine: m[5], IODepth: numberOrNone(m[6])}
	if m[3] == m[4] {
		j.BS = sizeOrNone(m[3])
	}
	if len(t.described) >= storage.MaxSections || t.described == nil {
		t.described = map[string]storage.Job{}
	}
	t.described[m[1]] = j
}

// begin parses the line before a job's figures.
func (t *fioText) begin(f *finder, m []string) {
	if r := t.run; r == nil || !r.head || r.name != m[1] || r.group != m[2] {
		f.flush()
		t.run = &fioTextRun{at: f.Lines[f.at].Number, head: true, name: m[1], group: m[2]}
	} else {
		r.settle()
	}
	if m[1] == allClients && len(t.described) == 1 {
		for _, j := range t.described {
			t.described[allClients] = j
		}
	}
	t.run.jobs = min(t.run.jobs+numberOrNone(m[3]), math.MaxInt32)
	if m[4] != "0" {
		t.run.err = fmt.Errorf("fio gave up with error %s", m[4])
	}
}

// figures parses the line of one direction: amount, rate, unit of the rate, and IOPS.
func (t *fioText) figures(f *finder, way string, said [4]string, ms string, base float64) {
	if t.run == nil || !t.run.head {
		f.flush()
		t.run = &fioTextRun{at: f.Lines[f.at].Number}
	}
	r := t.run
	r.settle()
	bytes, err := amount(said[0], base)
	bandwidth, also := amount(said[1], base)
	iops, third := amount(said[3], 1000)
	runtime, fourth := strconv.ParseInt(ms, 10, 64)
	if said[2] == "b" || said[2] == "bit" {
		bandwidth /= 8
	}
	one := flow{runtime: runtime, rounded: [2]float64{lastDigit(said[1], base), lastDigit(said[3], 1000)}}
	if runtime > 0 {
		one.rounded[0] += lastDigit(said[0], base) * 1000 / float64(runtime)
	}
	one.Bytes, one.Bandwidth, one.IOPS = int64(min(bytes, maxBytes+1)), bandwidth, iops
	if err := errors.Join(err, also, third, fourth); err != nil {
		r.err = fmt.Errorf("fio's text: %w", err)
	}
	to := &r.sides[map[string]int{"read": 0, "write": 1}[way]]
	*to = append(*to, one)
	r.last = &(*to)[len(*to)-1]
}

// lastDigit returns the value of one unit in the last digit of a figure. fio can be set to
// print only one digit.
func lastDigit(figure string, base float64) float64 {
	number := strings.TrimRight(figure, "kKMGTPi")
	_, decimals, _ := strings.Cut(number, ".")
	unit, _ := amount("1"+figure[len(number):], base) // the caller handles the error
	return unit * math.Pow10(-len(decimals))
}

// detail parses latencies and counts, which follow the figures of their direction.
func (r *fioTextRun) detail(text string) {
	of := map[string]*record.Latency{"clat": &r.clat, "lat": &r.lat}
	if m := fioQuantiles().FindStringSubmatch(text); m != nil {
		r.quantiles, r.unit = of[m[1]], fioUnits[m[2]]
	} else if strings.HasPrefix(text, "|") && r.quantiles != nil {
		for _, m := range fioPercentile().FindAllStringSubmatch(text, 8) {
			l := r.quantiles
			*map[string]*int64{"50": &l.P50, "95": &l.P95, "99": &l.P99, "99.9": &l.P999}[m[1]] = duration(m[2], r.unit)
		}
	} else if m := fioSpread().FindStringSubmatch(text); m != nil {
		l, unit := of[m[1]], fioUnits[m[2]]
		l.Min, l.Max, l.Mean = duration(m[3], unit), duration(m[4], unit), duration(m[5], unit)
	} else if m := fioIssued().FindStringSubmatch(text); m != nil {
		for i, side := range r.sides {
			if n, err := strconv.ParseInt(m[i+1], 10, 64); err == nil && n <= maxIOs && len(side) > 0 {
				side[len(side)-1].IOs = n
			}
		}
	}
}

// settle sets the latency of the current direction. As in fio's JSON, it is that of whole
// requests if they have quantiles, otherwise that of their completion.
func (r *fioTextRun) settle() {
	if r.last != nil {
		if r.last.Latency = r.clat; r.lat.P50 > 0 || r.clat == (record.Latency{}) {
			r.last.Latency = r.lat
		}
		r.last.mean = float64(r.last.Latency.Mean)
	}
	r.last, r.quantiles, r.clat, r.lat = nil, nil, record.Latency{}, record.Latency{}
}

// flush completes the current run.
func (f *finder) flush() {
	t, r := &f.fio, f.fio.run
	if t.run = nil; r == nil {
		return
	}
	r.settle()
	o := output{Line: r.at, Version: t.version, Err: r.err, Job: t.described[r.name]}
	o.Job.Tool, o.Job.NumJobs = storage.ToolFio, r.jobs
	var err error
	for _, side := range r.sides {
		for i := range side {
			err = errors.Join(err, side[i].check(roundedText))
		}
	}
	if err == nil {
		o.Claim, err = added(r.sides)
	}
	if err != nil && o.Err == nil {
		o.Err = fmt.Errorf("fio's text: %w", err)
	}
	if o.Err == nil && o.Claim.Read.Bytes+o.Claim.Write.Bytes == 0 {
		o.Err = errors.New("a fio job without figures")
	}
	f.add(o)
}

var fioUnits = map[string]float64{"nsec": 1, "usec": 1e3, "msec": 1e6}

// nanoseconds returns 0, for unknown, if v is not a plausible latency.
func nanoseconds(v, unit float64) int64 {
	if !within(v*unit, maxLatency) {
		return 0
	}
	return int64(math.Round(v * unit))
}

func duration(text string, unit float64) int64 {
	v, _ := amount(text, 1000) // 0 is unknown
	return nanoseconds(v, unit)
}

// amount parses a number with a prefix such as "M" or "Mi". An "i" means powers of 1024,
// regardless of base.
func amount(text string, base float64) (float64, error) {
	number := strings.TrimRight(text, "kKMGTPi")
	prefix, binary := strings.CutSuffix(text[len(number):], "i")
	if binary {
		base = 1024
	}
	v, err := strconv.ParseFloat(number, 64)
	if err != nil || len(prefix) > 1 {
		return 0, fmt.Errorf("%.40q is not a number", text)
	}
	if prefix != "" {
		v *= math.Pow(base, float64(strings.Index("KMGTP", strings.ToUpper(prefix))+1))
	}
	if !within(v, maxIOPS*1e6) {
		return 0, fmt.Errorf("%.40q is implausibly large", text)
	}
	return v, nil
}
