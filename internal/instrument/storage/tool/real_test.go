package tool

import (
	"bytes"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/instrument/storage"
	"github.com/tare-bench/tare/internal/probe"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/internal/testing/need"
	"github.com/tare-bench/tare/record"
)

// layOut writes files like the probe: completely, not sparse.
func layOut(t *testing.T, files []File) {
	t.Helper()
	for _, f := range files {
		must.OK(t, os.WriteFile(f.Path, bytes.Repeat([]byte{7}, int(f.Size)), 0o644))
	}
}

// run runs a real tool and fails the test on an error.
func run(t *testing.T, args []string) (stdout, stderr string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr, cmd.Env = &out, &errs, []string{"LC_ALL=C"}
	err := cmd.Run()
	must.That(t, err == nil, "%q: %v\n%s%s", args, err, &out, &errs)
	return out.String(), errs.String()
}

// spoken makes fio print its progress as text before its JSON.
func spoken(args []string) []string {
	args = slices.Clone(args)
	args[slices.Index(args, "--output-format=json")] = "--output-format=normal,json"
	return args
}

// sizes returns the sizes of all files in a folder.
func sizes(t *testing.T, dir string) map[string]int64 {
	t.Helper()
	entries := must.Get(os.ReadDir(dir))(t)
	all := map[string]int64{}
	for _, e := range entries {
		info := must.Get(e.Info())(t)
		all[filepath.Join(dir, e.Name())] = info.Size()
	}
	return all
}

// laidOut lays out the files of a job and returns its command line and their sizes.
func laidOut(t *testing.T, j storage.Job, at Place) (args []string, before map[string]int64) {
	t.Helper()
	files, err := Files(j, at)
	must.OK(t, err)
	layOut(t, files)
	if args, err = Command(j, at); err != nil {
		t.Fatal(err)
	}
	return args, sizes(t, at.Dir)
}

const layingOut = "Laying out IO file"

func TestRealFioReusesPreparedFiles(t *testing.T) {
	base := storage.Job{Tool: storage.ToolFio, Name: "job of fio", BS: 4096, Size: 1 << 20}
	for name, change := range map[string]func(*storage.Job){
		"one file, read":                                  func(j *storage.Job) { j.RW = "randread"; j.NumJobs = 3 },
		"one file, written":                               func(j *storage.Job) { j.RW = "randwrite"; j.EndFsync = true },
		"one file, read and written":                      func(j *storage.Job) { j.RW = "randrw"; j.Engine, j.IODepth = "libaio", 4 },
		"size that is no multiple of the block size":      func(j *storage.Job) { j.RW = "read"; j.BS, j.Size = 48<<10, 1<<20 },
		"many files":                                      func(j *storage.Job) { j.RW = "randread"; j.Files, j.FileSize = 10, 64<<10 },
		"many files, read by threads":                     func(j *storage.Job) { j.RW = "read"; j.Files, j.NumJobs = 5, 3 },
		"many files, written":                             func(j *storage.Job) { j.RW = "write"; j.Files, j.NumJobs = 5, 2 },
		"size that is no multiple of the number of files": func(j *storage.Job) { j.RW = "randread"; j.Files = 7 },
		"more files than fio keeps open":                  func(j *storage.Job) { j.RW = "randread"; j.Files, j.FileSize = 700, 4096 },
		"time-based":                                      func(j *storage.Job) { j.RW = "randread"; j.Runtime, j.TimeBased = 300*time.Millisecond, true },
	} {
		t.Run(name, func(t *testing.T) {
			j := base
			change(&j)
			at := Place{Program: need.Tool(t, "fio"), Dir: t.TempDir(), Limit: 20 * time.Second}
			args, before := laidOut(t, j, at)
			stdout, stderr := run(t, spoken(args))
			check.That(t, !strings.Contains(stdout+stderr, layingOut), "fio laid out files itself:\n%.2000s", stdout)
			check.Equal(t, "fio left", sizes(t, at.Dir), before)
			var all int64
			for _, size := range before {
				all += size
			}
			c, version, err := Parse(j, stdout, stderr)
			must.That(t, err == nil && strings.HasPrefix(version, "fio-"), "%q %v", version, err)
			sameAsFios(t, stdout[strings.Index(stdout, "\n{"):], c, "lat_ns")
			moved := c.Read.Bytes + c.Write.Bytes
			check.That(t, moved > 0 && moved%j.BS == 0 && c.Read.IOs+c.Write.IOs == moved/j.BS, "%+v is not a multiple of the block size %d", c, j.BS)
			check.That(t, j.TimeBased || len(before) <= 1 || c.Read.Bytes+c.Write.Bytes == all,
				"transferred %d bytes, the files have %d", c.Read.Bytes+c.Write.Bytes, all)
		})
	}
}

