package attribution_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/node/attribution"
	"github.com/tare-bench/tare/internal/node/cgroup"
	"github.com/tare-bench/tare/internal/probe"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/cri"
	"github.com/tare-bench/tare/internal/subject/docker"
	"github.com/tare-bench/tare/internal/subject/oci"
	"github.com/tare-bench/tare/internal/subject/podman"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/engines"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/internal/testing/need"
	"github.com/tare-bench/tare/record"
)

func TestMain(m *testing.M) { engines.Main(m) }

const held = 32 << 20 // bytes allocated by a command in every container

// real is a target on this machine, with the expected properties of its sandboxes.
type real struct {
	engine  string // as discovered
	daemons []int
	target  func() (subject.Target, error)
	roles   map[record.Role]int // processes per role on a lane; -1: several; nil: check decides
	helper  record.Role
	pods    bool
}

func TestRealSandboxesHaveExactlyTheirProcesses(t *testing.T) {
	need.Root(t)
	bare := func(name, path string, roles map[record.Role]int) {
		t.Run(name, func(t *testing.T) {
			need.Runtime(t, name)
			behave(t, real{engine: "", roles: roles, target: func() (subject.Target, error) { return oci.New(t.Context(), name, path) }})
		})
	}
	bare("runc", "", map[record.Role]int{record.RoleWorkload: 2})
	bare("crun", "", map[record.Role]int{record.RoleWorkload: 2})
	bare("runsc", engines.Runsc(), map[record.Role]int{record.RoleSentry: 1, record.RoleWorkload: -1, record.RoleGofer: 1, record.RoleRuntime: 1})
	d := engines.Docker(t)
	for _, runtime := range d.Runtimes {
		t.Run("docker/"+runtime, func(t *testing.T) {
			behave(t, real{engine: "docker", daemons: []int{d.Pid, d.ContainerdPid}, helper: record.RoleShim, target: func() (subject.Target, error) {
				return docker.New(t.Context(), "docker/"+runtime, runtime, "cli", subject.Engine{Address: d.Host, Command: d.Command})
			}})
		})
	}
	p := engines.Podman(t)
	for _, runtime := range p.Runtimes {
		t.Run("podman/"+runtime, func(t *testing.T) {
			behave(t, real{engine: "podman", daemons: []int{p.Pid}, helper: record.RoleMonitor, target: func() (subject.Target, error) {
				return podman.New(t.Context(), "podman/"+runtime, runtime, "cli", subject.Engine{Command: p.Command})
			}})
		})
	}
	pod := func(name string, daemon int, helper record.Role, e subject.Engine) {
		t.Run("cri+"+name, func(t *testing.T) {
			behave(t, real{engine: name, daemons: []int{daemon}, pods: true, helper: helper, target: func() (subject.Target, error) {
				return cri.New(t.Context(), "cri+"+name+"/runc", name, "runc", e)
			}})
		})
	}
	c, o := engines.Containerd(t, engines.V2), engines.CRIO(t)
	pod("containerd", c.Pid, record.RoleShim, subject.Engine{Address: c.Address})
	pod("cri-o", o.Pid, record.RoleMonitor, subject.Engine{Address: "unix://" + o.Socket, Command: o.Skopeo})
}

