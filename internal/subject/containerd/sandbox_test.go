package containerd

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/engines"
	"github.com/tare-bench/tare/internal/node/cgroup"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/engine/enginetest"
)

var carried = enginetest.Carried

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

// unlimited is what v1 shows where memory has no limit: the most that whole
// pages give.
func unlimited() string {
	return strconv.FormatInt(int64((1<<63-1)/os.Getpagesize()*os.Getpagesize()), 10)
}

func TestSandboxesAreInTheirGroupsAndLimited(t *testing.T) {
	onBoth(t, func(t *testing.T, d *engines.ContainerdDaemon) {
		for _, runtime := range runtimes(t) {
			for name, limits := range map[string]subject.Limits{"none": {}, "all": {Memory: 256 << 20, Pids: 200, CPUShares: 512, CPU: 0.75}} {
				t.Run(filepath.Base(runtime)+" "+name, func(t *testing.T) {
					env := environment(t, newID(), 2)
					env.Limits = limits
					s := openWith(t, d, runtime, env)
					succeed(t, s, subject.Run, 2)
					boxes, err := s.Sandboxes(t.Context())
					if err != nil || len(boxes) != 2 {
						t.Fatalf("%+v, %v", boxes, err)
					}
					for n, b := range boxes {
						if b.Lane != n || !slices.Equal(b.IDs, []string{s.containers[n].id}) || b.Pause != 0 || b.Workload <= 1 || !cgroup.Holds(b.Group, b.Workload) {
							t.Errorf("%+v", b)
						}
						limited(t, s, b.Group, limits)
					}
					if boxes[0].Group == boxes[1].Group || boxes[0].Workload == boxes[1].Workload {
						t.Errorf("both have %+v", boxes)
					}
					if err := s.Discard(t.Context(), []int{0}); err != nil {
						t.Fatal(err)
					}
					gone(t, s.hs, boxes[0].Group)
					if left, err := s.Sandboxes(t.Context()); err != nil || len(left) != 1 || left[0].Lane != 1 {
						t.Errorf("%+v, %v", left, err)
					}
					shut(t, d, s)
					gone(t, s.hs, s.group)
				})
			}
		}
	})
}

// limited checks a group's own files. gVisor's shim asks for no quota of its own.
func limited(t *testing.T, s *session, group string, l subject.Limits) {
	t.Helper()
	want := map[string]string{"memory.limit_in_bytes": unlimited(), "cpu.cfs_quota_us": "-1", "pids.max": "max"}
	if l.CPU > 0 {
		want = map[string]string{"memory.limit_in_bytes": "268435456", "cpu.cfs_quota_us": "75000", "cpu.cfs_period_us": "100000", "cpu.shares": "512", "pids.max": "200"}
	}
	for name, value := range want {
		controller, _, _ := strings.Cut(name, ".")
		if got := file(t, s.hs, controller, group, name); got != value {
			t.Errorf("%s is %s, not %s", name, got, value)
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

func TestStatisticsAreThoseOfTheGroup(t *testing.T) {
	inside := carried(t)
	onBoth(t, func(t *testing.T, d *engines.ContainerdDaemon) {
		for _, runtime := range []string{"runc", "crun"} {
			env := environment(t, newID(), 2)
			env.Workload.Files = append(env.Workload.Files, inside)
			s := openWith(t, d, runtime, env)
			if none, err := s.Statistics(t.Context()); err != nil || len(none) > 0 {
				t.Errorf("%+v, %v", none, err)
			}
			succeed(t, s, subject.Run, 2)
			holding(t, s, 1, inside.Path, 64<<20)
			all, err := s.Statistics(t.Context())
			if err != nil || len(all) != 2 {
				t.Fatalf("%+v, %v", all, err)
			}
			for n, got := range all {
				group := s.groupOf(s.containers[n].id)
				memory, _ := strconv.ParseInt(file(t, s.hs, "memory", group, "memory.usage_in_bytes"), 10, 64)
				cpu, _ := strconv.ParseInt(file(t, s.hs, "cpuacct", group, "cpuacct.usage"), 10, 64)
				if got.Lane != n || got.Source != "ctr task metrics" || got.Memory < memory*9/10 || got.Memory > memory*11/10+1<<20 || got.CPU <= 0 || got.CPU > cpu || got.CPU < cpu/2 {
					t.Errorf("%+v, the group has %d bytes and used %d ns", got, memory, cpu)
				}
			}
			if all[1].Memory < 64<<20 || all[0].Memory > 32<<20 {
				t.Errorf("%+v", all)
			}
			shut(t, d, s)
		}
	})
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
		used, _ := strconv.Atoi(file(t, s.hs, "memory", s.groupOf(s.containers[n].id), "memory.usage_in_bytes"))
		if used >= bytes {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("it holds %d bytes", used)
		}
	}
}
