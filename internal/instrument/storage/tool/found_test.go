package tool

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

func found(t *testing.T, text string) []output {
	t.Helper()
	all, left, err := find(strings.NewReader(text))
	if err != nil || left != 0 {
		t.Fatalf("%d left, %v", left, err)
	}
	return all
}

// usecs are latencies in µs.
func usecs(least, mean, p50, p95, p99, p999, most float64) record.Latency {
	ns := func(v float64) int64 { return int64(math.Round(v * 1000)) }
	return record.Latency{Min: ns(least), Mean: ns(mean), P50: ns(p50), P95: ns(p95), P99: ns(p99), P999: ns(p999), Max: ns(most)}
}

const (
	fioLine = "  read: IOPS=647, BW=324MiB/s (340MB/s)(8192MiB/25285msec)"
	aMiB    = 1 << 20
)

func TestFioTextIsReadInItsOwnUnits(t *testing.T) {
	t.Parallel()
	for claim, c := range map[string]struct {
		text        string
		read, write record.Flow
		seconds     float64
	}{
		"2.x means 1024 by KB and MB": {"  read : io=8192.0MB, bw=331762KB/s, iops=647, runt= 25285msec",
			record.Flow{Bytes: 8192 * aMiB, Bandwidth: 331762 * 1024, IOPS: 647}, record.Flow{}, 25.285},
		"2.x writes bytes of what is slow": {"  write: io=79528KB, bw=814106B/s, iops=198, runt=100032msec",
			record.Flow{}, record.Flow{Bytes: 79528 * 1024, Bandwidth: 814106, IOPS: 198}, 100.032},
		"2.x counts IOPS in thousands": {"  read : io=8192.0MB, bw=4.2GB/s, iops=132.5K, runt=  1905msec",
			record.Flow{Bytes: 8192 * aMiB, Bandwidth: 4.2 * 1024 * aMiB, IOPS: 132500}, record.Flow{}, 1.905},
		"2.x in bits is an eighth": {"  read : io=8192.0MB, bw=34404Mbit/s, iops=8600, runt=  1905msec",
			record.Flow{Bytes: 8192 * aMiB, Bandwidth: 34404.0 / 8 * aMiB, IOPS: 8600}, record.Flow{}, 1.905},
		"3.x writes both kinds": {fioLine,
			record.Flow{Bytes: 8192 * aMiB, Bandwidth: 324 * aMiB, IOPS: 647}, record.Flow{}, 25.285},
		"3.x says more of writes": {"  write: IOPS=76.8k, BW=600MiB/s (629MB/s)(176GiB/300001msec); 0 zone resets",
			record.Flow{}, record.Flow{Bytes: 176 << 30, Bandwidth: 600 * aMiB, IOPS: 76800}, 300.001},
		"3.x with kb_base=1000 means 1000 by MB": {"  read: IOPS=647, BW=340MB/s (324MiB/s)(8590MB/25285msec)",
			record.Flow{Bytes: 8590e6, Bandwidth: 340e6, IOPS: 647}, record.Flow{}, 25.285},
		"a line of fio --client has a host before it": {"<node-1> " + fioLine,
			record.Flow{Bytes: 8192 * aMiB, Bandwidth: 324 * aMiB, IOPS: 647}, record.Flow{}, 25.285},
		"latencies are in the unit of their line": {"x: (groupid=0, jobs=1): err= 0: pid=1: Wed\n  write: io=79528KB, bw=814106B/s, iops=198, runt=100032msec\n    slat (usec): min=5, max=1031.3K, avg=363.76, stdev=13260.26\n    clat (usec): min=109, max=1325.7K, avg=39755.66, stdev=81798.27\n     lat (msec): min=3, max=1325, avg=40.25, stdev=83.48\n    clat percentiles (msec):\n     | 30.00th=[   31], 40.00th=[   31], 50.00th=[   31], 60.00th=[   36],\n     | 70.00th=[   36], 80.00th=[   36], 90.00th=[   36], 95.00th=[   37],\n     | 99.00th=[  165], 99.50th=[  799], 99.90th=[ 1221], 99.95th=[ 1237],\n     | 99.99th=[ 1319]\n     issued    : total=r=0/w=19882/d=0, short=r=0/w=0/d=0",
			record.Flow{}, record.Flow{Bytes: 79528 * 1024, IOs: 19882, Bandwidth: 814106, IOPS: 198,
				Latency: usecs(109, 39755.66, 31e3, 37e3, 165e3, 1221e3, 1325700)}, 100.032},
		"percentiles of a list of one's own have more places": {"x: (groupid=0, jobs=1): err= 0: pid=1: Wed\n" + fioLine + "\n clat (usec): min=1, max=9, avg=2.00, stdev=1\n clat percentiles (usec):\n | 90.5000th=[ 5], 50.0000th=[ 3], 99.9000th=[ 7],\n | 95.50th=[ 6]",
			record.Flow{Bytes: 8192 * aMiB, Bandwidth: 324 * aMiB, IOPS: 647, Latency: usecs(1, 2, 3, 0, 0, 7, 9)}, record.Flow{}, 25.285},
		"quantiles of whole requests win": {"x: (groupid=0, jobs=1): err= 0: pid=1: Wed\n" + fioLine + "\n clat (usec): min=1, max=3, avg=2.00, stdev=1\n  lat (usec): min=2, max=4, avg=3.00, stdev=1\n lat percentiles (usec):\n | 50.00th=[ 3], 99.90th=[ 4]",
			record.Flow{Bytes: 8192 * aMiB, Bandwidth: 324 * aMiB, IOPS: 647, Latency: usecs(2, 3, 3, 0, 0, 4, 4)}, record.Flow{}, 25.285},
	} {
		t.Run(claim, func(t *testing.T) {
			all := found(t, c.text)
			if len(all) != 1 || all[0].Err != nil {
				t.Fatalf("%+v", all)
			}
			if want := (record.Reported{Read: c.read, Write: c.write, Seconds: c.seconds}); all[0].Claim != want {
				t.Errorf("got  %+v\nwant %+v", all[0].Claim, want)
			}
		})
	}
}

