package tool

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/tare-bench/tare/record"
)

// maxText is the maximum size of a tool's output, in bytes.
const maxText = 16 << 20

// parseFioJSON parses fio's --output-format=json or json+, of fio 2 and 3. It ignores
// lines before and after. If there are several results, as with --status-interval, the
// last one covers the whole run.
//
// Figures are fio's own, without rounding. Without group_reporting there are several
// jobs. Their bytes and requests are summed and divided by the longest run time, as in
// fio's "Run status group". Their quantiles cannot be combined and are 0.
func parseFioJSON(text string) (output, error) {
	out, err := decodeFio(text)
	if err != nil {
		return output{}, err
	}
	return out.result()
}

// runs returns the results in the JSON: one of all jobs, or with fio --client one per
// host and their sum.
func (out *fioOutput) runs() (all []*fioOutput) {
	if len(out.Jobs) > 0 {
		return []*fioOutput{out}
	}
	for _, j := range out.Clients {
		one := *out
		if one.hosts = 1; j.Name == allClients {
			one.hosts, j.Options = len(out.Clients)-1, out.Clients[0].Options
		}
		one.Jobs = []fioJob{j}
		all = append(all, &one)
	}
	return all
}

// allClients is fio's name for the sum of its clients.
const allClients = "All clients"

// result returns the combined result of all jobs.
func (out *fioOutput) result() (output, error) {
	var sides [2][]flow // reads and writes of each job
	if len(out.Jobs) == 0 {
		return output{}, errors.New("it is of fio --client: import it")
	}
	for i := range out.Jobs {
		j := &out.Jobs[i]
		if err := j.check(&out.Jobs[0]); err != nil {
			return output{}, fmt.Errorf("job %.80q: %w", j.Name, err)
		}
		for way, of := range []*fioFlow{j.Read, j.Write} {
			f, err := of.flow()
			if err != nil {
				return output{}, fmt.Errorf("job %.80q: %s: %w", j.Name, []string{"read", "write"}[way], err)
			}
			sides[way] = append(sides[way], f)
		}
	}
	c, err := added(sides)
	if err != nil {
		return output{}, err
	}
	if c.Read.Bytes == 0 && c.Write.Bytes == 0 {
		return output{}, errors.New("the job neither read nor wrote anything")
	}
	c.Paced, c.CPU = out.paced(), out.cpu()
	job, cache := out.job()
	job.NumJobs *= max(out.hosts, 1)
	o := output{Job: job, Cache: cache, Version: out.Version, Claim: c}
	if out.Time > 0 {
		o.began = out.Time - out.Jobs[0].Elapsed
	}
	return o, nil
}

// fioOutput is the part of the JSON that is used. Early versions of fio 2 lack the
// options. All versions of fio 2 lack bw_bytes and times in ns; they have clat and
// lat in µs.
type fioOutput struct {
	Version string            `json:"fio version"`
	Time    int64             `json:"timestamp"` // s since 1970, of this output
	Global  map[string]string `json:"global options"`
	Jobs    []fioJob          `json:"jobs"`
	Clients []fioJob          `json:"client_stats"` // of fio --client, instead of jobs
	hosts   int
}

type fioJob struct {
	Name    string            `json:"jobname"`
	Group   int64             `json:"groupid"`
	Error   int64             `json:"error"`
	Elapsed int64             `json:"elapsed"` // s since the start of the run
	Options map[string]string `json:"job options"`
	Read    *fioFlow          `json:"read"`
	Write   *fioFlow          `json:"write"`
	Mixed   *fioFlow          `json:"mixed"`
	Runtime int64             `json:"job_runtime"` // ms, sum over all threads
	User    float64           `json:"usr_cpu"`     // percent of Runtime
	System  float64           `json:"sys_cpu"`
}

type fioFlow struct {
	Bytes     int64       `json:"io_bytes"`
	Bandwidth *int64      `json:"bw_bytes"`
	BW        float64     `json:"bw"` // KiB/s
	IOPS      float64     `json:"iops"`
	Runtime   int64       `json:"runtime"` // ms
	IOs       *int64      `json:"total_ios"`
	Total     *fioLatency `json:"lat_ns"`
	Complete  *fioLatency `json:"clat_ns"`
	TotalUS   *fioLatency `json:"lat"`
	CompleteU *fioLatency `json:"clat"`
}

