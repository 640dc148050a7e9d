package tool

import (
	"fmt"
	"math"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/instrument/storage"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/golden"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

// Output of a random read in the format of 0.4.12, and outputs in the published report.
var sysbench04, sysbench05, sysbench10 = kept("sysbench-0.4.12.txt"), published("sysbench 0.5:"), published("sysbench 1.0.20")

func kept(name string) string {
	text, err := os.ReadFile("testdata/" + name)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// published returns a sysbench output from the published report, without quote marks.
func published(sysbench string) string {
	text := regexp.MustCompile(`(?m)^> ?`).ReplaceAllString(kept("published.md"), "")
	text = text[strings.Index(text, "\n"+sysbench)+1:]
	return text[:strings.Index(text, "Threads fairness")]
}

func TestOldSysbenchCountsRequestsAndMislabelsBytes(t *testing.T) {
	side := func(n int64, seconds float64) record.Flow {
		return record.Flow{Bytes: n * 16384, IOs: n, Bandwidth: float64(n*16384) / seconds, IOPS: float64(n) / seconds}
	}
	read := side(1000, 0.5)
	read.Latency = record.Latency{Min: 100000, Mean: 490000, P95: 1610000, Max: 12250000}
	for name, tc := range map[string]struct {
		text string
		want output
	}{
		"version 0.5, as published": {sysbench05, output{Version: "sysbench 0.5", Cache: "direct",
			Job: storage.Job{Tool: "sysbench", RW: "randrw", NumJobs: 16, Files: 10, Size: 5 << 30, BS: 16 << 10, Requests: 5000},
			Claim: record.Reported{Read: side(2996, 2.609), Write: side(2004, 2.609), Seconds: 2.609,
				Latency: record.Latency{Min: 20000, Mean: 7970000, P95: 19610000, Max: 140800000}}}},
		"version 0.4, one direction": {sysbench04, output{Version: "sysbench 0.4.12", Cache: "direct",
			Job:   storage.Job{Tool: "sysbench", RW: "randread", NumJobs: 1, Files: 2, Size: 128 << 20, BS: 16 << 10, Requests: 1000},
			Claim: record.Reported{Read: read, Seconds: 0.5}}},
	} {
		t.Run(name, func(t *testing.T) {
			check.Equal(t, "parseSysbench", must.Get(parseSysbench(tc.text))(t), tc.want)
		})
	}
	// The printed 29.944 is bytes in powers of 1024.
	o, _ := parseSysbench(sysbench05)
	sum := (o.Claim.Read.Bandwidth + o.Claim.Write.Bandwidth) / (1 << 20)
	check.That(t, math.Abs(sum-29.944) <= 0.001, "%.3f MiB/s, sysbench printed 29.944", sum)
}

// The requests per direction are computed from rates and events, and add up to all
// events.
func TestSysbench1RequestsFollowFromItsRates(t *testing.T) {
	for name, tc := range map[string]struct {
		text        string
		read, write float64 // requests per second, as printed
		all, syncs  int64   // reads and writes; syncs between them, which also count as events
	}{
		"as published":              {sysbench10, 11704.55, 7848.66, 5000, 0},
		"late start of the threads": {strings.Replace(sysbench10, "0.2545s", "2.5450s", 1), 11704.55, 7848.66, 5000, 0},
		"late end of the count":     {strings.Replace(sysbench10, "0.2545s", "0.2145s", 1), 11704.55, 7848.66, 5000, 0},
		"random reads and writes":   {sample(t, "sysbench-1.0.20-rndrw.txt"), 15889.03, 10583.86, 5000, 0},
		"random reads":              {sample(t, "sysbench-1.0.20-rndrd.txt"), -1, 0, 5000, 0},
		// 1924 writes; the four files are synced after every 100.
		"writes with syncs between": {sample(t, "sysbench-1.0.20-seqrewr-fsync.txt"), 0, 75709.85, 1924, 76},
	} {
		t.Run(name, func(t *testing.T) {
			o, err := parseSysbench(tc.text)
			must.That(t, err == nil && o.Version == "sysbench 1.0.20", "%q %v", o.Version, err)
			c := o.Claim
			check.Equal(t, "requests", c.Read.IOs+c.Write.IOs, tc.all)
			for _, side := range []struct {
				f    record.Flow
				rate float64
			}{{c.Read, tc.read}, {c.Write, tc.write}} {
				check.That(t, side.rate < 0 || side.f.IOPS == side.rate, "%g IOPS, sysbench printed %g", side.f.IOPS, side.rate)
				check.That(t, side.f.Bytes == side.f.IOs*16384 && side.f.Bandwidth == side.f.IOPS*16384, "%+v is not in blocks of 16 KiB", side.f)
			}
		})
	}
}

func TestSysbenchLatencyNeedsASingleDirection(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		has  bool
	}{
		"reads only":                {sample(t, "sysbench-1.0.20-rndrd.txt"), true},
		"reads and writes":          {sample(t, "sysbench-1.0.20-rndrw.txt"), false},
		"writes with syncs between": {sample(t, "sysbench-1.0.20-seqrewr-fsync.txt"), false},
	} {
		o, err := parseSysbench(tc.text)
		c := o.Claim
		has := c.Read.Latency.P99 > 0 && c.Read.Latency.Mean > 0 && c.Read.Latency.Max >= c.Read.Latency.P99
		check.That(t, err == nil && has == tc.has && c.Write.Latency == record.Latency{}, "%s: %+v, %v", name, c, err)
	}
}

// Versions after 1.0 print one line per direction.
func TestNewSysbenchFormatIsParsed(t *testing.T) {
	text := sysbench10[:strings.Index(sysbench10, "File operations")] + `
Throughput:
         read:  IOPS=11704.55 182.88 MiB/s (191.77 MB/s)
         write: IOPS=7848.66 122.64 MiB/s (128.59 MB/s)
         fsync: IOPS=625.70
` + strings.Replace(sysbench10[strings.Index(sysbench10, "General"):], "total time: ", "time elapsed: ", 1)
	got, err := parseSysbench(text)
	want, _ := parseSysbench(sysbench10)
	check.That(t, err == nil && got.Claim == want.Claim, "%+v %v, want %+v", got, err, want)
}

func TestContradictorySysbenchOutputIsRefused(t *testing.T) {
	change := func(text, old, new string) string {
		must.That(t, strings.Contains(text, old), "the output has no %q", old)
		return strings.Replace(text, old, new, 1)
	}
	for name, tc := range map[string]struct{ text, says string }{
		"empty output":             {"", "total time is missing"},
		"header only":              {sysbench05[:strings.Index(sysbench05, "General")], "total time is missing"},
		"no block size":            {change(sysbench05, "Block size 16Kb", ""), "block size"},
		"no rates":                 {change(sysbench10, " reads/s: ", " other/s: "), "reads/s"},
		"fatal error":              {sysbench10 + "FATAL: Failed to read file! file: 4 pos: 207339 errno = 22 (Invalid argument)\n", "gave up"},
		"two runs":                 {sysbench05 + sysbench05, "twice"},
		"contradictory counts":     {change(sysbench05, "2996 reads", "3996 reads"), "contradicts itself"},
		"contradictory block size": {change(sysbench05, "Block size 16Kb", "Block size 4Kb"), "contradicts itself"},
		"contradictory bandwidth":  {change(sysbench05, "29.944Mb", "276.22Mb"), "contradicts itself"},
		"contradictory rate":       {change(sysbench05, "1916.43", "19164.3"), "contradicts itself"},
		"contradictory time":       {change(sysbench05, "2.6090s", "26.090s"), "contradicts itself"},
		"Mbit labelled as MiB":     {change(sysbench10, "182.88", "1463.07"), "contradicts itself"},
		"MB labelled as MiB":       {change(sysbench10, "182.88", "191.77"), "contradicts itself"},
		"zero time":                {change(sysbench10, "0.2545s", "0.0000s"), "cannot be measured"},
		"implausible rate":         {change(change(sysbench10, "11704.55", "9999999999999"), "182.88", "156249999999"), "cannot be"},
		"no transfer":              {change(change(change(change(sysbench10, "11704.55", "0.00"), "7848.66", "0.00"), "182.88", "0.00"), "122.64", "0.00"), "neither read nor wrote"},
		"too many digits":          {change(sysbench05, "2996 reads, 2004 writes, 10 Other = 5010", "999999999999999999 reads, 1 writes, 0 Other = 9"), "too large"},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := parseSysbench(tc.text)
			check.That(t, err != nil && strings.Contains(err.Error(), tc.says), "%+v, %v; want %q", c, err, tc.says)
		})
	}
}

