package proctree_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/engines"
	"github.com/tare-bench/tare/internal/instrument/startup/run/proctree"
	"github.com/tare-bench/tare/internal/instrument/startup/trace"
	"github.com/tare-bench/tare/internal/node/tracer"
	"github.com/tare-bench/tare/internal/probe"
	"github.com/tare-bench/tare/record"
)

func TestMain(m *testing.M) { engines.Main(m) }

const imageName = "localhost/tare-proctree-test:1"

// slow is a runtime that notes its verbs and takes half a second to create.
func slow(t *testing.T) (file, noted string) {
	t.Helper()
	runc, err := exec.LookPath("runc")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file, noted = filepath.Join(dir, "slow-runc"), filepath.Join(dir, "noted")
	script := fmt.Sprintf(`#!/bin/sh
for arg; do
	case $arg in create | start | state | kill | delete | exec) echo $arg >>%s; verb=$arg; break ;; esac
done
if [ "$verb" = create ]; then sleep 0.5; fi
exec %s "$@"
`, noted, runc)
	if err := os.WriteFile(file, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return file, noted
}

func image(t *testing.T) string {
	t.Helper()
	root, file := filepath.Join(t.TempDir(), "root"), filepath.Join(t.TempDir(), "root.tar")
	if err := probe.Rootfs(root); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("tar", "-C", root, "-cf", file, ".").CombinedOutput(); err != nil {
		t.Fatal(string(out), err)
	}
	return file
}

func monotonic(t *testing.T) int64 {
	t.Helper()
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		t.Fatal(err)
	}
	return now.Nano()
}

