package cri

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

	"github.com/tare-bench/tare/internal/node/cgroup"
	"github.com/tare-bench/tare/internal/probe"
	"github.com/tare-bench/tare/internal/probe/image"
	"github.com/tare-bench/tare/internal/subject"
)

func TestCommandsRunInContainers(t *testing.T) {
	inside := carried(t)
	onHandlers(t, func(t *testing.T, u engineUnderTest, handler string) {
		env := environment(t, 2)
		env.Workload = subject.Workload{Files: []probe.File{inside}, Volume: filepath.Join(t.TempDir(), "volume")}
		s := openedWith(t, u, handler, env)
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
		got, err := s.Exec(t.Context(), 0, []string{"/nothing"})
		if err == nil && got.Exit == 0 || !strings.Contains(got.Stderr+fmt.Sprint(err), "/nothing") {
			t.Errorf("a program that is missing: %+v, %v", got, err)
		}
		t.Logf("a program that is missing: %+v, %v", got, err)
		volumes(t, s, env, inside.Path)
		cancelled(t, s, inside.Path)
		shut(t, u, s)
		if left, err := os.ReadDir(env.Workload.Volume); len(left) > 0 || err != nil {
			t.Errorf("the lanes' folders are left: %v, %v", left, err)
		}
	})
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
}

// cancelled checks that a command ends with its context, with what it started,
// whether that ran out or was cancelled, and that the container does not.
func cancelled(t *testing.T, s *session, inside string) {
	group := s.podGroup(s.held[0].name)
	before := cgroup.Procs(s.hs, group)
	for _, end := range []func() (context.Context, context.CancelFunc){
		func() (context.Context, context.CancelFunc) {
			return context.WithTimeout(t.Context(), 700*time.Millisecond)
		},
		func() (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(700*time.Millisecond, cancel)
			return ctx, cancel
		},
	} {
		ctx, cancel := end()
		began := time.Now()
		got, err := s.Exec(ctx, 0, []string{inside, "fork"})
		if !errors.Is(err, ctx.Err()) || ctx.Err() == nil || time.Since(began) > 3*time.Second {
			t.Errorf("after %v: %+v, %v", time.Since(began), got, err)
		}
		cancel()
		var after []int
		for range 100 {
			if after = cgroup.Procs(s.hs, group); slices.Equal(before, after) {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		if !slices.Equal(before, after) {
			t.Errorf("processes %v, and %v before", after, before)
		}
	}
	if got, err := s.Exec(t.Context(), 0, []string{"/probe", "--exit", "x"}); err != nil || got.Exit != 0 {
		t.Errorf("the container is no more: %+v, %v", got, err)
	}
}

func TestAFileMakesAnotherImageThatSweepFinds(t *testing.T) {
	inside := carried(t)
	onAll(t, func(t *testing.T, u engineUnderTest) {
		env := environment(t, 1)
		env.Workload.Files = []probe.File{inside}
		s := openedWith(t, u, "runc", env)
		plain, err := image.Probe()
		if err != nil {
			t.Fatal(err)
		}
		left, err := s.Clean(t.Context(), env.RunID, true)
		if err != nil || s.image.ref == plain.Ref || !slices.Contains(left, "image "+s.image.ref) {
			t.Errorf("%q, %v; the plain one is %s", left, err, plain.Ref)
		}
		shut(t, u, s)
	})
}
