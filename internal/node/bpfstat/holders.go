package bpfstat

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/node/procs"
)

// Limits of the walk over the descriptors of all processes.
const (
	maxDescriptors = 500000
	longestSearch  = time.Second
)

// holder is a process with a descriptor of a program.
type holder struct {
	pid      int
	who      string // pid and name; "" if the process has ended
	program  uint32 // program id, or aMap is set
	aMap     uint32
	attached string // attach point, for a perf event
}

// held returns the programs that a process holds through a descriptor of a program, a link
// or a perf event. If maps is true, it also returns the maps that the process holds. It
// skips this meter's own descriptors.
func (m *Meter) held(pid int, maps bool) (out []holder, seen int, err error) {
	d, err := m.reader.Open(pid)
	if err != nil {
		return nil, 0, err
	}
	defer d.Close()
	own := pid == m.reader.Self()
	seen, err = d.Descriptors(func(fd string, target []byte) bool {
		h := holder{pid: pid}
		kind, _ := bytes.CutPrefix(target, []byte("anon_inode:"))
		switch string(bytes.Trim(kind, "[]")) { // names of anonymous inodes
		case "bpf-prog", "bpf_link", "bpf-link", "bpf_link_debug":
			if own && slices.ContainsFunc(m.programs, func(p *program) bool { return strconv.Itoa(p.fd) == fd }) {
				return true
			}
			h.program = idIn(d, fd, "prog_id")
		case "bpf-map":
			if maps {
				h.aMap = idIn(d, fd, "map_id")
			}
		case "perf_event":
			h.program, h.attached = m.perf(pid, fd)
		}
		if h.program != 0 || h.aMap != 0 {
			out = append(out, h)
		}
		return true
	})
	if len(out) == 0 {
		return nil, seen, err
	}
	if stat, err := d.Stat(""); err == nil {
		for i := range out {
			out[i].who = fmt.Sprintf("%d %s", pid, stat.Comm)
		}
	}
	return out, seen, err
}

// idIn returns the id of the program or map of a descriptor, or 0 if it was closed.
func idIn(d procs.Dir, fd, field string) uint32 {
	n := fdinfo(d, fd, field)
	if n < 0 || n > 1<<32-1 {
		return 0
	}
	return uint32(n)
}

// fdinfo reads a number from a descriptor's fdinfo, or -1; see proc_pid_fdinfo(5).
func fdinfo(d procs.Dir, fd, field string) int64 {
	text, _ := d.Read("fdinfo/" + fd)
	for line := range bytes.Lines(text) {
		name, value, _ := bytes.Cut(line, []byte(":"))
		if n, ok := machine.Number(bytes.TrimSpace(value)); ok && string(name) == field {
			return n
		}
	}
	return -1
}

// perf returns the program attached to a perf event without a link, and a description
// of the event (BPF_TASK_FD_QUERY, Linux 4.18).
func (m *Meter) perf(pid int, fd string) (program uint32, what string) {
	number, _ := strconv.ParseUint(fd, 10, 32) // always a number
	name := make([]byte, 256)
	a := &taskAttr{pid: uint32(pid), fd: uint32(number), size: uint32(len(name)), text: unsafe.Pointer(unsafe.SliceData(name))}
	if _, err := call(unix.BPF_TASK_FD_QUERY, a); err != nil && !errors.Is(err, unix.ENOSPC) {
		return 0, ""
	}
	kinds := []string{"raw_tracepoint", "tracepoint", "kprobe", "kretprobe", "uprobe", "uretprobe"} // enum bpf_task_fd_type
	if int64(a.kind) < int64(len(kinds)) {
		what = kinds[a.kind] + " " + unix.ByteSliceToString(name)
	}
	return a.program, what
}

// is reports whether the process has the pid or the name.
func (h *holder) is(owner string) bool {
	_, name, _ := strings.Cut(h.who, " ")
	return owner == name || owner == strconv.Itoa(h.pid)
}

// ownedBy returns the programs of owners. An owner is a pid, a process name or a known
// owner.
func (m *Meter) ownedBy(owners []string, l *Listing) (map[uint32]bool, error) {
	ids := map[uint32]bool{}
	for _, owner := range owners {
		if pid, err := strconv.Atoi(owner); err == nil {
			held, _, err := m.held(pid, false)
			if procs.Gone(err) {
				err = errors.New("no such process")
			}
			if err != nil {
				return nil, fmt.Errorf("find the BPF programs that process %d holds: %w", pid, err)
			}
			for _, h := range held {
				ids[h.program] = true
			}
			continue
		}
		for id, is := range m.recognised(owner, l) {
			ids[id] = ids[id] || is
		}
		held, problems := m.holders(false)
		l.Problems = append(l.Problems, problems...)
		for _, h := range held {
			ids[h.program] = ids[h.program] || h.is(owner)
		}
	}
	return ids, nil
}

// holders returns the holders of programs among all processes.
func (m *Meter) holders(maps bool) (out []holder, problems []string) {
	pids, err := m.reader.Pids()
	if err != nil {
		return nil, []string{fmt.Sprintf("find the processes that hold programs: %v", err)}
	}
	until, seen, closed := time.Now().Add(longestSearch), 0, 0
	for i, pid := range pids {
		if seen > maxDescriptors || time.Now().After(until) {
			return out, append(problems, fmt.Sprintf("only %d of %d processes were checked for programs that they hold", i, len(pids)))
		}
		held, n, err := m.held(pid, maps)
		if errors.Is(err, fs.ErrPermission) {
			closed++
		}
		seen += n
		out = append(out, held...)
	}
	if closed > 0 {
		problems = append(problems, fmt.Sprintf("the programs held by %d processes are not readable (CAP_SYS_PTRACE)", closed))
	}
	return out, problems
}
