package engines

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/mounts"
	"github.com/tare-bench/tare/internal/node/cgroup"
	"github.com/tare-bench/tare/internal/probe"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/internal/testing/need"
)

func TestMain(m *testing.M) { Main(m) }

const testImage = "localhost/tare-engines-test:1"

func TestTwoInstancesOfAnEngineRunConcurrently(t *testing.T) {
	broken := filepath.Join(t.TempDir(), "broken")
	must.OK(t, os.WriteFile(broken, []byte("#!/bin/sh\necho out of cheese >&2\nexit 1\n"), 0o755))
	a, b := Docker(t), Docker(t, Runtime("broken", broken))
	if a.Root == b.Root || Docker(t) != a {
		t.Errorf("%s and %s; second call returned %s", a.Root, b.Root, Docker(t).Root)
	}
	for _, d := range []*Dockerd{a, b} {
		if out, err := output(nil, d.Command, "-H", d.Host, "import", archive(t), testImage); err != nil {
			t.Fatal(err, out)
		}
	}
	out, err := output(nil, b.Command, "-H", b.Host, "run", "-d", "--runtime=broken", testImage, probe.Name)
	check.That(t, err != nil, "a container started with a failing runtime: %s", out)
	if got := b.Containers(t); len(got) != 1 {
		t.Errorf("containers %q, want the one that failed to start", got)
	} else if _, err := output(nil, b.Command, "-H", b.Host, "rm", "-f", got[0]); err != nil {
		t.Error(err)
	}
	got := a.Containers(t)
	check.That(t, len(got) == 0, "containers %q in the other engine, want none", got)
}

func TestFailedEngineStartShowsItsLog(t *testing.T) {
	need.Root(t)
	var dir string
	running.Lock()
	_, err := start(func(s *spec) error {
		dir = s.Dir
		s.Daemons = []daemon{{Name: "cheese", Argv: []string{"/bin/sh", "-c", "echo out of cheese; exit 3"}, Socket: filepath.Join(s.Dir, "x.sock")}}
		return nil
	})
	running.Unlock()
	check.That(t, err != nil && strings.Contains(err.Error(), "out of cheese") && strings.Contains(err.Error(), "exit status 3"),
		"error %v, want the daemon's output and exit status", err)
	_, err = os.Lstat(dir)
	check.That(t, err != nil, "%s is left", dir)
}

// archive creates a tar file of a root file system with the probe.
func archive(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	root, file := filepath.Join(dir, "root"), filepath.Join(dir, "root.tar")
	must.OK(t, probe.Rootfs(root))
	if out, err := output(nil, "tar", "-C", root, "-cf", file, "."); err != nil {
		t.Fatal(err, out)
	}
	return file
}

// machine lists everything that an engine could leave behind. Resources shared by engines
// are excluded while tests of another package use one.
func machine(t *testing.T) (all []string, alone bool) {
	t.Helper()
	base := must.Get(baseDir())(t)
	lock := must.Get(os.OpenFile(filepath.Join(base, sharedName), os.O_RDWR|os.O_CREATE, 0o600))(t)
	defer func() { _ = lock.Close() }()
	if unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		return nil, false
	}
	points := must.Get(mounts.Below("/"))(t)
	for _, p := range points {
		// A folder of another package's test or of its runs.
		if !strings.Contains(p, "/Test") && !strings.Contains(p, "/tare-") || strings.HasPrefix(p, base) {
			all = append(all, "mount "+p)
		}
	}
	hs := must.Get(cgroup.Hierarchies())(t)
	for _, h := range hs {
		entries, _ := os.ReadDir(h.Mount)
		for _, e := range entries {
			// Runs of other packages' tests start and end concurrently.
			if e.IsDir() && !strings.HasPrefix(e.Name(), cgroup.Prefix) {
				all = append(all, "cgroup "+filepath.Join(h.Mount, e.Name()))
			}
		}
	}
	for _, f := range fixed {
		if _, err := os.Lstat(f); err == nil {
			all = append(all, "folder "+f)
		}
	}
	out, err := output(nil, "ip", "-o", "link")
	if err == nil {
		for line := range strings.Lines(out) {
			if f := strings.Fields(line); len(f) > 1 {
				all = append(all, "link "+f[1])
			}
		}
	}
	return all, true
}

// TestStoppedEngineLeavesNothing stops engines that have containers running.
func TestStoppedEngineLeavesNothing(t *testing.T) {
	need.Root(t)
	for _, e := range everyEngine {
		t.Run(e.name, func(t *testing.T) {
			// Engines shared with other tests would disturb the count.
			must.OK(t, Stop())
			before, quiet := machine(t)
			dir := e.busy(t)
			in := running.all[len(running.all)-1]
			must.That(t, in.Dir == dir, "%s is not the folder of the engine just started, %s", dir, in.Dir)
			got := in.processes()
			check.That(t, len(got) >= e.processes, "processes %v, want %d or more", describe(got), e.processes)
			must.OK(t, Stop())
			checkGone(t, &in.spec, before, quiet)
		})
	}
}

