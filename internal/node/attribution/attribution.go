// Package attribution tells whose the processes of this node are: which sandbox
// each belongs to, in which role, by which fact, and which cgroups it and each of
// its threads are charged to.
//
// A [Snapshot] is one pass over /proc. [Snapshot.Members] picks from it the
// processes of given sandboxes, each with its role and the fact that decided it;
// [Snapshot.Sandboxes] finds the sandboxes themselves where nobody says which
// there are; [Snapshot.Charges] lists the cgroups that they use.
//
// Paths of cgroups are never built, only read: /proc/PID/cgroup, and for the
// processes of sandboxes /proc/PID/task/TID/cgroup, since a VMM's threads can be
// in another group than the VMM.
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

// Reader takes snapshots of one machine. It remembers what does not change
// between them, and is for one goroutine.
type Reader struct {
	// Root is where /proc is: "" for this machine's own.
	Root machine.Root

	files  procs.Reader
	known  map[int]*Process   // of the last pass
	groups map[string]*Groups // of the last pass, by the file's text
}

// Groups are where a process is in every hierarchy. Processes with the same text
// share one.
type Groups = procs.Groups

// Process is one process as a pass over /proc found it. It is shared by
// snapshots and not to be changed.
type Process struct {
	Pid int
	procs.Stat
	Exe     string   // the program's file, "" where it cannot be told
	Args    []string // with the program's own; at most 64 KiB of them
	Groups  *Groups
	NSpid   []int // its pid in this pid namespace and in each below that it is in
	RssAnon int64 // bytes

	guest bool // it runs a guest, whatever it is called
}

// depth is how many pid namespaces below this one the process is in.
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

// Snapshot reads every process once. One that ends meanwhile is left out and
// counted as gone. All files of a process are opened below its folder, which is
// opened first: the kernel never shows another process there, even where the pid
// was given away.
//
// The error is for /proc itself and for ctx's end.
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

// guests finds VMMs by what they do among what Kata's shims started and no name tells:
// its setting of the hypervisor's path may name anything.
func (s *Snapshot) guests() {
	for _, p := range s.Processes {
		parent := s.byPid[p.PPid]
		if parent == nil || p.Threads <= 1 || !strings.Contains(parent.name(), "shim-kata") {
			continue
		}
		if _, known := p.role(); known {
			continue
		}
		if d, err := s.reader.files.Open(p.Pid); err == nil {
			p.guest = hasVCPUs(d)
			d.Close()
		}
	}
}

// read reads one process. What an earlier pass found is taken over where the
// process is the same and has not exec'd since.
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

// same tells whether a process is the one it was, running the same program. A
// kernel that hides where arguments begin gives no way to tell.
func (p *Process) same(now *Process) bool {
	return p.Start == now.Start && p.Comm == now.Comm && p.Image == now.Image && (p.Image[0] != 0 || p.Kernel)
}

// intern returns the parsed form of a cgroup file, one for each text.
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

// name is the base name of the program by its first argument, "" for none.
func (p *Process) name() string {
	if len(p.Args) == 0 || p.Args[0] == "" {
		return ""
	}
	return filepath.Base(p.Args[0])
}
