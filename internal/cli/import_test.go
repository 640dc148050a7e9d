package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/testing/golden"
	"github.com/tare-bench/tare/internal/testing/must"
)

// keptNotes is a text such as people keep.
const keptNotes = `a run on node 3:
mytest: (g=0): rw=read, bs=512K-512K/512K-512K/512K-512K, ioengine=psync, iodepth=1
mytest: (groupid=0, jobs=8): err= 0: pid=1: Wed
read : io=8192.0MB, bw=749786KB/s, iops=1464, runt= 11188msec
`

func TestImportedNotesAreARecordOfStorage(t *testing.T) {
	place(t)
	must.Write(t, "notes.txt", keptNotes)
	golden.Lines(t, filepath.Join(testdata, "imported.txt"), func(t *testing.T, line string) (any, error) {
		readFrom(t, "notes.txt")
		out := filepath.Join(t.TempDir(), "r.jsonl")
		printed, _ := ends(t, ExitDone, "record: "+out, append(words(line), "-o", out)...)
		if again, _ := ends(t, ExitDone, "", "report", out); again != printed {
			t.Errorf("report: \n%s\nimport said\n%s", again, printed)
		}
		rec := recorded(t, out)
		env := rec.Header.Environment
		if rec.ProblemCount != 0 || rec.End == nil || len(rec.Cells) != 1 || env.Kernel != "" || env.CPUs != 0 {
			t.Fatalf("%+v", rec)
		}
		c := rec.Cells[0]
		return fmt.Sprintf("%s of %s, volume %q, cache %q, from %s: %v IOPS read",
			c.Job, c.Target, c.Volume, c.Cache, c.Source, c.Reported.Read.IOPS), nil
	})
}

// readFrom makes a file the standard input of the test.
func readFrom(t *testing.T, path string) {
	t.Helper()
	f, err := os.Open(path)
	must.OK(t, err)
	own := os.Stdin
	os.Stdin = f
	t.Cleanup(func() { os.Stdin = own; f.Close() })
}

func TestTwoTextsAreTwoSidesOfOneRecord(t *testing.T) {
	dir := place(t)
	var args []string
	for _, side := range []string{"host", "kata"} {
		path := filepath.Join(dir, side+".log")
		must.Write(t, path, keptNotes)
		args = append(args, path)
	}
	ends(t, ExitDone, "host|kata", append([]string{"import", "--format", "csv"}, args...)...)
	if stored, err := filepath.Glob(filepath.Join(dir, "home", "tare", "records", "storage-*.jsonl")); err != nil || len(stored) != 1 {
		t.Errorf("stored %v, %v", stored, err)
	}
}

func TestWhatCannotBeImportedIsRefusedWithWhatToDo(t *testing.T) {
	place(t)
	must.Write(t, "notes.txt", keptNotes)
	must.Write(t, "poem.txt", "roses\n")
	must.Write(t, "cut.txt", "read : io=8192.0MB, bw=749786KB/s, iops=14")
	refusals(t, "import")
}

func TestTextsOfAllToolsAreImportedAtOnceAndABadOneCostsItself(t *testing.T) {
	dir, err := filepath.Abs(filepath.Join("..", "instrument"))
	must.OK(t, err)
	place(t)
	bad := filepath.Join(t.TempDir(), "bad.json")
	must.Write(t, bad, `{"results":[{"command":"a","mean":1,"times":[`)
	args := []string{"import", bad, "isula=" + filepath.Join(dir, "lifecycle", "tool", "testdata", "ptcr.txt"), filepath.Join(dir, "lifecycle", "tool", "testdata", "hyperfine-old.json"),
		filepath.Join(dir, "bpf", "tool", "testdata", "fortio.json")}
	_, stderr := ends(t, ExitDone, ",lifecycle,mean-latency,ns,|,lifecycle,latency,ns,|,bpf,requests,1/s,", append(args, "--format", "csv")...)
	if strings.Count(stderr, "record: ") != 2 {
		t.Error(stderr)
	}
	ends(t, ExitDone, "bad.json: 1 of the outputs of hyperfine could not be read", args...)
	refuses(t, append(args, "-o", bad+"l"), "results for 2 records")
}

func TestEveryOutputThatCannotBeReadIsToldOnRequest(t *testing.T) {
	text := filepath.Join(place(t), "kata.txt")
	const cut, many = "read : io=8192.0MB, bw=749786KB/s, iops=14\n", 30 // more than a finding names
	must.Write(t, text, keptNotes+strings.Repeat(cut, many))
	for lines, args := range map[int][]string{0: {"import", text, "--format", "csv"}, many: {"import", "-v", text, "--format", "csv"}} {
		code, _, stderr := tare(t, args...)
		if got := strings.Count(stderr, "kata.txt:"); code != ExitDone || got != lines || strings.Count(stderr, "\nkata.txt:")+strings.Count(stderr[:9], "kata.txt:") != lines {
			t.Errorf("%v: exit %d, %d lines, want %d: %s", args, code, got, lines, stderr)
		}
	}
}
