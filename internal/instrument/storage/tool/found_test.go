package tool

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/instrument/transcript"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/golden"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

func found(t *testing.T, text string) []output {
	t.Helper()
	var all []output
	for _, stream := range transcript.Split(text) {
		one, left := find(stream)
		must.That(t, left == 0, "%d left", left)
		all = append(all, one...)
	}
	return all
}

// add reads all streams of a text.
func add(g *Imported, name, text string) {
	for _, stream := range transcript.Split(text) {
		g.Add(name, stream, Told{Label: stream.Label})
	}
}

// usecs returns latencies in µs.
func usecs(least, mean, p50, p95, p99, p999, most float64) record.Latency {
	ns := func(v float64) int64 { return int64(math.Round(v * 1000)) }
	return record.Latency{Min: ns(least), Mean: ns(mean), P50: ns(p50), P95: ns(p95), P99: ns(p99), P999: ns(p999), Max: ns(most)}
}

const (
	fioLine = "  read: IOPS=647, BW=324MiB/s (340MB/s)(8192MiB/25285msec)"
	aMiB    = 1 << 20
)

// outputsText formats outputs.
func outputsText(t *testing.T, all []output) string {
	t.Helper()
	var lines []string
	for _, o := range all {
		if o.Err != nil {
			lines = append(lines, fmt.Sprintf("line %d: %v", o.Line, o.Err))
			continue
		}
		job, claim := must.JSON(t, o.Job), must.JSON(t, o.Claim)
		lines = append(lines, fmt.Sprintf("line %d: %s, cache %q, assumed %v, %s %s", o.Line, o.Version, o.Cache, o.Assumed, job, claim))
	}
	return strings.Join(lines, "\n")
}

// Text before and after an output is found as well.
func TestOutputsAreFoundInAnyText(t *testing.T) {
	t.Parallel()
	sysbench := "\n\n> " + strings.ReplaceAll(sample(t, "sysbench-1.0.20-rndrd.txt"), "\n", "\n> ")
	for file, around := range map[string][2]string{
		"found": {}, "onerun": {}, "wrapped": {"", sysbench}, "bad": {"first\n", "\n" + fioLine + "\n"},
	} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			golden.Cases(t, "testdata/cases/"+file+".txt", func(t *testing.T, text string) string {
				return outputsText(t, found(t, around[0]+text+around[1]))
			})
		})
	}
}

func TestFioTextFormsAgree(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"fio-3.33-mixed.txt", "fio-3.33-jobs.txt", "fio-3.33-mixed-in-text.txt"} {
		all := found(t, sample(t, name))
		must.That(t, len(all) == 1 && all[0].Err == nil && all[0].Version == "fio-3.33" && all[0].Job.RW == "randrw" && all[0].Job.BS == 4096 &&
			all[0].Job.NumJobs == 2, "%s: %+v", name, all)
		c := all[0].Claim
		for _, f := range []struct {
			record.Flow
			bytes int64
		}{{c.Read, 7928 << 10}, {c.Write, 8456 << 10}} {
			check.That(t, f.Bytes == f.bytes && f.IOs*4096 == f.bytes && math.Abs(f.Bandwidth/4096/f.IOPS-1) <= 0.01, "%s: %+v", name, f)
			check.That(t, f.Latency.Min > 0 && f.Latency.Mean >= f.Latency.Min && f.Latency.Max >= f.Latency.Mean &&
				(f.Latency.P99 > 0) != (name == "fio-3.33-jobs.txt"), "%s: %+v", name, f.Latency)
		}
	}
}

// The report's prose, tables and commands name the owners of its figures. Only the tool
// outputs in it are read.
func TestPublishedReportHas21Outputs(t *testing.T) {
	t.Parallel()
	tools := map[string]int{}
	var dd []float64
	for _, o := range found(t, sample(t, "published.md")) {
		check.That(t, o.Err == nil && !o.Assumed, "%+v", o)
		tools[o.Job.Tool]++
		if o.Job.Tool == "dd" {
			dd = append(dd, math.Round(o.Claim.Write.Bandwidth/1e5)/10)
			check.That(t, o.Job.BS == 4096 && o.Job.Count == 10240000 && o.Cache == record.CacheDirect, "%+v", o.Job)
		}
		want := usecs(20, 7970, 0, 19610, 0, 0, 140800)
		check.That(t, o.Job.Tool != "sysbench" || o.Claim.Seconds != 2.6090 || o.Claim.Latency == want, "%+v, want %+v", o.Claim.Latency, want)
	}
	check.That(t, tools["fio"] == 12 && tools["dd"] == 3 && tools["sysbench"] == 6 && len(dd) == 3 && dd[0] == 111.4 && dd[1] == 120.5 && dd[2] == 134.2,
		"%v, %v", tools, dd)
}

