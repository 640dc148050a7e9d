package cri

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/mounts"
	"github.com/tare-bench/tare/internal/node/cgroup"
	"github.com/tare-bench/tare/internal/probe"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/engine"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/engines"
	"github.com/tare-bench/tare/internal/testing/enginetest"
	"github.com/tare-bench/tare/internal/testing/must"
)

func namespace(t *testing.T, pid int, kind string) string {
	t.Helper()
	link := must.Get(os.Readlink(fmt.Sprintf("/proc/%d/ns/%s", pid, kind)))(t)
	return link
}

// The expected values follow the kubelet for pods with limits, with and without overhead.
func TestPodLimitsMatchThoseOfAKubelet(t *testing.T) {
	u := onContainerd(t, engines.V2)
	limits := subject.Limits{CPU: 1, Memory: 64 << 20}
	with := limits
	with.OverheadCPU, with.OverheadMemory = 0.25, 16<<20
	for _, c := range []struct {
		limits                subject.Limits
		memory, quota, shares string
		overhead, ofContainer int64
	}{
		{with, "83886080", "125000", "1280", 16 << 20, 64 << 20},
		{limits, "9223372036854771712", "-1", "1024", 0, 64 << 20}, // default of tare, no overhead
	} {
		env := enginetest.Environment(t, 1)
		env.Limits = c.limits
		s := opened(t, u, "", env)
		enginetest.Must(t, s, subject.Run, 1)
		pod := s.held[s.Held()[0].Name].config.Linux
		if pod.Overhead.MemoryLimitInBytes != c.overhead || pod.Overhead.CpuShares != 16*c.overhead>>20 || pod.Resources.MemoryLimitInBytes != c.ofContainer {
			t.Errorf("request %v, overhead %v", pod.Resources, pod.Overhead)
		}
		group := s.ground.Group(s.Held()[0].Name)
		memory, quota, shares := enginetest.Told(t, "memory", group, "memory.limit_in_bytes"), enginetest.Told(t, "cpu", group, "cpu.cfs_quota_us"), enginetest.Told(t, "cpu", group, "cpu.shares")
		if memory != c.memory || quota != c.quota || shares != c.shares {
			t.Errorf("cgroup of the pod: %s bytes, quota %s µs, %s shares", memory, quota, shares)
		}
		must.OK(t, s.Close(t.Context()))
	}
}

func TestPodsHaveTheirOwnCgroups(t *testing.T) {
	onAll(t, func(t *testing.T, u engineUnderTest, handler string) {
		s := opened(t, u, handler, enginetest.Environment(t, 2))
		enginetest.Must(t, s, subject.RunPod, 2)
		alone, err := s.Sandboxes(t.Context())
		if err != nil || len(alone) != 2 || alone[1].Workload != 0 || len(alone[1].IDs) != 1 {
			t.Fatalf("%+v, %v", alone, err)
		}
		enginetest.Must(t, s, subject.Create, 2)
		enginetest.Must(t, s, subject.Start, 2)
		boxes, err := s.Sandboxes(t.Context())
		if err != nil || len(boxes) != 2 || boxes[0].Group == boxes[1].Group {
			t.Fatalf("%+v, %v", boxes, err)
		}
		for n, b := range boxes {
			if b.IDs[1] != alone[n].IDs[0] || !strings.HasPrefix(b.Group, s.ground.Group("")) || !cgroup.Holds(b.Group, b.Workload) || !engine.InGroupOf(b.Workload, b.IDs[0]) {
				t.Errorf("%+v, pod %v", b, alone[n])
			}
			if b.Pause == 0 && !s.facts.podless || b.Pause != 0 && (!cgroup.Holds(b.Group, b.Pause) || b.Pause == b.Workload) {
				t.Errorf("pause process: %+v", b)
			}
			status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", b.Workload))
			if err != nil || !strings.Contains(string(status), "\nSeccomp:\t0\n") {
				t.Errorf("%s %v", status, err)
			}
			check.Equal(t, "network namespace", namespace(t, b.Workload, "net"), namespace(t, u.pid, "net"))
		}
		podsAreCounted(t, u, s, boxes)
		must.OK(t, s.Discard(t.Context(), []int{0}))
		gone(t, s.hs, boxes[0].Group)
		if left, err := s.Sandboxes(t.Context()); err != nil || len(left) != 1 || left[0].Lane != 1 {
			t.Errorf("%+v, %v", left, err)
		}
		must.OK(t, s.Close(t.Context()))
		gone(t, s.hs, s.ground.Group(""))
	})
}

