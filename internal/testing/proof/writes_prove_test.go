//go:build prove

package proof

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/instrument/app"
	"github.com/tare-bench/tare/internal/testing/must"
)

// A neighbour with a write load must write as many blocks to its file as it reports.
// Blocks that it wrote twice count once in the file.
func TestNeighbourWritesWhatItReports(t *testing.T) {
	for _, target := range []string{"floor", "runc"} {
		t.Run(target, func(t *testing.T) {
			p := folders(t)
			seen := make(chan *wrote, 1)
			over := make(chan struct{})
			go func() { seen <- watchWrites(filepath.Join(p.dir, "data"), over) }()
			end := sync.OnceFunc(func() { close(over) })
			defer end()
			_, judged, _ := tare(p, app.Judge, "app", target, "--rounds", "1", "-t", "500ms", "--warm", "0", "-c", "1", "--answer-timeout", "20s", "--neighbour", "storage randwrite")
			end()
			w := <-seen
			must.That(t, w.file != nil, "the neighbour had no file open for writing")
			defer w.file.Close()
			blocks := must.Get(w.blocks())(t)
			// Two jobs write to one file without rewriting blocks, and continue briefly
			// after the last reading.
			least, most := float64(w.bytes)/2*0.9, float64(w.bytes)*1.1+16*mib
			if failed, total, _ := judged[0].Result(); failed != 0 || total != 2 || w.bytes == 0 || float64(blocks) < least || float64(blocks) > most {
				t.Errorf("reported %d bytes written, %d are in the file; %d of %d windows failed", w.bytes, blocks, failed, total)
			}
			t.Logf("%.1f MiB written, %.1f MiB in the file", float64(w.bytes)/mib, float64(blocks)/mib)
		})
	}
}

// wrote has the bytes written by a neighbour's fio (write_bytes) and its file.
type wrote struct {
	bytes int64
	file  *os.File
}

// watchWrites observes the neighbour of a run below a folder until the run is over.
func watchWrites(dir string, over <-chan struct{}) *wrote {
	w := &wrote{}
	for pid := 0; ; {
		select {
		case <-over:
			return w
		case <-time.After(5 * time.Millisecond):
		}
		if w.file == nil {
			if found, _ := filepath.Glob(filepath.Join(dir, "*", "*", "*", "neighbour")); len(found) > 0 {
				w.file, _ = os.Open(found[0])
			}
			continue
		}
		if pid == 0 {
			pid = writerOf(w.file)
		}
		if n, err := written(pid); err == nil {
			w.bytes = max(w.bytes, n)
		}
	}
}

// writerOf returns the pid of the process that has a file open for writing, 0 if there is
// none.
func writerOf(file *os.File) int {
	own, err := file.Stat()
	if err != nil {
		return 0
	}
	links, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, link := range links {
		at, err := os.Stat(link)
		if err != nil || !os.SameFile(own, at) {
			continue
		}
		if pid, err := strconv.Atoi(strings.Split(link, "/")[2]); err == nil && pid != os.Getpid() {
			return pid
		}
	}
	return 0
}

// written returns the bytes that a process sent to storage.
func written(pid int) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(text), "\nwrite_bytes: ")
	line, _, _ := strings.Cut(rest, "\n")
	return strconv.ParseInt(line, 10, 64)
}

// blocks returns the size of the file's non-zero blocks.
func (w *wrote) blocks() (n int64, err error) {
	block, zeros := make([]byte, 4096), make([]byte, 4096)
	for at := int64(0); ; at += int64(len(block)) {
		if _, err := w.file.ReadAt(block, at); err == io.EOF {
			return n, nil
		} else if err != nil {
			return n, err
		}
		if !bytes.Equal(block, zeros) {
			n += int64(len(block))
		}
	}
}
