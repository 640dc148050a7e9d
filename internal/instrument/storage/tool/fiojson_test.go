package tool

import (
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/instrument/storage"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

// sample returns the output of a real tool.
func sample(t testing.TB, name string) string {
	t.Helper()
	return must.Read(t, filepath.Join("testdata", name))
}

// jobsIn returns the jobs of fio's JSON; numbers keep their text.
func jobsIn(t *testing.T, text string) []map[string]any {
	t.Helper()
	var raw struct{ Jobs []map[string]any }
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	must.OK(t, d.Decode(&raw))
	return raw.Jobs
}

// saidOf returns the number of a job at a path of keys, or "" if it is missing.
func saidOf(job map[string]any, path ...string) json.Number {
	for _, key := range path[:len(path)-1] {
		job, _ = job[key].(map[string]any)
	}
	n, _ := job[path[len(path)-1]].(json.Number)
	return n
}

// sameAsFios checks that a result equals the numbers of the only job in fio's JSON.
func sameAsFios(t *testing.T, text string, c record.Reported, latency string) {
	t.Helper()
	jobs := jobsIn(t, text)
	must.That(t, len(jobs) == 1, "fio reports %d jobs, want one group", len(jobs))
	job := jobs[0]
	longest := 0.0
	for side, f := range map[string]record.Flow{"read": c.Read, "write": c.Write} {
		same := func(got string, path ...string) {
			t.Helper()
			want := saidOf(job, append([]string{side}, path...)...).String()
			check.That(t, got == want, "%s %s is %s, fio reports %s", side, path, got, want)
		}
		ms, _ := saidOf(job, side, "runtime").Float64()
		longest = max(longest, ms/1000)
		same(fmt.Sprint(f.Bytes), "io_bytes")
		same(fmt.Sprint(f.IOs), "total_ios")
		same(fmt.Sprintf("%.0f", f.Bandwidth), "bw_bytes")
		same(fmt.Sprintf("%.6f", f.IOPS), "iops")
		if f.Bytes == 0 {
			continue
		}
		same(fmt.Sprint(f.Latency.Min), latency, "min")
		same(fmt.Sprint(f.Latency.Max), latency, "max")
		mean, err := saidOf(job, side, latency, "mean").Float64()
		check.That(t, err == nil && f.Latency.Mean == int64(math.Round(mean)), "mean %s latency is %d, fio reports %g", side, f.Latency.Mean, mean)
		for q, ns := range map[string]int64{"50.0": f.Latency.P50, "95.0": f.Latency.P95, "99.0": f.Latency.P99, "99.9": f.Latency.P999} {
			same(fmt.Sprint(ns), latency, "percentile", q+"00000")
		}
	}
	check.Equal(t, "seconds", c.Seconds, longest)
}

// Latencies are for whole requests if fio has their percentiles, otherwise for
// completions.
func TestFioFiguresAreExact(t *testing.T) {
	for name, latency := range map[string]string{"fio-3.33-randrw.json": "lat_ns", "fio-3.33-write.json+": "clat_ns"} {
		text := sample(t, name)
		o, err := parseFioJSON(text)
		must.That(t, err == nil && o.Version == "fio-3.33", "%s: %q, %v", name, o.Version, err)
		sameAsFios(t, text, o.Claim, latency)
	}
}

// The expected values are those of fio's own group summary, "io=… run=…": total bytes
// divided by the longest run.
func TestUngroupedJobsAreSummedLikeFio(t *testing.T) {
	text := sample(t, "fio-3.33-three-jobs.json")
	var bytes, ios, longest, most int64
	least, mean := int64(math.MaxInt64), 0.0
	for _, j := range jobsIn(t, text) {
		of := func(path ...string) int64 {
			v, err := saidOf(j, append([]string{"read"}, path...)...).Int64()
			if err != nil {
				t.Fatal(path, err)
			}
			return v
		}
		bytes, ios, longest = bytes+of("io_bytes"), ios+of("total_ios"), max(longest, of("runtime"))
		least, most = min(least, of("clat_ns", "min")), max(most, of("clat_ns", "max"))
		m, _ := saidOf(j, "read", "clat_ns", "mean").Float64()
		mean += m * float64(of("total_ios"))
	}
	want := record.Reported{Seconds: float64(longest) / 1000, Read: record.Flow{
		Bytes: bytes, IOs: ios, Bandwidth: float64(bytes * 1000 / longest), IOPS: float64(ios) * 1000 / float64(longest),
		Latency: record.Latency{Min: least, Mean: int64(math.Round(mean / float64(ios))), Max: most},
	}}
	o, err := parseFioJSON(text)
	if want.CPU = o.Claim.CPU; o.Claim.CPU <= 0 || o.Claim.CPU > 3*longest*1e6 { // three threads
		t.Errorf("%d ns of CPU in %d ms", o.Claim.CPU, longest)
	}
	check.That(t, err == nil && o.Claim == want, "%+v %v\nwant %+v", o, err, want)
}

func TestOptionsMatchTheCommandLine(t *testing.T) {
	for file, want := range map[string]output{
		"fio-3.33-randrw.json":     {Job: storage.Job{Tool: "fio", RW: "randrw", BS: 16 << 10, Size: 16 << 20, NumJobs: 2, IODepth: 1, Engine: "psync"}, Cache: "direct"},
		"fio-3.33-three-jobs.json": {Job: storage.Job{Tool: "fio", RW: "randread", BS: 4 << 10, Size: 8 << 20, NumJobs: 3, IODepth: 8, Engine: "libaio"}, Cache: "direct"},
		"fio-3.33-write.json+":     {Job: storage.Job{Tool: "fio", RW: "write", BS: 512 << 10, Size: 16 << 20, NumJobs: 1, IODepth: 1}, Cache: "buffered"},
	} {
		got, err := parseFioJSON(sample(t, file))
		check.That(t, err == nil && reflect.DeepEqual(got.Job, want.Job) && got.Cache == want.Cache, "%s: %+v, %v; want %+v", file, got, err, want)
	}
}

func TestCacheOfJobs(t *testing.T) {
	text := sample(t, "fio-3.33-three-jobs.json")
	for claim, x := range map[string]struct{ text, want string }{
		"direct":                              {text, "direct"},
		"buffered=0 is direct=1":              {strings.Replace(text, `"direct" : "1"`, `"buffered" : "0"`, 1), "direct"},
		"buffered=1 is direct=0":              {strings.Replace(text, `"direct" : "1"`, `"buffered" : "1"`, 1), "buffered"},
		"direct and buffered jobs have none":  {strings.Replace(text, `"job options" : {`, `"job options" : { "direct" : "0",`, 1), ""},
		"job option overrides the global one": {strings.ReplaceAll(text, `"job options" : {`, `"job options" : { "direct" : "0",`), "buffered"},
	} {
		check.Equal(t, claim, must.Get(parseFioJSON(x.text))(t).Cache, x.want)
	}
}

func TestPacingOptionIsReported(t *testing.T) {
	text := sample(t, "fio-3.33-randrw.json")
	o, err := parseFioJSON(text)
	check.That(t, err == nil && o.Claim.Paced == "", "%+v %v", o.Claim, err)
	for _, option := range []string{"rate", "rate_iops", "thinktime"} {
		global := strings.Replace(text, `"fio version"`, `"global options" : { "`+option+`" : "10m" }, "fio version"`, 1)
		for claim, x := range map[string]struct{ text, own, want string }{
			"job option":                        {text, "10m", option + "=10m"},
			"global option":                     {global, "", option + "=10m"},
			"global option disabled by the job": {global, "0", ""},
		} {
			if x.own != "" {
				x.text = strings.Replace(x.text, `"job options" : {`, `"job options" : { "`+option+`" : "`+x.own+`",`, 1)
			}
			o, err := parseFioJSON(x.text)
			check.That(t, err == nil && o.Claim.Paced == x.want, "%s: %+v %v", claim, o.Claim, err)
		}
	}
}

// The output has the format and units of fio 2.2.10 (KiB, KiB/s and µs, no options). The
// figures are from the published report's host; the latencies are made up.
var fio2 = kept("fio-2.2.10.json")

func TestFio2UnitsAreConverted(t *testing.T) {
	o, err := parseFioJSON("fio: this is a warning\n" + fio2 + "\nand this is after it\n")
	want := record.Reported{Seconds: 9.744, Read: record.Flow{Bytes: 8 << 30, IOs: 16384, Bandwidth: 860901 * 1024, IOPS: 1681.44,
		Latency: record.Latency{Min: 10000, Mean: 4755120, P50: 4640000, P999: 50000000, Max: 91234000}}}
	check.That(t, err == nil && o.Claim == want && o.Version == "fio-2.2.10" && o.Job.RW == "" && o.Cache == "",
		"%+v %v\nwant %+v", o, err, want)
}

func TestInvalidFioJSONIsRefused(t *testing.T) {
	good := sample(t, "fio-3.33-randrw.json")
	change := func(old, new string) string {
		must.That(t, strings.Contains(good, old), "the sample has no %q", old)
		return strings.Replace(good, old, new, 1)
	}
	read := jobsIn(t, good)[0]
	field := func(name string) string { return fmt.Sprintf("%q : %s", name, saidOf(read, "read", name)) }
	for name, tc := range map[string]struct{ text, says string }{
		"empty output":              {"", "no JSON object"},
		"error message":             {"fio: command not found\n", "no JSON object"},
		"truncated":                 {good[:len(good)/2], "truncated"},
		"no jobs":                   {`{"fio version":"fio-3.33"}`, "no jobs"},
		"JSON of another program":   {`{"version":1,"jobs":[{}]}`, "not a version of fio"},
		"failed job":                {sample(t, "fio-3.33-failed.json"), "error 22"},
		"two groups":                {sample(t, "fio-3.33-two-groups.json"), "another group"},
		"reads and writes combined": {sample(t, "fio-3.33-mixed.json"), "unified_rw_reporting"},
		"negative bytes":            {change(field("io_bytes"), `"io_bytes" : -1`), "cannot be"},
		"too many bytes":            {change(field("io_bytes"), `"io_bytes" : 9223372036854775807`), "cannot be"},
		"more than 64 bits":         {change(field("io_bytes"), `"io_bytes" : 18446744073709551616`), "not fio's JSON"},
		"contradictory bandwidth":   {change(field("bw_bytes"), `"bw_bytes" : 6500000000`), "contradicts itself"},
		"contradictory IOPS":        {change(field("iops"), `"iops" : 9e6`), "contradicts itself"},
		"negative IOPS":             {change(field("iops"), `"iops" : -5.0`), "cannot be"},
		"number out of range":       {change(field("iops"), `"iops" : 1e999`), "not fio's JSON"},
		"NaN":                       {change(field("iops"), `"iops" : nan`), "not fio's JSON"},
		"negative run time":         {change(field("runtime"), `"runtime" : -7`), "invalid run time"},
		"zero run time":             {change(field("runtime"), `"runtime" : 0`), "less than a millisecond"},
		"no directions":             {`{"fio version":"fio-3.33","jobs":[{"jobname":"x"}]}`, "reads and writes are missing"},
		"nothing transferred":       {`{"fio version":"fio-3.33","jobs":[{"read":{},"write":{}}]}`, "neither read nor wrote"},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := parseFioJSON(tc.text)
			check.That(t, err != nil && strings.Contains(err.Error(), tc.says) && len(err.Error()) <= 600, "%+v, error %.700v; want %q", c, err, tc.says)
		})
	}
}

