package cri

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/node/cgroup"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/engine"
)

// file is one of a group's, in the v1 hierarchy of a controller.
func file(t *testing.T, hs []cgroup.Hierarchy, controller, group, name string) string {
	t.Helper()
	for _, h := range hs {
		if h.Has(controller) {
			b, err := os.ReadFile(filepath.Join(h.Mount, group, name))
			if err != nil {
				t.Error(err)
			}
			return strings.TrimSpace(string(b))
		}
	}
	t.Skipf("there is no hierarchy with %s", controller)
	return ""
}

// chargedTo is a process's, of the memory controller.
func chargedTo(t *testing.T, pid int) string {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if parts := strings.SplitN(strings.TrimSpace(line), ":", 3); len(parts) == 3 && parts[1] == "memory" {
			return parts[2]
		}
	}
	t.Skip("memory is not in a hierarchy of v1")
	return ""
}

func TestSandboxesAreInGroupsOfTheirOwnAndLimited(t *testing.T) {
	onHandlers(t, func(t *testing.T, u engineUnderTest, handler string) {
		for name, limits := range map[string]subject.Limits{"none": {}, "all": {Memory: 256 << 20, CPUShares: 512, CPU: 0.75}} {
			t.Run(name, func(t *testing.T) {
				env := environment(t, 2)
				env.Limits = limits
				s := openedWith(t, u, handler, env)
				succeed(t, s, subject.RunPod, 2)
				alone, err := s.Sandboxes(t.Context())
				if err != nil || len(alone) != 2 || alone[1].Workload != 0 || !slices.Equal(alone[1].IDs, []string{s.held[1].pod}) {
					t.Fatalf("%+v, %v", alone, err)
				}
				succeed(t, s, subject.Create, 2)
				succeed(t, s, subject.Start, 2)
				boxes, err := s.Sandboxes(t.Context())
				if err != nil || len(boxes) != 2 {
					t.Fatalf("%+v, %v", boxes, err)
				}
				for n, b := range boxes {
					told(t, s, n, b)
					limited(t, s, chargedTo(t, b.Workload), limits)
					limited(t, s, b.Group, subject.Limits{}) // it is the container that is limited
				}
				if boxes[0].Group == boxes[1].Group {
					t.Errorf("both have %s", boxes[0].Group)
				}
				if err := s.Discard(t.Context(), []int{0}); err != nil {
					t.Fatal(err)
				}
				gone(t, s.hs, boxes[0].Group)
				if left, err := s.Sandboxes(t.Context()); err != nil || len(left) != 1 || left[0].Lane != 1 {
					t.Errorf("%+v, %v", left, err)
				}
				shut(t, u, s)
				gone(t, s.hs, s.group)
			})
		}
	})
}

// told checks what the engine said of one lane against /proc.
func told(t *testing.T, s *session, n int, b subject.Sandbox) {
	t.Helper()
	h := s.held[n]
	if b.Lane != n || !slices.Equal(b.IDs, []string{h.container, h.pod}) || b.Workload <= 1 || !cgroup.Holds(b.Group, b.Workload) || !engine.InGroupOf(b.Workload, h.container) {
		t.Errorf("%+v of %+v", b, h)
	}
	switch {
	case b.Pause != 0:
		if !cgroup.Holds(b.Group, b.Pause) || b.Pause == b.Workload {
			t.Errorf("%+v", b)
		}
	case !s.facts.podless:
		t.Errorf("%s tells of no process that holds the pod", s.name)
	}
}

// limited checks a group's own files.
func limited(t *testing.T, s *session, group string, l subject.Limits) {
	t.Helper()
	want := map[string]string{"memory.limit_in_bytes": strconv.Itoa((1<<63 - 1) / os.Getpagesize() * os.Getpagesize()), "cpu.cfs_quota_us": "-1"}
	if l.CPU > 0 {
		want = map[string]string{"memory.limit_in_bytes": "268435456", "cpu.cfs_quota_us": "75000", "cpu.cfs_period_us": "100000", "cpu.shares": "512"}
	}
	for name, value := range want {
		controller, _, _ := strings.Cut(name, ".")
		if got := file(t, s.hs, controller, group, name); got != value {
			t.Errorf("%s of %s is %s, not %s", name, group, got, value)
		}
	}
}

// gone checks that a group is in no hierarchy.
func gone(t *testing.T, hs []cgroup.Hierarchy, group string) {
	t.Helper()
	for _, h := range hs {
		if _, err := os.Stat(filepath.Join(h.Mount, group)); err == nil {
			t.Errorf("%s is left in %s", group, h.Mount)
		}
	}
}