func TestQuantilesComeFromSysbenchsHistogram(t *testing.T) {
	histogram := "Latency histogram (values are in milliseconds)\n       value  ------------- distribution ------------- count\n" +
		"       0.050 |****************************************  2500\n       0.800 |                                          2250\n       1.638 |**    245\n      12.305 |  5\n \n"
	o, err := parseSysbench(strings.Replace(sysbench10, "\nFile operations:", histogram+"\nFile operations:", 1))
	want := (record.Latency{Min: 50_000, Mean: 800_000, P50: 50_000, P95: 800_000, P99: 1_638_000, P999: 1_638_000, Max: 3_600_000})
	check.That(t, err == nil && o.Claim.Latency == want, "%+v, %v; want %+v", o.Claim.Latency, err, want)
	_, err = parseSysbench(histogram + sysbench10 + histogram)
	check.That(t, err != nil && strings.Contains(err.Error(), "not ascending"), "two histograms: %v", err)
}

func FuzzParseSysbench(f *testing.F) {
	for _, text := range []string{sysbench04, sysbench05, sysbench10} {
		f.Add(text)
	}
	fuzz(f, parseSysbench, "sysbench-1.0.20-seqrewr-fsync.txt")
}

// Each case has a direction, "read", "write" or "both", and a text, or "file" and its
// name.
func TestDDSummariesAreParsed(t *testing.T) {
	golden.Cases(t, "testdata/cases/dd.txt", func(t *testing.T, input string) string {
		way, text, _ := strings.Cut(input, "\n")
		if name, ok := strings.CutPrefix(text, "file "); ok {
			text = sample(t, name)
		}
		o, records, err := parseDD(text, way)
		if err != nil {
			return err.Error()
		}
		if records != nil {
			return fmt.Sprintf("%s in records %v", must.JSON(t, o.Claim), *records)
		}
		return string(must.JSON(t, o.Claim))
	})
}

