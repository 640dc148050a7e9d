package attribution

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/node/procs"
	"github.com/tare-bench/tare/record"
)

// threads reads the cgroups of a member's threads and finds its vCPUs. It skips threads
// that end. It reports false, and counts a problem, if the process is gone.
func (r *Reader) threads(m *Member, problems *record.Problems) bool {
	m.Sets = []record.Membership{{Paths: m.Groups.Charged}}
	if m.Threads <= 1 || m.Ended() || m.Kernel {
		return true
	}
	d, _, err := r.open(*m)
	var tids []int
	if err == nil {
		defer d.Close()
		tids, err = d.Tasks()
	}
	if err != nil {
		procs.Count(problems, fmt.Errorf("process %d: %w", m.Pid, err))
		return false
	}
	sets := []*Groups{m.Groups}
	for _, tid := range tids {
		text, err := d.Read(procs.Task(tid) + "cgroup")
		if err != nil {
			continue
		}
		g := r.intern(text, r.groups, problems, m.Pid)
		i := slices.Index(sets, g)
		if i < 0 {
			i = len(sets)
			sets, m.Sets = append(sets, g), append(m.Sets, record.Membership{Paths: g.Charged})
		}
		m.Sets[i].Threads = append(m.Sets[i].Threads, tid)
	}
	// Dragonball is a VMM inside Kata's shim.
	if m.Role == record.RoleVMM || m.Role == record.RoleShim && strings.Contains(m.name(), "kata") {
		m.findVCPUs(d, tids)
	}
	if len(sets) == 1 {
		m.Sets[0].Threads = nil // nil means all threads
		return true
	}
	m.Sets = slices.DeleteFunc(m.Sets, func(set record.Membership) bool { return len(set.Threads) == 0 })
	for i := range m.Sets {
		for _, tid := range m.Sets[i].Threads {
			m.Sets[i].Names = append(m.Sets[i].Names, d.TaskName(tid))
		}
	}
	return true
}

// findVCPUs sets the threads that run a guest: by their names, else by their guest time.
func (m *Member) findVCPUs(d procs.Dir, tids []int) {
	for _, tid := range tids {
		if vCPU.MatchString(d.TaskName(tid)) {
			m.VCPUs, m.VCPURule = append(m.VCPUs, tid), "threads by their names"
		}
	}
	if m.VCPUs == nil {
		for _, tid := range tids {
			if st, err := d.Stat(procs.Task(tid)); err == nil && st.Guest > 0 {
				m.VCPUs, m.VCPURule = append(m.VCPUs, tid), "threads with guest time"
			}
		}
	}
	if m.VCPUs != nil && m.Role == record.RoleShim {
		m.Rule += "; the VMM is inside it, as its vCPU threads show"
	}
}

// RunsGuest reports whether a process runs a guest: it has vCPU threads, guest time or
// descriptors of KVM's vCPUs.
func RunsGuest(pid int) (runs bool) {
	d, err := (&procs.Reader{}).Open(pid)
	if err != nil {
		return false
	}
	defer d.Close()
	_, _ = d.Descriptors(func(_ string, target []byte) bool { // hidden for processes of other users
		runs = bytes.HasPrefix(target, []byte("anon_inode:kvm-vcpu"))
		return !runs
	})
	return runs || hasVCPUs(d)
}

// hasVCPUs reports whether a process has guest time or threads with names of vCPUs.
func hasVCPUs(d procs.Dir) bool {
	if st, err := d.Stat(""); err == nil && st.Guest > 0 {
		return true
	}
	tids, _ := d.Tasks() // none if it has ended
	return slices.ContainsFunc(tids, func(tid int) bool { return vCPU.MatchString(d.TaskName(tid)) })
}
