package procs

import (
	"bytes"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/node/machine"
)

// Memory is a process's memory in bytes, from smaps_rollup. Shared pages are divided
// among the processes that map them. For a read the kernel walks the page tables: about
// a millisecond for 100 MiB, with the process's memory map locked for reading.
type Memory struct {
	RSS, PSS, Anon, File, Shmem, Swap, Huge int64
	lines                                   int // how many of these figures were there, without PSS
}

// rollupLines is how many lines Linux 5.4 and later write for the parts of PSS, swap and
// huge pages.
const rollupLines = 7

// Parts returns an error if the kernel is too old to list the parts of PSS.
func (m *Memory) Parts() error {
	if m.lines == rollupLines {
		return nil
	}
	return fmt.Errorf("smaps_rollup: %d of the %d lines that are needed (all of them since Linux 5.4): %w", m.lines, rollupLines, errForm)
}

// parseMemory parses smaps_rollup, see proc_pid_smaps(5).
func parseMemory(text []byte) (Memory, error) {
	var m Memory
	var shared, private int64
	figures := map[string]*int64{"Pss": &m.PSS, "Rss": &m.RSS, "Pss_Anon": &m.Anon, "Pss_File": &m.File, "Pss_Shmem": &m.Shmem,
		"SwapPss": &m.Swap, "Shared_Hugetlb": &shared, "Private_Hugetlb": &private}
	for line := range bytes.Lines(text) {
		key, value, _ := bytes.Cut(line, []byte(":"))
		into := figures[string(key)]
		if into == nil {
			continue
		}
		n, err := kilobytes(value)
		if err != nil {
			return Memory{}, fmt.Errorf("smaps_rollup: %s: %w", key, err)
		}
		if *into = n; into != &m.PSS {
			m.lines++
		}
	}
	m.Huge = shared + private
	return m, nil
}

// Memory reads the memory of the process. A zombie counts as gone.
func (d Dir) Memory() (Memory, error) {
	text, err := d.Read("smaps_rollup")
	if err == nil && len(text) == 0 {
		err = unix.ESRCH
	}
	if err != nil {
		return Memory{}, err
	}
	return parseMemory(text)
}

// parseSchedstat returns the time on a CPU (ns), the first of "run wait slices", see
// Documentation/scheduler/sched-stats.rst.
func parseSchedstat(text []byte) (int64, bool) {
	fields := bytes.Fields(text)
	if len(fields) != 3 {
		return 0, false
	}
	return machine.Number(fields[0])
}

// TaskCPU returns the CPU time (ns) of a thread, or 0 if it has ended. It reads schedstat,
// which for a thread in a guest is as old as the last tick. Without schedstat it reads
// stat, which counts hundredths of a second.
func (d Dir) TaskCPU(tid int) int64 {
	if text, err := d.Read(Task(tid) + "schedstat"); err == nil {
		if ns, ok := parseSchedstat(text); ok {
			return ns
		}
	}
	s, err := d.Stat(Task(tid))
	if err != nil {
		return 0
	}
	return int64(s.Ticks) * Tick
}

// Moved returns how many bytes a process has transferred. read and written count read(2),
// write(2) and similar calls on any file, pipe or socket. fetched counts reads from storage.
// These are rchar, wchar and read_bytes of /proc/PID/io, see proc_pid_io(5). A missing or
// malformed value is 0.
func (d Dir) Moved() (read, written, fetched int64, err error) {
	text, err := d.Read("io")
	into := map[string]*int64{"rchar": &read, "wchar": &written, "read_bytes": &fetched}
	for line := range bytes.Lines(text) {
		name, value, _ := bytes.Cut(line, []byte(":"))
		to := into[string(name)]
		if n, ok := machine.Number(bytes.TrimSpace(value)); ok && to != nil {
			*to = n
		}
	}
	return read, written, fetched, err
}