// behave starts sandboxes on two lanes. A command in each allocates memory. behave checks
// their processes with every identification method.
func behave(t *testing.T, r real) {
	target := must.Get(r.target())(t)
	run := fmt.Sprintf("p%07x", os.Getpid())
	s, err := target.Open(t.Context(), subject.Env{RunID: run, Dir: t.TempDir(), StateDir: t.TempDir(), Lanes: 2, Timeout: time.Minute, Limits: subject.DefaultLimits})
	must.OK(t, err)
	t.Cleanup(func() {
		must.OK(t, s.Close(context.Background()))
		hs, err := cgroup.Hierarchies()
		check.That(t, err == nil && cgroup.Remove(hs, cgroup.Prefix+run) == nil, "the cgroup of the run was not removed: %v", err)
	})
	b := must.Get(s.Prepare(t.Context(), subject.Run, []int{0, 1}))(t)
	_, samples, err := b.Start(t.Context())
	must.That(t, err == nil && samples[0].Failure == nil && samples[1].Failure == nil, "%v %+v", err, samples)
	sandboxes, err := s.(subject.Sandboxed).Sandboxes(t.Context())
	must.That(t, err == nil && len(sandboxes) == 2, "%v %+v", err, sandboxes)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{}, 2)
	for lane := range 2 {
		go func() {
			_, _ = s.(subject.Executor).Exec(ctx, lane, probe.HoldArgs(held, time.Minute))
			ended <- struct{}{}
		}()
	}
	defer func() { cancel(); <-ended; <-ended }()
	ways := map[string]func(*attribution.Snapshot, subject.Sandbox) []attribution.Sandbox{
		"reported": func(_ *attribution.Snapshot, b subject.Sandbox) []attribution.Sandbox {
			return []attribution.Sandbox{b}
		},
		"discovered": func(s *attribution.Snapshot, b subject.Sandbox) (out []attribution.Sandbox) {
			for _, f := range s.Sandboxes() {
				// A pod of CRI-O has no process of its own, so its ID is not visible.
				if slices.Contains(f.Box.IDs, b.IDs[0]) && (r.engine == "" || f.Engine == r.engine) {
					f.Box.Lane = b.Lane
					out = append(out, f.Box)
				}
			}
			return out
		},
	}
	if !r.pods {
		ways["without a group"] = func(_ *attribution.Snapshot, b subject.Sandbox) []attribution.Sandbox {
			return []attribution.Sandbox{{Lane: b.Lane, IDs: b.IDs, Workload: b.Workload}}
		}
	}
	pids := map[string][]int{}
	for how, way := range ways {
		// The commands need a moment to allocate their memory.
		must.Eventually(t, func() string {
			var wrong []string
			pids[how], wrong = r.check(t, sandboxes, way, strings.Contains(target.Info().Name, "runsc"))
			return strings.Join(wrong, "\n")
		})
		want := pids["reported"]
		check.That(t, want == nil || slices.Equal(pids[how], want), "%s: %v, want %v as reported", how, pids[how], want)
	}
}