// podsAreCounted compares the statistics of pods with their cgroups. One pod allocates
// memory.
func podsAreCounted(t *testing.T, u engineUnderTest, s *session, boxes []subject.Sandbox) {
	t.Helper()
	const held = 32 << 20
	holds := make(chan error, 1)
	go func() {
		_, err := s.Exec(t.Context(), 1, probe.HoldArgs(held, time.Second))
		holds <- err
	}()
	for enginetest.Number(t, "memory", boxes[1].Group, "memory.usage_in_bytes") < held && len(holds) == 0 {
		time.Sleep(10 * time.Millisecond)
	}
	all, err := s.Statistics(t.Context())
	must.OK(t, <-holds)
	if len(all) < 2 || err != nil {
		t.Errorf("%+v, %v", all, err)
	}
	pods := 0
	for _, got := range all[min(2, len(all)):] {
		pods++
		group := boxes[got.Lane].Group
		cpu := enginetest.Number(t, "cpuacct", group, "cpuacct.usage")
		if !u.pods { // CRI-O looks for a systemd slice
			if got.Memory != -1 || got.CPU != -1 {
				t.Errorf("%+v", got)
			}
		} else if got.Source != ofPods || got.Lane == 1 && got.Memory < held || got.Lane == 0 && got.Memory > held || got.CPU <= 0 || got.CPU > cpu {
			t.Errorf("%+v; CPU time of the cgroup: %d ns", got, cpu)
		}
	}
	if pods != 2 && (u.pods || pods != 0) {
		t.Errorf("%+v", all)
	}
}

// gone checks that no hierarchy has the group.
func gone(t *testing.T, hs []cgroup.Hierarchy, group string) {
	t.Helper()
	for _, h := range hs {
		if _, err := os.Stat(filepath.Join(h.Mount, group)); err == nil {
			t.Errorf("%s still exists in %s", group, h.Mount)
		}
	}
}

func TestImpossiblePidIsZero(t *testing.T) {
	for info, want := range map[string]int{
		`{"pid":4711,"sandboxID":"x"}`: 4711, `{"pid":0}`: 0, `{}`: 0, ``: 0, `{"pid":1}`: 0, `{"pid":-4}`: 0,
		`{"pid":"4711"}`: 0, `{"pid":47.5}`: 0, `{"pid":99999999999}`: 0, `{"pid":4194305}`: 0, `[4711]`: 0, `{"pid":4711`: 0,
	} {
		check.Equal(t, info, pidIn(map[string]string{"info": info}), want)
	}
}

// mounted checks the number of tmpfs mounts of a run in the mount namespace of the engine.
// The namespace of the test must have none.
func mounted(t *testing.T, u engineUnderTest, runID string, want int) {
	t.Helper()
	for _, c := range []struct{ pid, want int }{{u.pid, want}, {os.Getpid(), 0}} {
		b := must.Get(os.ReadFile(fmt.Sprintf("/proc/%d/mountinfo", c.pid)))(t)
		check.Equal(t, fmt.Sprintf("process %d sees", c.pid), strings.Count(string(b), " - tmpfs tare-"+runID+" "), c.want)
	}
}