type fioLatency struct {
	Min         float64            `json:"min"`
	Max         float64            `json:"max"`
	Mean        float64            `json:"mean"`
	Percentiles map[string]float64 `json:"percentile"` // by "99.900000"
}

// decodeFio decodes the last of the objects that start at the begin of a line.
func decodeFio(text string) (*fioOutput, error) {
	var found *fioOutput
	for {
		begin := 0
		if !strings.HasPrefix(text, "{") {
			if begin = strings.Index(text, "\n{") + 1; begin == 0 {
				break
			}
		}
		found = &fioOutput{}
		d := json.NewDecoder(strings.NewReader(text[begin:]))
		if err := d.Decode(found); err != nil {
			return nil, fmt.Errorf("it is not fio's JSON, or truncated: %.200s", err.Error())
		}
		text = text[begin+int(d.InputOffset()):]
	}
	switch {
	case found == nil:
		return nil, errors.New("it holds no JSON object")
	case len(found.Jobs)+len(found.Clients) == 0:
		return nil, errors.New("it holds no jobs")
	case !strings.HasPrefix(found.Version, "fio-") || len(found.Version) > 100 || !printable(found.Version):
		return nil, fmt.Errorf("%.40q is not a version of fio", found.Version)
	}
	return found, nil
}

// printable reports whether a text is plain ASCII.
func printable(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' })
}

func (j *fioJob) check(first *fioJob) error {
	switch {
	case j.Error != 0:
		return fmt.Errorf("fio gave up with error %d", j.Error)
	case j.Mixed != nil && j.Read == nil:
		return errors.New("reads and writes are reported together: run it without unified_rw_reporting")
	case j.Read == nil || j.Write == nil:
		return errors.New("reads and writes are missing")
	case j.Group != first.Group:
		return errors.New("it is in another group, which may have run at another time: pass one group at a time")
	}
	return nil
}

// Limits of plausible values. Within them no sum of bytes or times overflows.
const (
	maxBytes     = 1 << 53 // exact in float64
	maxIOs       = 1 << 53
	maxBandwidth = 1e15 // bytes/s
	maxIOPS      = 1e12
	maxRuntime   = 10 * 365 * 24 * 3600 * 1000 // ms
	maxLatency   = float64(maxRuntime) * 1e6   // ns
)

// flow is one direction of one job.
type flow struct {
	record.Flow
	runtime int64 // ms
	mean    float64
	rounded [2]float64 // rounding error of bytes/s and IOPS
}

// flow checks the figures for consistency and returns them.
func (f *fioFlow) flow() (flow, error) {
	if f.Runtime < 0 || f.Runtime > maxRuntime {
		return flow{}, fmt.Errorf("invalid run time of %d ms", f.Runtime)
	}
	out := flow{runtime: f.Runtime}
	out.Bytes, out.IOPS, out.Bandwidth = f.Bytes, f.IOPS, f.BW*1024
	if f.Bandwidth != nil {
		out.Bandwidth = float64(*f.Bandwidth)
	} else if f.Runtime > 0 && float64(f.Bytes)*1000/float64(f.Runtime) < f.BW*32 {
		// Whether io_bytes is in KiB depends on the version of fio 2. The unit that matches
		// the bandwidth is right.
		out.Bytes = min(out.Bytes, maxBytes) << 10
	}
	out.IOs = *cmp.Or(f.IOs, new(int64))
	if err := out.check(0.01); err != nil {
		return flow{}, err
	}
	if out.Bytes == 0 { // failed requests do not count
		return flow{}, nil
	}
	var err error
	out.Latency, out.mean, err = f.latency()
	return out, err
}

