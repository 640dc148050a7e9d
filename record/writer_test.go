package record

import (
	"bufio"
	"bytes"
	"errors"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"

	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
)

func TestLinesRoundTrip(t *testing.T) {
	for _, name := range []string{"plain.jsonl", "compressed.jsonl.zst"} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), name)
			w := must.Get(Create(path))(t)
			lines := decoded(t)
			for _, line := range lines {
				must.OK(t, w.Write(line))
			}
			must.OK(t, w.Close())
			check.Error(t, w.Close(), "")
			got := must.Get(Load(path))(t)
			text, _ := written(t, lines)
			want := must.Get(Read(strings.NewReader(text)))(t)
			if !reflect.DeepEqual(got, want) || count(got) != 33 {
				t.Errorf("got  %+v\nwant %+v", got, want)
			}
			raw := must.Get(os.ReadFile(path))(t)
			check.Equal(t, "compressed", bytes.HasPrefix(raw, zstdMagic), strings.HasSuffix(name, ".zst"))
		})
	}
}

func TestWriteSetsTypesWithoutModifyingTheValue(t *testing.T) {
	var b strings.Builder
	w := NewWriter(&b)
	header, finding := &Header{RunID: "a"}, &Finding{Code: "drift"}
	for _, line := range []any{header, &Target{Name: "runc"}, &Batch{}, &Node{}, &Reading{}, &Series{}, finding, &End{}} {
		must.OK(t, w.Write(line))
	}
	if header.Type != "" || header.Schema != 0 || finding.Type != "" {
		t.Errorf("the caller's values were changed: %+v %+v", header, finding)
	}
	for i, want := range []string{`{"type":"header","schema":1,`, `{"type":"target",`, `{"type":"batch",`, `{"type":"node",`, `{"type":"reading",`, `{"type":"series",`, `{"type":"finding",`, `{"type":"end",`} {
		if got := strings.Split(b.String(), "\n")[i]; !strings.HasPrefix(got, want) {
			t.Errorf("line %d begins with %.40s, want %s", i+1, got, want)
		}
	}
}

func TestShellOperatorsAreNotEscaped(t *testing.T) {
	text, _ := written(t, few())
	check.Contains(t, "command", text, "ID && true")
}

func TestCreateDoesNotOverwrite(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "old.jsonl")
	must.OK(t, os.WriteFile(file, []byte("precious"), 0o600))
	for name, test := range map[string]struct{ path, want string }{
		"a file is not overwritten":          {file, "exists and is not overwritten; move it away or give another path"},
		"a folder is not a file":             {dir, "is a folder; give the path of a file"},
		"missing folder is not created":      {filepath.Join(dir, "no", "a.jsonl"), "give a file in an existing, writable folder"},
		"compressed file is not overwritten": {file, "exists"},
	} {
		_, err := Create(test.path)
		if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), test.path) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	check.Equal(t, "the file", must.Read(t, file), "precious")
}

func TestWriterRefusesUnreadableLines(t *testing.T) {
	headed := func(w *Writer) error { return w.Write(Header{}) }
	for name, test := range map[string]struct {
		before func(*Writer) error
		line   any
		want   string
	}{
		"a record without a header":  {func(*Writer) error { return nil }, Batch{}, "begins with its header"},
		"a second header":            {headed, Header{}, "has one already"},
		"value of another type":      {headed, 5, "int is not a line of a record"},
		"a nil line":                 {headed, (*Batch)(nil), "*record.Batch is nil"},
		"number without a JSON form": {headed, Node{Busy: math.NaN()}, "unsupported value: NaN"},
		"too long line":              {headed, Finding{Message: strings.Repeat("x", MaxLine)}, "readers take at most"},
		"a line after Close":         {func(w *Writer) error { return errors.Join(w.Write(Header{}), w.Close()) }, End{}, "is closed"},
	} {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			w := NewWriter(&b)
			must.OK(t, test.before(w))
			before := b.Len()
			check.Error(t, w.Write(test.line), test.want)
			check.Equal(t, "bytes written", b.Len(), before)
			check.That(t, w.Err() == nil, "an invalid line is reported as an error of the destination: %v", w.Err())
		})
	}
}