func TestTmpfsBelongsToThePod(t *testing.T) {
	onAll(t, func(t *testing.T, u engineUnderTest, handler string) {
		env := enginetest.Environment(t, 2)
		env.Workload = subject.Workload{Files: enginetest.Shell(t), Tmpfs: 1 << 20}
		s := opened(t, u, handler, env)
		sh := func(script string, exit int) {
			t.Helper()
			check.Equal(t, script, must.Get(s.Exec(t.Context(), 0, []string{"/bin/sh", "-c", script}))(t).Exit, exit)
		}
		mounted(t, u, env.RunID, 0)
		enginetest.Must(t, s, subject.Run, 2)
		mounted(t, u, env.RunID, 2)
		sh("echo text > /data/file; echo text > /etc/file", 0)
		for _, op := range []subject.Op{subject.Stop, subject.Remove, subject.Create, subject.Start} {
			enginetest.Must(t, s, op, 1)
		}
		sh("test -e /data/file && ! test -e /etc/file", 0)
		// Removing or discarding a pod also removes its tmpfs.
		for _, op := range []subject.Op{subject.Stop, subject.Remove, subject.StopPod, subject.RemovePod} {
			enginetest.Must(t, s, op, 1)
		}
		mounted(t, u, env.RunID, 1)
		must.OK(t, s.Discard(t.Context(), []int{1}))
		mounted(t, u, env.RunID, 0)
		enginetest.Must(t, s, subject.Run, 1)
		sh("test -e /data/file", 1)
		// tare clean removes the pods of a killed run, and then its folder.
		must.Get(s.Clean(t.Context(), env.RunID, false))(t)
		must.OK(t, mounts.RemoveTree(env.Dir))
		mounted(t, u, env.RunID, 0)
	})
}

func TestOpenFailsWithoutTheTmpfs(t *testing.T) {
	u := onCRIO(t)
	for name, change := range map[string]func(*subject.Env){
		"negative size":    func(e *subject.Env) { e.Workload.Tmpfs = -1 },
		"volume and tmpfs": func(e *subject.Env) { e.Workload.Volume = filepath.Join(e.Dir, "volume") },
		"invalid folder":   func(e *subject.Env) { e.Dir = "/proc/tare" },
	} {
		t.Run(name, func(t *testing.T) {
			env := enginetest.Environment(t, 1)
			env.Workload.Tmpfs = 1 << 20
			change(&env)
			if s, err := weigh(t, u, "runc").Open(t.Context(), env); err == nil {
				t.Errorf("Open succeeded; Close: %v", s.Close(t.Context()))
			}
			mounted(t, u, env.RunID, 0)
		})
	}
}

// CRI-O logs each created pod and container.
func TestCRIOLogsTheSamePodsAndContainers(t *testing.T) {
	u := onCRIO(t)
	count := func(what string) int {
		text := must.Get(os.ReadFile(filepath.Join(engines.CRIO(t).Dir, "log", "crio")))(t)
		return strings.Count(string(text), what)
	}
	const pod, container, lanes = "msg=\"Ran pod sandbox ", "msg=\"Created container ", 3
	pods, containers := count(pod), count(container)
	s := opened(t, u, "runc", enginetest.Environment(t, lanes))
	for _, op := range subject.Ops {
		enginetest.Must(t, s, op, lanes)
	}
	// Each lane creates a pod and a container separately, and then both in one operation.
	if pods, containers = count(pod)-pods, count(container)-containers; pods != 2*lanes || containers != 2*lanes {
		t.Errorf("CRI-O logged %d pods and %d containers, want %d", pods, containers, 2*lanes)
	}
}

func TestPodGroupIsFoundForBothDrivers(t *testing.T) {
	t.Parallel()
	const uid = "0c1d6a2e-1111-2222-3333-444455556666"
	for name, dir := range map[string]string{
		"cgroupfs":             "/kubepods/burstable/pod" + uid,
		"cgroupfs, guaranteed": "/kubepods/pod" + uid,
		"other root":           "/tare/node-0/kubepods/besteffort/pod" + uid,
		"systemd":              "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod0c1d6a2e_1111_2222_3333_444455556666.slice",
		"other pod":            "",
	} {
		mount := t.TempDir()
		for _, d := range []string{dir + "/" + strings.Repeat("a", 64), "/kubepods/pod11111111-1111-2222-3333-444455556666", "/system.slice/" + uid} {
			must.OK(t, os.MkdirAll(filepath.Join(mount, d), 0o755))
		}
		check.Equal(t, name, must.Get(groupBelow(mount, uid))(t), dir)
	}
}