func TestIncompleteDDIsRefused(t *testing.T) {
	job := storage.Job{Name: "dd", Tool: storage.ToolDD, RW: "write", BS: 4096, Count: 10240}
	whole := sample(t, "dd-9.1-write.txt")
	for name, tc := range map[string]struct {
		job            storage.Job
		stdout, stderr string
		says           string
	}{
		"on standard error":       {job, "", whole, ""},
		"on standard output":      {job, whole, "", ""},
		"one block missing":       {storage.Job{RW: "write", BS: 4096, Count: 10241}, "", whole, "instead of 10241 records"},
		"different block size":    {storage.Job{RW: "write", BS: 512, Count: 10240}, "", whole, "of 512 bytes"},
		"size instead of a count": {storage.Job{RW: "write", BS: 4096, Size: 40 << 20}, "", whole, ""},
		"missing record counts":   {job, "", whole[strings.Index(whole, "41943040"):], "did not report the records in and out"},
	} {
		t.Run(name, func(t *testing.T) {
			tc.job.Tool = storage.ToolDD
			c, version, err := Parse(tc.job, tc.stdout, tc.stderr)
			check.That(t, tc.says != "" || err == nil && c.Write.Bytes == 40<<20 && version == "", "%+v %q %v", c, version, err)
			check.That(t, tc.says == "" || err != nil && strings.Contains(err.Error(), tc.says), "%v, want %q", err, tc.says)
		})
	}
}

func FuzzParseDD(f *testing.F) {
	f.Add("41943040000 bytes (39.1GB) copied, 347.990191 seconds, 114.9MB/s")
	f.Add("41943040000 bytes transferred in 376,446 secs (111418477 bytes/sec)")
	fuzz(f, func(text string) (output, error) { o, _, err := parseDD(text, "write"); return o, err }, "dd-9.1-write.txt", "dd-9.1-progress.txt", "dd-9.1-byte.txt")
}