// check takes one snapshot of the node. It returns the processes of the two lanes and a
// list of errors.
func (r real) check(t *testing.T, sandboxes []subject.Sandbox, way func(*attribution.Snapshot, subject.Sandbox) []attribution.Sandbox, gvisor bool) (pids []int, wrong []string) {
	t.Helper()
	bad := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	reader := new(attribution.Reader)
	s := must.Get(reader.Snapshot(t.Context()))(t)
	var boxes []attribution.Sandbox
	for _, b := range sandboxes {
		boxes = append(boxes, way(s, b)...)
	}
	if len(boxes) != len(sandboxes) {
		return nil, []string{fmt.Sprintf("%d sandboxes: %+v", len(boxes), s.Sandboxes())}
	}
	var problems record.Problems
	var all []record.Process
	long := ""
	members := s.Members(boxes, r.daemons, &problems)
	for _, m := range members {
		if p, err := reader.Process(m, true, &problems); err == nil {
			all = append(all, p)
			long += fmt.Sprintf("\n  %d %s %s lane %d: %s", p.Pid, p.Name, p.Role, p.Lane, p.Rule)
		}
	}
	if problems.Reused+problems.Denied+problems.Broken > 0 {
		bad("%+v", problems)
	}
	charges := s.Charges(members, boxes)
	for lane, b := range sandboxes {
		roles, memory := map[record.Role]int{}, int64(0)
		for _, p := range all {
			if p.Lane != lane {
				continue
			}
			roles[p.Role]++
			memory += p.PSSAnon + p.PSSShmem
			if p.Role != record.RoleRuntime && !gvisor { // commands of engines and processes of the sentry are short-lived
				pids = append(pids, p.Pid)
			}
			if !p.Read {
				bad("process %d was not read", p.Pid)
			}
		}
		want := r.roles
		if want == nil {
			want = map[record.Role]int{record.RoleWorkload: 2}
			if gvisor {
				want = map[record.Role]int{record.RoleSentry: 1}
			}
			if b.Pause != 0 {
				want[record.RolePause] = 1
			}
			if roles[r.helper] < 1 {
				bad("%v%s", roles, long)
			}
		} else if len(roles) != len(want) {
			bad("%v", roles)
		}
		for role, n := range want {
			if roles[role] != n && (n >= 0 || roles[role] < 2) {
				bad("%d processes of role %s, want %d%s", roles[role], role, n, long)
			}
		}
		// gVisor maps only a small part of the memfd with its memory. The memory is charged
		// to the cgroup, but is not part of the process memory.
		if !gvisor && memory < held || memory > held+200<<20 {
			bad("%d bytes of memory, want at least %d%s", memory, held, long)
		}
		var own []string
		for _, g := range charges {
			if g.Lane == lane && g.Charge == record.ChargePod {
				own = append(own, g.Path)
			}
			if g.Charge == record.ChargeOverhead && r.helper == "" {
				bad("%+v", g)
			}
		}
		if len(own) == 0 || !r.pods && (len(own) > 1 || !attribution.Names(own[0], b.IDs)) {
			bad("%v: %v", own, charges)
			continue
		}
		group := own[0]
		if r.pods {
			group = b.Group
		}
		wrong = append(wrong, inGroup(t, group, all, lane)...)
	}
	daemons := 0
	for _, p := range all {
		if p.Lane == -1 && p.Role == record.RoleDaemon {
			daemons++
		} else if p.Lane == -1 {
			bad("process %d is neither on a lane nor a daemon%s", p.Pid, long)
		}
	}
	if daemons < len(r.daemons) {
		bad("%d daemons%s", daemons, long)
	}
	return pids, wrong
}

// inGroup checks that every process of the cgroup, as listed by the kernel, is on the lane.
func inGroup(t *testing.T, group string, processes []record.Process, lane int) (wrong []string) {
	t.Helper()
	hs := must.Get(cgroup.Hierarchies())(t)
	n := 0
	for _, h := range hs {
		if !h.Has("memory") {
			continue
		}
		_ = filepath.WalkDir(filepath.Join(h.Mount, group), func(path string, _ os.DirEntry, _ error) error {
			text, _ := os.ReadFile(filepath.Join(path, "cgroup.procs"))
			for word := range strings.FieldsSeq(string(text)) {
				pid, _ := strconv.Atoi(word)
				n++
				if !slices.ContainsFunc(processes, func(p record.Process) bool { return p.Pid == pid && p.Lane == lane }) {
					wrong = append(wrong, fmt.Sprintf("process %d of %s is not on lane %d", pid, path, lane))
				}
			}
			return nil
		})
	}
	if n == 0 {
		wrong = append(wrong, "no process in "+group)
	}
	return wrong
}

func TestTimeOfEndedChildrenIsRead(t *testing.T) {
	parent := exec.CommandContext(t.Context(), "sh", "-c", "while :; do (i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done); done")
	must.OK(t, parent.Start())
	defer func() { _ = parent.Process.Kill(); _ = parent.Wait() }()
	reader := new(attribution.Reader)
	var problems record.Problems
	waited := func() (ns int64) {
		s := must.Get(reader.Snapshot(t.Context()))(t)
		for _, m := range s.Members([]attribution.Sandbox{{More: []int{parent.Process.Pid}}}, nil, &problems) {
			if p, err := reader.Process(m, false, &problems); err == nil && p.Pid == parent.Process.Pid {
				ns = p.Waited
			}
		}
		return ns
	}
	must.Eventually(t, func() string {
		if waited() > 0 {
			return ""
		}
		return fmt.Sprintf("no CPU time of ended children; %+v", problems)
	})
}
