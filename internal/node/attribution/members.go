package attribution

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tare-bench/tare/record"
)

// Members returns the processes of the sandboxes and the daemons, sorted by lane and pid.
// Each has its role, the rule that decided it, and the cgroups of its threads. Read
// failures are counted in problems.
func (s *Snapshot) Members(boxes []Sandbox, daemons []int, problems *record.Problems) []Member {
	c := &selection{facts: s.facts(boxes, daemons), picked: map[int]*Member{}, box: map[int]int{}}
	c.addDaemons()
	c.addGroups()
	c.addNamedPids()
	c.addMentioning()
	c.addParents()
	c.addDescendants()
	c.addLeftBehind()
	c.addDescendants()
	c.addKernelThreads()
	out := make([]Member, 0, len(c.picked))
	for _, m := range c.picked {
		if s.reader.threads(m, problems) {
			out = append(out, *m)
		}
	}
	c.findVCPUsByGroup(out)
	slices.SortFunc(out, func(a, b Member) int { return cmp.Or(cmp.Compare(a.Lane, b.Lane), cmp.Compare(a.Pid, b.Pid)) })
	return out
}

// selection collects the members.
type selection struct {
	*facts
	picked map[int]*Member // by pid
	box    map[int]int     // by pid; -1: none
	queue  []*Member       // members whose children are not examined yet
}

// add adds a process, unless it is already a member, and returns the member.
func (c *selection) add(p *Process, box int, role record.Role, rule string) *Member {
	if m := c.picked[p.Pid]; m != nil {
		return m
	}
	m := &Member{Process: p, Lane: -1, Role: role, Rule: rule}
	if box >= 0 {
		m.Lane = c.boxes[box].Lane
	}
	c.picked[p.Pid], c.box[p.Pid] = m, box
	c.queue = append(c.queue, m)
	return m
}

func (c *selection) addDaemons() {
	for _, p := range c.Processes {
		if slices.Contains(c.daemons, p.Pid) {
			c.add(p, -1, record.RoleDaemon, "the engine's daemon, by who answers on its socket")
		}
	}
}

// addGroups adds all processes in the cgroups of the sandboxes.
func (c *selection) addGroups() {
	for _, p := range c.Processes {
		if box := c.boxOf(p); box >= 0 {
			c.inside(p, box, 0)
		}
	}
}

// Rules used in several places.
const (
	ruleMentions = "argument names the container"
	ruleInGroup  = "in the pod's cgroup"
	ruleFirst    = "the container's first process"
	ruleDescends = "descends from the container's first process"
	// On gVisor's systrap and ptrace platforms, each process of the workload runs in a
	// host process that provides only an address space.
	ruleStub = "an address space in which the sentry runs the workload"
)

// deepest limits the walk over parents, because a hostile /proc may have a cycle.
const deepest = 1 << 12

// inside determines the role of a process in a sandbox's group. Processes of a
// container can have any name. The name therefore counts only if the arguments contain
// the container's id, or if the process is outside the container's pid namespace.
func (c *selection) inside(p *Process, box, depth int) *Member {
	if m := c.picked[p.Pid]; m != nil {
		return m
	}
	b := &c.boxes[box]
	role, why, ok := c.byProgram(p, box)
	switch {
	case ok:
	case p.Pid == b.Pause:
		role, why = record.RolePause, "the pod's first process"
	case p.Pid == b.Workload:
		role, why = record.RoleWorkload, ruleFirst
	default:
		if role, why, ok = c.byParent(p, box, depth); ok {
			break
		}
		role, why = record.RoleWorkload, ruleInGroup
		if b.Pause == 0 && p.isPause() && p.NSpid != nil && p.NSpid[len(p.NSpid)-1] == 1 {
			role, why = record.RolePause, "program pause is the first process of its pid namespace"
		}
	}
	return c.add(p, box, role, why)
}