// watch runs a command and returns its start as it was seen.
func watch(t *testing.T, roots []proctree.Root, env []string, args ...string) *record.Start {
	t.Helper()
	tr, err := tracer.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := tr.Close(); err != nil {
			t.Error(err)
		}
	}()
	pids := []int{os.Getpid()}
	for _, r := range roots {
		pids = append(pids, r.Pid)
	}
	if err := tr.Track(pids...); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(os.Environ(), env...)
	s := &record.Start{Method: record.MethodBPF, Began: monotonic(t)}
	out, err := cmd.CombinedOutput()
	s.Ended = monotonic(t)
	if err != nil {
		t.Fatalf("%q: %v\n%s", args, err, out)
	}
	events, err := tr.Take(s.Ended + int64(20*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	k := proctree.Gather(events, proctree.Asked{Began: s.Began, Ended: s.Ended, Client: cmd.Process.Pid, Roots: roots})
	s.Processes, s.Busy, s.First, s.Containers, s.Sandbox, s.Missing, s.Events = k.Processes, k.Busy, k.First, k.Containers, k.Sandbox, k.Missing, k.Events
	if n := tr.Lost(); n != 0 || len(k.Missing) != 0 {
		t.Errorf("%d events were lost, missing %v", n, k.Missing)
	}
	return s
}

// closed checks a start's sums, and returns the verbs of its calls.
func closed(t *testing.T, s *record.Start, engine string) []string {
	t.Helper()
	var sum int64
	for _, p := range trace.Parts(s, engine) {
		sum += p.Ended - p.Began
		t.Logf("%9.3f ms %8.3f ms CPU  %s", float64(p.Ended-p.Began)/1e6, float64(p.CPU)/1e6, p.Name)
	}
	if sum != s.Ended-s.Began {
		t.Errorf("parts are %d ns, not %d", sum, s.Ended-s.Began)
	}
	for _, r := range trace.Rows(s) {
		t.Logf("%9.3f %9.3f %s%s [%s] %v", float64(r.Began-s.Began)/1e6, float64(r.Ended-r.Began)/1e6, strings.Repeat("  ", r.Depth), r.Name, r.Kind, r.Open)
	}
	for _, g := range trace.Gaps(s, engine, 3) {
		t.Logf("%9.3f ms in %s, from %s to %s %+v", float64(g.Ended-g.Began)/1e6, g.In, g.After, g.Before, g.Wait)
	}
	var verbs []string
	for _, p := range s.Processes {
		if p.Kind == record.KindCall && p.Born <= s.Ended {
			verbs = append(verbs, p.Verb)
		}
	}
	return verbs
}

// A real daemon's start has the calls that the runtime noted itself, its longest
// wait is the runtime's, and its parts close with the wall time.
func TestARealStartByDockerIsSeenAsTheRuntimeNotedIt(t *testing.T) {
	file, noted := slow(t)
	d := engines.Docker(t, engines.Runtime("slow", file))
	if out, err := exec.Command(d.Command, "-H", d.Host, "import", image(t), imageName).CombinedOutput(); err != nil {
		t.Fatal(string(out), err)
	}
	roots := []proctree.Root{{Pid: d.Pid, Kind: record.KindDaemon, Name: "dockerd"}, {Pid: d.ContainerdPid, Kind: record.KindDaemon, Name: "containerd"}}
	for _, runtime := range []string{"slow", "runc", "crun"} {
		t.Run(runtime, func(t *testing.T) {
			s := watch(t, roots, nil, d.Command, "-H", d.Host, "run", "--rm", "--network=none", "--runtime", runtime, imageName, probe.Name, "--exit", "x")
			verbs := closed(t, s, "docker")
			if s.First <= s.Began || s.First >= s.Ended || len(s.Containers) != 1 || len(s.Containers[0]) != 64 {
				t.Errorf("the workload began at %d of %d to %d in %v", s.First, s.Began, s.Ended, s.Containers)
			}
			if len(verbs) < 3 || verbs[0] != "create" || verbs[1] != "start" {
				t.Errorf("calls: %v", verbs)
			}
			if runtime != "slow" {
				return
			}
			text, err := os.ReadFile(noted)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := strings.Join(verbs, " "), strings.Join(strings.Fields(string(text)), " "); got != want {
				t.Errorf("calls %q, the runtime noted %q", got, want)
			}
			g := trace.Gaps(s, "docker", 1)[0]
			if g.In != "slow-runc create (sleep)" || g.Wait == nil || g.Wait.Timer != "500 ms timer" {
				t.Errorf("the longest gap: %+v %+v", g, g.Wait)
			}
		})
	}
}

// A command on a machine where others start containers has nothing of theirs.
func TestARealCommandBesideOthersIsAlone(t *testing.T) {
	d := engines.Docker(t)
	if out, err := exec.Command(d.Command, "-H", d.Host, "import", image(t), imageName).CombinedOutput(); err != nil {
		t.Fatal(string(out), err)
	}
	roots := []proctree.Root{{Pid: d.Pid, Kind: record.KindDaemon, Name: "dockerd"}, {Pid: d.ContainerdPid, Kind: record.KindDaemon, Name: "containerd"}}
	other := exec.Command(d.Command, "-H", d.Host, "run", "--rm", "--network=none", imageName, probe.Name, "--exit", "x")
	// One container at least is started between the two ends of the command.
	begun := filepath.Join(t.TempDir(), "begun")
	done := make(chan error, 2)
	go func() {
		for range 1000 {
			if _, err := os.Stat(begun); err == nil {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		out, err := other.CombinedOutput()
		if err != nil {
			err = fmt.Errorf("%w: %s", err, out)
		}
		done <- os.WriteFile(begun+".ended", out, 0o600)
		done <- err
	}()
	s := watch(t, roots, nil, "sh", "-c", ": > "+begun+"; until [ -e "+begun+".ended ]; do sleep 0.05; done")
	for range 2 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	for _, p := range s.Processes {
		if p.Kind != record.KindClient || p.Program != "sh" && p.Program != "sleep" {
			t.Errorf("%+v", p)
		}
	}
	if len(s.Containers) != 0 || s.First != 0 || len(s.Processes) < 2 {
		t.Errorf("%d processes, containers %v, first %d", len(s.Processes), s.Containers, s.First)
	}
}

func TestARealStartByPodmanIsSeen(t *testing.T) {
	p := engines.Podman(t)
	podman := func(args ...string) []string { return append([]string{p.Command}, args...) }
	line := podman("import", image(t), imageName)
	if out, err := exec.Command(line[0], line[1:]...).CombinedOutput(); err != nil {
		t.Fatal(string(out), err)
	}
	for _, runtime := range []string{"crun", "runc"} {
		t.Run(runtime, func(t *testing.T) {
			s := watch(t, nil, nil, podman("--runtime="+runtime, "run", "--rm", "--network=none", imageName, probe.Name, "--exit", "x")...)
			verbs := closed(t, s, "podman")
			if s.First <= s.Began || s.First >= s.Ended || len(s.Containers) != 1 {
				t.Errorf("the workload began at %d of %d to %d in %v", s.First, s.Began, s.Ended, s.Containers)
			}
			if len(verbs) < 2 || verbs[0] != "create" || verbs[1] != "start" {
				t.Errorf("calls: %v", verbs)
			}
		})
	}
}
