package logfiles

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/instrument/startup"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

// recorded returns the starts in the given logs and the read error.
func recorded(t *testing.T, paths ...string) (all []record.Start, err error) {
	t.Helper()
	r, err := Open(t.Context(), Logs{Files: paths})
	if err != nil {
		return nil, err
	}
	defer r.Close()
	_, _, err = r.Record(t.Context(), record.Header{Experiment: startup.Name, Plan: []byte(`{}`)}, Writer{
		Progress: func(string, time.Duration, time.Duration) {},
		Write: func(line any) error {
			if s, ok := line.(*record.Start); ok {
				all = append(all, *s)
			}
			return nil
		},
	})
	return all, err
}

// written writes a file, creates its folder if missing, and returns its path.
func written(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	must.OK(t, errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(path, []byte(text), 0o644)))
	return path
}

// fixture returns a log written by real programs.
func fixture(t *testing.T, name string) string {
	t.Helper()
	text := must.Get(os.ReadFile("../../logs/testdata/" + name))(t)
	return string(text)
}

func TestCompressedLogIsReadLikePlainText(t *testing.T) {
	t.Parallel()
	plain := must.Get(recorded(t, "../../logs/testdata/one.kata.log"))(t)
	for _, path := range []string{"testdata/one.kata.log.xz", "testdata/one.kata.log.bz2"} {
		got, err := recorded(t, path)
		if err != nil || len(got) != 1 || got[0].Ended-got[0].Began != plain[0].Ended-plain[0].Began || got[0].Events != plain[0].Events {
			t.Errorf("%s: %v, %+v", path, err, got)
		}
	}
}

// runsc writes one file per command.
func TestFilesInAFolderAreReadTogether(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"runsc-create.txt", "runsc-boot.txt"} {
		written(t, dir, name, fixture(t, name))
	}
	want, err := recorded(t, filepath.Join(dir, "runsc-boot.txt"), filepath.Join(dir, "runsc-create.txt"))
	if err != nil || len(want) != 1 {
		t.Fatalf("%v, %+v", err, want)
	}
	for _, path := range []string{dir, filepath.Join(dir, "runsc-*.txt")} {
		if got, err := recorded(t, path); err != nil || len(got) != 1 || got[0].Events != want[0].Events || got[0].Ended != want[0].Ended {
			t.Errorf("%s: %v, %+v", path, err, got)
		}
	}
}

func TestUnorderedLinesWithinASecondAreSorted(t *testing.T) {
	t.Parallel()
	line := func(ms int, message string) string {
		return fmt.Sprintf("time=\"2026-01-02T03:04:05.%03dZ\" level=debug msg=%q name=containerd-shim-v2 pid=77 source=virtcontainers sandbox=box1 container=box1\n", ms, message)
	}
	path := written(t, t.TempDir(), "paste.log", line(0, "Create() start")+line(700, "Start() start")+line(600, "Create() end")+line(100, "Starting VM")+line(900, "Start() end"))
	all, err := recorded(t, path)
	if err != nil || len(all) != 1 || all[0].Ended-all[0].Began != 900e6 {
		t.Fatalf("%v: %+v", err, all)
	}
	if g := all[0].Gaps[0]; g.After != "Starting VM" || g.Before != "Create() end" || g.Ended-g.Began != 500e6 || g.Source != "paste.log:4" {
		t.Errorf("%+v", all[0].Gaps)
	}
}

func TestSortingIsBoundedAndTheRestReported(t *testing.T) {
	t.Parallel()
	text := ""
	for i := range 10 {
		text += fmt.Sprintf("time=\"2026-01-02T03:04:05.%dZ\" level=info msg=a\n", 9-i)
	}
	path := written(t, t.TempDir(), "paste.log", text)
	size := int64(len(text))
	for name, c := range map[string]struct {
		bytes, lines int64 // already sorted
		what         string
	}{
		"room for both": {maxMended - size, maxLines - 10, "order"}, "too many bytes": {maxMended - size + 1, 0, "disorder"}, "too many lines": {0, maxLines - 9, "disorder"},
	} {
		r := &Reading{}
		r.ordered.bytes, r.ordered.lines = c.bytes, c.lines
		must.OK(t, r.open(t.Context(), Logs{Files: []string{path}}))
		numbered := len(r.sources[0].Lines) == 10
		if len(r.missing) != 1 || r.missing[0].What != c.what || !strings.Contains(r.missing[0].Detail, "paste.log") || numbered != (c.what == "order") ||
			numbered && (r.ordered.bytes != maxMended || r.ordered.lines != maxLines) {
			t.Errorf("%s: %+v, %+v, %v", name, r.missing, r.ordered, numbered)
		}
		check.Error(t, r.Close(), "")
	}
}

