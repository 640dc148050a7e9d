package attribution

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/node/procs"
	"github.com/tare-bench/tare/record"
)

// errReused says that another process has the pid by now.
var errReused = fmt.Errorf("another has its pid: %w", procs.ErrGone)

func isReused(err error) bool { return errors.Is(err, errReused) }

// ticks is the unit of /proc/PID/stat, USER_HZ: a hundredth of a second on
// every architecture that Go knows.
const tick = 1e9 / 100

// Process reads one member in full. Its memory comes from smaps_rollup, for
// which the kernel walks its page tables: about a millisecond for 100 MiB.
// Where that may not be read, Read is false and RSS comes from status. CPU time
// is that of the process's own clock, in nanoseconds; below a Root that is not
// this machine's it comes from stat, in hundredths of a second.
//
// The error wraps [procs.ErrGone] where the process has ended, or another has
// its pid. All that could not be read is counted in problems.
func (r *Reader) Process(m Member, problems *record.Problems) (record.Process, error) {
	return r.member(m, true, problems)
}

// Clocks is Process without its memory, which is costly to read: Read is false
// and no problem.
func (r *Reader) Clocks(m Member, problems *record.Problems) (record.Process, error) {
	return r.member(m, false, problems)
}

func (r *Reader) member(m Member, memory bool, problems *record.Problems) (record.Process, error) {
	out := record.Process{
		Pid: m.Pid, Start: m.Start, PPid: m.PPid, Name: m.Comm, Role: m.Role, Rule: m.Rule,
		Lane: m.Lane, Groups: m.Sets,
	}
	if m.VCPURule != "" {
		out.Rule += "; vCPUs: " + m.VCPURule
	}
	err := r.fill(&out, m, memory, problems)
	switch {
	case err == nil:
		return out, nil
	case isReused(err):
		problems.Reused++
		example(problems, "%v", err)
		return record.Process{}, err
	case gone(err):
		problems.Gone++
		example(problems, "process %d ended while it was read", m.Pid)
		return record.Process{}, fmt.Errorf("process %d: %w", m.Pid, procs.ErrGone)
	}
	note(problems, err, "process %d: %v", m.Pid, err)
	return record.Process{}, fmt.Errorf("read process %d: %w", m.Pid, err)
}

func gone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) || errors.Is(err, procs.ErrGone)
}

func (r *Reader) fill(out *record.Process, m Member, memory bool, problems *record.Problems) error {
	d, err := r.open(m.Pid)
	if err != nil {
		return err
	}
	defer d.close()
	st, err := r.stat(d, m.Process)
	if err != nil {
		return err
	}
	out.PPid, out.Threads = st.ppid, st.threads
	out.VCPU = r.guests(d, m) // before CPU, of which it is a part
	if r.Root == "" {
		if out.CPU, err = (procs.ID{Pid: m.Pid, Start: m.Start}).CPU(); err != nil {
			return err
		}
	} else {
		out.CPU = int64(st.ticks) * tick
	}
	if m.Kernel || st.zombie { // without memory
		out.Read = true
		return nil
	}
	if !memory {
		return nil
	}
	text, err := r.file(d, "status", statusLimit)
	if err != nil {
		return err
	}
	status, err := parseStatus(text)
	if err != nil {
		return err
	}
	out.RSS, out.PageTables = status.rss, status.vmPTE
	if text, err = r.file(d, "smaps_rollup", statusLimit); err == nil && len(text) == 0 {
		err = unix.ESRCH // it ended between
	}
	if gone(err) {
		if errors.Is(err, unix.ESRCH) || r.check(d, m.Process) != nil {
			return err
		}
		err = errors.New("this kernel has no smaps_rollup, which is there since Linux 4.14")
	}
	var use rollup
	if err == nil {
		use, err = parseRollup(text)
	}
	if err != nil {
		note(problems, err, "process %d: its share of memory: %v", m.Pid, err)
		return nil
	}
	out.Read = true
	out.RSS = use.rss
	out.PSSAnon, out.PSSFile, out.PSSShmem = use.anon, use.file, use.shmem
	out.Swap, out.Huge = use.swap, use.huge
	return nil
}

// guests is the CPU time (ns) of the threads that run a guest, from schedstat,
// which is as old as the last tick where one runs; or from stat, in hundredths
// of a second. A vCPU that was taken away took its time with it.
func (r *Reader) guests(d folder, m Member) int64 {
	var sum int64
	for _, tid := range m.VCPUs {
		task := "task/" + strconv.Itoa(tid) + "/"
		if text, err := r.file(d, task+"schedstat", statLimit); err == nil {
			if ns, ok := parseSchedstat(text); ok {
				sum += ns
				continue
			}
		}
		if text, err := r.file(d, task+"stat", statLimit); err == nil {
			if st, err := parseStat(text); err == nil {
				sum += int64(st.ticks) * tick
			}
		}
	}
	return sum
}