func TestRealOutputsOfFioAgreeInEveryForm(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"fio-3.33-mixed.txt", "fio-3.33-jobs.txt", "fio-3.33-mixed-in-text.txt"} {
		all := found(t, golden(t, name))
		if len(all) != 1 || all[0].Err != nil || all[0].Version != "fio-3.33" || all[0].Job.RW != "randrw" || all[0].Job.BS != 4096 || all[0].Job.NumJobs != 2 {
			t.Fatalf("%s: %+v", name, all)
		}
		c := all[0].Claim
		for _, f := range []struct {
			record.Flow
			bytes int64
		}{{c.Read, 7928 << 10}, {c.Write, 8456 << 10}} {
			if f.Bytes != f.bytes || f.IOs*4096 != f.bytes || math.Abs(f.Bandwidth/4096/f.IOPS-1) > 0.01 {
				t.Errorf("%s: %+v", name, f)
			}
			if f.Latency.Min <= 0 || f.Latency.Mean < f.Latency.Min || f.Latency.Max < f.Latency.Mean || (f.Latency.P99 > 0) == (name == "fio-3.33-jobs.txt") {
				t.Errorf("%s: %+v", name, f.Latency)
			}
		}
	}
}

func TestTerseLinesOfFioSayTheSame(t *testing.T) {
	t.Parallel()
	all := found(t, golden(t, "fio-3.33-terse.txt"))
	one := record.Flow{Bytes: 8192 << 10, Bandwidth: 744727 << 10, IOPS: 11636, Latency: usecs(2, 80.900, 10, 56, 3751, 4685, 4657)}
	if len(all) != 2 || all[0].Err != nil || all[0].Version != "fio-3.33" || all[0].Claim != (record.Reported{Read: one, Seconds: 0.011}) {
		t.Errorf("%+v", all)
	}
	all = found(t, golden(t, "fio-3.33-terse-and-text.txt"))
	if len(all) != 1 || all[0].Err != nil || all[0].Job.NumJobs != 2 || all[0].Job.RW != "randrw" || all[0].Claim.Read.IOs != 982 {
		t.Errorf("beside text: %+v", all)
	}
	for claim, line := range map[string]string{
		"cut off": "3;fio-3.33;one;0;0;8192;744727;11636;11;0;0", "error": "3;fio-3.33;one;0;5;" + strings.Repeat("0;", 100), "figure": "3;fio-3.33;one;0;0;x;1;1;1;" + strings.Repeat("0;", 100),
	} {
		if all := found(t, line+"\n"+fioLine); len(all) != 2 || all[0].Err == nil || !strings.Contains(all[0].Err.Error(), claim) || all[1].Err != nil {
			t.Errorf("%s: %+v", claim, all)
		}
	}
}

