package attribution

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

func TestOnlyWhatSharesSomethingWithASandboxIsRelated(t *testing.T) {
	t.Parallel()
	pod, system := v1("/pods/kk"), v1("/system/containerd")
	for name, c := range map[string]struct {
		other proc
		space string // its network namespace
		want  int
	}{
		"a process of other work":                     {proc{ppid: 1, args: "/usr/bin/cc", cgroup: root1}, "net:[1]", 0},
		"one in the daemon's cgroup":                  {proc{ppid: 1, args: "/usr/bin/cc", cgroup: system}, "net:[1]", 0},
		"a child of the daemon":                       {proc{ppid: 500, args: "/usr/bin/cc", cgroup: v1("/other")}, "net:[1]", 0},
		"another's workload of the same name":         {proc{ppid: 1, args: "/probe", cgroup: root1}, "net:[3]", 0},
		"one that the shim started in another cgroup": {proc{ppid: 10, args: "/opt/helper", cgroup: v1("/other")}, "net:[1]", 1},
		"one of the shim's name":                      {proc{ppid: 1, args: "/opt/containerd-shim-runc-v2", cgroup: root1}, "net:[1]", 1},
		"one in the cgroup of the shim alone":         {proc{ppid: 1, args: "/opt/helper", cgroup: v1("/shims/kk")}, "net:[1]", 1},
		"one in the container's network":              {proc{ppid: 1, args: "/opt/helper", cgroup: root1}, "net:[2]", 1},
	} {
		c.other.pid = 90
		root := tree(t, proc{pid: 1, args: "/sbin/init", cgroup: root1}, proc{pid: 500, ppid: 1, args: "containerd", cgroup: system},
			proc{pid: 10, ppid: 1, args: "/usr/bin/containerd-shim-runc-v2 -namespace x -id kk", cgroup: v1("/shims/kk")},
			proc{pid: 11, ppid: 10, args: "/probe", cgroup: pod, nspid: "11 1"}, c.other)
		for pid, space := range map[int]string{1: "net:[1]", 500: "net:[1]", 10: "net:[1]", 11: "net:[2]", 90: c.space} {
			ns := filepath.Join(string(root), "proc", strconv.Itoa(pid), "ns")
			must.OK(t, os.MkdirAll(ns, 0o755))
			must.OK(t, os.Symlink(space, filepath.Join(ns, "net")))
		}
		_, s := snapshot(t, root)
		var problems record.Problems
		members := s.Members([]Sandbox{{IDs: []string{"kk"}, Group: "/pods/kk", Workload: 11}}, []int{500}, &problems)
		if got := s.Related(members); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}