// Check that the test above can fail.
func TestRealFioReportsLayingOutFiles(t *testing.T) {
	j := storage.Job{Tool: storage.ToolFio, Name: "x", RW: "read", BS: 4096, Size: 1 << 20}
	at := Place{Program: need.Tool(t, "fio"), Dir: t.TempDir(), Limit: 20 * time.Second}
	files, _ := Files(j, at)
	files[0].Size -= 4096
	layOut(t, files)
	args := must.Get(Command(j, at))(t)
	stdout, _ := run(t, spoken(args))
	check.That(t, strings.Contains(stdout, layingOut), "fio does not report a too short file:\n%.1000s", stdout)
}

func TestRealFioRunsJobFilesOnPreparedFiles(t *testing.T) {
	for name, text := range map[string]string{
		"two jobs with separate files": "[global]\nsize=1m\nbs=4k\ndirect=1\n[read them]\nrw=randread\nnumjobs=2\nnrfiles=3\nfilesize=64k\n[write]\nrw=randwrite\n",
		"two jobs on one file":         "[global]\nsize=512k\nfilename=shared\n[r]\nrw=read\n[w]\nrw=write\nend_fsync\n",
		"list of two files":            "[r]\nrw=randread\nbssplit=4k/50:8k/50\nsize=512k\nfilename=a:b\n",
		"offset":                       "[r]\nrw=read\nbs=4k\nsize=256k\noffset=256k\n",
	} {
		t.Run(name, func(t *testing.T) {
			j := jobOf(t, text)
			at := Place{Program: need.Tool(t, "fio"), Dir: t.TempDir(), Limit: 20 * time.Second}
			args, before := laidOut(t, j, at)
			stdout, stderr := run(t, spoken(args))
			check.Lacks(t, "fio laid out files during the job", stdout, layingOut)
			check.Equal(t, "fio left", sizes(t, at.Dir), before)
			c, version, err := Parse(j, stdout, stderr)
			must.That(t, err == nil && c.Read.Latency.P99 != 0 && strings.HasPrefix(version, "fio-"), "%q %+v %v", version, c, err)
			sameAsFios(t, stdout[strings.Index(stdout, "\n{"):], c, "lat_ns")
		})
	}
}

func TestRealDDTransfersEveryBlock(t *testing.T) {
	for _, name := range []string{"dd", "busybox"} {
		for _, rw := range []string{"write", "read"} {
			t.Run(name+" "+rw, func(t *testing.T) {
				j := storage.Job{Name: "dd", Tool: storage.ToolDD, RW: rw, BS: 4096, Count: 500}
				at := Place{Program: need.Tool(t, name), Dir: t.TempDir()}
				args, _ := laidOut(t, j, at)
				if name == "busybox" {
					args = slices.Insert(args, 1, "dd")
				}
				stdout, stderr := run(t, args)
				c, _, err := Parse(j, stdout, stderr)
				if name == "busybox" && err != nil && !strings.Contains(stderr, "copied") {
					// Debian's build does not print the third line; this is reported.
					check.That(t, strings.Contains(err.Error(), "no line such as"), "%v of %q", err, stderr)
					return
				}
				check.That(t, err == nil && c.Read.Bytes+c.Write.Bytes == 500*4096 && c.Read.IOs+c.Write.IOs == 500, "%+v %v of %q", c, err, stderr)
				// 2048000 bytes (2.0 MB, 2.0 MiB) copied, 0.0436335 s, 47 MB/s
				words := strings.Fields(stderr[strings.LastIndex(strings.TrimSpace(stderr), "\n"):])
				took := number(t, words[slices.Index(words, "copied,")+1])
				f := c.Read
				if rw == "write" {
					f = c.Write
				}
				check.That(t, c.Seconds == took && f.Bandwidth == 500*4096/took && f.IOPS == 500/took, "%+v of %q", c, stderr)
				check.Equal(t, "the file", sizes(t, at.Dir)[at.file()], 500*4096)
			})
		}
	}
}

