package attribution

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/golden"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

// An input is the sandbox with the daemons, and the processes. A result is the roles, the
// charges, and by which rule each process has its role.
func TestEveryProcessOfASandboxHasItsRole(t *testing.T) {
	init := proc{pid: 1, args: "/sbin/init", cgroup: root1}
	golden.Cases(t, "testdata/members.txt", func(t *testing.T, input string) string {
		box, rows, _ := strings.Cut(numbered.Replace(input), "\n")
		var of struct {
			Sandbox
			Daemons []int
		}
		must.OK(t, json.Unmarshal([]byte(box), &of))
		r, s := snapshot(t, tree(t, append([]proc{init}, processesIn(t, rows)...)...))
		var problems record.Problems
		boxes := []Sandbox{of.Sandbox}
		members := s.Members(boxes, of.Daemons, &problems)
		short, long := roles(members)
		check.Equal(t, "problems", problems.Gone+problems.Broken+problems.Denied+problems.Reused, 0)
		return shortened.Replace(short + "\n" + charges(s.Charges(full(t, r, members), boxes)) + long)
	})
}

func TestSandboxesThatShareAGroupAreKeptApartByTheirProcesses(t *testing.T) {
	_, s := snapshot(t, tree(t,
		proc{pid: 61, ppid: 1, nspid: "61 1", args: "/probe", cgroup: v1("/g/c1")},
		proc{pid: 62, ppid: 1, nspid: "62 1", args: "/probe", cgroup: v1("/g/c1/inner/c2")}))
	var problems record.Problems
	boxes := []Sandbox{{Lane: 0, IDs: []string{"c1"}, Group: "/g/c1"}, {Lane: 1, IDs: []string{"c2"}, Group: "/g/c1/inner/c2"}}
	if short, long := roles(s.Members(boxes, nil, &problems)); short != "61=workload@0 62=workload@1" {
		t.Errorf("%s", long)
	}
}

func TestTheGroupOfTheMachinesFirstProcessIsNoSandboxs(t *testing.T) {
	_, s := snapshot(t, tree(t,
		proc{pid: 1, args: "/sbin/init", cgroup: v1("/outer")},
		proc{pid: 40, ppid: 1, args: "tare", cgroup: v1("/outer/below")},
		proc{pid: 60, ppid: 40, args: "launcher", cgroup: v1("/elsewhere")},
		proc{pid: 61, ppid: 60, args: "/probe", cgroup: v1("/outer")}))
	var problems record.Problems
	if short, long := roles(s.Members([]Sandbox{{Workload: 61}}, nil, &problems)); short != "61=workload@0" {
		t.Errorf("%s", long)
	}
}

func TestWhatABareRuntimeLeavesBehindIsItsOwn(t *testing.T) {
	root := tree(t,
		proc{pid: 1, args: "/sbin/init", cgroup: root1},
		proc{pid: 40, ppid: 1, args: "tare overhead leaky", cgroup: root1},
		proc{pid: 50, ppid: 40, args: "tare-lane 0 1 2", cgroup: root1},
		proc{pid: 61, ppid: 50, nspid: "61 1", args: "/probe", cgroup: v1("/g/c1")},
		proc{pid: 62, ppid: 50, args: "helper", cgroup: root1}, // by a double fork
		proc{pid: 63, ppid: 62, args: "its-child", cgroup: root1},
		proc{pid: 64, ppid: 40, args: "du", cgroup: root1},
		proc{pid: 70, ppid: 1, args: "tare-lane 0 1 2", cgroup: root1}, // another run's
		proc{pid: 71, ppid: 70, args: "helper", cgroup: root1})
	must.OK(t, os.Symlink("40", filepath.Join(string(root), "proc/self")))
	_, s := snapshot(t, root)
	var problems record.Problems
	if short, long := roles(s.Members([]Sandbox{{Workload: 61, Group: "/g/c1"}}, nil, &problems)); short != "62=runtime@-1 63=runtime@-1 61=workload@0" {
		t.Errorf("%s", long)
	}
}
