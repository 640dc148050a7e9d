package run

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/tare-bench/tare/internal/node/procs"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/record"
)

// peakEvery is how often memory is read during a batch. A reading of a daemon
// takes it about a millisecond for 100 MiB, in which it cannot map memory; at
// this pace that is lost in the noise, and short batches have none.
const peakEvery = 250 * time.Millisecond

// staff meters a target's own processes around one batch.
type staff struct {
	target subject.HelperProcesses
	before map[procs.ID]reading
	slow   map[procs.ID]bool // whose memory takes too long to read beside a batch
	peaks  map[procs.ID]int64
	ended  map[procs.ID]reading // before, with the CPU time at the end
	clocks map[int]int64        // CPU time at the end of every process of the machine
	stop   chan struct{}
	done   sync.WaitGroup
}

type reading struct {
	role record.Role
	procs.Usage
	err error
}

// tolerable is how long reading a daemon's memory may take beside a batch.
const tolerable = 2 * time.Millisecond

// newStaff takes the first reading, of memory. It returns nil for a target that
// has no processes of its own.
func newStaff(ctx context.Context, session subject.Session) *staff {
	t, ok := subject.As[subject.HelperProcesses](session)
	if !ok {
		return nil
	}
	s := &staff{target: t, before: map[procs.ID]reading{}, slow: map[procs.ID]bool{}, peaks: map[procs.ID]int64{}, stop: make(chan struct{})}
	for _, p := range t.Processes(ctx) {
		begin := time.Now()
		id, r := read(p)
		s.before[id] = r
		s.slow[id] = time.Since(begin) > tolerable
	}
	return s
}

func read(p subject.Process) (procs.ID, reading) {
	id, err := procs.Identify(p.Pid)
	r := reading{role: p.Role, err: err}
	if r.err == nil {
		r.CPU, r.err = id.CPU()
	}
	if r.err == nil {
		r.PSS, r.err = id.PSS()
	}
	return id, r
}

// begin reads the CPU time again, right before the release, and begins to watch.
func (s *staff) begin() {
	if s == nil {
		return
	}
	s.readCPU(s.before)
	s.watch()
}

// end reads the CPU time as soon as the last lane is done, also that of all others: which
// of them are the target's only the checks tell.
func (s *staff) end() {
	if s == nil {
		return
	}
	s.ended = maps.Clone(s.before)
	s.readCPU(s.ended)
	s.clocks = map[int]int64{}
	for _, pid := range procs.All() {
		if cpu, ok := procs.Clock(pid); ok {
			s.clocks[pid] = cpu
		}
	}
	close(s.stop)
	s.done.Wait()
}

// finish reads, in peace, what is there now. It comes after the checks: only
// they tell a target which containers there are, and so which shims are theirs.
func (s *staff) finish(ctx context.Context) []record.Usage {
	if s == nil || s.ended == nil {
		return nil
	}
	after := map[procs.ID]reading{}
	for _, p := range s.target.Processes(ctx) {
		id, r := read(p)
		if e, there := s.ended[id]; !there {
			r.CPU = s.atEnd(p.Pid, r.CPU)
		} else if e.err == nil {
			r.CPU = e.CPU
		}
		after[id] = r
	}
	return sums(s.before, after, s.peaks)
}

// atEnd is what of the CPU time of a process that is new was there at the end: none of one
// that began since. Where no process's clock can be read, it is all.
func (s *staff) atEnd(pid int, cpu int64) int64 {
	if len(s.clocks) == 0 {
		return cpu
	}
	return min(cpu, s.clocks[pid])
}

func (s *staff) readCPU(of map[procs.ID]reading) {
	for id, r := range of {
		if r.err == nil {
			r.CPU, r.err = id.CPU()
			of[id] = r
		}
	}
}

// watch reads the daemons' memory until the end. There are few of them and they
// outlive the batch; a hundred shims would be read longer than they take.
func (s *staff) watch() {
	s.done.Go(func() {
		tick := time.NewTicker(peakEvery)
		defer tick.Stop()
		for {
			select {
			case <-s.stop:
				return
			case <-tick.C:
			}
			for id, r := range s.before {
				if r.role != record.RoleDaemon || s.slow[id] {
					continue
				}
				if pss, err := id.PSS(); err == nil {
					s.peaks[id] = max(s.peaks[id], pss)
				}
			}
		}
	})
}

var roles = []record.Role{record.RoleDaemon, record.RoleShim, record.RoleMonitor, record.RoleVMM, record.RoleVirtiofs}

// sums is what the processes of each role used between two readings. What was
// not there before used all of its CPU time since.
func sums(before, after map[procs.ID]reading, peaks map[procs.ID]int64) []record.Usage {
	var out []record.Usage
	for _, role := range roles {
		u := record.Usage{Role: role}
		var peak int64
		for id, b := range before {
			if b.role != role {
				continue
			}
			u.Before++
			if _, there := after[id]; !there {
				u.Ended++
			}
			if b.err != nil {
				u.Unread++
				continue
			}
			u.PSSBefore += b.PSS
			peak += max(b.PSS, peaks[id], after[id].PSS)
		}
		for id, a := range after {
			if a.role != role {
				continue
			}
			u.After++
			b, there := before[id]
			if a.err != nil || b.err != nil {
				u.Unread++
				continue
			}
			u.PSSAfter += a.PSS
			u.CPU += max(a.CPU-b.CPU, 0)
			if !there {
				peak += a.PSS
			}
		}
		u.PSSPeak = max(peak, u.PSSBefore, u.PSSAfter)
		if role != record.RoleDaemon {
			u.PSSPeak = max(u.PSSBefore, u.PSSAfter) // not read in between
		}
		if u.Before+u.After > 0 {
			out = append(out, u)
		}
	}
	return slices.Clip(out)
}
