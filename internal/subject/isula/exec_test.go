package isula

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/lane"
	"github.com/tare-bench/tare/internal/probe"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/engine"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/enginetest"
	"github.com/tare-bench/tare/internal/testing/must"
)

func TestExecRunsACommand(t *testing.T) {
	_, e := newFake(t)
	s := open(t, e, environment(t, 2))
	defer s.Close(context.Background())
	performed(t, s, subject.Run, 2)
	x := s.(subject.Executor)
	for name, c := range map[string]struct {
		args        []string
		exit        int
		out, stderr string
		fails       string
	}{
		"the probe":                      {args: []string{"/probe", "--exit", "x"}, out: "tare-probe/1 x "},
		"a bad argument":                 {args: []string{"/probe", strings.Repeat("x", 200)}, exit: 2},
		"an exit code":                   {args: []string{"/bin/sh", "-c", "echo out; echo err >&2; exit 7"}, exit: 7, out: "out\n", stderr: "err\n"},
		"exit code 126":                  {args: []string{"/bin/sh", "-c", "exit 126"}, exit: 126},
		"a signal":                       {args: []string{"/bin/sh", "-c", "kill -9 $$"}, exit: 137},
		"option of isula as an argument": {args: []string{"/bin/sh", "-c", "echo $1", "sh", "--detach"}, out: "--detach\n"},
		"a missing program":              {args: []string{"/no/such"}, fails: "Exec container error"},
		"no command":                     {fails: "no command"},
	} {
		got, err := x.Exec(t.Context(), 0, c.args)
		if c.fails != "" {
			if err == nil || !strings.Contains(err.Error(), c.fails) || got.Exit != -1 {
				t.Errorf("%s: %+v, %v", name, got, err)
			}
			continue
		}
		if err != nil || got.Exit != c.exit || !strings.HasPrefix(got.Output, c.out) || got.Stderr != c.stderr || !strings.Contains(got.Command, " exec -H ") {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}

	short, stop := context.WithCancel(t.Context())
	defer stop()
	pipe := filepath.Join(t.TempDir(), "pipe")
	must.OK(t, unix.Mkfifo(pipe, 0o600))
	go func() {
		_, _ = os.ReadFile(pipe) // until the command has started
		stop()
	}()
	began := time.Now()
	got, err := x.Exec(short, 0, []string{"/bin/sh", "-c", "echo begun; : > " + pipe + "; while :; do :; done"})
	if !errors.Is(err, context.Canceled) || got.Output != "begun\n" || time.Since(began) > time.Minute || !strings.Contains(err.Error(), "may run until") {
		t.Errorf("a command without a visible process, after %v: %+v, %v", time.Since(began), got, err)
	}
}

func TestSandboxesAndStatistics(t *testing.T) {
	f, e := newFake(t)
	s := open(t, e, environment(t, 3))
	defer s.Close(context.Background())
	performed(t, s, subject.Run, 3)
	must.OK(t, s.Discard(t.Context(), []int{1}))
	boxes, err := s.(subject.Sandboxed).Sandboxes(t.Context())
	if err != nil || len(boxes) != 2 {
		t.Fatalf("%+v, %v", boxes, err)
	}
	stats, err := s.(subject.Reporter).Statistics(t.Context())
	if err != nil || len(stats) != 2 {
		t.Fatalf("%+v, %v", stats, err)
	}
	for i, n := range []int{0, 2} {
		b := boxes[i]
		if b.Lane != n || len(b.IDs) != 1 || len(b.IDs[0]) != 64 || b.Workload <= 1 || b.Group != "" {
			t.Errorf("%+v", b)
		}
		check.Equal(t, b.Workload, must.Get(os.Readlink(fmt.Sprintf("/proc/%d/exe", b.Workload)))(t), filepath.Join(f.dir, "probe"))
		if r := stats[i]; r.Lane != n || r.Source != "isula stats (up to 1.6 s old)" || r.CPU != -1 || r.Memory != 1751122 { // 1.67 MiB
			t.Errorf("%+v", r)
		}
	}
	f.answers(t, "stats", "no-daemon-create")
	_, err = s.(subject.Reporter).Statistics(t.Context())
	check.Error(t, err, "Can not connect")
}

func TestParseStatsSkipsOtherLines(t *testing.T) {
	got := parseStats("\x1b[H\x1b[J\x1b[7m\x1b[1mCONTAINER CPU %\n\x1b[0m" +
		"aaaaaaaaaaaa     0.00       512.00 B / 23.58 GiB       0.01       0.00 B / 0.00 B            8\n" +
		"bbbbbbbbbbbb     0.00       2.50 KiB / 23.58 GiB       0.01       0.00 B / 0.00 B            8\n" +
		"cccccccccccc     0.00       1.25 GiB / 23.58 GiB       0.01       0.00 B / 0.00 B            8\n" +
		"dddddddddddd     0.00       0.00 B / 23.58 GiB       0.00       0.00 B / 0.00 B            0\n" +
		"eeeeeeeeeeee     0.00       1.00 TB / 23.58 GiB       0.01       0.00 B / 0.00 B            8\n" +
		"ffffffffffff     0.00       -1.00 B / 23.58 GiB       0.01\nffffffffffff     0.00       1.0")
	want := map[string]int64{"aaaaaaaaaaaa": 512, "bbbbbbbbbbbb": 2560, "cccccccccccc": 5 << 28, "dddddddddddd": -1}
	check.Equal(t, "figures", got, want)
}

func TestCreateHasLimitsFilesAndVolume(t *testing.T) {
	f, e := newFake(t)
	env := environment(t, 1)
	carried := filepath.Join(t.TempDir(), "carried")
	must.OK(t, os.WriteFile(carried, []byte("x"), 0o600))
	env.Limits = subject.Limits{CPU: 0.5}
	env.Workload = subject.Workload{Files: []probe.File{{Path: "/etc/carried", Source: carried, Mode: 0o644}}, Volume: filepath.Join(t.TempDir(), "volume")}
	s, tg := open(t, e, env), weigh(t, e)
	performed(t, s, subject.Run, 1)
	line := " " + strings.Join(tg.commands(env, tg.image).Line(subject.Create, "name", engine.Place{Folder: env.Workload.Volume + "/0"}), " ") + " "
	check.Contains(t, "line", line, " --cpu-period 100000 --cpu-quota 50000 ", " --volume "+env.Workload.Volume+"/0:/data:Z ")
	check.Lacks(t, "line", line, " --memory ", " --pids-limit ", " --cpu-shares ")
	ref, err := os.ReadFile(filepath.Join(f.dir, "image"))
	if err != nil || string(ref) == tg.image.Ref {
		t.Errorf("images with and without files have the same name %s, %v", ref, err)
	}
	found, err := weigh(t, e).Clean(t.Context(), env.RunID, true)
	if err != nil || len(found) != 2 || found[1] != "image "+string(ref) {
		t.Errorf("clean found %q, %v", found, err)
	}
	must.OK(t, s.Close(t.Context()))
	if left := f.left(t); left != nil {
		t.Errorf("left: %q", left)
	}
}

func TestTmpfsAndDeviceOptions(t *testing.T) {
	_, e := newFake(t)
	link, node := enginetest.Loop(t, 1<<20)
	for flags, w := range map[string]subject.Workload{
		" --tmpfs /data ":                       {Tmpfs: 1 << 20},
		" --device " + node + ":/dev/tare:rwm ": {Device: link},
	} {
		env := environment(t, 1)
		env.Workload = w
		s, tg := open(t, e, env), weigh(t, e)
		places := must.Get(engine.OpenPlaces(env))(t)
		line := lane.Quote(tg.commands(env, tg.image).Line(subject.Run, "name", places.On(0)))
		if !strings.Contains(line, flags) || strings.Contains(line, "--volume") {
			t.Errorf("no %q in %s", flags, line)
		}
		performed(t, s, subject.Run, 1) // the fake command refuses unknown options
		must.OK(t, s.Close(t.Context()))
	}
}

func TestUnsupportedPlaces(t *testing.T) {
	for name, c := range map[string]struct {
		without, runtime string
		w                subject.Workload
		want             string
	}{
		"tmpfs without --tmpfs":          {without: "--tmpfs ", w: subject.Workload{Tmpfs: 1}, want: "has no --tmpfs"},
		"tmpfs above half of the memory": {w: subject.Workload{Tmpfs: 1 << 60}, want: "it may grow only to half of the memory"},
		"device without --device":        {without: "--device ", w: subject.Workload{Device: "/dev/x"}, want: "has no --device"},
		"device for gVisor":              {runtime: "runsc", w: subject.Workload{Device: "/dev/x"}, want: "gVisor"},
	} {
		f, e := newFake(t)
		if c.without != "" {
			f.is(t, "without", c.without)
		}
		tg := must.Get(New(t.Context(), "isula/x", c.runtime, "", e))(t)
		env := environment(t, 1)
		env.Workload = c.w
		if _, err := tg.Open(t.Context(), env); !errors.Is(err, subject.ErrUnsupported) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