func TestOutputsAreFoundInAnyText(t *testing.T) {
	t.Parallel()
	sysbench := golden(t, "sysbench-1.0.20-rndrd.txt")
	for claim, text := range map[string]string{
		"a quotation":                 "> notes\n>> " + fioLine,
		"an end of line of DOS":       "x\r\n" + fioLine + "\r\n",
		"colours":                     "\x1b[1mx\x1b[0m\n\x1b[32m" + fioLine + "\x1b[0m\x1b]0;title\x07",
		"a mark of UTF-8":             "\ufeff" + fioLine,
		"bytes that are no text":      "\x00\xff\xfe\x80\n" + fioLine,
		"a line of ten megabytes":     strings.Repeat("x", 10<<20) + "\n" + fioLine,
		"a page":                      "<html><body><pre>x\n" + strings.ReplaceAll(fioLine, "IOPS", "<b>IOPS</b>") + "</pre>",
		"a page's own signs":          "<p>&#114;ead: IOPS=647,&#32;BW=324MiB/s (340MB/s)(8192MiB/25285msec)<br>x",
		"a cell of a table":           "| kata | " + fioLine + "<br>x |",
		"a brace":                     "{\n" + fioLine,
		"progress on the same line":   "Jobs: 1 (f=1): [r(1)][12.0%]\rJobs: 1 (f=1): [r(1)][100.0%]\r" + fioLine,
		"another test of sysbench's":  "sysbench 1.0.20 (using LuaJIT)\nRunning the test with following options:\nPrime numbers limit: 1\n" + fioLine,
		"dd's progress":               "1048576 bytes (1.0 MB) copied, 1 s, 1.0 MB/s\r2097152 bytes (2.1 MB, 2.0 MiB) copied, 2 s, 1.0 MB/s\n" + fioLine,
		"commands and prose":          "[root@node ~]# fio --name=x --rw=read\nkata:\nthe read: bandwidth and IOPS=many\n" + fioLine,
		"a group's sum says it again": fioLine + "\nRun status group 0 (all jobs):\n   READ: bw=324MiB/s (340MB/s), 324MiB/s-324MiB/s (340MB/s-340MB/s), io=8192MiB (8590MB), run=25285-25285msec",
	} {
		t.Run(claim, func(t *testing.T) {
			all := found(t, text+"\n\n> "+strings.ReplaceAll(sysbench, "\n", "\n> "))
			if len(all) != 2 || all[0].Err != nil || all[0].Claim.Read.IOPS != 647 || all[1].Err != nil || all[1].Version != "sysbench 1.0.20" || all[1].Job.RW != "randread" {
				t.Errorf("%+v", all)
			}
		})
	}
}

// The report's prose, tables and commands say whose its figures are; the outputs
// in it are all that is taken.
func TestThePublishedReportHoldsTwentyOneOutputs(t *testing.T) {
	t.Parallel()
	tools := map[string]int{}
	var dd []float64
	for _, o := range found(t, golden(t, "published.md")) {
		if o.Err != nil || o.Assumed {
			t.Errorf("%+v", o)
		}
		tools[o.Job.Tool]++
		if o.Job.Tool == "dd" {
			dd = append(dd, math.Round(o.Claim.Write.Bandwidth/1e5)/10)
			if o.Job.BS != 4096 || o.Job.Count != 10240000 || o.Cache != record.CacheDirect {
				t.Errorf("%+v", o.Job)
			}
		}
		if want := usecs(20, 7970, 0, 19610, 0, 0, 140800); o.Job.Tool == "sysbench" && o.Claim.Seconds == 2.6090 && o.Claim.Latency != want {
			t.Errorf("%+v, want %+v", o.Claim.Latency, want)
		}
	}
	if tools["fio"] != 12 || tools["dd"] != 3 || tools["sysbench"] != 6 || len(dd) != 3 || dd[0] != 111.4 || dd[1] != 120.5 || dd[2] != 134.2 {
		t.Errorf("%v, %v", tools, dd)
	}
}

