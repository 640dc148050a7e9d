package attribution

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tare-bench/tare/record"
)

// Members picks the processes of the sandboxes and the daemons, each with its
// role and the rule that gave it, and reads which cgroups their threads are in.
// They are in the order of lanes, then of pids. What could not be read is
// counted in problems.
func (s *Snapshot) Members(boxes []Sandbox, daemons []int, problems *record.Problems) []Member {
	c := &selection{facts: s.facts(boxes, daemons), who: map[int]*Member{}}
	c.daemonsFirst()
	c.inGroups()
	c.told()
	c.mentioning()
	c.parents()
	c.descendants()
	c.leftBehind()
	c.descendants()
	c.kernelThreads()
	out := make([]Member, 0, len(c.who))
	for _, m := range c.who {
		if s.reader.threads(m, problems) {
			out = append(out, *m)
		}
	}
	c.threadsElsewhere(out)
	slices.SortFunc(out, func(a, b Member) int { return cmp.Or(cmp.Compare(a.Lane, b.Lane), cmp.Compare(a.Pid, b.Pid)) })
	return out
}

// selection is who was picked by the facts so far.
type selection struct {
	*facts
	who   map[int]*Member
	boxed map[int]int // pid → box, of who
	queue []*Member   // whose children are still to be looked at
}

// add takes a process in, and tells whether it was not in yet.
func (c *selection) add(p *Process, box int, role record.Role, rule string) *Member {
	if m := c.who[p.Pid]; m != nil {
		return m
	}
	m := &Member{Process: p, Lane: -1, Role: role, Rule: rule}
	if box >= 0 {
		m.Lane = c.boxes[box].Lane
	}
	if c.boxed == nil {
		c.boxed = map[int]int{}
	}
	c.who[p.Pid], c.boxed[p.Pid] = m, box
	c.queue = append(c.queue, m)
	return m
}

func (c *selection) daemonsFirst() {
	for _, p := range c.Processes {
		if c.daemons[p.Pid] {
			c.add(p, -1, record.RoleDaemon, "the engine's daemon, by who answers on its socket")
		}
	}
}

// inGroups takes in everything in the sandboxes' own groups.
func (c *selection) inGroups() {
	for _, p := range c.Processes {
		if box := c.boxOf(p); box >= 0 {
			c.inside(p, box, 0)
		}
	}
}

// Rules that several decisions share.
const (
	ruleMentions = "argument names the container"
	ruleInGroup  = "in the pod's cgroup"
	ruleFirst    = "the container's first process"
	ruleDescends = "descends from the container's first process"
	// gVisor's systrap and ptrace run each of the workload's processes in one of
	// the sentry's, which has nothing but its address space.
	ruleStub = "an address space in which the sentry runs the workload"
)

// deepest is how far parents are followed; it ends where a broken /proc makes
// them go in circles.
const deepest = 1 << 12

// inside decides what a process in a sandbox's group is. A container's own
// processes may call themselves anything, so a program's name counts only where
// the arguments name this container, or the process is in no pid namespace of a
// container's.
func (c *selection) inside(p *Process, box, depth int) *Member {
	if m := c.who[p.Pid]; m != nil {
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

// byProgram goes by the program of a process in a sandbox's group, as far as that
// counts.
func (c *selection) byProgram(p *Process, box int) (role record.Role, why string, ok bool) {
	b := &c.boxes[box]
	mentions := c.mentioned(p) == box
	trusted := mentions || p.depth() == 0 && len(b.IDs) == 0
	if p.isInit() && p.depth() <= 1 {
		return record.RoleRuntime, "a runtime's init in the pod's cgroup, not yet the container's process", true
	}
	if role, ok := p.gVisor(); ok && (trusted || p.Pid == b.Workload || p.Pid == b.Pause) {
		return role, rule(mentions, "runsc in the pod's cgroup"), true
	}
	if role, ok := p.role(); ok {
		launched := p.depth() == 0 && (role == record.RoleVMM || role == record.RoleVirtiofs) && c.underShim(p, box)
		if trusted || launched {
			return role, rule(mentions, "its program, in the pod's cgroup"), true
		}
	}
	return record.RoleRuntime, ruleMentions, mentions && p.isCommand() && p.depth() == 0
}

// byParent goes by who started a process in a sandbox's group, and is in it too.
func (c *selection) byParent(p *Process, box, depth int) (role record.Role, why string, ok bool) {
	parent := c.byPid[p.PPid]
	if by, ok := c.serving(p); ok && c.mentioned(parent) == box {
		return startedBy(by)
	}
	if parent == nil || depth >= deepest || c.boxOf(parent) != box || c.daemons[parent.Pid] {
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
		return record.RoleWorkload, ruleDescends, c.first[up.Pid] == box && up.Pid == c.boxes[box].Workload || up.Rule == ruleDescends
	}
	return "", "", false
}

func rule(mentions bool, otherwise string) string {
	if mentions {
		return ruleMentions
	}
	return otherwise
}

// underShim tells whether a process was started by a shim of the box.
func (c *selection) underShim(p *Process, box int) bool {
	parent := c.byPid[p.PPid]
	if parent == nil {
		return false
	}
	role, _ := parent.role()
	return role == record.RoleShim && c.mentioned(parent) == box
}

// told takes in what the target names by pid.
func (c *selection) told() {
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
			if own, ok := p.about(); ok && c.mentioned(p) == i {
				role, why = own, ruleMentions
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

// mentioning takes in what stands outside of the groups and names a container.
// A process within a container may have any argument: outside of the groups
// those in a pid namespace of their own count only with a parent that counts, or
// in a cgroup that bears the id too.
func (c *selection) mentioning() {
	for _, p := range c.Processes {
		if c.who[p.Pid] != nil || c.boxOf(p) >= 0 || p.Kernel {
			continue
		}
		box := c.mentioned(p)
		if box < 0 {
			continue
		}
		if p.depth() > 0 && !c.bearsID(p, box) {
			parent := c.byPid[p.PPid]
			if parent == nil || parent.depth() > 0 || c.mentioned(parent) != box {
				continue
			}
		}
		if role, ok := p.about(); ok {
			c.add(p, box, role, ruleMentions)
		} else if p.isCommand() && p.depth() == 0 {
			c.add(p, box, record.RoleRuntime, "a runtime's or engine's command, "+ruleMentions)
		}
	}
}

// bearsID tells whether one of a process's cgroups names the box.
func (c *selection) bearsID(p *Process, box int) bool {
	for _, where := range p.Groups.All {
		if _, _, ok := named(where, func(id string) bool { i, ok := c.ids[id]; return ok && i == box }); ok {
			return true
		}
	}
	return false
}