// byProgram determines the role of a process in a sandbox's group by its program.
func (c *selection) byProgram(p *Process, box int) (role record.Role, why string, ok bool) {
	b := &c.boxes[box]
	mentions := c.mentioned(p) == box
	trusted := mentions || p.depth() == 0 && len(b.IDs) == 0
	if p.isInit() && p.depth() <= 1 {
		return record.RoleRuntime, "a runtime's init in the pod's cgroup, not yet the container's process", true
	}
	if role := p.gVisorRole(); role != "" && (trusted || p.Pid == b.Workload || p.Pid == b.Pause) {
		return role, rule(mentions, "runsc in the pod's cgroup"), true
	}
	if role := p.helperRole(); role != "" {
		parent := c.byPid[p.PPid]
		launched := p.depth() == 0 && (role == record.RoleVMM || role == record.RoleVirtiofs) &&
			parent.helperRole() == record.RoleShim && c.mentioned(parent) == box
		if trusted || launched {
			return role, rule(mentions, "its program, in the pod's cgroup"), true
		}
	}
	return record.RoleRuntime, ruleMentions, mentions && p.isCommand() && p.depth() == 0
}

// byParent determines the role of a process in a sandbox's group by its parent.
func (c *selection) byParent(p *Process, box, depth int) (role record.Role, why string, ok bool) {
	parent := c.byPid[p.PPid]
	if by := c.deviceOf(p); by != "" && c.mentioned(parent) == box {
		return startedBy(by)
	}
	if parent == nil || depth >= deepest || c.boxOf(parent) != box || slices.Contains(c.daemons, parent.Pid) {
		return "", "", false
	}
	up := c.inside(parent, box, depth+1)
	switch up.Role {
	case record.RoleGofer, record.RoleVMM, record.RoleVirtiofs, record.RoleSentry:
		return startedBy(up.Role)
	case record.RoleShim:
		return up.Role, "started by the shim", p.depth() == 0 && strings.Contains(up.name(), "kata")
	case record.RoleWorkload:
		if up.Rule == ruleStub {
			return record.RoleWorkload, ruleStub, true
		}
		return record.RoleWorkload, ruleDescends, up.Pid == c.boxes[box].Workload || up.Rule == ruleDescends
	}
	return "", "", false
}

func rule(mentions bool, otherwise string) string {
	if mentions {
		return ruleMentions
	}
	return otherwise
}

// addNamedPids adds the processes that a target reports by pid.
func (c *selection) addNamedPids() {
	for i := range c.boxes {
		b := &c.boxes[i]
		one := func(pid int, role record.Role, why string) {
			p := c.byPid[pid]
			if p == nil || pid <= 1 {
				return
			}
			if box := c.boxOf(p); box >= 0 && box != i {
				return
			}
			if known := p.role(); known != "" && c.mentioned(p) == i {
				role, why = known, ruleMentions
			}
			c.add(p, i, role, why)
		}
		one(b.Pause, record.RolePause, "the pod's first process")
		one(b.Workload, record.RoleWorkload, ruleFirst)
		for _, pid := range b.More {
			one(pid, record.RoleWorkload, "a command that was run in the sandbox")
		}
	}
}

// addMentioning adds processes outside the groups that have a container's id among
// their arguments. A process inside a container can have any argument. A process in
// another pid namespace therefore counts only if its cgroup contains the id too, or if
// its parent counts.
func (c *selection) addMentioning() {
	for _, p := range c.Processes {
		if c.picked[p.Pid] != nil || c.boxOf(p) >= 0 || p.Kernel {
			continue
		}
		box := c.mentioned(p)
		if box < 0 {
			continue
		}
		if p.depth() > 0 && !slices.ContainsFunc(p.Groups.All, func(where string) bool { return Names(where, c.boxes[box].IDs) }) {
			parent := c.byPid[p.PPid]
			if parent == nil || parent.depth() > 0 || c.mentioned(parent) != box {
				continue
			}
		}
		if role := p.role(); role != "" {
			c.add(p, box, role, ruleMentions)
		} else if p.isCommand() && p.depth() == 0 {
			c.add(p, box, record.RoleRuntime, "a runtime's or engine's command, "+ruleMentions)
		}
	}
}