func TestRealSysbenchReusesPreparedFiles(t *testing.T) {
	for _, rw := range []string{storage.RWRead, storage.RWWrite, storage.RWRandRead, storage.RWRandWrite, storage.RWRandRW} {
		t.Run(rw, func(t *testing.T) {
			j := storage.Job{Name: rw, Tool: storage.ToolSysbench, RW: rw, BS: 16 << 10, Size: 1000000, Files: 3, NumJobs: 2, Requests: 300}
			if rw == storage.RWRandWrite {
				j.Fsync = 10
			}
			at := Place{Program: need.Tool(t, "sysbench"), Dir: t.TempDir(), Limit: 20 * time.Second, In: probe.InArgs}
			args, before := laidOut(t, j, at)
			root := t.TempDir()
			must.OK(t, probe.Install(root))
			args[0] = filepath.Join(root, args[0])
			stdout, stderr := run(t, args)
			c, version, err := Parse(j, stdout, stderr)
			must.That(t, err == nil && strings.HasPrefix(version, "sysbench 1."), "%q %v of\n%s", version, err, stdout)
			reads, writes := rw != storage.RWWrite && rw != storage.RWRandWrite, rw != storage.RWRead && rw != storage.RWRandRead
			check.That(t, (c.Read.IOs > 0) == reads && (c.Write.IOs > 0) == writes && (j.Fsync != 0 || c.Read.IOs+c.Write.IOs == 300),
				"%+v of 300 requests of\n%s", c, stdout)
			sameAsSysbenchs(t, stdout, c)
			check.That(t, j.Fsync != 0 || c.Read.Bytes+c.Write.Bytes == 300*j.BS, "%d bytes in 300 requests", c.Read.Bytes+c.Write.Bytes)
			check.Equal(t, "sysbench left", sizes(t, at.Dir), before)
		})
	}
}

// sameAsSysbenchs compares a result with the output of sysbench, to the number of printed
// digits. The rate in MiB has two digits and is computed from blocks. The quantiles are
// from sysbench's histogram, which has three digits.
func sameAsSysbenchs(t *testing.T, text string, c record.Reported) {
	t.Helper()
	printed := map[string]string{}
	for line := range strings.Lines(text) {
		if key, value, ok := strings.Cut(line, ":"); ok {
			printed[strings.TrimSpace(key)] = strings.TrimSpace(value)
		}
	}
	near := func(key string, got, off float64) {
		t.Helper()
		want := number(t, strings.TrimSuffix(printed[key], "s"))
		check.That(t, math.Abs(got-want) <= off, "%s: printed %v, parsed %v", key, want, got)
	}
	near("total time", c.Seconds, 0)
	near("reads/s", c.Read.IOPS, 0)
	near("writes/s", c.Write.IOPS, 0)
	near("read, MiB/s", c.Read.Bandwidth/(1<<20), 0.0051)
	near("written, MiB/s", c.Write.Bandwidth/(1<<20), 0.0051)
	if l := c.Read.Latency; l.Mean > 0 {
		near("max", float64(l.Max)/1e6, 1e-9)
		near("avg", float64(l.Mean)/1e6, 1e-9)
		near("95th percentile", float64(l.P95)/1e6, 0.0056)
	}
}

func number(t *testing.T, printed string) float64 {
	t.Helper()
	return must.Get(strconv.ParseFloat(printed, 64))(t)
}
