package child_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/node/cgroup"
	"github.com/tare-bench/tare/internal/probe"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/hosttools"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/enginetest"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/internal/testing/need"
)

// opened is a session with two running workloads.
type opened struct {
	subject.Session
	exec   subject.Executor
	volume string
	kind   string
	clock  string
}

// each opens every target with two lanes, the given files, and a volume. Afterwards it
// checks for leftovers.
func each(t *testing.T, files []probe.File, limits subject.Limits, test func(t *testing.T, o opened)) {
	need.Root(t)
	for _, c := range enginetest.Local {
		t.Run(c.Name, func(t *testing.T) {
			need.Runtime(t, c.Name)
			tg := must.Get(c.New(t.Context()))(t)
			env, dir := enginetest.Workspace(t, c.Name, 2)
			volume := filepath.Join(dir, "volume")
			env.Limits, env.Workload = limits, subject.Workload{Files: files, Volume: volume}
			s := must.Get(tg.Open(t.Context(), env))(t)
			t.Cleanup(func() {
				must.OK(t, errors.Join(s.Discard(context.Background(), []int{0, 1}), s.Close(context.Background())))
				z := zombies()
				check.That(t, len(z) == 0, "unreaped children: %v", z)
				left, _ := os.ReadDir(volume)
				check.That(t, len(left) == 0, "remaining files in the volume: %v", left)
			})
			enginetest.Must(t, s, subject.Run, 2)
			test(t, opened{s, s.(subject.Executor), volume, tg.Info().Kind, tg.Info().Clock})
		})
	}
}

// zombies returns the unreaped children of this process.
func zombies() (out []int) {
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, f := range files {
		b, _ := os.ReadFile(f)
		if fields := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:])); len(fields) > 1 && fields[0] == "Z" && fields[1] == strconv.Itoa(os.Getpid()) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(f)))
			out = append(out, pid)
		}
	}
	return out
}

// The files are a shell, and fio if it is installed.
func TestCommandsRunInEveryTarget(t *testing.T) {
	tool, missing := hosttools.Fio(t.Context())
	files := enginetest.Shell(t)
	if missing == nil {
		for _, f := range tool.Files {
			if !slices.ContainsFunc(files, func(g probe.File) bool { return g.Path == f.Path }) {
				files = append(files, f)
			}
		}
	}
	each(t, files, subject.Limits{}, func(t *testing.T, o opened) {
		// Run this first, because gVisor retains charged memory.
		t.Run("a command is charged only to its container", func(t *testing.T) { charged(t, o) })
		t.Run("loads of a known size run in the container", func(t *testing.T) { loads(t, o) })
		t.Run("fio runs in the container as on the host", func(t *testing.T) {
			need.Tool(t, "fio")
			must.OK(t, missing)
			fio(t, o, tool)
		})
		t.Run("a command has its own exit code, output and volume folder", func(t *testing.T) {
			enginetest.Case{OnHost: o.kind == "host"}.Executes(t, o.Session, o.volume)
		})
		t.Run("a canceled command leaves nothing", func(t *testing.T) { calledOff(t, o) })
	})
}

func TestLimitsAreSetOrAbsent(t *testing.T) {
	for name, limits := range map[string]subject.Limits{
		"CPU limit only":                  {CPU: 0.5},
		"memory with PIDs and CPU shares": {Memory: 256 << 20, Pids: 100, CPUShares: 512},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, nil, limits, func(t *testing.T, o opened) {
				if sandboxes(t, o); o.kind != "host" { // host has no cgroup
					enginetest.Case{}.Limited(t, o.Session, limits)
				}
			})
		})
	}
}

func loads(t *testing.T, o opened) {
	const long = 300 * time.Millisecond
	x, err := o.exec.Exec(t.Context(), 0, probe.HoldArgs(16<<20, long))
	must.That(t, err == nil && x.Exit == 0, "%+v, %v", x, err)
	if held, err := probe.ParseHeld(x.Output); err != nil || held.Bytes != 16<<20 || held.Held < long {
		t.Errorf("%+v: %v", held, err)
	}
	if x, err = o.exec.Exec(t.Context(), 1, probe.SpinArgs(0.2, long)); err != nil || x.Exit != 0 {
		t.Fatalf("%+v, %v", x, err)
	}
	spun, err := probe.ParseSpun(x.Output)
	check.That(t, err == nil && float64(spun.CPU) <= 0.3*float64(spun.Wall) && spun.Wall >= long, "%+v: %v", spun, err)
}

// The cgroup of the container contains only the command, and is charged only for the
// command. The program that starts it is not included.
func charged(t *testing.T, o opened) {
	hs := must.Get(cgroup.Hierarchies())(t)
	before := sandboxes(t, o)
	if o.kind == "host" {
		return // no cgroup
	}
	// This is far more than gVisor may retain from an earlier command.
	const held, seen = 64 << 20, 32 << 20
	was, empty := cgroup.Procs(hs, before[0].Group), memory(t, hs, before[0].Group)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = o.exec.Exec(ctx, 0, probe.HoldArgs(held, time.Hour))
	}()
	var usage int64 // in addition to the idle sandbox
	for deadline := time.Now().Add(time.Minute); usage < seen && time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		usage = memory(t, hs, before[0].Group) - empty
	}
	// The thread that started the command was also in the cgroup. On a busy machine it
	// may not have exited yet.
	var more, strangers []string
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		more, strangers = nil, nil
		for _, pid := range cgroup.Procs(hs, before[0].Group) {
			exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
			if err != nil || slices.Contains(was, pid) {
				continue
			}
			more = append(more, exe)
			// gVisor has a process of its program for each address space.
			if exe != probe.Name && !strings.Contains(exe, "runsc") && !strings.Contains(exe, "memfd") && !strings.HasSuffix(exe, "/exe") {
				strangers = append(strangers, exe)
			}
		}
		if more != nil && strangers == nil || time.Now().After(deadline) {
			break
		}
	}
	if usage < seen || len(more) == 0 || strangers != nil {
		t.Errorf("%d bytes are charged to %s; its processes: %v; foreign ones: %v", usage, before[0].Group, more, strangers)
	}
	cancel()
	<-done
}

