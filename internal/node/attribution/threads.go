package attribution

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tare-bench/tare/record"
)

// mostThreads bounds what is listed of one process.
const mostThreads = 1 << 16

// threads reads the cgroups of a member's threads, and finds those that run a
// guest. It tells whether the process is still the one of the snapshot; where it
// is not, that is counted. A thread that ends meanwhile is none.
func (r *Reader) threads(m *Member, problems *record.Problems) bool {
	m.Sets = []record.Membership{{Paths: m.Groups.charged}}
	if m.Threads <= 1 || m.Zombie || m.Kernel {
		return true
	}
	d, err := r.open(m.Pid)
	if err == nil {
		defer d.close()
		err = r.check(d, m.Process)
	}
	var tids []string
	if err == nil {
		tids, err = names(d.path + "/task")
	}
	if err != nil {
		if isReused(err) {
			problems.Reused++
			example(problems, "process %d: another has its pid", m.Pid)
		} else {
			note(problems, err, "process %d: %v", m.Pid, err)
		}
		return false
	}
	type set struct {
		groups *Groups
		tids   []int
	}
	sets := []set{{groups: m.Groups}}
	// Dragonball is a VMM within Kata's shim.
	guests := m.Role == record.RoleVMM || m.Role == record.RoleShim && strings.Contains(m.name(), "kata")
	all := numbers(tids)
	for _, tid := range all[:min(len(all), mostThreads)] {
		task := "task/" + strconv.Itoa(tid) + "/"
		text, err := r.file(d, task+"cgroup", cgroupLimit)
		if err != nil {
			continue
		}
		g := m.Groups
		if string(text) != g.text {
			g = r.intern(text, r.groups, problems, m.Pid)
		}
		i := slices.IndexFunc(sets, func(s set) bool { return s.groups == g })
		if i < 0 {
			i = len(sets)
			sets = append(sets, set{groups: g})
		}
		sets[i].tids = append(sets[i].tids, tid)
		if guests && vCPU.MatchString(r.comm(d, task)) {
			m.VCPUs = append(m.VCPUs, tid)
			m.VCPURule = "threads by their names"
		}
	}
	if len(m.VCPUs) > 0 && m.Role == record.RoleShim {
		m.Rule += "; the VMM is inside it, as its vCPU threads show"
	}
	if len(sets) == 1 {
		return true
	}
	m.Sets = m.Sets[:0]
	for _, s := range sets {
		one := record.Membership{Paths: s.groups.charged, Threads: s.tids}
		for _, tid := range s.tids {
			one.Names = append(one.Names, r.comm(d, "task/"+strconv.Itoa(tid)+"/"))
		}
		if len(s.tids) > 0 {
			m.Sets = append(m.Sets, one)
		}
	}
	return true
}

// comm is a thread's name, "" where it ended.
func (r *Reader) comm(d folder, task string) string {
	text, err := r.file(d, task+"comm", 64)
	if err != nil {
		return ""
	}
	return string(bytes.TrimSuffix(text, []byte("\n")))
}

// check says whether a process is still the one of the snapshot.
func (r *Reader) check(d folder, p *Process) error {
	_, err := r.stat(d, p)
	return err
}

func (r *Reader) stat(d folder, p *Process) (stat, error) {
	text, err := r.file(d, "stat", statLimit)
	if err != nil {
		return stat{}, err
	}
	st, err := parseStat(text)
	if err == nil && st.start != p.Start {
		err = fmt.Errorf("process %d: %w", p.Pid, errReused)
	}
	return st, err
}
