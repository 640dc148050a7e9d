package notes

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tare-bench/tare/record"
)

// read scans a text in memory.
func read(t *testing.T, text string, o Options) *Notes {
	t.Helper()
	n, err := Read("notes.txt", strings.NewReader(text), o)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// has looks for a finding.
func (n *Notes) has(code string) string {
	for _, f := range n.Findings {
		if f.Code == code {
			return f.Message
		}
	}
	return ""
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-6*math.Max(math.Abs(a), math.Abs(b)) }

const mib = 1 << 20

func TestFioTextIsReadInItsOwnUnits(t *testing.T) {
	for _, c := range []struct {
		claim, text string
		read, write record.Flow
		seconds     float64
	}{
		{"2.x means 1024 by KB and MB", "  read : io=8192.0MB, bw=331762KB/s, iops=647, runt= 25285msec",
			record.Flow{Bytes: 8192 * mib, Bandwidth: 331762 * 1024, IOPS: 647}, record.Flow{}, 25.285},
		{"2.x writes bytes of what is slow", "  write: io=79528KB, bw=814106B/s, iops=198, runt=100032msec",
			record.Flow{}, record.Flow{Bytes: 79528 * 1024, Bandwidth: 814106, IOPS: 198}, 100.032},
		{"1.x has a blank before the comma", "  write: io=596856KB, bw=56946KB/s, iops=7118 , runt= 10481msec",
			record.Flow{}, record.Flow{Bytes: 596856 * 1024, Bandwidth: 56946 * 1024, IOPS: 7118}, 10.481},
		{"2.x counts IOPS in thousands", "  read : io=8192.0MB, bw=4.5GB/s, iops=132.5K, runt=  1905msec",
			record.Flow{Bytes: 8192 * mib, Bandwidth: 4.5 * 1024 * mib, IOPS: 132500}, record.Flow{}, 1.905},
		{"2.x in bits is an eighth", "  read : io=8192.0MB, bw=34404Mbit/s, iops=8600, runt=  1905msec",
			record.Flow{Bytes: 8192 * mib, Bandwidth: 34404.0 / 8 * mib, IOPS: 8600}, record.Flow{}, 1.905},
		{"3.x means 1024 by MiB", "  read: IOPS=647, BW=324MiB/s (340MB/s)(8192MiB/25285msec)",
			record.Flow{Bytes: 8192 * mib, Bandwidth: 324 * mib, IOPS: 647}, record.Flow{}, 25.285},
		{"3.x says more of writes", "  write: IOPS=76.8k, BW=600MiB/s (629MB/s)(176GiB/300001msec); 0 zone resets",
			record.Flow{}, record.Flow{Bytes: 176 << 30, Bandwidth: 600 * mib, IOPS: 76800}, 300.001},
		{"3.x with kb_base=1000 means 1000 by MB", "  read: IOPS=647, BW=340MB/s (324MiB/s)(8590MB/25285msec)",
			record.Flow{Bytes: 8590e6, Bandwidth: 340e6, IOPS: 647}, record.Flow{}, 25.285},
		{"a line of fio --client has a host before it", "<node-1>   read: IOPS=647, BW=324MiB/s (340MB/s)(8192MiB/25285msec)",
			record.Flow{Bytes: 8192 * mib, Bandwidth: 324 * mib, IOPS: 647}, record.Flow{}, 25.285},
		{"a group's sum alone is a result", "Run status group 0 (all jobs):\n   READ: io=8192.0MB, aggrb=331762KB/s, minb=331762KB/s, maxb=331762KB/s, mint=25285msec, maxt=25285msec",
			record.Flow{Bytes: 8192 * mib, Bandwidth: 331762 * 1024}, record.Flow{}, 25.285},
		{"both sums of a group are one result", "Run status group 0 (all jobs):\n   READ: bw=54.5MiB/s (57.1MB/s), 54.5MiB/s-54.5MiB/s (57.1MB/s-57.1MB/s), io=6537MiB (6854MB), run=120002-120002msec\n  WRITE: bw=54.5MiB/s (57.2MB/s), 54.5MiB/s-54.5MiB/s (57.2MB/s-57.2MB/s), io=6544MiB (6862MB), run=120002-120002msec",
			record.Flow{Bytes: 6537 * mib, Bandwidth: 54.5 * mib}, record.Flow{Bytes: 6544 * mib, Bandwidth: 54.5 * mib}, 120.002},
		{"latencies are in the unit of their line", "x: (groupid=0, jobs=1): err= 0: pid=1: Wed\n  write: io=79528KB, bw=814106B/s, iops=198, runt=100032msec\n    slat (usec): min=5, max=1031.3K, avg=363.76, stdev=13260.26\n    clat (usec): min=109, max=1325.7K, avg=39755.66, stdev=81798.27\n     lat (msec): min=3, max=1325, avg=40.25, stdev=83.48\n    clat percentiles (msec):\n     | 30.00th=[   31], 40.00th=[   31], 50.00th=[   31], 60.00th=[   36],\n     | 70.00th=[   36], 80.00th=[   36], 90.00th=[   36], 95.00th=[   37],\n     | 99.00th=[  165], 99.50th=[  799], 99.90th=[ 1221], 99.95th=[ 1237],\n     | 99.99th=[ 1319]\n     issued    : total=r=0/w=19882/d=0, short=r=0/w=0/d=0",
			record.Flow{}, record.Flow{Bytes: 79528 * 1024, IOs: 19882, Bandwidth: 814106, IOPS: 198,
				Latency: record.Latency{Mean: 39755660, P50: 31e6, P95: 37e6, P99: 165e6, P999: 1221e6, Max: 1325700000}}, 100.032},
	} {
		t.Run(c.claim, func(t *testing.T) {
			n := read(t, c.text, Options{})
			if len(n.Results) != 1 || n.has(FoundUnread) != "" {
				t.Fatalf("%d results: %+v", len(n.Results), n)
			}
			sameClaim(t, n.Results[0].Claim, record.Claim{Read: c.read, Write: c.write, Seconds: c.seconds})
		})
	}
}

func sameClaim(t *testing.T, got, want record.Claim) {
	t.Helper()
	for _, both := range [][2]record.Flow{{got.Read, want.Read}, {got.Write, want.Write}} {
		a, b := both[0], both[1]
		if a.Bytes != b.Bytes || a.IOs != b.IOs || !near(a.Bandwidth, b.Bandwidth) || !near(a.IOPS, b.IOPS) || a.Latency != b.Latency {
			t.Errorf("got %+v\nwant %+v", a, b)
		}
	}
	if !near(got.Seconds, want.Seconds) {
		t.Errorf("%g s, want %g", got.Seconds, want.Seconds)
	}
}

// TestRealOutputsOfFioAgree reads what fio 3.33 printed of such jobs.
func TestRealOutputsOfFioAgree(t *testing.T) {
	const readBytes, writeBytes = 7928 << 10, 8456 << 10
	for _, name := range []string{"fio-3.33-mixed.txt", "fio-3.33-jobs.txt", "fio-3.33-terse2.txt", "fio-3.33-terse3.txt", "fio-3.33-terse4.txt", "fio-3.33-terse5.txt", "fio-3.33.json.txt"} {
		t.Run(name, func(t *testing.T) {
			n := readFile(t, name, Options{})
			if len(n.Results) != 1 || n.has(FoundUnread) != "" {
				t.Fatalf("%d results, %v", len(n.Results), n.Findings)
			}
			r := n.Results[0]
			for _, f := range []struct {
				record.Flow
				bytes int64
			}{{r.Claim.Read, readBytes}, {r.Claim.Write, writeBytes}} {
				if f.Bytes != f.bytes || math.Abs(f.Bandwidth/4096/f.IOPS-1) > 0.01 || f.Latency.Mean <= 0 || f.Latency.Max < f.Latency.Mean {
					t.Errorf("%+v", f)
				}
				if rate := float64(f.Bytes) / r.Claim.Seconds; math.Abs(f.Bandwidth/rate-1) > 0.06 {
					t.Errorf("%g of %d bytes in %g s", f.Bandwidth, f.Bytes, r.Claim.Seconds)
				}
			}
			if r.Job.Name != "mix" || name != "fio-3.33-terse2.txt" && r.Version != "fio-3.33" {
				t.Errorf("%q of %q", r.Job.Name, r.Version)
			}
		})
	}
}

func TestTextsAroundResultsDoNotHideThem(t *testing.T) {
	const line = "  read: IOPS=647, BW=324MiB/s (340MB/s)(8192MiB/25285msec)"
	for claim, text := range map[string]string{
		"a quotation":                     "> kata:\n>> " + line,
		"an end of line of DOS":           "kata:\r\n" + line + "\r\n",
		"colours":                         "\x1b[1mkata:\x1b[0m\n\x1b[32m" + line + "\x1b[0m\x1b]0;title\x07",
		"a mark of UTF-8":                 "\ufeffkata:\n" + line,
		"bytes that are no text":          "kata:\n\x00\xff\xfe\x80\n" + line,
		"a line of ten megabytes":         "kata:\n" + strings.Repeat("x", 10<<20) + "\n" + line,
		"emphasis":                        "**kata:**\n" + line,
		"JSON that breaks off":            "kata:\n{\n  \"fio version\" : \"fio-3.33\",\n  \"jobs\" : [\n" + line,
		"a brace":                         "kata:\n{\n" + line,
		"sysbench's output that ends":     "kata:\nsysbench 0.5:  multi-threaded system evaluation benchmark\n\nRunning the test with following options:\n" + line,
		"a table":                         "| a | b |\n| --- | --- |\n| 1 | 2 |\nkata:\n" + line,
		"a command that a backslash ends": "kata:\nfio --name=x \\\n  --rw=read \\\n  --bs=512k\n" + line,
		"progress on the same line":       "kata:\nJobs: 1 (f=1): [r(1)][12.0%]\rJobs: 1 (f=1): [r(1)][100.0%]\r" + line,
	} {
		t.Run(claim, func(t *testing.T) {
			n := read(t, text, Options{})
			if len(n.Results) != 1 || n.Results[0].Target != "kata" || n.Results[0].Claim.Read.IOPS != 647 {
				t.Errorf("%+v", n)
			}
		})
	}
}

func TestWhoseAResultIs(t *testing.T) {
	const line = "\n  read: IOPS=647, BW=324MiB/s (340MB/s)(8192MiB/25285msec)\n"
	for _, c := range []struct{ claim, text, say, want string }{
		{"a label", "kata:" + line, "", "kata"},
		{"a label in Chinese means the host", "物理机：" + line, "", "host"},
		{"an option wins over a label", "kata:" + line, "mine", "mine"},
		{"the latest label counts", "kata:\nrunc:" + line, "", "runc"},
		{"a heading ends a label", "kata:\n## fio" + line, "", "notes"},
		{"what is no label is none", "note:" + line, "", "notes"},
		{"the runtime of a container that was started", "[root@node a]# ctr run --runtime io.containerd.kata.v2 -t --rm image x sh\n/ # fio --name=x --rw=read --bs=512k" + line, "", "kata"},
		{"containerd's default is runc", "[root@node a]# ctr run -t --rm image x sh\n/ # fio --name=x --rw=read --bs=512k" + line, "", "runc"},
		{"docker's runtime", "$ docker run --rm --runtime=runsc image fio --name=x --rw=read" + line, "", "runsc"},
		{"the prompt at which containers are started is the host's", "me@node:~$ docker run -it image sh\n/ # exit\nme@node:~$ fio --name=x --rw=read" + line, "", "host"},
		{"a prompt in a container says nothing", "root@3f2a9c:/# fio --name=x --rw=read" + line, "", "notes"},
		{"a label wins over prompts", "kata:\n[root@node a]# fio --name=x --rw=read" + line, "", "kata"},
	} {
		t.Run(c.claim, func(t *testing.T) {
			n := read(t, c.text, Options{Target: c.say})
			if len(n.Results) != 1 || n.Results[0].Target != c.want {
				t.Errorf("%+v, want %s", n.Results, c.want)
			}
			if unnamed := n.has(FoundUnnamed) != ""; unnamed != (c.want == "notes") {
				t.Errorf("findings %v", n.Findings)
			}
		})
	}
}

func TestCommandsGiveContext(t *testing.T) {
	for _, c := range []struct{ claim, line, want string }{
		{"fio with one dash and two", "fio --filename=/tmp/test -direct=1 -iodepth 1 -thread -rw=randread  -ioengine=libaio -bs=512k  -numjobs=8 --size=1G -group_reporting -name=randread",
			"fio randread bs=524288 size=1073741824 n=8 depth=1 libaio direct"},
		{"fio without direct", "$ sudo /usr/bin/fio --name=x --rw=randwrite --bs=4k --filesize=10M --nrfiles=100 --runtime=60 --time_based", "fio randwrite bs=4096 filesize=10485760 files=100 1m0s buffered"},
		{"a size of fio's in lower case", "fio --name=x --rw=read --size=20g", "fio read size=21474836480 buffered"},
		{"dd writes", "[root@node a]# dd if=/dev/zero of=/test/host.txt bs=4096 count=1024000 oflag=direct", "dd write bs=4096 count=1024000 direct"},
		{"dd to nowhere reads", "dd if=/data/f of=/dev/null bs=1M", "dd read bs=1048576 buffered"},
		{"dd's MB is of 1000", "dd if=/dev/zero of=f bs=1MB count=10", "dd write bs=1000000 count=10 buffered"},
		{"sysbench in a sentence", "运行测试： sysbench --test=fileio --file-total-size=5G --file-test-mode=rndrw --max-requests=5000 --num-threads=16 --file-num=10 --file-extra-flags=direct --file-fsync-freq=0 --file-block-size=16384 run",
			"sysbench randrw bs=16384 size=5368709120 files=10 n=16 requests=5000 direct"},
		{"sysbench 1.0", "sysbench fileio --file-total-size=5G --file-test-mode=seqrd --threads=4 --time=30 run", "sysbench read size=5368709120 n=4 30s buffered"},
		{"a container's command has the tool's in it", "docker run --rm image fio --name=x --rw=read --bs=4k", "fio read bs=4096 buffered"},
		{"talk of fio is none", "we ran fio with direct=1 on all of them", ""},
		{"fio's version is none", "fio --version", ""},
		{"sysbench of a CPU is none", "sysbench --test=cpu run", ""},
		{"a path with a tool's name is none", "ls /root/fio /tmp/dd", ""},
	} {
		t.Run(c.claim, func(t *testing.T) {
			got := ""
			if cmd, ok := parseCommand(c.line); ok {
				got = known(cmd)
			}
			if got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// known writes what is known of a command.
func known(c command) string {
	j := c.job
	out := j.Tool + " " + j.RW
	for _, v := range []struct {
		name string
		n    int64
	}{{"bs", j.BS}, {"size", j.Size}, {"filesize", j.FileSize}, {"count", j.Count}, {"files", int64(j.Files)}, {"n", int64(j.NumJobs)}, {"requests", j.Requests}, {"depth", int64(j.IODepth)}} {
		if v.n != 0 {
			out += fmt.Sprintf(" %s=%d", v.name, v.n)
		}
	}
	if j.Engine != "" {
		out += " " + j.Engine
	}
	if j.Runtime != 0 {
		out += " " + j.Runtime.String()
	}
	return out + " " + cacheOf(c)
}

func TestWhatCannotBeReadIsToldWithItsLine(t *testing.T) {
	for claim, c := range map[string]struct{ text, says string }{
		"a line of fio's that is cut off": {"x\n  read : io=8192.0MB, bw=4300.3MB/s, iops=86", "notes.txt:2: a line of fio's"},
		"a job of fio's without figures":  {"x: (groupid=0, jobs=1): err= 0: pid=1: Wed\n\nRun status group 0 (all jobs):\n", "notes.txt:1: a job of fio's without figures"},
		"a figure beyond all":             {"read : io=9999999999999999999PB, bw=1MB/s, iops=8600, runt=  1905msec", "notes.txt:1: a figure of fio's"},
		"two dots in a number":            {"read : io=1.2.3MB, bw=1MB/s, iops=8600, runt=  1905msec", "notes.txt:1: a figure of fio's"},
		"a terse line with fields gone":   {"3;fio-3.33;x;" + strings.Repeat("0;", 60), "notes.txt:1: a terse line"},
		"a cell that is no figure":        {"dd if=/dev/zero of=f\n\n| | count=10 |\n| --- | --- |\n| kata | 128MB/s |\n| runc | fast |\n", "notes.txt:6: a cell of a table"},
	} {
		t.Run(claim, func(t *testing.T) {
			n := read(t, c.text+"\n  read: IOPS=647, BW=324MiB/s (340MB/s)(8192MiB/25285msec)\n", Options{})
			if got := n.has(FoundUnread); !strings.Contains(got, c.says) {
				t.Errorf("%q does not say %q", got, c.says)
			}
			if last := n.Results[len(n.Results)-1]; last.Claim.Read.IOPS != 647 {
				t.Errorf("the line after it was not read: %+v", n.Results)
			}
		})
	}
}

func TestAJobThatFailedHasNoFigures(t *testing.T) {
	n := read(t, "x: (groupid=0, jobs=1): err= 5: pid=1: Wed\n  read: IOPS=647, BW=324MiB/s (340MB/s)(8192MiB/25285msec)\n", Options{})
	cells := Gather(n).Cells
	if len(cells) != 1 || cells[0].Failure == nil || cells[0].Claim != nil || cells[0].Validate() != nil {
		t.Errorf("%+v", cells)
	}
}

func TestResultsBeyondTheMostAreCounted(t *testing.T) {
	n := read(t, strings.Repeat("read: IOPS=647, BW=324MiB/s (340MB/s)(8192MiB/25285msec)\n", MaxResults+3), Options{Target: "kata"})
	if len(n.Results) != MaxResults || !strings.Contains(n.has(FoundLimit), "3 results were left out") {
		t.Errorf("%d results, %v", len(n.Results), n.Findings)
	}
}

func TestCommandsByOrder(t *testing.T) {
	const commands = "fio --name=a --rw=randread --bs=4k --size=1G\nfio --name=b --rw=write --bs=1M --size=1G\n"
	const reads, writes = "  read: IOPS=1, BW=1MiB/s (1MB/s)(1MiB/1msec)\n", "  write: IOPS=1, BW=1MiB/s (1MB/s)(1MiB/1msec)\n"
	for _, c := range []struct{ claim, text, jobs string }{
		{"results after each label have the commands' order", commands + "kata:\n" + reads + writes + "runc:\n" + reads + writes, "randread 4k, write 1M, randread 4k, write 1M"},
		{"one whose direction fits one command only is that one's", commands + "kata:\n" + writes + reads, "write 1M, randread 4k"},
		{"a command just before its result needs no order", commands + "kata:\n$ fio --name=c --rw=randwrite --bs=8k --size=1G\n" + writes, "randwrite 8k"},
		{"a heading ends the commands", commands + "## other\n" + reads, "fio read"},
		{"one command is of all results", "fio --name=a --rw=randread --bs=4k --size=1G\n" + reads + reads, "randread 4k, randread 4k"},
	} {
		t.Run(c.claim, func(t *testing.T) {
			var got []string
			for _, cell := range Gather(read(t, c.text, Options{Target: "x"})).Cells {
				got = append(got, cell.Job)
			}
			if strings.Join(got, ", ") != c.jobs {
				t.Errorf("got %s, want %s", strings.Join(got, ", "), c.jobs)
			}
		})
	}
}

func TestAReadThatFailsKeepsWhatCameBefore(t *testing.T) {
	dir := t.TempDir()
	f, err := os.Open(dir) // a folder opens and does not read
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if n, err := Read(filepath.Base(dir), f, Options{}); err == nil || n == nil {
		t.Errorf("%v, %v", n, err)
	}
}

// FuzzRead wants of any text that it is read without a panic, within limits, and
// that everything that comes of it can stand in a record.
func FuzzRead(f *testing.F) {
	files, err := filepath.Glob("testdata/*")
	if err != nil || len(files) == 0 {
		f.Fatal("no testdata")
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			continue // a folder of the fuzzer's own
		}
		f.Add(text)
	}
	f.Add([]byte("kata:\n| IOPS | a |\n|--|--|\n| kata | 1(2MB/s) |\n1+0 records in\n1+0 records out\n512 bytes copied, 0.1 s, 5 kB/s\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		n, err := Read("fuzz", strings.NewReader(string(text)), Options{})
		if err != nil {
			t.Fatal(err)
		}
		g := Gather(n)
		names := map[string]bool{}
		for _, j := range g.Plan.Jobs {
			if j.Name == "" || names[j.Name] {
				t.Errorf("the job %q is there twice, or has no name", j.Name)
			}
			names[j.Name] = true
		}
		for _, c := range g.Cells {
			if err := c.Validate(); err != nil {
				t.Errorf("%+v: %v", c, err)
			}
			if !names[c.Job] {
				t.Errorf("the job %q is not in the plan", c.Job)
			}
		}
	})
}