func TestWhatSysbenchPreparedIsAnOutput(t *testing.T) {
	t.Parallel()
	const written = "5368709120 bytes written in 44.82 seconds (114.23 MB/sec)."
	made := "sysbench 1.0.20 (using LuaJIT)\n\n10 files, 524288Kb each, 5120Mb total\nCreating files for the test...\nExtra file open flags: (none)\nCreating file test_file.0\n" + written
	want := record.Reported{Seconds: 44.82, Write: record.Flow{Bytes: 5 << 30, Bandwidth: 5 << 30 / 44.82}}
	for claim, c := range map[string]struct{ text, version string }{
		"its last line alone":       {written, ""},
		"all of it":                 {made, "sysbench 1.0.20"},
		"all of it, and then a run": {made + "\n" + sysbench05, "sysbench 1.0.20"},
		"behind another one's run":  {sysbench10 + written, ""},
	} {
		all := slices.DeleteFunc(found(t, c.text), func(o output) bool { return !o.Prepare })
		if len(all) != 1 || all[0].Err != nil || all[0].Version != c.version || all[0].Claim != want {
			t.Errorf("%s: %+v", claim, all)
			continue
		}
		if kind, size := all[0].kind(); kind != "sysbench prepare" || size != "5G" {
			t.Errorf("%s: it is called %s %s", claim, kind, size)
		}
	}
	for line, says := range map[string]string{"1048576 bytes written in 0.00 seconds (532.76 MiB/sec).": "measured", "5368709120 bytes written in 44.82 seconds (999.00 MB/sec).": "contradicts"} {
		if all := found(t, line); len(all) != 1 || all[0].Err == nil || !strings.Contains(all[0].Err.Error(), says) {
			t.Errorf("%s: %+v", line, all)
		}
	}
}

func TestOnlyTheCommandTellsThatDDRead(t *testing.T) {
	t.Parallel()
	const end = "256+0 records in\n256+0 records out\n268435456 bytes (268 MB, 256 MiB) copied, 2 s, 134 MB/s\n"
	for claim, c := range map[string]struct {
		text, rw, cache string
		assumed         bool
	}{
		"none":                      {end, "write", "", true},
		"a read":                    {"$ sudo dd if=/data/f of=/dev/null bs=1M iflag=direct\n" + end, "read", "direct", false},
		"a write":                   {"# dd if=/dev/zero of=f bs=1M count=256\n" + end, "write", "buffered", false},
		"flags beside direct":       {"# dd if=/dev/zero of=f bs=1M oflag=dsync,direct\n" + end, "write", "direct", false},
		"direct on the other side":  {"# dd if=f of=g bs=1M iflag=direct\n" + end, "write", "buffered", false},
		"a flag that is no direct":  {"# dd if=f of=/dev/null bs=1M iflag=directory\n" + end, "read", "buffered", false},
		"a command of a loop":       {"$ for i in 1 2 3; do dd if=/dev/zero of=t bs=1M count=1024 oflag=direct; done\n" + end, "write", "direct", false},
		"a command in Markdown":     {"We read it with `dd if=f of=/dev/null bs=1M iflag=direct`:\n" + end, "read", "direct", false},
		"a command in another":      {"$ echo $(dd if=f of=/dev/null iflag=direct)\n" + end, "read", "direct", false},
		"a command before a pipe":   {"$ dd if=/dev/zero of=f bs=1M oflag=direct|tee x\n" + end, "write", "direct", false},
		"a command in the back":     {"$ dd if=/dev/zero of=f bs=1M oflag=dsync,direct&\n" + end, "write", "direct", false},
		"directory before a pipe":   {"$ dd if=f of=/dev/null iflag=directory|tee x\n" + end, "read", "buffered", false},
		"one that had its result":   {"# dd if=f of=/dev/null bs=1M\n" + end + end, "write", "", true},
		"a word that is none":       {"added if=f of=/dev/null\n" + end, "write", "", true},
		"the last line alone":       {"268435456 bytes (268 MB, 256 MiB) copied, 2 s, 134 MB/s", "write", "", true},
		"French":                    {"256+0 enregistrements lus\n256+0 enregistrements écrits\n268435456 octets (268 MB, 256 MiB) copiés, 2 s, 134 MB/s", "write", "", true},
		"Chinese":                   {"记录了256+0 的读入\n记录了256+0 的写出\n268435456字节（268 MB，256 MiB）已复制，2 s，134 MB/s", "write", "", true},
		"Russian":                   {"256+0 записей получено\n256+0 записей отправлено\n268435456 байт (268 MB, 256 MiB) скопирован, 2 s, 134 MB/s", "write", "", true},
		"words of another language": {"256+0 Datensätze ein\n256+0 Datensätze aus\n268435456 Bytes (268 MB, 256 MiB) kopiert, 2 s, 134 MB/s", "write", "", true},
	} {
		t.Run(claim, func(t *testing.T) {
			all := found(t, c.text)
			o := all[len(all)-1]
			if o.Err != nil || o.Job.RW != c.rw || o.Cache != c.cache || o.Assumed != c.assumed || o.Claim.Read.Bytes+o.Claim.Write.Bytes != 256*aMiB {
				t.Errorf("%+v", o)
			}
		})
	}
}