func FuzzParseFioJSON(f *testing.F) {
	f.Add(fio2)
	fuzz(f, parseFioJSON, "fio-3.33-randrw.json", "fio-3.33-three-jobs.json", "fio-3.33-failed.json", "fio-3.33-mixed.json")
}

// fuzz checks a parser's results for any text.
func fuzz(f *testing.F, parse func(string) (output, error), seeds ...string) {
	for _, name := range seeds {
		f.Add(sample(f, name))
	}
	f.Fuzz(func(t *testing.T, text string) {
		o, err := parse(text)
		if err != nil {
			bounded(t, err)
			return
		}
		plausible(t, o.Claim)
		j := o.Job
		check.That(t, len(j.RW)+len(j.Engine)+len(o.Version) <= 600 && j.BS >= 0 && j.Size >= 0 && j.NumJobs >= 0 && j.Files >= 0 && j.Count >= 0, "%+v", o)
		check.Equal(t, "parsed again", must.Get(parse(text+"\n"))(t).Claim, o.Claim)
	})
}

// bounded checks that an error is short enough to print, for any input.
func bounded(t *testing.T, err error) {
	t.Helper()
	if len(err.Error()) > 1500 {
		t.Errorf("error of %d bytes: %.200v", len(err.Error()), err)
	}
}

// plausible checks the invariants of every result.
func plausible(t *testing.T, c record.Reported) {
	t.Helper()
	check.That(t, within(c.Seconds, maxRuntime/1000), "%g s", c.Seconds)
	for _, f := range []record.Flow{c.Read, c.Write} {
		check.That(t, f.Bytes >= 0 && f.Bytes <= maxBytes && f.IOs >= 0 && f.IOs <= maxIOs && within(f.Bandwidth, maxBandwidth*1.01) &&
			within(f.IOPS, maxIOPS*1.01), "%+v", f)
		for _, l := range []int64{f.Latency.Mean, f.Latency.P50, f.Latency.P95, f.Latency.P99, f.Latency.P999, f.Latency.Max} {
			check.That(t, l >= 0 && float64(l) <= maxLatency, "latency out of range: %d", l)
		}
	}
	check.That(t, c.Read.Bandwidth != 0 || c.Write.Bandwidth != 0, "the result has no bandwidth")
}
