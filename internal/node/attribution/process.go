package attribution

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/node/procs"
	"github.com/tare-bench/tare/record"
)

// Process reads one member. In full, memory comes from smaps_rollup, for which the kernel
// walks the page tables: about a millisecond per 100 MiB. If smaps_rollup is unreadable, RSS
// comes from status and Read is false. Without full, RSS comes from stat and Read is false.
// CPU time comes from the process's clock, in nanoseconds. With another Root, and for
// waited-for children, it comes from stat, in hundredths of a second. The error wraps
// [procs.ErrGone] if the process has ended or its pid was reused. Read failures are counted
// in problems.
func (r *Reader) Process(m Member, full bool, problems *record.Problems) (record.Process, error) {
	out := record.Process{
		Pid: m.Pid, Start: m.Start, PPid: m.PPid, Name: m.Comm, Role: m.Role, Rule: m.Rule,
		Lane: m.Lane, Groups: m.Sets,
	}
	if m.VCPURule != "" {
		out.Rule += "; vCPUs: " + m.VCPURule
	}
	if err := r.fill(&out, m, full, problems); err != nil {
		procs.Count(problems, fmt.Errorf("process %d: %w", m.Pid, err))
		if procs.Gone(err) {
			err = procs.ErrGone
		}
		return record.Process{}, fmt.Errorf("read process %d: %w", m.Pid, err)
	}
	return out, nil
}

// open opens the folder of a member and reads its stat. The error wraps [procs.ErrGone] if
// another process has its pid.
func (r *Reader) open(m Member) (d procs.Dir, st procs.Stat, err error) {
	if d, err = r.files.Open(m.Pid); err != nil {
		return d, st, err
	}
	if st, err = d.Same(m.Start); err != nil {
		d.Close()
	}
	return d, st, err
}

func (r *Reader) fill(out *record.Process, m Member, full bool, problems *record.Problems) error {
	d, st, err := r.open(m)
	if err != nil {
		return err
	}
	defer d.Close()
	out.PPid, out.Threads, out.Waited = st.PPid, st.Threads, int64(st.Waited)*procs.Tick
	for _, tid := range m.VCPUs { // read before CPU, which includes this time; the time of an ended thread is lost
		out.VCPU += d.TaskCPU(tid)
	}
	if r.Root == "" {
		if out.CPU, err = (procs.ID{Pid: m.Pid, Start: m.Start}).CPU(); err != nil {
			return err
		}
	} else {
		out.CPU = int64(st.Ticks) * procs.Tick
	}
	if out.Ended = st.Ended(); m.Kernel || out.Ended { // kernel threads and zombies have no memory
		out.Read = true
		return nil
	}
	if out.RSS = st.Resident; !full {
		return nil
	}
	status, err := d.Status()
	if err != nil {
		return err
	}
	out.RSS, out.PageTables = status.RSS, status.VMPTE
	use, err := d.Memory()
	if procs.Gone(err) {
		if _, sameErr := d.Same(m.Start); sameErr != nil || errors.Is(err, unix.ESRCH) {
			return err
		}
		err = errors.New("this kernel has no smaps_rollup, which is there since Linux 4.14")
	}
	if err == nil {
		err = use.Parts()
	}
	if err != nil {
		procs.Count(problems, fmt.Errorf("process %d: its share of memory: %w", m.Pid, err))
		return nil
	}
	out.Read = true
	out.RSS, out.Swap, out.Huge = use.RSS, use.Swap, use.Huge
	out.PSSAnon, out.PSSFile, out.PSSShmem = use.Anon, use.File, use.Shmem
	return nil
}