// A page may write the end of a line as a sign, which is the end of a line there too.
func TestWhatStandsBehindAnEscapedEndOfALineIsFound(t *testing.T) {
	t.Parallel()
	json := golden(t, "fio-3.33-randrw.json")
	report := golden(t, "sysbench-1.0.20-rndrd.txt")
	for claim, text := range map[string]string{
		"in the JSON, often":  strings.Replace(json, ",\n", ",&#10;&NewLine;", 90),
		"instead of each":     strings.ReplaceAll(json, "\n", "&#10;"),
		"as DOS writes it":    strings.ReplaceAll(json, "\n", "&#13;&#10;"),
		"behind the JSON too": json + "\n&#10;&#10;\n",
	} {
		all := found(t, text+"\n"+report+"\n"+fioLine+"\n")
		if len(all) != 3 || all[0].Err != nil || all[0].Job.RW != "randrw" || all[1].Job.Tool != "sysbench" || all[2].Claim.Read.IOPS != 647 {
			t.Errorf("%s: %+v", claim, all)
		}
	}
	const dd = "256+0 records in&#10;256+0 records out&#10;268435456 bytes (268 MB, 256 MiB) copied, 2 s, 134 MB/s"
	if all := found(t, "<pre>$ dd if=/dev/zero of=f bs=1M oflag=direct&#10;"+dd+"</pre>"); len(all) != 1 || all[0].Line != 1 || all[0].Cache != "direct" {
		t.Errorf("a command with its result: %+v", all)
	}
}

func TestABadOutputCostsItself(t *testing.T) {
	t.Parallel()
	real, report := golden(t, "fio-3.33-mixed.json"), golden(t, "sysbench-1.0.20-rndrd.txt")
	for claim, c := range map[string]struct{ text, says string }{
		"a line of fio's that is cut off":   {"  read : io=8192.0MB, bw=4300.3MB/s, iops=86", "cut off"},
		"a job of fio's without figures":    {"x: (groupid=0, jobs=1): err= 0: pid=1: Wed\n\nRun status group 0 (all jobs):\n", "without figures"},
		"one that failed":                   {"x: (groupid=0, jobs=1): err= 5: pid=1: Wed\n" + fioLine + "\nRun status group 0 (all jobs):", "error 5"},
		"a figure beyond all":               {"read : io=9999999999999999999PB, bw=1MB/s, iops=8600, runt=  1905msec", "beyond"},
		"two dots in a number":              {"read : io=1.2.3MB, bw=1MB/s, iops=8600, runt=  1905msec", "no figure"},
		"figures that do not fit":           {"read : io=8192MB, bw=1MB/s, iops=8600, runt=  1905msec", "contradicts"},
		"JSON that breaks off":              {real[:len(real)/2], "breaks off"},
		"JSON of a job that failed":         {golden(t, "fio-3.33-failed.json"), "error"},
		"dd of no storage":                  {"# dd if=/dev/zero of=/dev/null bs=1M\n268435456 bytes (268 MB) copied, 0.01 s, 26.8 GB/s", "no storage"},
		"dd that is cut off":                {"268435456 bytes (268 MB) copied, 2 s, 99", "no line such as"},
		"dd that contradicts itself":        {"268435456 bytes (268 MB) copied, 2 s, 999 MB/s", "contradicts"},
		"a report of sysbench's cut off":    {report[:strings.Index(report, "General")], "total time"},
		"a report that another one follows": {report[:strings.Index(report, "General")] + "sysbench 1.0.20\n", "total time"},
	} {
		t.Run(claim, func(t *testing.T) {
			all := found(t, "first\n"+c.text+"\n"+fioLine+"\n")
			if len(all) != 2 || all[0].Err == nil || !strings.Contains(all[0].Err.Error(), c.says) || all[0].Claim != (record.Reported{}) || all[1].Claim.Read.IOPS != 647 {
				t.Fatalf("%+v", all)
			}
			if all[0].Line != 2 && !strings.HasPrefix(c.text, "fio") && !strings.HasPrefix(c.text, "# dd") {
				t.Errorf("line %d", all[0].Line)
			}
		})
	}
}