func TestSysbenchPrepareIsAnOutput(t *testing.T) {
	t.Parallel()
	const written = "5368709120 bytes written in 44.82 seconds (114.23 MB/sec)."
	made := "sysbench 1.0.20 (using LuaJIT)\n\n10 files, 524288Kb each, 5120Mb total\nCreating files for the test...\nExtra file open flags: (none)\nCreating file test_file.0\n" + written
	want := record.Reported{Seconds: 44.82, Write: record.Flow{Bytes: 5 << 30, Bandwidth: 5 << 30 / 44.82}}
	for claim, c := range map[string]struct{ text, version string }{
		"last line only":                    {written, ""},
		"complete output":                   {made, "sysbench 1.0.20"},
		"complete output followed by a run": {made + "\n" + sysbench05, "sysbench 1.0.20"},
		"after another run":                 {sysbench10 + written, ""},
	} {
		all := slices.DeleteFunc(found(t, c.text), func(o output) bool { return !o.Prepare })
		if len(all) != 1 || all[0].Err != nil || all[0].Version != c.version || all[0].Claim != want {
			t.Errorf("%s: %+v", claim, all)
			continue
		}
		kind, size := all[0].kind()
		check.That(t, kind == "sysbench prepare" && size == "5G", "%s: named %s %s", claim, kind, size)
	}
	for line, says := range map[string]string{"1048576 bytes written in 0.00 seconds (532.76 MiB/sec).": "measured", "5368709120 bytes written in 44.82 seconds (999.00 MB/sec).": "contradicts"} {
		all := found(t, line)
		check.That(t, len(all) == 1 && all[0].Err != nil && strings.Contains(all[0].Err.Error(), says), "%s: %+v", line, all)
	}
}

// A page may encode a newline as a character reference, which ends a line as well.
func TestOutputAfterEscapedNewlineIsFound(t *testing.T) {
	t.Parallel()
	json := sample(t, "fio-3.33-randrw.json")
	report := sample(t, "sysbench-1.0.20-rndrd.txt")
	for claim, text := range map[string]string{
		"escaped newlines in the JSON":    strings.Replace(json, ",\n", ",&#10;&NewLine;", 90),
		"escaped newlines only":           strings.ReplaceAll(json, "\n", "&#10;"),
		"escaped CRLF":                    strings.ReplaceAll(json, "\n", "&#13;&#10;"),
		"escaped newlines after the JSON": json + "\n&#10;&#10;\n",
	} {
		all := found(t, text+"\n"+report+"\n"+fioLine+"\n")
		check.That(t, len(all) == 3 && all[0].Err == nil && all[0].Job.RW == "randrw" && all[1].Job.Tool == "sysbench" && all[2].Claim.Read.IOPS == 647,
			"%s: %+v", claim, all)
	}
	const dd = "256+0 records in&#10;256+0 records out&#10;268435456 bytes (268 MB, 256 MiB) copied, 2 s, 134 MB/s"
	all := found(t, "<pre>$ dd if=/dev/zero of=f bs=1M oflag=direct&#10;"+dd+"</pre>")
	check.That(t, len(all) == 1 && all[0].Line == 1 && all[0].Cache == "direct", "escaped command with its result: %+v", all)
}

func TestBadOutputDoesNotAffectOthers(t *testing.T) {
	t.Parallel()
	real, report := sample(t, "fio-3.33-mixed.json"), sample(t, "sysbench-1.0.20-rndrd.txt")
	for claim, c := range map[string]struct{ text, says string }{
		"truncated JSON":                                {real[:len(real)/2], "breaks off"},
		"JSON of a failed job":                          {sample(t, "fio-3.33-failed.json"), "error"},
		"truncated sysbench report":                     {report[:strings.Index(report, "General")], "total time"},
		"truncated sysbench report followed by another": {report[:strings.Index(report, "General")] + "sysbench 1.0.20\n", "total time"},
	} {
		t.Run(claim, func(t *testing.T) {
			all := found(t, "first\n"+c.text+"\n"+fioLine+"\n")
			must.That(t, len(all) == 2 && all[0].Err != nil && strings.Contains(all[0].Err.Error(), c.says) && all[0].Claim == (record.Reported{}) &&
				all[1].Claim.Read.IOPS == 647, "%+v", all)
		})
	}
}

func TestEndlessTextIsBounded(t *testing.T) {
	t.Parallel()
	all, left := find(transcript.Split(strings.Repeat(fioLine+"\n", maxFound+3))[0])
	check.That(t, len(all) == maxFound && left == 3, "%d, %d left", len(all), left)
	all = found(t, strings.Repeat("x", 10<<20)+"\n"+fioLine)
	check.That(t, len(all) == 1 && all[0].Err == nil && all[0].Claim.Read.IOPS == 647, "after a line of ten megabytes: %+v", all)
	for _, hostile := range []string{"{\"fio version\":\n", "{\"fio version\":{\n", "sysbench 1.0\n", "sysbench 1.0\nRunning the test with following options:\n", "1+0 records in\n", "x: (groupid=0, jobs=1): err= 0: pid=1\n"} {
		find(transcript.Split(strings.Repeat(hostile, 30_000))[0])
	}
}

