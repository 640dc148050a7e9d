// Package census tells who is on this node: every process, whose it is, and
// which cgroups it and each of its threads are charged to.
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
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/record"
)

// Reader takes snapshots of one machine. It remembers what does not change
// between them, and is for one goroutine.
type Reader struct {
	// Root is where /proc is: "" for this machine's own.
	Root machine.Root

	known  map[int]*Process   // of the last pass
	groups map[string]*Groups // of the last pass, by the file's text
	buffer []byte
}

// Process is one process as a pass over /proc found it. It is shared by
// snapshots and not to be changed.
type Process struct {
	Pid, PPid int
	Start     uint64   // clock ticks since boot
	Comm      string   // as the kernel has it, cut to 15 characters
	Exe       string   // the program's file, "" where it cannot be told
	Args      []string // with the program's own; at most 64 KiB of them
	Groups    *Groups
	NSpid     []int // its pid in this pid namespace and in each below that it is in
	Threads   int
	RssAnon   int64 // bytes
	Kernel    bool  // a thread of the kernel
	Zombie    bool

	image [2]uint64 // where its arguments and its stack begin: another after an exec
}

// Depth is how many pid namespaces below this one the process is in.
func (p *Process) Depth() int { return max(0, len(p.NSpid)-1) }

// Snapshot is one pass over /proc.
type Snapshot struct {
	Processes []*Process // by pid
	Problems  record.Problems

	reader   *Reader
	byPid    map[int]*Process
	children map[int][]*Process
	self     int
}

// Process returns the process with a pid, nil where there was none.
func (s *Snapshot) Process(pid int) *Process { return s.byPid[pid] }

// Children returns the processes whose parent is pid.
func (s *Snapshot) Children(pid int) []*Process { return s.children[pid] }

// Snapshot reads every process once. One that ends meanwhile is left out and
// counted as gone. All files of a process are opened below its folder, which is
// opened first: the kernel never shows another process there, even where the pid
// was given away.
//
// The error is for /proc itself and for ctx's end.
func (r *Reader) Snapshot(ctx context.Context) (*Snapshot, error) {
	pids, err := r.pids()
	if err != nil {
		return nil, fmt.Errorf("list the processes: %w; is /proc mounted?", err)
	}
	s := &Snapshot{
		reader: r, self: r.self(),
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
			note(&s.Problems, err, "process %d: %v", pid, err)
			continue
		}
		s.Processes = append(s.Processes, p)
		s.byPid[pid] = p
		s.children[p.PPid] = append(s.children[p.PPid], p)
	}
	r.known, r.groups = s.byPid, groups
	return s, nil
}

// pids lists the processes, ascending.
func (r *Reader) pids() ([]int, error) {
	names, err := names(string(r.Root) + "/proc")
	if err != nil {
		return nil, err
	}
	return numbers(names), nil
}

// self is this process's pid in that /proc, 0 where it is not known.
func (r *Reader) self() int {
	link, err := os.Readlink(string(r.Root) + "/proc/self")
	if err != nil {
		return 0
	}
	pid, _ := strconv.Atoi(link)
	return pid
}

// What is read of each file at most.
const (
	statLimit   = 4 << 10
	statusLimit = 64 << 10
	cgroupLimit = 64 << 10
	argsLimit   = 64 << 10
)

// read reads one process. What an earlier pass found is taken over where the
// process is the same and has not exec'd since.
func (r *Reader) read(pid int, groups map[string]*Groups, problems *record.Problems) (*Process, error) {
	d, err := r.open(pid)
	if err != nil {
		return nil, err
	}
	defer d.close()
	text, err := r.file(d, "stat", statLimit)
	if err != nil {
		return nil, err
	}
	st, err := parseStat(text)
	if err != nil {
		return nil, err
	}
	p := &Process{
		Pid: pid, PPid: st.ppid, Start: st.start, Comm: st.comm, Threads: st.threads,
		Kernel: st.kernel, Zombie: st.zombie, image: st.image,
	}
	if text, err = r.file(d, "cgroup", cgroupLimit); err != nil {
		return nil, err
	}
	p.Groups = r.intern(text, groups, problems, pid)
	if old := r.known[pid]; old != nil && old.same(p) {
		p.Exe, p.Args, p.NSpid = old.Exe, old.Args, old.NSpid
		if p.RssAnon, err = r.anon(d); err == nil {
			return p, nil
		}
	}
	if text, err = r.file(d, "status", statusLimit); err != nil {
		return nil, err
	}
	status, err := parseStatus(text)
	if err != nil {
		return nil, err
	}
	p.NSpid, p.RssAnon = status.nspid, status.rssAnon
	if p.Kernel {
		return p, nil
	}
	if text, err = r.head(d, "cmdline", argsLimit); err != nil {
		return nil, err
	}
	p.Args = arguments(text)
	p.Exe = d.link("exe")
	return p, nil
}

// same tells whether a process is the one it was, running the same program. A
// kernel that hides where arguments begin gives no way to tell.
func (p *Process) same(now *Process) bool {
	return p.Start == now.Start && p.Comm == now.Comm && p.image == now.image && (p.image[0] != 0 || p.Kernel)
}

// intern returns the parsed form of a cgroup file, one for each text.
func (r *Reader) intern(text []byte, groups map[string]*Groups, problems *record.Problems, pid int) *Groups {
	if g := groups[string(text)]; g != nil {
		return g
	}
	g := r.groups[string(text)]
	if g == nil {
		g = parseGroups(string(text))
	}
	if g.broken > 0 {
		problems.Broken += g.broken
		example(problems, "process %d: %d lines of its cgroup file are of an unknown form", pid, g.broken)
	}
	groups[string(text)] = g
	return g
}

// note counts what could not be read by what the error says.
func note(p *record.Problems, err error, format string, args ...any) {
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ESRCH):
		p.Gone++
	case errors.Is(err, fs.ErrPermission):
		p.Denied++
	default:
		p.Broken++
	}
	example(p, format, args...)
}

// examples is how many are kept in words.
const examples = 8

func example(p *record.Problems, format string, args ...any) {
	if len(p.Examples) < examples {
		p.Examples = append(p.Examples, fmt.Sprintf(format, args...))
	}
}

// arguments splits a command line at its NULs.
func arguments(text []byte) []string {
	if len(text) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00")
}

// name is the base name of the program by its first argument, "" for none.
func (p *Process) name() string {
	if len(p.Args) == 0 || p.Args[0] == "" {
		return ""
	}
	return filepath.Base(p.Args[0])
}

func numbers(names []string) []int {
	out := make([]int, 0, len(names))
	for _, name := range names {
		if n, err := strconv.Atoi(name); err == nil && n > 0 && n <= 1<<22 {
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return out
}