func memory(t *testing.T, hs []cgroup.Hierarchy, group string) (n int64) {
	t.Helper()
	for _, h := range hs {
		if h.Has("memory") {
			name := map[int]string{1: "memory.usage_in_bytes", 2: "memory.current"}[h.Version]
			b := must.Get(os.ReadFile(filepath.Join(h.Mount, group, name)))(t)
			n, _ = strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
		}
	}
	return n
}

func sandboxes(t *testing.T, o opened) []subject.Sandbox {
	t.Helper()
	all, err := o.Session.(subject.Sandboxed).Sandboxes(t.Context())
	must.That(t, err == nil && len(all) == 2, "%+v, %v", all, err)
	for n, b := range all {
		check.That(t, b.Lane == n && b.Workload > 1 && (o.kind != "host") == (b.Group != "" && len(b.IDs) == 1 && cgroup.Holds(b.Group, b.Workload)),
			"%+v", b)
	}
	return all
}

func fio(t *testing.T, o opened, fio *hosttools.Program) {
	x, err := o.exec.Exec(t.Context(), 1, []string{fio.Path, "--version"})
	check.That(t, err == nil && strings.TrimSpace(x.Output) == fio.Version, "container %q, host %q: %v", x.Output, fio.Version, err)
	x, err = o.exec.Exec(t.Context(), 1, []string{fio.Path, "--name=tare", "--directory=" + subject.VolumePath, "--filename=file", "--size=1M",
		"--rw=randwrite", "--bs=64k", "--ioengine=psync", "--direct=1", "--numjobs=8", "--thread", "--group_reporting", "--output-format=json"})
	check.That(t, err == nil && x.Exit == 0 && strings.Contains(x.Output, `"total_ios" : 128`), "%+v, %v", x, err)
	check.Equal(t, "size on the host", must.Get(os.Stat(filepath.Join(o.volume, "1", "file")))(t).Size(), 1<<20)
}

// await waits until a file of a lane has the given text. It reads the file on the host.
func (o opened) await(ctx context.Context, t *testing.T, lane int, name, text string) {
	t.Helper()
	for ctx.Err() == nil {
		if b, _ := os.ReadFile(filepath.Join(o.volume, strconv.Itoa(lane), name)); string(b) == text {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Errorf("no %s from lane %d", name, lane)
}

func calledOff(t *testing.T, o opened) {
	hs := must.Get(cgroup.Hierarchies())(t)
	// gVisor keeps address spaces of exited processes for reuse. Only gVisor itself knows
	// its processes.
	guest := o.clock == "guest"
	if o.kind != "host" && !guest {
		defer func(was []int) {
			must.Eventually(t, func() string {
				left := slices.DeleteFunc(cgroup.Procs(hs, sandboxes(t, o)[0].Group), func(pid int) bool { return slices.Contains(was, pid) })
				return strings.Trim(fmt.Sprint(left), "[]")
			})
		}(cgroup.Procs(hs, sandboxes(t, o)[0].Group))
	}
	script := "/probe hold 1000000 60.5 & echo begun; echo begun > $1; /probe hold 1000000 60.5"
	if o.kind == "host" {
		script = strings.ReplaceAll(script, "/probe hold 1000000", "sleep")
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		o.await(ctx, t, 0, "begun", "begun\n")
		cancel()
	}()
	x, err := o.exec.Exec(ctx, 0, []string{"/bin/sh", "-c", script, "sh", "/data/begun"})
	check.That(t, errors.Is(err, context.Canceled) && strings.Contains(x.Output, "begun\n"), "%+v, %v", x, err) // the other holder may print first
	// A killed process exits once it is scheduled.
	for deadline := time.Now().Add(time.Minute); guest; time.Sleep(20 * time.Millisecond) {
		ps, err := o.exec.Exec(t.Context(), 0, []string{"/bin/sh", "-c", "for f in /proc/[0-9]*/cmdline; do read -r line < $f; echo $line; done"})
		if err == nil && strings.Contains(ps.Output, "probe") && !strings.Contains(ps.Output, "60.5") {
			break
		}
		if err != nil || time.Now().After(deadline) {
			t.Errorf("still running: %q, %v", ps.Output, err)
			break
		}
	}
	// A command on the host is listed only while it runs.
	b := sandboxes(t, o)[0]
	check.That(t, len(b.More) == 0, "%+v", b)
	ctx, cancel = context.WithCancel(t.Context())
	cancel()
	_, err = o.exec.Exec(ctx, 0, probe.HoldArgs(1, time.Second))
	check.That(t, errors.Is(err, context.Canceled), "canceled before it started: %v", err)
	// The container itself continues.
	check.Equal(t, "exit", must.Get(o.exec.Exec(t.Context(), 0, []string{probe.Name, "--exit", "token"}))(t).Exit, 0)
}