// check checks the figures for consistency; part is the relative tolerance for rounding.
func (f *flow) check(part float64) error {
	if f.runtime > 0 { // rates may be rounded to 0
		f.IOPS = cmp.Or(f.IOPS, float64(f.IOs)*1000/float64(f.runtime))
		f.Bandwidth = cmp.Or(f.Bandwidth, float64(f.Bytes)*1000/float64(f.runtime))
	}
	switch {
	case f.Bytes < 0 || f.Bytes > maxBytes || f.IOs < 0 || f.IOs > maxIOs:
		return fmt.Errorf("%d bytes in %d requests cannot be", f.Bytes, f.IOs)
	case !within(f.Bandwidth, maxBandwidth) || !within(f.IOPS, maxIOPS):
		return fmt.Errorf("%g bytes/s and %g IOPS cannot be", f.Bandwidth, f.IOPS)
	case f.Bytes > 0 && f.runtime == 0:
		return errors.New("it took less than a millisecond, so fio reports no bandwidth: make the job larger")
	case f.Bytes > 0 && !near(f.Bandwidth, float64(f.Bytes)*1000/float64(f.runtime), part, max(2048, f.rounded[0])):
		return fmt.Errorf("%d bytes in %d ms are not %g bytes/s: it contradicts itself", f.Bytes, f.runtime, f.Bandwidth)
	case f.IOs > 0 && f.runtime > 0 && !near(f.IOPS, float64(f.IOs)*1000/float64(f.runtime), part, max(1, f.rounded[1])):
		return fmt.Errorf("%d requests in %d ms are not %g IOPS: it contradicts itself", f.IOs, f.runtime, f.IOPS)
	}
	return nil
}

// within reports whether v is between 0 and most.
func within(v, most float64) bool { return v >= 0 && v <= most } // false for NaN

// near reports whether two figures agree within a relative or an absolute tolerance.
func near(a, b, part, amount float64) bool {
	return math.Abs(a-b) <= max(math.Abs(b)*part, amount)
}

// latency returns the latency of whole requests if fio printed its percentiles. Otherwise
// it returns the completion latency, which has percentiles by default. With an engine
// that waits for every request the two are equal.
func (f *fioFlow) latency() (record.Latency, float64, error) {
	var from *fioLatency
	unit := 1.0
	for _, try := range []struct {
		l    *fioLatency
		unit float64
	}{{f.Total, 1}, {f.Complete, 1}, {f.TotalUS, 1000}, {f.CompleteU, 1000}} {
		if try.l != nil && (from == nil || len(from.Percentiles) == 0 && len(try.l.Percentiles) > 0) {
			from, unit = try.l, try.unit
		}
	}
	if from == nil {
		return record.Latency{}, 0, nil
	}
	l := record.Latency{}
	for _, set := range []struct {
		value float64
		to    *int64
	}{
		{from.Min, &l.Min}, {from.Mean, &l.Mean}, {from.Max, &l.Max}, {from.Percentiles["50.000000"], &l.P50}, {from.Percentiles["95.000000"], &l.P95},
		{from.Percentiles["99.000000"], &l.P99}, {from.Percentiles["99.900000"], &l.P999},
	} {
		if !within(set.value*unit, maxLatency) {
			return record.Latency{}, 0, fmt.Errorf("invalid latency of %g ns", set.value*unit)
		}
		*set.to = int64(math.Round(set.value * unit))
	}
	return l, from.Mean * unit, nil
}

// added returns the sum over several jobs, by direction.
func added(sides [2][]flow) (c record.Reported, err error) {
	for way, to := range []*record.Flow{&c.Read, &c.Write} {
		f, err := together(sides[way])
		if err != nil {
			return c, err
		}
		*to, c.Seconds = f.Flow, max(c.Seconds, float64(f.runtime)/1000)
	}
	return c, nil
}

// together sums jobs as fio's run status does: all bytes divided by the longest run time,
// in whole bytes/s.
func together(all []flow) (flow, error) {
	if len(all) == 1 {
		return all[0], nil
	}
	var sum flow
	var weighted float64
	for _, f := range all {
		sum.Bytes, sum.IOs = sum.Bytes+f.Bytes, sum.IOs+f.IOs
		if sum.Bytes > maxBytes || sum.IOs > maxIOs {
			return flow{}, errors.New("its jobs together moved an implausible amount")
		}
		sum.runtime = max(sum.runtime, f.runtime)
		if least := f.Latency.Min; least > 0 && (sum.Latency.Min == 0 || least < sum.Latency.Min) {
			sum.Latency.Min = least
		}
		sum.Latency.Max = max(sum.Latency.Max, f.Latency.Max)
		weighted += f.mean * float64(f.IOs)
	}
	if sum.runtime > 0 {
		sum.Bandwidth = float64(sum.Bytes * 1000 / sum.runtime)
		sum.IOPS = float64(sum.IOs) * 1000 / float64(sum.runtime)
	}
	if sum.IOs > 0 {
		sum.Latency.Mean = int64(math.Round(weighted / float64(sum.IOs)))
	}
	return sum, nil
}
