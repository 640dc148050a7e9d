package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/node/procs"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/golden"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

func TestStateIsCheckedAgainstTheOperation(t *testing.T) {
	self := os.Getpid()
	for _, c := range []struct {
		name  string
		op    subject.Op
		state State
		kind  string // "" for no failure
		want  string
	}{
		{"created", subject.Create, State{Status: Created}, "", ""},
		{"created, but already running", subject.Create, State{Status: Running, Said: "running"}, record.FailState, "running, not created"},
		{"running", subject.Start, State{Status: Running, Pid: self}, "", ""},
		{"running without a process", subject.Run, State{Status: Running, Pid: 1 << 22}, record.FailState, "does not"},
		{"running, pid 0", subject.Run, State{Status: Running}, record.FailState, "does not"},
		{"ended immediately", subject.Run, State{Status: Exited, Said: "exited", Exit: 3}, record.FailState, "ended with 3"},
		{"stopped", subject.Stop, State{Status: Exited}, "", ""},
		{"stopped by SIGKILL", subject.Stop, State{Status: Exited, Exit: 137}, record.FailWorkload, "signal 9 instead of ending on SIGQUIT"},
		{"stopped with an exit code", subject.Stop, State{Status: Exited, Exit: 2}, record.FailWorkload, "status 2"},
		{"killed for lack of memory", subject.Stop, State{Status: Exited, Exit: 137, OOMKilled: true}, record.FailWorkload, "lack of memory"},
		{"stopped; OOM kill of another process", subject.Stop, State{Status: Exited, OOMKilled: true}, "", ""},
		{"stopped with an unknown status", subject.Stop, State{Status: Exited, Exit: 128, ExitUnseen: true, Why: "StartError lost"}, record.FailState, "did not see how the workload ended: its status 128 is the engine's own (StartError lost)"},
		{"not stopped", subject.Stop, State{Status: Running, Said: "running"}, record.FailState, "running, not exited"},
		{"removed", subject.Remove, State{}, "", ""},
	} {
		f := c.state.verify("podman", c.op, unix.SIGQUIT)
		if (f == nil) != (c.kind == "") || f != nil && (f.Kind != c.kind || !strings.Contains(f.Detail, c.want)) {
			t.Errorf("%s: %+v", c.name, f)
		}
	}
}

func TestZombieHasEnded(t *testing.T) {
	cmd := exec.Command("/bin/true")
	must.OK(t, cmd.Start())
	if !Ended(cmd.Process.Pid, 10*time.Second) || Alive(cmd.Process.Pid) {
		t.Error("a zombie counts as alive")
	}
	_ = cmd.Wait()
	if Ended(os.Getpid(), 10*time.Millisecond) || !Alive(os.Getpid()) {
		t.Error("this process counts as ended")
	}
}

func TestLogMustBeARegularFile(t *testing.T) {
	dir := t.TempDir()
	plain, link := filepath.Join(dir, "plain"), filepath.Join(dir, "link")
	must.OK(t, errors.Join(os.WriteFile(plain, make([]byte, 2*maxLog), 0o600), os.Symlink(plain, link)))
	check.Equal(t, "bytes", len(must.Get(ReadLog(plain))(t)), maxLog)
	for _, path := range []string{"", link, dir, "/dev/zero", filepath.Join(dir, "missing")} {
		if _, err := ReadLog(path); err == nil {
			t.Errorf("%q was read", path)
		}
	}
}

func TestAwaitReportsReadsEveryContainer(t *testing.T) {
	reads := 0
	read := func(_ context.Context, left []State) (string, error) {
		if reads++; reads == 1 {
			return "tare-probe/1 a 1\n", nil
		}
		if len(left) != 1 || left[0].Name != "b" {
			t.Errorf("queried again: %+v", left)
		}
		return "tare-probe/1 b 2\n", nil
	}
	reported, err := awaitReports(t.Context(), time.Second, []State{{Name: "a"}, {Name: "b"}}, read)
	if err != nil || !maps.Equal(reported, map[string]int64{"a": 1, "b": 2}) {
		t.Errorf("%v, %v", reported, err)
	}
	broken := errors.New("no log")
	if _, err := awaitReports(t.Context(), 20*time.Millisecond, []State{{Name: "a"}}, func(context.Context, []State) (string, error) { return "", broken }); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
}

func TestAwaitReportsKeepsNoOtherOutput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		noise := strings.Repeat("x", 16<<10) + "\n" // per container
		var containers []State
		for i := range 100 {
			containers = append(containers, State{Name: fmt.Sprint("c", i)})
		}
		heap := func() int64 {
			var m runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&m)
			return int64(m.HeapAlloc)
		}
		before, held := heap(), int64(0)
		reported, err := awaitReports(t.Context(), time.Minute, containers, func(_ context.Context, left []State) (string, error) {
			if len(left) == 1 {
				held = heap() - before
			}
			return fmt.Sprintf("tare-probe/1 %s 7\n", left[0].Name) + strings.Repeat(noise, len(left)), nil
		})
		if most := int64(5 * len(containers) * len(noise)); err != nil || len(reported) != 100 || held > most {
			t.Errorf("%d reports; %d bytes kept, want at most five reads of %d: %v", len(reported), held, most/5, err)
		}
	})
}