func TestOneRunOfFioIsOneOutput(t *testing.T) {
	t.Parallel()
	state := func(elapsed, ms, bytes int) string {
		return fmt.Sprintf("{\"fio version\":\"fio-3.33\",\"timestamp\":%d,\"jobs\":[{\"jobname\":\"x\",\"elapsed\":%d,\"job options\":{\"rw\":\"read\",\"bs\":\"4k\"},"+
			"\"read\":{\"io_bytes\":%d,\"bw_bytes\":%d,\"iops\":%d,\"total_ios\":%d,\"runtime\":%d},\"write\":{}}]}", 1700000000+elapsed, elapsed, bytes, bytes*1000/ms, bytes/4096*1000/ms, bytes/4096, ms)
	}
	const text = "x: (groupid=0, jobs=1): err= 0: pid=1\n  read: IOPS=1000, BW=4000KiB/s (4096kB/s)(7.81MiB/2000msec)\n\nRun status group 0 (all jobs):"
	last := state(3, 2000, 8192000)
	terse := "3;fio-3.33;x;0;0;8000;4000;1000;2000" + strings.Repeat(";0", 100)
	for claim, c := range map[string]struct {
		text string
		want int
	}{
		"its states are the last of them": {state(2, 1000, 4096000) + "\n" + last, 1},
		"text after JSON":                 {last + "\n" + text, 1},
		"JSON after text":                 {text + "\n" + last, 1},
		"two runs are two":                {last + "\n" + strings.Replace(last, "1700000003", "1700000099", 1), 2},
		"two texts are two":               {text + "\n" + text, 2},
		"terse before text":               {terse + "\n\n" + text, 1},
		"terse before JSON":               {terse + "\n" + last, 1},
		"two terse lines are two":         {terse + "\n\n" + strings.Replace(terse, ";x;", ";y;", 1), 2},
		"terse lines of two jobs first":   {terse + "\n" + strings.Replace(terse, ";x;0;0;8000;4000", ";y;0;0;4000;2000", 1) + "\n" + text, 2},
	} {
		all := found(t, c.text)
		if o := all[len(all)-1]; len(all) != c.want || o.Err != nil || o.Claim.Seconds != 2 || o.Line != 1 && c.want == 1 {
			t.Errorf("%s: %+v", claim, all)
		}
	}
}

func TestTextsWithoutEndAreBounded(t *testing.T) {
	t.Parallel()
	all, left, err := find(strings.NewReader(strings.Repeat(fioLine+"\n", maxFound+3)))
	if len(all) != maxFound || left != 3 || err != nil {
		t.Errorf("%d, %d left, %v", len(all), left, err)
	}
	if _, _, err := find(strings.NewReader(strings.Repeat("{\n", maxKept/2+1))); err == nil || !strings.Contains(err.Error(), "split it") {
		t.Errorf("%v", err)
	}
	for _, hostile := range []string{"{\"fio version\":\n", "{\"fio version\":{\n", "sysbench 1.0\n", "sysbench 1.0\nRunning the test with following options:\n", "1+0 records in\n", "x: (groupid=0, jobs=1): err= 0: pid=1\n"} {
		if _, _, err := find(strings.NewReader(strings.Repeat(hostile, 30_000))); err != nil {
			t.Errorf("%q: %v", hostile, err)
		}
	}
}

func imports(t *testing.T, texts ...[2]string) *Imported {
	t.Helper()
	g := &Imported{}
	for _, text := range texts {
		must.OK(t, g.Add(text[0], strings.NewReader(text[1]), Told{}))
	}
	g.Close()
	return g
}

