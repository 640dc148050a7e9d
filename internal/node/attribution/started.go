package attribution

import (
	"regexp"
	"strconv"

	"github.com/tare-bench/tare/internal/node/procs"
	"github.com/tare-bench/tare/record"
)

// addParents adds the shim or monitor that started a first process.
func (c *selection) addParents() {
	for i := range c.boxes {
		for _, pid := range []int{c.boxes[i].Workload, c.boxes[i].Pause} {
			p := c.byPid[pid]
			if p == nil {
				continue
			}
			parent := c.byPid[p.PPid]
			if role := parent.helperRole(); (role == record.RoleShim || role == record.RoleMonitor) && parent.depth() == 0 && c.boxOf(parent) < 0 {
				c.add(parent, i, role, "parent of the container's first process")
			}
		}
	}
}

// addLeftBehind adds orphans of a bare runtime's commands, for example after a double
// fork. Their parent is now the lane that ran the command, a subreaper. Their sandbox
// is unknown. Orphans below a shim or monitor, which are subreapers too, are found as
// its descendants.
func (c *selection) addLeftBehind() {
	for _, p := range c.Processes {
		parent := c.byPid[p.PPid]
		if c.picked[p.Pid] == nil && c.boxOf(p) < 0 && parent != nil && parent.PPid == c.self && parent.isLane() && !p.isLane() && !p.Ended() {
			c.add(p, -1, record.RoleRuntime, "left behind by a runtime's command")
		}
	}
}

// addDescendants adds processes outside the groups that were started by members.
func (c *selection) addDescendants() {
	for len(c.queue) > 0 {
		m := c.queue[0]
		c.queue = c.queue[1:]
		box := c.box[m.Pid]
		for _, p := range c.children[m.Pid] {
			if c.picked[p.Pid] != nil || c.boxOf(p) >= 0 {
				continue
			}
			if role, why, ok := c.started(m, p); ok {
				c.add(p, box, role, why)
			}
		}
	}
}

// started determines the role of a member's child outside the groups. Shims, daemons and
// commands also start containers. Processes of containers are excluded, because they leave
// the group of their parent.
func (c *selection) started(by *Member, p *Process) (record.Role, string, bool) {
	role := p.helperRole()
	if by.Role == record.RoleVMM && role == record.RoleVirtiofs {
		return role, "started by the VMM", true
	}
	if role, why, ok := startedBy(by.Role); ok {
		return role, why, true
	}
	if p.Groups != by.Groups || p.depth() != by.depth() {
		return "", "", false
	}
	switch by.Role {
	case record.RoleShim, record.RoleMonitor, record.RoleRuntime:
		if p.isCommand() || p.isInit() {
			return record.RoleRuntime, "a runtime's command, started by the " + string(by.Role), true
		}
		if role == "" {
			return by.Role, "started by the " + string(by.Role), true
		}
		if by.Role == record.RoleShim && role != record.RoleShim && role != record.RoleMonitor {
			return role, "started by the shim", true
		}
	case record.RoleDaemon:
		if role == "" && !p.isCommand() && !p.isInit() {
			return by.Role, "started by the daemon", true
		}
	}
	return "", "", false
}

// startedBy returns the role of the children of a process with the given role. It returns
// false if the role of the parent alone does not determine that of a child.
func startedBy(role record.Role) (record.Role, string, bool) {
	child, ok := children[role]
	return child.role, child.rule, ok
}

var children = map[record.Role]struct {
	role record.Role
	rule string
}{
	record.RoleSentry:   {record.RoleWorkload, ruleStub},
	record.RoleGofer:    {record.RoleGofer, "started by the gofer"},
	record.RoleVMM:      {record.RoleVMM, "started by the VMM"},
	record.RoleVirtiofs: {record.RoleVirtiofs, "started by virtiofsd"},
	record.RoleWorkload: {record.RoleWorkload, ruleDescends},
	record.RolePause:    {record.RoleWorkload, ruleDescends},
}

// deviceOf returns the role of the parent of a process if the parent is a VMM or a
// virtiofsd, and "" otherwise. A child of these is one of their devices
// (vhost-device-vsock). It may be in the pod's group even if the VMM is not, because it
// inherits the group of the thread that started it.
func (s *Snapshot) deviceOf(p *Process) record.Role {
	parent := s.byPid[p.PPid]
	by := parent.helperRole()
	if by != record.RoleVMM && by != record.RoleVirtiofs || p.depth() > 0 || parent.depth() > 0 {
		return ""
	}
	return by
}

// addKernelThreads adds a VMM's kernel threads, found by the pid in their names:
// "vhost-123", "kvm-pit/123". Since Linux 6.4 vhost threads are threads of the VMM.
func (c *selection) addKernelThreads() {
	for _, p := range c.Processes {
		if !p.Kernel || c.picked[p.Pid] != nil {
			continue
		}
		if m := worker.FindStringSubmatch(p.Comm); m != nil {
			pid, err := strconv.Atoi(m[1])
			if owner := c.picked[pid]; err == nil && owner != nil && owner.Role == record.RoleVMM {
				c.add(p, c.box[pid], record.RoleVMM, "the kernel's worker for the VMM, by its name")
			}
		}
	}
}

var worker = regexp.MustCompile(`^(?:vhost-|kvm-pit/)([0-9]+)$`)

// findVCPUsByGroup finds the vCPUs of a VMM that does not name its threads. They are
// the threads in the pod's cgroup while the VMM is in another.
func (c *selection) findVCPUsByGroup(members []Member) {
	for i := range members {
		m := &members[i]
		if m.Role != record.RoleVMM || len(m.VCPUs) > 0 || len(m.Sets) < 2 || c.boxOf(m.Process) >= 0 {
			continue
		}
		box := c.box[m.Pid]
		for _, set := range m.Sets[1:] {
			for _, where := range procs.Billed(set.Paths) {
				in, ok := c.boxAround(where)
				if ok && in == box || !ok && c.requested[box] == "" && where != "/" && !isOverhead(where) {
					m.VCPUs = append(m.VCPUs, set.Threads...)
					m.VCPURule = "threads of the VMM in the pod's group"
					break
				}
			}
		}
	}
}