// folded wraps text like a terminal of the given width.
func folded(text string, columns int) (out string) {
	for line := range strings.Lines(text) {
		rest := []rune(strings.TrimSuffix(line, "\n"))
		for ; len(rest) > columns; rest = rest[columns:] {
			out += string(rest[:columns]) + "\n"
		}
		out += string(rest) + "\n"
	}
	return out
}

func TestLinesCutAtTerminalWidthAreRefused(t *testing.T) {
	t.Parallel()
	for _, columns := range []int{80, 132, 211} {
		_, err := recorded(t, written(t, t.TempDir(), "one.kata.log", folded(fixture(t, "one.kata.log"), columns)))
		check.Error(t, err, fmt.Sprintf("one.kata.log: lines are cut at %d columns: paste the whole lines", columns))
	}
}

func TestLinesOfDifferentWidthsAreNotCut(t *testing.T) {
	t.Parallel()
	line := `time="2026-01-02T03:04:05.1Z" level=info msg="a message that is long enough"` + "\n"
	for name, text := range map[string]string{
		"one longer line":                strings.Repeat(line+"and more\n", 4) + strings.Replace(line, "long", "very long", 1),
		"continued lines of two lengths": strings.Repeat(line+"and more\n"+strings.Replace(line, "a message", "one message", 1)+"and more\n", 3),
		"two continued lines":            strings.Repeat(line+"and more\n", 2),
	} {
		check.Equal(t, fmt.Sprintf("%s: cut", name), width([]byte(text)), 0)
	}
}