func TestOutputsAreCalledAfterTheirText(t *testing.T) {
	t.Parallel()
	const writes = "  write: IOPS=647, BW=324MiB/s (340MB/s)(8192MiB/25285msec)"
	const sized = "{\"fio version\":\"fio-3.33\",\"jobs\":[{\"jobname\":\"x\",\"groupid\":0,\"error\":0,\"job options\":{\"rw\":\"read\",\"bs\":\"4k\",\"size\":\"1G\"},\"read\":{\"io_bytes\":4096000,\"bw_bytes\":4096000,\"iops\":1000,\"runtime\":1000},\"write\":{}}]}"
	const bare = "x: (g=0): rw=read, bs=4K-4K, ioengine=psync, iodepth=1\nx: (groupid=0, jobs=1): err= 0: pid=1\n  read: IOPS=647, BW=2588KiB/s (2650kB/s)(10352KiB/4000msec)"
	for claim, c := range map[string]struct {
		texts [][2]string
		want  string
	}{
		"one output has the file's name":     {[][2]string{{"kata.txt", fioLine}}, "kata fio read 0"},
		"so do several of different jobs":    {[][2]string{{"kata.txt", fioLine + "\n" + writes}}, "kata fio read 0, kata fio write 0"},
		"those of one job are numbered":      {[][2]string{{"kata.txt", fioLine + "\n" + fioLine}}, "kata-1 fio read 0, kata-2 fio read 0"},
		"texts of one name are rounds":       {[][2]string{{"kata.txt", fioLine}, {"kata.log", fioLine}}, "kata fio read 0, kata fio read 1"},
		"a name that no target can have":     {[][2]string{{"\x1b[2J.txt", fioLine}}, "imported fio read 0"},
		"text is of the one job with a size": {[][2]string{{"a.txt", bare}, {"b.txt", sized}}, "a read 4k 1G 0, b read 4k 1G 0"},
		"not where there are two":            {[][2]string{{"a.txt", bare}, {"b.txt", sized + "\n" + strings.ReplaceAll(sized, "1G", "2G")}}, "a read 4k 0, b read 4k 1G 0, b read 4k 2G 0"},
	} {
		t.Run(claim, func(t *testing.T) {
			g := imports(t, c.texts...)
			var got []string
			for _, cell := range g.Cells {
				got = append(got, cell.Target+" "+cell.Job+" "+string(rune('0'+cell.Round)))
			}
			if strings.Join(got, ", ") != c.want {
				t.Errorf("got  %s\nwant %s", strings.Join(got, ", "), c.want)
			}
			for _, j := range g.Plan.Jobs {
				if (j.Size > 0) != strings.HasSuffix(j.Name, "G") {
					t.Errorf("%+v", j)
				}
			}
		})
	}
}

func TestWhatIsLeftOutIsCountedAndSaid(t *testing.T) {
	t.Parallel()
	g := imports(t, [2]string{"notes.txt", fioLine + "\nread : io=8192MB, bw=1MB/s, iops=8600, runt=  1905msec\n" + fioLine + "\n268435456 bytes (268 MB) copied, 2 s, 134 MB/s\n"})
	said := map[string]string{}
	for _, f := range g.Findings {
		said[f.Code] = f.Message
	}
	for code, want := range map[string]string{
		FoundUnread: "notes.txt: 1 of the outputs could not be read: notes.txt:2: fio's text:", FoundDirection: "notes.txt: outputs of dd without their command",
		FoundNumbered: "notes.txt: outputs of a job that is there more than once: 2", FoundUnknown: "imported:",
	} {
		if !strings.HasPrefix(said[code], want) {
			t.Errorf("%s: %q", code, said[code])
		}
	}
	if len(g.Cells) != 3 {
		t.Errorf("%d cells", len(g.Cells))
	}
}

// FuzzFind wants of any text that it is read without a panic, within limits, and
// that everything that comes of it can stand in a record.
func FuzzFind(f *testing.F) {
	files, err := filepath.Glob("testdata/*.*")
	if err != nil || len(files) == 0 {
		f.Fatal("no testdata")
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		must.OK(f, err)
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		g := &Imported{}
		must.OK(t, g.Add("fuzz", strings.NewReader(string(text)), Told{}))
		g.Close()
		names := map[string]bool{}
		for _, j := range g.Plan.Jobs {
			if j.Name == "" || names[j.Name] {
				t.Errorf("the job %q is there twice, or has no name", j.Name)
			}
			names[j.Name] = true
		}
		for _, c := range g.Cells {
			if err := record.Validate(&c); err != nil || !names[c.Job] {
				t.Errorf("%+v of %q: %v", c, c.Job, err)
			}
		}
	})
}
