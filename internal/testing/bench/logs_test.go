package bench

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/testing/must"
)

// BenchmarkLogs compares reading a log of 1 GB with a grep that counts lines of it. tare
// must read at least 200 MB per second of CPU time (user and system), and use no more
// memory than for a quarter of the log. grep writes into a pipe, because with /dev/null
// it stops at the first line.
func BenchmarkLogs(b *testing.B) {
	dir := b.TempDir()
	large, small := relabelled(b, dir, 4129), relabelled(b, dir, 1100)
	of := func(log os.FileInfo, peaks *[]float64, command func(path string) *exec.Cmd) func() float64 {
		return func() float64 {
			c := command(filepath.Join(dir, log.Name()))
			output(b, c)
			must.OK(b, os.RemoveAll(filepath.Join(dir, "record.jsonl")))
			*peaks = append(*peaks, float64(c.ProcessState.SysUsage().(*syscall.Rusage).Maxrss)/1024)
			return float64(c.ProcessState.UserTime()+c.ProcessState.SystemTime()) / float64(log.Size()) * 1e6
		}
	}
	grep := func(path string) *exec.Cmd { return exec.Command("grep", "-c", "Create() start", path) }
	read := func(path string) *exec.Cmd {
		return tare(b, "startup", "--quiet", "--format", "json", "--log", path, "-o", filepath.Join(dir, "record.jsonl"))
	}
	var greps, peaks, smallPeaks, speeds []float64
	byTare := of(large, &peaks, read)
	compare(b, side{"CPU of grep -c for a MB", of(large, &greps, grep)}, side{"the same again (A/A)", of(large, &greps, grep)},
		side{"of tare startup --log", func() float64 {
			used := byTare()
			speeds = append(speeds, 1e9/used)
			return used
		}}, side{"of a log a quarter as large", of(small, &smallPeaks, read)})
	middle(b, "MB/cpu-s", speeds)
	middle(b, "MiB", peaks)
	middle(b, "MiB-of-a-quarter", smallPeaks)
}

// relabelled writes a log of n Kata starts in sequence, each with its own ids, process
// and times.
func relabelled(b *testing.B, dir string, starts int) os.FileInfo {
	b.Helper()
	text := must.Get(os.ReadFile("../../instrument/startup/logs/testdata/cripod.kata.log"))(b)
	places := regexp.MustCompile(`Nov 21 \d\d:\d\d:\d\d|2026-11-21T\d\d:\d\d:\d\d|\b30905\b|\b[0-9a-f]{64}\b`).FindAllIndex(text, -1)
	f := must.Get(os.Create(filepath.Join(dir, fmt.Sprintf("%d.log", starts))))(b)
	defer f.Close()
	w := bufio.NewWriter(f)
	for i := range starts {
		at, labels := 0, map[string]string{}
		for _, p := range places {
			old := string(text[p[0]:p[1]])
			if labels[old] == "" {
				labels[old] = label(old, i)
			}
			_, _ = fmt.Fprintf(w, "%s%s", text[at:p[0]], labels[old])
			at = p[1]
		}
		_, _ = fmt.Fprintf(w, "%s\n", bytes.TrimSpace(text[at:]))
	}
	must.OK(b, w.Flush())
	return must.Get(f.Stat())(b)
}

// label returns the replacement for a time, process or id in the i-th start.
func label(old string, i int) string {
	for _, layout := range []string{time.Stamp, "2006-01-02T15:04:05"} {
		if t, err := time.Parse(layout, old); err == nil {
			return t.Add(time.Duration(i) * 14 * time.Second).Format(layout)
		}
	}
	if len(old) < 64 {
		return fmt.Sprint(2000 + i)
	}
	return fmt.Sprintf("%x", sha256.Sum256(fmt.Append(nil, old, i)))
}
