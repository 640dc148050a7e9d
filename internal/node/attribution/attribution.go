// Package attribution assigns the processes of a node to sandboxes. For each process it
// determines the role, the fact behind the role, and the cgroups that the process and
// its threads are charged to.
// A [Snapshot] is one pass over /proc. [Snapshot.Members] selects the processes of
// given sandboxes. [Snapshot.Sandboxes] discovers the sandboxes of the node.
// [Snapshot.Charges] lists the cgroups that sandboxes are charged to.
// Cgroup paths are always read from /proc/PID/cgroup, never constructed. For the
// processes of sandboxes they are also read from /proc/PID/task/TID/cgroup, because the
// threads of a VMM can be in other groups than the VMM.
package attribution

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/node/procs"
	"github.com/tare-bench/tare/record"
)

// Reader takes snapshots of one machine. It caches data that does not change between
// them. It is not safe for concurrent use.
type Reader struct {
	Root machine.Root // contains /proc; "" for this machine

	files  procs.Reader
	known  map[int]*Process   // of the last pass
	groups map[string]*Groups // of the last pass, by the file's text
}

// Groups are the cgroups of a process in every hierarchy. Processes with equal files
// share one value.
type Groups = procs.Groups

// Process is one process of a pass over /proc. Snapshots share it; do not change it.
type Process struct {
	Pid int
	procs.Stat
	Exe     string   // the program's file, "" if unreadable
	Args    []string // including the program; at most 64 KiB
	Groups  *Groups
	NSpid   []int // the pid in each pid namespace, from the outermost inwards
	RssAnon int64 // bytes

	guest bool // it has vCPU threads or guest time
}

// depth returns the number of pid namespaces between this one and the process's.
func (p *Process) depth() int { return max(0, len(p.NSpid)-1) }

// Snapshot is one pass over /proc.
type Snapshot struct {
	Processes []*Process // by pid
	Problems  record.Problems

	reader   *Reader
	byPid    map[int]*Process
	children map[int][]*Process
	self     int
}

// Snapshot reads every process once. Processes that end during the pass are skipped and
// counted as gone. All files of a process are opened below its open folder, where the
// kernel never shows another process with the same pid.
//
// It returns an error only if /proc is unreadable or ctx ends.
func (r *Reader) Snapshot(ctx context.Context) (*Snapshot, error) {
	r.files.Root = r.Root
	pids, err := r.files.Pids()
	if err != nil {
		return nil, fmt.Errorf("list the processes: %w; is /proc mounted?", err)
	}
	s := &Snapshot{
		reader: r, self: r.files.Self(),
		Processes: make([]*Process, 0, len(pids)),
		byPid:     make(map[int]*Process, len(pids)),
		children:  make(map[int][]*Process, len(pids)),
	}
	groups := make(map[string]*Groups, len(r.groups))
	for _, pid := range pids {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("read the processes: %w", err)
		}
		p, err := r.read(pid, groups, &s.Problems)
		if err != nil {
			procs.Count(&s.Problems, fmt.Errorf("process %d: %w", pid, err))
			continue
		}
		s.Processes = append(s.Processes, p)
		s.byPid[pid] = p
		s.children[p.PPid] = append(s.children[p.PPid], p)
	}
	r.known, r.groups = s.byPid, groups
	s.guests()
	return s, nil
}

// guests marks VMMs with unknown names among the children of Kata's shims. Kata's
// configuration may name any program as the hypervisor.
func (s *Snapshot) guests() {
	for _, p := range s.Processes {
		parent := s.byPid[p.PPid]
		if parent == nil || p.Threads <= 1 || !strings.Contains(parent.name(), "shim-kata") || p.helperRole() != "" {
			continue
		}
		if d, err := s.reader.files.Open(p.Pid); err == nil {
			p.guest = hasVCPUs(d)
			d.Close()
		}
	}
}

// read reads one process. It reuses the result of an earlier pass if the process has not
// executed another program since.
func (r *Reader) read(pid int, groups map[string]*Groups, problems *record.Problems) (*Process, error) {
	d, err := r.files.Open(pid)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	st, err := d.Stat("")
	if err != nil {
		return nil, err
	}
	p := &Process{Pid: pid, Stat: st}
	text, err := d.Read("cgroup")
	if err != nil {
		return nil, err
	}
	p.Groups = r.intern(text, groups, problems, pid)
	if old := r.known[pid]; old != nil && old.same(p) {
		p.Exe, p.Args, p.NSpid = old.Exe, old.Args, old.NSpid
		if p.RssAnon, err = d.Anon(); err == nil {
			return p, nil
		}
	}
	status, err := d.Status()
	if err != nil {
		return nil, err
	}
	p.NSpid, p.RssAnon = status.NSpid, status.RSSAnon
	if p.Kernel {
		return p, nil
	}
	if p.Args, err = d.Args(); err != nil {
		return nil, err
	}
	p.Exe = d.Exe()
	return p, nil
}

// same reports whether now is the same process running the same program. It returns
// false if the kernel hides the address of the arguments.
func (p *Process) same(now *Process) bool {
	return p.Start == now.Start && p.Comm == now.Comm && p.Image == now.Image && (p.Image[0] != 0 || p.Kernel)
}

// intern parses a cgroup file. Equal texts share one result.
func (r *Reader) intern(text []byte, groups map[string]*Groups, problems *record.Problems, pid int) *Groups {
	if g := groups[string(text)]; g != nil {
		return g
	}
	g := r.groups[string(text)]
	if g == nil {
		g = procs.ParseGroups(string(text))
	}
	if g.Broken > 0 {
		problems.Broken += g.Broken
		problems.Note(fmt.Sprintf("process %d: %d lines of its cgroup file are of an unknown form", pid, g.Broken))
	}
	groups[string(text)] = g
	return g
}

// name returns the base name of the program by its first argument, or "".
func (p *Process) name() string {
	if len(p.Args) == 0 || p.Args[0] == "" {
		return ""
	}
	return filepath.Base(p.Args[0])
}
