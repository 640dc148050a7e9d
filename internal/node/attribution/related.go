package attribution

import (
	"maps"
	"slices"

	"github.com/tare-bench/tare/record"
)

// Related counts non-members that may still belong to a sandbox. Such a process descends
// from a process of a sandbox, or has its name, one of its cgroups or one of its namespaces.
// Names of workloads do not count. Cgroups and namespaces of pid 1, this program or a daemon
// do not count either.
func (s *Snapshot) Related(members []Member) (n int) {
	host := []*Process{s.byPid[1], s.byPid[s.self]}
	sandboxed, names := map[int]bool{}, map[string]bool{}
	member := map[int]bool{}
	for _, m := range members {
		member[m.Pid] = true
		switch {
		case m.Kernel:
		case m.Role == record.RoleDaemon:
			host = append(host, m.Process)
		default:
			sandboxed[m.Pid] = true
			names[m.Comm] = names[m.Comm] || m.Role != record.RoleWorkload && m.Role != record.RolePause
		}
	}
	spaces, groups := s.own(sandboxed, host)
	for _, p := range s.Processes {
		if member[p.Pid] || p.Kernel {
			continue
		}
		shares := slices.ContainsFunc(p.Groups.All, func(where string) bool { return groups[where] })
		if names[p.Comm] || shares || s.descends(p, sandboxed) || len(spaces) > 0 && slices.ContainsFunc(s.namespaces(p.Pid), func(space string) bool { return spaces[space] }) {
			n++
		}
	}
	return n
}

// own returns the namespaces and cgroups of sandboxed processes without those of the host's.
func (s *Snapshot) own(sandboxed map[int]bool, host []*Process) (spaces, groups map[string]bool) {
	spaces, groups = map[string]bool{}, map[string]bool{}
	for pid := range sandboxed {
		for _, space := range s.namespaces(pid) {
			spaces[space] = true
		}
		for _, where := range s.byPid[pid].Groups.All {
			groups[where] = true
		}
	}
	for _, p := range host {
		if p == nil {
			continue
		}
		for _, space := range s.namespaces(p.Pid) {
			delete(spaces, space)
		}
		maps.DeleteFunc(groups, func(where string, _ bool) bool { return p.Groups.InSubtree(where) })
	}
	return spaces, groups
}

// descends reports whether p descends from one of the ancestors.
func (s *Snapshot) descends(p *Process, ancestors map[int]bool) bool {
	for depth := 0; p != nil && depth < deepest; depth++ {
		if ancestors[p.PPid] {
			return true
		}
		p = s.byPid[p.PPid]
	}
	return false
}

func (s *Snapshot) namespaces(pid int) []string {
	d, err := s.reader.files.Open(pid)
	if err != nil {
		return nil
	}
	defer d.Close()
	return d.Namespaces()
}