// fullDisk accepts room bytes and then fails like a disk, after a partial write.
type fullDisk struct {
	bytes.Buffer
	room  int
	calls int
}

func (d *fullDisk) Write(p []byte) (int, error) {
	d.calls++
	if d.Len()+len(p) <= d.room {
		return d.Buffer.Write(p)
	}
	n, _ := d.Buffer.Write(p[:d.room-d.Len()])
	return n, &os.PathError{Op: "write", Path: "/mnt/r.jsonl", Err: syscall.ENOSPC}
}

func TestFullDiskTruncatesTheRecord(t *testing.T) {
	text, split := written(t, few())
	for _, compress := range []bool{false, true} {
		for room := len(split[0]); room < len(text); room += 7 {
			disk := &fullDisk{room: room}
			w := NewWriter(disk)
			if compress {
				var err error
				if w.encoder, err = newEncoder(disk); err != nil {
					t.Fatal(err)
				}
			}
			written, first := 0, error(nil)
			for _, line := range few() {
				if err := w.Write(line); err != nil {
					first = err
					break
				}
				written++
			}
			if first == nil {
				continue // the compressed record fits completely
			}
			calls := disk.calls
			again := w.Write(End{Status: "done"})
			switch {
			case !errors.Is(first, syscall.ENOSPC), !strings.Contains(first.Error(), "/mnt/r.jsonl"), !strings.Contains(first.Error(), "free space"):
				t.Fatalf("room %d: the error is %v", room, first)
			case !errors.Is(again, first), !errors.Is(w.Err(), first), !errors.Is(w.Close(), first):
				t.Fatalf("room %d: the first error did not stay: %v, %v", room, again, w.Err())
			case disk.calls != calls:
				t.Fatalf("room %d: a failed disk was written to again", room)
			}
			if written == 0 {
				continue
			}
			got := must.Get(Read(&disk.Buffer))(t)
			n := count(got)
			if n == written+1 && got.Truncated {
				n-- // the failed line was written without its newline
			}
			if n != written || len(got.Problems) != 0 {
				t.Fatalf("room %d, compressed %v: %d lines of %d written, problems %v", room, compress, n, written, got.Problems)
			}
		}
	}
}

func TestDeviceErrorsHaveThePath(t *testing.T) {
	const path = "/dev/full"
	if _, err := os.Stat(path); err != nil {
		t.Skipf("this machine has no device that is always full: %v", err)
	}
	w := must.Get(Create(path))(t)
	defer func() { _ = w.Close() }() // the error is checked below
	if err := w.Write(Header{}); !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), path) {
		t.Errorf("got %v", err)
	}
}

// The child process of this test writes batches until it is killed.
func TestKilledProcessLeavesAllWrittenLines(t *testing.T) {
	if path := os.Getenv("TARE_TEST_RECORD"); path != "" {
		writeUntilKilled(path)
	}
	for _, name := range []string{"a.jsonl", "a.jsonl.zst"} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), name)
			child := exec.Command(os.Args[0], "-test.run=^TestKilledProcessLeavesAllWrittenLines$")
			child.Env = append(os.Environ(), "TARE_TEST_RECORD="+path)
			out := must.Get(child.StdoutPipe())(t)
			must.OK(t, child.Start())
			written := 0
			for s := bufio.NewScanner(out); written < 50 && s.Scan(); written++ {
			}
			must.OK(t, child.Process.Kill())
			_ = child.Wait() // killed: the error is expected
			got := must.Get(Load(path))(t)
			if written < 50 || len(got.Batches) < written || got.End != nil || len(got.Problems) != 0 {
				t.Errorf("%d batches of at least %d, end %v, problems %v", len(got.Batches), written, got.End, got.Problems)
			}
		})
	}
}

func writeUntilKilled(path string) {
	w, err := Create(path)
	if err != nil {
		panic(err)
	}
	if err := w.Write(Header{}); err != nil {
		panic(err)
	}
	for {
		if err := w.Write(Batch{Phase: PhaseMeasure, Target: "a", Op: "run", Lanes: 1, Samples: []Sample{}}); err != nil {
			panic(err)
		}
		if _, err := os.Stdout.WriteString("written\n"); err != nil {
			panic(err)
		}
	}
}
