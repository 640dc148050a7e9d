package containerd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/engines"
	"github.com/tare-bench/tare/internal/node/cgroup"
	"github.com/tare-bench/tare/internal/probe"
	"github.com/tare-bench/tare/internal/probe/image"
	"github.com/tare-bench/tare/internal/subject"
)

// openWith opens a runtime for a run whose containers hold more.
func openWith(t *testing.T, d *engines.ContainerdDaemon, runtime string, env subject.Env) *session {
	t.Helper()
	got, err := New(t.Context(), "containerd/"+filepath.Base(runtime), runtime, "", at(d))
	if err != nil {
		t.Fatal(err)
	}
	s, err := got.Open(t.Context(), env)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = s.Close(context.Background())
		_ = cgroup.Remove(got.(*Target).hs, cgroup.Prefix+env.RunID)
	})
	return s.(*session)
}

// runtimes are those with whose containers everything is tried.
func runtimes(t *testing.T) []string {
	out := []string{"runc", "crun"}
	if engines.Runsc() == "" {
		t.Log("there is no runsc; run: make runtimes")
		return out
	}
	return append(out, engines.Runsc())
}

func TestCommandsRunInContainers(t *testing.T) {
	inside := carried(t)
	onBoth(t, func(t *testing.T, d *engines.ContainerdDaemon) {
		for _, runtime := range runtimes(t) {
			t.Run(filepath.Base(runtime), func(t *testing.T) { commandsRun(t, d, runtime, inside) })
		}
	})
}

func commandsRun(t *testing.T, d *engines.ContainerdDaemon, runtime string, inside probe.File) {
	env := environment(t, newID(), 2)
	env.Workload = subject.Workload{Files: []probe.File{inside}, Volume: filepath.Join(t.TempDir(), "volume")}
	s := openWith(t, d, runtime, env)
	if _, err := s.Exec(t.Context(), 0, []string{"/probe"}); err == nil || !strings.Contains(err.Error(), "lane 0 has no container") {
		t.Errorf("%v", err)
	}
	succeed(t, s, subject.Run, 2)
	for _, c := range []struct {
		name           string
		args           []string
		exit           int
		output, stderr string
	}{
		{"the probe", []string{"/probe", "--exit", "token"}, 0, "tare-probe/1 token ", ""},
		{"both streams", []string{inside.Path, "say", "out", "err"}, 0, "out", "err"},
		{"an exit code", []string{inside.Path, "exit", "7"}, 7, "", ""},
		{"a signal", []string{inside.Path, "die"}, 128 + 9, "", ""},
		{"an argument for a shell", []string{inside.Path, "say", "$HOME; `x`", "'"}, 0, "$HOME; `x`", "'"},
	} {
		got, err := s.Exec(t.Context(), 0, c.args)
		if err != nil || got.Exit != c.exit || !strings.HasPrefix(got.Output, c.output) || got.Stderr != c.stderr || !strings.Contains(got.Command, c.args[0]) {
			t.Errorf("%s: %+v, %v", c.name, got, err)
		}
	}
	flood, err := s.Exec(t.Context(), 0, []string{inside.Path, "flood", fmt.Sprint(3 << 20)})
	if err != nil || len(flood.Output) != subject.MaxOutput {
		t.Errorf("%d bytes of output, exit code %d, %v", len(flood.Output), flood.Exit, err)
	}
	if got, err := s.Exec(t.Context(), 0, []string{"/nothing"}); err == nil && got.Exit == 0 || err != nil && !strings.Contains(err.Error(), "/nothing") {
		t.Errorf("a program that is missing: %+v, %v", got, err)
	}
	volumes(t, s, env, inside.Path)
	cancelled(t, s, inside.Path)
	if left, _ := os.ReadDir(s.fifos); len(left) > 0 {
		t.Errorf("FIFOs are left: %v", left)
	}
	shut(t, d, s)
	if left, err := os.ReadDir(env.Workload.Volume); len(left) > 0 || err != nil {
		t.Errorf("the lanes' folders are left: %v, %v", left, err)
	}
}

// volumes checks, on two lanes at once, that each has its own folder.
func volumes(t *testing.T, s *session, env subject.Env, inside string) {
	var both sync.WaitGroup
	for n := range 2 {
		both.Go(func() {
			text := fmt.Sprintf("of lane %d", n)
			if got, err := s.Exec(t.Context(), n, []string{inside, "write", subject.VolumePath + "/file", text}); err != nil || got.Exit != 0 {
				t.Errorf("lane %d: %+v, %v", n, got, err)
			}
			if got, err := s.Exec(t.Context(), n, []string{inside, "cat", subject.VolumePath + "/file"}); err != nil || got.Output != text {
				t.Errorf("lane %d: %+v, %v", n, got, err)
			}
			if b, err := os.ReadFile(filepath.Join(env.Workload.Volume, fmt.Sprint(n), "file")); err != nil || string(b) != text {
				t.Errorf("lane %d: %q, %v", n, b, err)
			}
		})
	}
	both.Wait()
	if info, err := os.Stat(s.volumes.Folder(1)); err != nil || info.Mode().Perm() != 0o777 {
		t.Errorf("%v, %v", info, err)
	}
}

// cancelled checks that a command ends with its context, with what it started,
// and that the container does not.
func cancelled(t *testing.T, s *session, inside string) {
	before := cgroup.Procs(s.hs, s.groupOf(s.containers[0].id))
	ctx, cancel := context.WithTimeout(t.Context(), 700*time.Millisecond)
	defer cancel()
	began := time.Now()
	verb := "fork"
	if s.clock() == "guest" {
		verb = "sleep"
	}
	got, err := s.Exec(ctx, 0, []string{inside, verb})
	if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > 5*time.Second {
		t.Errorf("after %v: %+v, %v", time.Since(began), got, err)
	}
	if after := awaited(s, before); s.clock() == "host" && !slices.Equal(before, after) {
		t.Errorf("processes %v, and %v before", after, before)
	}
	if got, err := s.Exec(t.Context(), 0, []string{"/probe", "--exit", "x"}); err != nil || got.Exit != 0 {
		t.Errorf("the container is no more: %+v, %v", got, err)
	}
	over, end := context.WithCancel(t.Context())
	end()
	if _, err := s.Exec(over, 0, []string{"/probe", "--exit", "x"}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// awaited are the processes of the container on lane 0, once those that were
// killed have gone, which takes the kernel a moment.
func awaited(s *session, want []int) (got []int) {
	for range 100 {
		if got = cgroup.Procs(s.hs, s.groupOf(s.containers[0].id)); slices.Equal(got, want) {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	return got
}

func TestAFileMakesAnotherImageThatSweepFinds(t *testing.T) {
	inside := carried(t)
	d := engines.Containerd(t, engines.V2)
	env := environment(t, newID(), 1)
	env.Workload.Files = []probe.File{inside}
	s := openWith(t, d, "runc", env)
	plain, err := image.Probe()
	if err != nil {
		t.Fatal(err)
	}
	if s.image.Ref == plain.Ref || !slices.Contains(d.Images(t, ownNamespace), s.image.Ref) {
		t.Errorf("%s, the plain one is %s; there are %q", s.image.Ref, plain.Ref, d.Images(t, ownNamespace))
	}
	left, err := s.Clean(t.Context(), env.RunID, true)
	if err != nil || !slices.Contains(left, "image "+s.image.Ref) {
		t.Errorf("%q, %v", left, err)
	}
	shut(t, d, s)
}