func TestTheGroupOfARemovedPodIsGone(t *testing.T) {
	onAll(t, func(t *testing.T, u engineUnderTest) {
		s, _ := opened(t, u, "runc", 3)
		succeed(t, s, subject.RunPod, 3)
		var groups []string
		for _, h := range s.held {
			groups = append(groups, s.podGroup(h.name))
		}
		succeed(t, s, subject.StopPod, 3)
		succeed(t, s, subject.RemovePod, 3)
		for _, g := range groups {
			gone(t, s.hs, g)
		}
		shut(t, u, s)
		gone(t, s.hs, s.group)
	})
}

func TestOnlyPlausiblePidsAreTaken(t *testing.T) {
	for _, c := range []struct {
		info string
		want int
	}{
		{`{"pid":4711,"sandboxID":"x"}`, 4711}, {`{"pid":0}`, 0}, {`{}`, 0}, {``, 0}, {`{"pid":1}`, 0}, {`{"pid":-4}`, 0},
		{`{"pid":"4711"}`, 0}, {`{"pid":47.5}`, 0}, {`{"pid":99999999999}`, 0}, {`{"pid":4194305}`, 0}, {`[4711]`, 0}, {`{"pid":4711`, 0},
	} {
		if got := pidIn(map[string]string{"info": c.info}); got != c.want {
			t.Errorf("%s: %d, not %d", c.info, got, c.want)
		}
	}
}

func TestStatisticsAreThoseOfTheGroups(t *testing.T) {
	inside := carried(t)
	onHandlers(t, func(t *testing.T, u engineUnderTest, handler string) {
		env := environment(t, 2)
		env.Workload.Files = append(env.Workload.Files, inside)
		s := openedWith(t, u, handler, env)
		if none, err := s.Statistics(t.Context()); err != nil || len(none) > 0 {
			t.Errorf("%+v, %v", none, err)
		}
		succeed(t, s, subject.Run, 2)
		holding(t, s, 1, inside.Path, 64<<20)
		all, err := s.Statistics(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		count := map[string]int{}
		for _, got := range all {
			count[got.Source]++
			h := s.held[got.Lane]
			group := chargedTo(t, h.pid)
			if got.Source == ofPods {
				group = s.podGroup(h.name)
			}
			t.Logf("%+v; %s bytes, %s ns", got, file(t, s.hs, "memory", group, "memory.usage_in_bytes"), file(t, s.hs, "cpuacct", group, "cpuacct.usage"))
			memory := workingSet(t, s.hs, group)
			cpu, _ := strconv.ParseInt(file(t, s.hs, "cpuacct", group, "cpuacct.usage"), 10, 64)
			if got.Source == ofPods && u.name == crioEngine && got.Memory == -1 && got.CPU == -1 {
				continue // it looks for a slice of systemd's
			}
			if got.Memory < memory*9/10 || got.Memory > memory*11/10+1<<20 || got.CPU <= 0 || got.CPU > cpu || got.CPU < cpu/2 {
				t.Errorf("%+v, the group's working set is %d bytes, and it used %d ns", got, memory, cpu)
			}
			if got.Lane == 1 && got.Memory < 64<<20 || got.Lane == 0 && got.Memory > 32<<20 {
				t.Errorf("%+v", got)
			}
		}
		if count[ofContainers] != 2 || count[ofPods] != 2 && (count[ofPods] > 0 || !strings.HasPrefix(u.version, "1.6")) {
			t.Errorf("%v", count)
		}
		shut(t, u, s)
	})
}

func workingSet(t *testing.T, hs []cgroup.Hierarchy, group string) int64 {
	t.Helper()
	usage, _ := strconv.ParseInt(file(t, hs, "memory", group, "memory.usage_in_bytes"), 10, 64)
	for line := range strings.Lines(file(t, hs, "memory", group, "memory.stat") + "\n") {
		if value, ok := strings.CutPrefix(line, "total_inactive_file "); ok {
			n, _ := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
			return usage - n
		}
	}
	t.Fatal("memory.stat has no total_inactive_file")
	return 0
}

// holding has the container on a lane hold so many bytes until the test ends.
func holding(t *testing.T, s *session, n int, inside string, bytes int) {
	t.Helper()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = s.Exec(t.Context(), n, []string{inside, "touch", strconv.Itoa(bytes)})
	}()
	t.Cleanup(func() { <-ended })
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		used, _ := strconv.Atoi(file(t, s.hs, "memory", s.podGroup(s.held[n].name), "memory.usage_in_bytes"))
		if used >= bytes {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("it holds %d bytes", used)
		}
	}
}