func TestRefusalExplainsTheProblem(t *testing.T) {
	t.Parallel()
	cut := ""
	for range 3 {
		cut += `time="2026-01-02T03:04:05.1Z" level=info msg="RunPodSandbox for name:` + "\n"
	}
	short := "" // the result of cut -c, with the end of the message missing
	for i := range 5 {
		short += fmt.Sprintf("Jan  2 03:04:%02d node containerd[812]: time=\"2026-01-02T03:04:05.1Z\" level=in\n", i)
	}
	for text, want := range map[string]string{
		short:     "most lines end at 76 characters",
		"hello\n": "no line has a known form", cut: "most lines are truncated",
		`time="2026-01-02T03:04:05.1Z" level=info msg="containerd successfully booted"` + "\n": "their lines are of containerd, and none is about a start",
	} {
		path := written(t, t.TempDir(), "a.log", text)
		if _, err := recorded(t, path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestLinesOfSeveralLogsArePrintedInTimeOrder(t *testing.T) {
	t.Parallel()
	dir, rest := t.TempDir(), "" // enough ordered lines that the file is not sorted
	for i := range 40 {
		rest += fmt.Sprintf("time=\"2026-01-02T03:04:08.%02dZ\" level=info msg=rest\n", i)
	}
	for name, text := range map[string]string{
		"a.log": `time="2026-01-02T03:04:05Z" level=info msg=first` + "\n" + `time="2026-01-02T03:04:07.5Z" level=info msg="third\x1b"` + "\n" + `time="2026-01-02T03:04:07Z" level=info msg=late` + "\n" + rest,
		"b.log": `time="2026-01-02T03:04:06Z" level=info msg=second name=kata-runtime` + "\n",
	} {
		written(t, dir, name, text)
	}
	r := must.Get(Open(t.Context(), Logs{Files: []string{dir}}))(t)
	defer r.Close()
	var out strings.Builder
	want := "2026-01-02T03:04:05.000000000Z   +0.000000  a.log:1  containerd  first\n2026-01-02T03:04:06.000000000Z   +1.000000  b.log:1  kata  second\n" +
		"2026-01-02T03:04:07.500000000Z   +1.500000  a.log:2  containerd  third\\x1b\n2026-01-02T03:04:07.000000000Z   +0.000000  a.log:3  containerd  late\n" +
		"2026-01-02T03:04:08.000000000Z   +1.000000  a.log:4  containerd  rest\n"
	if err := r.Merged(t.Context(), &out); err != nil || !strings.HasPrefix(out.String(), want) || strings.Contains(out.String(), "\x1b") {
		t.Errorf("%v\n%s\nwant\n%s", err, out.String(), want)
	}
}

func TestClockStepAffectsOnlyItsOwnLog(t *testing.T) {
	t.Parallel()
	line := func(second, pid int, message string) string {
		at := time.Date(2026, 1, 2, 3, 4, second, 0, time.UTC)
		return fmt.Sprintf("time=%q level=debug msg=%q name=containerd-shim-v2 pid=%d source=virtcontainers sandbox=box%[3]d container=box%[3]d\n", at.Format(time.RFC3339), message, pid)
	}
	whole := line(180, 78, "Create() start") + line(181, 78, "Create() end") + line(182, 78, "Start() start") + line(183, 78, "Start() end")
	stepped := line(200, 77, "Create() start") + line(201, 77, "Starting VM") + line(172, 77, "VM started") + line(176, 77, "Create() end") + line(177, 77, "Start() start") + line(178, 77, "Start() end")
	dir := t.TempDir()
	var paths []string
	for folder, text := range map[string]string{"a": whole, "b": stepped} {
		paths = append(paths, written(t, filepath.Join(dir, folder), "kata.log", text))
	}
	all, err := recorded(t, paths...)
	took := map[string]int64{}
	for i := range all {
		if all[i].Ended != 0 {
			took[all[i].Sandbox] = all[i].Ended - all[i].Began
		}
	}
	if err != nil || len(all) < 2 || len(took) != 1 || took["box78"] != 3e9 {
		t.Errorf("%v, %v: %+v", err, took, all)
	}
}

func TestStartDuringClockStepHasNoTimes(t *testing.T) {
	t.Parallel()
	line := func(second float64, message, more string) string {
		at := time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC).Add(time.Duration(second * 1e9))
		return fmt.Sprintf("time=%q level=debug msg=%q name=containerd-shim-v2 pid=77 source=virtcontainers sandbox=%s container=%[3]s\n", at.Format(time.RFC3339Nano), message, more)
	}
	whole := func(at float64, id string) string {
		return line(at, "Create() start", id) + line(at+1, "Starting VM", id) + line(at+5, "Create() end", id) + line(at+6, "Start() start", id) + line(at+7, "Start() end", id)
	}
	before, stepped := whole(100, "box1"), line(200, "Create() start", "box2")+line(201, "Starting VM", "box2")+line(172, "VM started", "box2")+line(176, "Create() end", "box2")+line(177, "Start() start", "box2")+line(178, "Start() end", "box2")
	filler := strings.Repeat(strings.Repeat(" ", 64<<10)+"\n", maxMended>>16)
	for name, c := range map[string]struct {
		text  string
		times int // starts with times
		clock int // starts without times because of a clock step
	}{
		"clock set back":                 {before + stepped, 1, 1},
		"clock set back in a large file": {before + stepped + filler, 1, 2}, // large files are not sorted, so the start is read as two
		"same log twice":                 {before + before, 1, 0},
		"two logs in one file":           {whole(100, "box1") + strings.ReplaceAll(whole(95, "box2"), "pid=77", "pid=78"), 2, 0},
	} {
		path := written(t, t.TempDir(), "kata.log", c.text)
		all, err := recorded(t, path)
		times, clock := 0, 0
		for i := range all {
			if all[i].Ended != 0 {
				times++
			}
			for _, m := range all[i].Missing {
				if m.What == "clock" && m.Count == 1 && strings.Contains(m.Detail, "set back by 29s at kata.log:8") {
					clock++
				}
			}
		}
		if err != nil || times != c.times || clock != c.clock {
			t.Errorf("%s: %v, %d with times, %d without: %+v", name, err, times, clock, all)
		}
	}
}
