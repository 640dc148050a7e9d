package bpfstat

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/node/procs"
)

// The bounds of a walk over the descriptors of all processes.
const (
	maxDescriptors = 500000
	longestSearch  = time.Second
)

// descriptor is the kind of what a process holds.
type descriptor int

const (
	heldOther descriptor = iota
	heldProgram
	heldLink
	heldMap
	heldPerf
	heldStatistics
)

// descriptorKind reads the name that the kernel gave to a descriptor's inode.
func descriptorKind(target string) descriptor {
	name, ok := strings.CutPrefix(target, "anon_inode:")
	if !ok {
		return heldOther
	}
	return descriptors[strings.Trim(name, "[]")]
}

var descriptors = map[string]descriptor{
	"bpf-prog": heldProgram, "bpf_link": heldLink, "bpf-link": heldLink, "bpf_link_debug": heldLink,
	"bpf-map": heldMap, "perf_event": heldPerf, "bpf-stats": heldStatistics,
}

// holder is a process and a program of which it has a descriptor.
type holder struct {
	pid      int
	program  uint32 // or aMap
	aMap     uint32
	attached string // where by that descriptor, of one of a perf event
}

// eachDescriptor calls look with each descriptor of a process that is one of BPF or of
// perf. It returns how many there were of any kind.
func eachDescriptor(pid int, look func(fd int, kind descriptor)) (int, error) {
	folder := "/proc/" + strconv.Itoa(pid) + "/fd"
	d, err := os.Open(folder)
	if err != nil {
		return 0, err
	}
	defer d.Close()
	names, err := d.Readdirnames(maxDescriptors)
	if err != nil && len(names) == 0 {
		return 0, err
	}
	for _, name := range names {
		target, err := os.Readlink(folder + "/" + name)
		if err != nil {
			continue // it was closed
		}
		if kind := descriptorKind(target); kind != heldOther {
			if fd, err := strconv.Atoi(name); err == nil {
				look(fd, kind)
			}
		}
	}
	return len(names), nil
}

// held are the programs of which a process has descriptors, by whatever: the
// program, a link, a perf event; and maps, where that is asked for. Those that this
// meter keeps are left out.
func (m *Meter) held(pid int, maps bool) (out []holder, seen int, err error) {
	own := pid == os.Getpid()
	seen, err = eachDescriptor(pid, func(fd int, kind descriptor) {
		switch kind {
		case heldProgram, heldLink:
			if own && slices.ContainsFunc(m.programs, func(p *program) bool { return p.fd == fd }) {
				return
			}
			if id := idIn(pid, fd, "prog_id"); id != 0 {
				out = append(out, holder{pid: pid, program: id})
			}
		case heldMap:
			if !maps {
				return
			}
			if id := idIn(pid, fd, "map_id"); id != 0 {
				out = append(out, holder{pid: pid, aMap: id})
			}
		case heldPerf:
			if id, what := m.perf(pid, fd); id != 0 {
				out = append(out, holder{pid: pid, program: id, attached: what})
			}
		}
	})
	return out, seen, err
}

// idIn reads which program or map a descriptor is of; 0: it went.
func idIn(pid, fd int, field string) uint32 {
	n, ok := fdinfo(fmt.Sprintf("/proc/%d/fdinfo/%d", pid, fd), field)
	if !ok || n < 0 || n > 1<<32-1 {
		return 0
	}
	return uint32(n)
}

// fdinfo reads a number of a descriptor's fdinfo, see proc_pid_fdinfo(5).
func fdinfo(name, field string) (int64, bool) {
	f, err := os.Open(name)
	if err != nil {
		return 0, false
	}
	defer f.Close()
	var buffer [4 << 10]byte
	n, err := f.Read(buffer[:])
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(buffer[:n])) {
		if value, ok := strings.CutPrefix(line, field+":"); ok {
			v, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
			return v, err == nil
		}
	}
	return 0, false
}

// perf asks which program was attached to a perf event without a link
// (BPF_TASK_FD_QUERY, Linux 4.18), and what the event is.
func (m *Meter) perf(pid, fd int) (program uint32, what string) {
	name := make([]byte, 256)
	a := &taskAttr{pid: uint32(pid), fd: uint32(fd), size: uint32(len(name)), text: unsafe.Pointer(unsafe.SliceData(name))}
	if _, err := call(unix.BPF_TASK_FD_QUERY, a); err != nil && !errors.Is(err, unix.ENOSPC) {
		return 0, ""
	}
	kinds := []string{"raw_tracepoint", "tracepoint", "kprobe", "kretprobe", "uprobe", "uretprobe"} // enum bpf_task_fd_type
	if int64(a.kind) < int64(len(kinds)) {
		what = kinds[a.kind] + " " + text(name)
	}
	return a.program, what
}

// heldBy are the programs that processes hold.
func (m *Meter) heldBy(pids []int) (map[uint32]bool, error) {
	ids := map[uint32]bool{}
	for _, pid := range pids {
		held, _, err := m.held(pid, false)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) {
			return nil, fmt.Errorf("which BPF programs process %d holds: there is no such process", pid)
		}
		if err != nil {
			return nil, fmt.Errorf("which BPF programs process %d holds: %w", pid, err)
		}
		for _, h := range held {
			ids[h.program] = true
		}
	}
	return ids, nil
}

// holders walks all processes.
func (m *Meter) holders(maps bool) (out []holder, problems []string) {
	pids, err := new(procs.Reader).Pids()
	if err != nil {
		return nil, []string{fmt.Sprintf("find the processes that hold programs: %v", err)}
	}
	until, seen, closed := time.Now().Add(longestSearch), 0, 0
	for i, pid := range pids {
		if seen > maxDescriptors || time.Now().After(until) {
			return out, append(problems, fmt.Sprintf("only %d of %d processes were asked which programs they hold", i, len(pids)))
		}
		held, n, err := m.held(pid, maps)
		if errors.Is(err, fs.ErrPermission) {
			closed++
		}
		seen += n
		out = append(out, held...)
	}
	if closed > 0 {
		problems = append(problems, fmt.Sprintf("%d processes do not let it be seen which programs they hold (CAP_SYS_PTRACE)", closed))
	}
	return out, problems
}

// longestAsked is for the question who counts, which no figure depends on.
const longestAsked = 200 * time.Millisecond

// countedElsewhere tells whether a process holds a descriptor that keeps statistics
// on.
func countedElsewhere() bool {
	pids, err := new(procs.Reader).Pids()
	if err != nil {
		return false
	}
	found := false
	for until := time.Now().Add(longestAsked); len(pids) > 0 && !found && time.Now().Before(until); pids = pids[1:] {
		_, _ = eachDescriptor(pids[0], func(_ int, kind descriptor) { found = found || kind == heldStatistics })
	}
	return found
}
