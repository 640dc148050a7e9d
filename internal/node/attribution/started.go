package attribution

import (
	"strconv"
	"strings"

	"github.com/tare-bench/tare/internal/node/procs"
	"github.com/tare-bench/tare/record"
)

// parents takes in the shim or monitor that started a first process.
func (c *selection) parents() {
	for i := range c.boxes {
		for _, pid := range []int{c.boxes[i].Workload, c.boxes[i].Pause} {
			p := c.byPid[pid]
			if p == nil || c.byPid[p.PPid] == nil {
				continue
			}
			parent := c.byPid[p.PPid]
			if role, ok := parent.role(); ok && (role == record.RoleShim || role == record.RoleMonitor) && parent.depth() == 0 && c.boxOf(parent) < 0 {
				c.add(parent, i, role, "parent of the container's first process")
			}
		}
	}
}

// leftBehind takes in what a bare runtime's commands left running, by a double fork
// say: tare's lanes, which run those commands, are the subreapers of that. Which
// sandbox it is for is not known. (A shim or a monitor is the subreaper of what the
// runtime leaves below it, and that is found by descent.)
func (c *selection) leftBehind() {
	for _, p := range c.Processes {
		parent := c.byPid[p.PPid]
		if c.who[p.Pid] == nil && c.boxOf(p) < 0 && parent != nil && parent.PPid == c.self && parent.isLane() && !p.isLane() && !p.Ended() {
			c.add(p, -1, record.RoleRuntime, "left behind by a runtime's command")
		}
	}
}

// descendants takes in what members started outside of the groups.
func (c *selection) descendants() {
	for len(c.queue) > 0 {
		m := c.queue[0]
		c.queue = c.queue[1:]
		box := c.boxed[m.Pid]
		for _, p := range c.children[m.Pid] {
			if c.who[p.Pid] != nil || c.boxOf(p) >= 0 {
				continue
			}
			if role, why, ok := c.started(m, p); ok {
				c.add(p, box, role, why)
			}
		}
	}
}

// started decides what a member's child outside of the groups is. Shims,
// daemons and commands start containers too, which leave their groups; what
// stays in them is theirs.
func (c *selection) started(by *Member, p *Process) (record.Role, string, bool) {
	if role, ok := p.role(); ok && by.Role == record.RoleVMM && role == record.RoleVirtiofs {
		return role, "started by the VMM", true
	}
	if role, why, ok := startedBy(by.Role); ok {
		return role, why, true
	}
	if p.Groups != by.Groups || p.depth() != by.depth() {
		return "", "", false
	}
	role, beside := p.role()
	switch by.Role {
	case record.RoleShim, record.RoleMonitor, record.RoleRuntime:
		if p.isCommand() || p.isInit() {
			return record.RoleRuntime, "a runtime's command, started by the " + string(by.Role), true
		}
		if !beside {
			return by.Role, "started by the " + string(by.Role), true
		}
		if by.Role == record.RoleShim && role != record.RoleShim && role != record.RoleMonitor {
			return role, "started by the shim", true
		}
	case record.RoleDaemon:
		if !beside && !p.isCommand() && !p.isInit() {
			return by.Role, "started by the daemon", true
		}
	}
	return "", "", false
}

// startedBy is what somebody is whom a process of a role started, wherever that is:
// they do nothing else than their own work, or in the sentry's case the workload's.
func startedBy(role record.Role) (record.Role, string, bool) {
	switch role {
	case record.RoleSentry:
		return record.RoleWorkload, ruleStub, true
	case record.RoleGofer:
		return role, "started by the gofer", true
	case record.RoleVMM:
		return role, "started by the VMM", true
	case record.RoleVirtiofs:
		return role, "started by virtiofsd", true
	case record.RoleWorkload, record.RolePause:
		return record.RoleWorkload, ruleDescends, true
	}
	return "", "", false
}

// serving tells whether a VMM or a virtiofsd started a process, and which: that is one
// of its devices (vhost-device-vsock), even in the pod's group, in which the thread that
// started it may be while the VMM is not.
func (s *Snapshot) serving(p *Process) (by record.Role, ok bool) {
	parent := s.byPid[p.PPid]
	if parent == nil || p.depth() > 0 || parent.depth() > 0 {
		return "", false
	}
	by, _ = parent.role()
	return by, by == record.RoleVMM || by == record.RoleVirtiofs
}

// kernelThreads takes in the kernel's workers of a VMM, which bear its pid in
// their names: "vhost-123", "kvm-pit/123". Since Linux 6.4 vhost's are threads
// of the VMM itself.
func (c *selection) kernelThreads() {
	for _, p := range c.Processes {
		if !p.Kernel || c.who[p.Pid] != nil {
			continue
		}
		for _, prefix := range []string{"vhost-", "kvm-pit/"} {
			number, ok := strings.CutPrefix(p.Comm, prefix)
			if !ok {
				continue
			}
			pid, err := strconv.Atoi(number)
			if owner := c.who[pid]; err == nil && owner != nil && owner.Role == record.RoleVMM {
				c.add(p, c.boxed[pid], record.RoleVMM, "the kernel's worker for the VMM, by its name")
			}
		}
	}
}

// threadsElsewhere finds the vCPUs of a VMM that does not name its threads:
// those that are in the pod's cgroup while the VMM is not.
func (c *selection) threadsElsewhere(members []Member) {
	for i := range members {
		m := &members[i]
		if m.Role != record.RoleVMM || len(m.VCPUs) > 0 || len(m.Sets) < 2 || c.boxOf(m.Process) >= 0 {
			continue
		}
		box := c.boxed[m.Pid]
		for _, set := range m.Sets[1:] {
			for _, where := range procs.Billed(set.Paths) {
				in, ok := c.within(where)
				if ok && in == box || !ok && !c.asked[box] && where != "/" && !overhead(where) {
					m.VCPUs = append(m.VCPUs, set.Threads...)
					m.VCPURule = "threads of the VMM in the pod's group"
					break
				}
			}
		}
	}
}
