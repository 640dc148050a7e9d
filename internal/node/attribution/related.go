package attribution

import (
	"slices"

	"github.com/tare-bench/tare/internal/node/procs"
	"github.com/tare-bench/tare/record"
)

// Related counts the processes that are no members and may be a sandbox's all the same: they
// descend from a process of a sandbox, or share its name, its cgroup or a namespace. What a
// sandbox shares with the machine's first process, this program or a daemon relates nothing,
// nor do the names of workloads.
func (s *Snapshot) Related(members []Member) (n int) {
	host := []*Process{s.byPid[1], s.byPid[s.self]}
	own, named := map[int]bool{}, map[string]bool{}
	member := map[int]bool{}
	for _, m := range members {
		member[m.Pid] = true
		switch {
		case m.Kernel:
		case m.Role == record.RoleDaemon:
			host = append(host, m.Process)
		default:
			own[m.Pid] = true
			named[m.Comm] = named[m.Comm] || m.Role != record.RoleWorkload && m.Role != record.RolePause
		}
	}
	spaces, groups := map[string]bool{}, map[string]bool{}
	for pid := range own {
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
		for where := range groups {
			if slices.ContainsFunc(p.Groups.All, func(in string) bool { return procs.Within(in, where) }) {
				delete(groups, where)
			}
		}
	}
	for _, p := range s.Processes {
		if member[p.Pid] || p.Kernel {
			continue
		}
		shares := slices.ContainsFunc(p.Groups.All, func(where string) bool { return groups[where] })
		if named[p.Comm] || shares || s.below(p, own) || len(spaces) > 0 && slices.ContainsFunc(s.namespaces(p.Pid), func(space string) bool { return spaces[space] }) {
			n++
		}
	}
	return n
}

// below reports whether a process descends from one of these.
func (s *Snapshot) below(p *Process, these map[int]bool) bool {
	for depth := 0; p != nil && depth < deepest; depth++ {
		if these[p.PPid] {
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