func imports(t *testing.T, texts ...[2]string) *Imported {
	t.Helper()
	g := &Imported{}
	for _, text := range texts {
		add(g, text[0], text[1])
	}
	g.Close()
	return g
}

func TestTargetsAndJobsAreNamedAfterTheText(t *testing.T) {
	t.Parallel()
	const writes = "  write: IOPS=647, BW=324MiB/s (340MB/s)(8192MiB/25285msec)"
	const sized = "{\"fio version\":\"fio-3.33\",\"jobs\":[{\"jobname\":\"x\",\"groupid\":0,\"error\":0,\"job options\":{\"rw\":\"read\",\"bs\":\"4k\",\"size\":\"1G\"},\"read\":{\"io_bytes\":4096000,\"bw_bytes\":4096000,\"iops\":1000,\"runtime\":1000},\"write\":{}}]}"
	const bare = "x: (g=0): rw=read, bs=4K-4K, ioengine=psync, iodepth=1\nx: (groupid=0, jobs=1): err= 0: pid=1\n  read: IOPS=647, BW=2588KiB/s (2650kB/s)(10352KiB/4000msec)"
	for claim, c := range map[string]struct {
		texts [][2]string
		want  string
	}{
		"single output is named after its file":                {[][2]string{{"kata.txt", fioLine}}, "kata fio read 0"},
		"prefixes name targets":                                {[][2]string{{"kata.txt", "[pod/a-1/fio] " + fioLine + "\n[pod/b-1/fio] " + fioLine + "\n[pod/a-1/fio] " + fioLine}}, "a-1/fio-1 fio read 0, a-1/fio-2 fio read 0, b-1/fio fio read 0"},
		"outputs of different jobs are named after their file": {[][2]string{{"kata.txt", fioLine + "\n" + writes}}, "kata fio read 0, kata fio write 0"},
		"outputs of the same job are numbered":                 {[][2]string{{"kata.txt", fioLine + "\n" + fioLine}}, "kata-1 fio read 0, kata-2 fio read 0"},
		"files of the same name are rounds":                    {[][2]string{{"kata.txt", fioLine}, {"kata.log", fioLine}}, "kata fio read 0, kata fio read 1"},
		"invalid target name is replaced":                      {[][2]string{{"\x1b[2J.txt", fioLine}}, "imported fio read 0"},
		"output without size matches the only job with a size": {[][2]string{{"a.txt", bare}, {"b.txt", sized}}, "a read 4k 1G 0, b read 4k 1G 0"},
		"output without size matches none of two sizes":        {[][2]string{{"a.txt", bare}, {"b.txt", sized + "\n" + strings.ReplaceAll(sized, "1G", "2G")}}, "a read 4k 0, b read 4k 1G 0, b read 4k 2G 0"},
	} {
		t.Run(claim, func(t *testing.T) {
			g := imports(t, c.texts...)
			var got []string
			for _, cell := range g.Cells {
				got = append(got, cell.Target+" "+cell.Job+" "+string(rune('0'+cell.Round)))
			}
			check.Equal(t, "cells", strings.Join(got, ", "), c.want)
			for _, j := range g.Plan.Jobs {
				check.That(t, (j.Size > 0) == strings.HasSuffix(j.Name, "G"), "%+v", j)
			}
		})
	}
}

func TestSkippedOutputsAreReported(t *testing.T) {
	t.Parallel()
	g := imports(t, [2]string{"notes.txt", fioLine + "\nread : io=8192MB, bw=1MB/s, iops=8600, runt=  1905msec\n" + fioLine + "\n268435456 bytes (268 MB) copied, 2 s, 134 MB/s\n"})
	said := map[string]string{}
	for _, f := range g.Findings {
		said[f.Code] = f.Message
	}
	for code, want := range map[string]string{
		FoundUnread: "notes.txt: 1 of the outputs could not be read: notes.txt:2: fio's text:", FoundDirection: "notes.txt: outputs of dd without their command",
		FoundNumbered: "notes.txt: repeated outputs of the same job: 2", FoundUnknown: "imported:",
	} {
		check.That(t, strings.HasPrefix(said[code], want), "%s: %q", code, said[code])
	}
	check.Equal(t, "cells", len(g.Cells), 3)
}

// FuzzFind checks that any text is read without a panic and within limits, and that every
// result can be stored in a record.
func FuzzFind(f *testing.F) {
	files, err := filepath.Glob("testdata/*.*")
	if err != nil || len(files) == 0 {
		f.Fatal("no testdata")
	}
	for _, name := range files {
		text := must.Get(os.ReadFile(name))(f)
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		g := &Imported{}
		add(g, "fuzz", string(text))
		g.Close()
		names := map[string]bool{}
		for _, j := range g.Plan.Jobs {
			check.That(t, j.Name != "" && !names[j.Name], "duplicate or empty job name %q", j.Name)
			names[j.Name] = true
		}
		for _, c := range g.Cells {
			err := record.Validate(&c)
			check.That(t, err == nil && names[c.Job], "%+v of %q: %v", c, c.Job, err)
		}
	})
}