// TestKilledTestLeavesNothing kills a process that has started an engine. Its
// supervisor cleans up; if that is killed as well, the next set-up does.
func TestKilledTestLeavesNothing(t *testing.T) {
	need.Engine(t, "docker")
	if os.Getenv("TARE_ENGINES_TEST_VICTIM") != "" {
		dir := everyEngine[0].busy(t)
		fmt.Printf("\nvictim %s %d\n", dir, running.all[0].cmd.Process.Pid)
		select {}
	}
	for _, test := range []struct {
		name       string
		supervisor bool
	}{{"its supervisor sees that", false}, {"and its supervisor is killed too", true}} {
		t.Run(test.name, func(t *testing.T) {
			must.OK(t, Stop())
			before, quiet := machine(t)
			cmd := exec.Command("/proc/self/exe", "-test.run=^TestKilledTestLeavesNothing$")
			cmd.Env = append(os.Environ(), "TARE_ENGINES_TEST_VICTIM=1", "TMPDIR="+t.TempDir()) // its own temporary files stay when it is killed
			out := must.Get(cmd.StdoutPipe())(t)
			must.OK(t, cmd.Start())
			var s spec
			var supervisor int
			var text []byte
			for supervisor == 0 {
				b := make([]byte, 4096)
				n, err := out.Read(b)
				must.That(t, err == nil, "the child process failed: %v\n%s", err, text)
				text = append(text, b[:n]...)
				if _, after, found := strings.Cut(string(text), "\nvictim "); found && strings.Contains(after, "\n") {
					fields := strings.Fields(after)
					s = about(fields[0])
					if supervisor, err = strconv.Atoi(fields[1]); err != nil {
						t.Fatal(err)
					}
				}
			}
			if test.supervisor {
				_ = unix.Kill(supervisor, unix.SIGKILL)
			}
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			if test.supervisor {
				if _, err := os.Stat(s.Dir); err != nil {
					t.Fatalf("nothing to clean up: %v", err)
				}
				// Every later set-up cleans up first and at its end. A killed process
				// with many threads releases its lock with a delay.
				for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
					must.OK(t, sweep(filepath.Dir(s.Dir)))
					if _, err := os.Stat(s.Dir); err != nil {
						break
					}
				}
				share, err := first(filepath.Dir(s.Dir))
				must.OK(t, errors.Join(err, share.leave()))
			}
			checkGone(t, &s, before, quiet)
		})
	}
}

// checkGone polls, because a supervisor cleans up asynchronously.
func checkGone(t *testing.T, s *spec, before []string, quiet bool) {
	t.Helper()
	var left []string
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		left = describe(s.processes())
		if _, err := os.Lstat(s.Dir); err == nil {
			left = append(left, "folder "+s.Dir)
		}
		now, alone := machine(t)
		for _, m := range now {
			if quiet && alone && !slices.Contains(before, m) {
				left = append(left, m)
			}
		}
		if len(left) == 0 {
			return
		}
		must.That(t, !time.Now().After(deadline), "left behind:\n  %s", strings.Join(left, "\n  "))
	}
}

func describe(pids []int) []string {
	var out []string
	for _, pid := range pids {
		b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		out = append(out, fmt.Sprintf("process %d: %s", pid, strings.ReplaceAll(string(b), "\x00", " ")))
	}
	return out
}

// everyEngine starts each engine and leaves a container running in it.
var everyEngine = []everyEngineEntry{
	{"docker", 4, func(t *testing.T) string {
		d := Docker(t)
		for _, args := range [][]string{{"import", archive(t), testImage}, {"run", "-d", testImage, probe.Name, "x"}} {
			if out, err := output(nil, append([]string{d.Command, "-H", d.Host}, args...)...); err != nil {
				t.Fatal(err, out)
			}
		}
		return d.Root
	}},
	{"podman", 3, func(t *testing.T) string {
		p := Podman(t)
		for _, args := range [][]string{{"import", archive(t), testImage}, {"run", "-d", testImage, probe.Name, "x"}} {
			if out, err := output(nil, append([]string{p.Command}, args...)...); err != nil {
				t.Fatal(err, out)
			}
		}
		return p.Root
	}},
}

type everyEngineEntry struct {
	name      string
	processes int // minimum, without the supervisor
	busy      func(t *testing.T) (dir string)
}

func TestOnlyEmptyCgroupsAreRemoved(t *testing.T) {
	need.Root(t)
	hs, err := cgroup.Hierarchies()
	if err != nil || len(hs) == 0 {
		t.Skipf("no cgroups: %v", err)
	}
	dir := filepath.Join(hs[0].Mount, cgroupPrefix+"rmdir")
	busy, empty := filepath.Join(dir, "busy"), filepath.Join(dir, "empty", "empty")
	must.OK(t, errors.Join(os.MkdirAll(busy, 0o755), os.MkdirAll(empty, 0o755)))
	defer func() { _ = rmdir(dir) }()
	child := exec.Command("sleep", "600")
	must.OK(t, child.Start())
	must.OK(t, os.WriteFile(filepath.Join(busy, "cgroup.procs"), []byte(strconv.Itoa(child.Process.Pid)), 0o644))
	check.Is(t, rmdir(dir), unix.EBUSY)
	_, err = os.Stat(filepath.Dir(empty))
	check.That(t, err != nil, "the empty cgroup still exists")
	_, _ = child.Process.Kill(), child.Wait()
	must.Eventually(t, func() string {
		if err := rmdir(dir); err != nil {
			return err.Error()
		}
		return ""
	})
}