func TestContainerWithoutReportIsAbsent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reported, err := awaitReports(t.Context(), time.Second, []State{{Name: "a"}, {Name: "b"}}, func(context.Context, []State) (string, error) {
			return "noise\ntare-probe/1 a 1\ntare-probe/1 other 2\n", nil
		})
		if err != nil || !maps.Equal(reported, map[string]int64{"a": 1}) {
			t.Errorf("%v, %v", reported, err)
		}
	})
}

func TestInspectedParsesContainers(t *testing.T) {
	golden.Cases(t, "testdata/inspect.txt", func(_ *testing.T, input string) string {
		got, err := Inspected([]byte(input))
		if err != nil {
			return "refused"
		}
		return fmt.Sprintf("%+v", got)
	})
}

func TestParseLogSkipsIncompleteLines(t *testing.T) {
	const stamp = "2026-11-21T03:35:23.457524923+00:00 "
	for text, want := range map[string]string{
		stamp + "stdout F tare-probe/1 x 5\n":                                       "tare-probe/1 x 5\n",
		stamp + "stdout P tare-pro\n" + stamp + "stdout F be/1 x 5\n":               "tare-probe/1 x 5\n",
		stamp + "stdout F tare-probe/1 x 5":                                         "",
		"rubbish\n" + stamp + "stderr F a\n" + stamp + "other F b\n" + stamp:        "a\n",
		stamp + "stdout F:x tag\n":                                                  "tag\n",
		`{"log":"a\n","stream":"stdout"}` + "\n" + `{"log":` + "\n" + `{"log":"b"}`: "a\n",
		stamp + "stdout F \n":                                                       "\n",
		"":                                                                          "",
	} {
		check.Equal(t, text, ParseLog([]byte(text), false), want)
	}
}

func TestHardLimitsAreParsed(t *testing.T) {
	got := hardLimits("Limit                     Soft Limit           Hard Limit           Units     \n" +
		"Max processes             96000                unlimited            processes \nMax open files            1024                 16384                files     \n")
	check.Equal(t, "limits", got, []Rlimit{{"nproc", 1048576}, {"nofile", 16384}})
}

func TestUnframeSplitsStreams(t *testing.T) {
	for name, c := range map[string]struct{ in, out, err, fails string }{
		"both streams":        {"\x01\x00\x00\x00\x00\x00\x00\x02ab\x02\x00\x00\x00\x00\x00\x00\x01c\x01\x00\x00\x00\x00\x00\x00\x01d", "abd", "c", ""},
		"nothing":             {"", "", "", ""},
		"an empty frame":      {"\x01\x00\x00\x00\x00\x00\x00\x00", "", "", ""},
		"error of the daemon": {"\x03\x00\x00\x00\x00\x00\x00\x02no", "", "no", ""},
		"truncated header":    {"\x01\x00\x00", "", "", "truncated in a frame header"},
		"truncated frame":     {"\x01\x00\x00\x00\xff\xff\xff\xffabc", "abc", "", "truncated in a frame"},
		"no frames":           {"hello, world", "", "", "output without frames"},
		"more than the limit": {"\x01\x00\x00\x00\x00\x00\x00\x0a0123456789\x01\x00\x00\x00\x00\x00\x00\x01x", "01234567", "", ""},
	} {
		out, said := Kept{Most: 8}, Kept{Most: 8}
		err := Unframe(strings.NewReader(c.in), &out, &said)
		if out.String() != c.out || said.String() != c.err || (err == nil) != (c.fails == "") || err != nil && !strings.Contains(err.Error(), c.fails) {
			t.Errorf("%s: %q, %q, %v", name, out.String(), said.String(), err)
		}
	}
}

func TestChargedNeedsTheMemoryOfTheGroup(t *testing.T) {
	const v1 = "5:memory:/pods/libpod-a\n4:cpu,cpuacct:/pods/libpod-a\n0::/user\n"
	for _, c := range []struct{ text, path, want string }{
		{v1, "/pods/libpod-a", "/pods/libpod-a"},
		{v1, "/pods", "/pods"},
		{v1, "/user", ""},
		{v1, "/pods/libpod", ""},
		{"0::/x/container\n", "/x", "/x"},
		{"nonsense", "/x", ""},
	} {
		check.Equal(t, c.path+" in "+c.text, charged(procs.ParseGroups(c.text), c.path), c.want)
	}
	for _, path := range []string{"", "/", "relative"} {
		check.Equal(t, path, Charged(1, path), "")
	}
}

func TestOwnImagesMatchesTheRunExactly(t *testing.T) {
	for name, want := range map[string]int{
		"localhost/tare-probe:0123456789ab-abcdefgh": 1, "localhost/tare-probe:0123456789ab-abcdefgi": 0, "localhost/tare-probe:0123456789ab": 0,
		"localhost/tare-probe:0123456789ab-": 0, "localhost/tare-probe:0123456789abc-abcdefgh": 0, "localhost/tare-probe:latest": 0,
		"localhost/tare-probe": 0, "docker.io/tare-probe:0123456789ab-abcdefgh": 0,
	} {
		if got := OwnImages([]string{name}, "abcdefgh"); len(got) != want {
			t.Errorf("%s: %q", name, got)
		}
	}
}
