package run

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/tare-bench/tare/internal/instrument/lifecycle"
	"github.com/tare-bench/tare/internal/node/procs"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/record"
)

// peakEvery is the interval of memory readings during a batch. Reading a daemon's
// memory takes about a millisecond per 100 MiB, during which the daemon cannot map
// memory. At this interval the effect is below the noise, and short batches have no
// reading.
const peakEvery = 250 * time.Millisecond

// staff meters a target's own processes around one batch.
type staff struct {
	target subject.HelperProcesses
	before map[procs.ID]reading
	slow   map[procs.ID]bool // processes whose memory takes too long to read during a batch
	peaks  map[procs.ID]int64
	ended  map[procs.ID]reading // as before, with the CPU time at the end
	clocks map[int]int64        // CPU time at the end, of every process on the machine
	stop   chan struct{}
	done   sync.WaitGroup
}

type reading struct {
	role record.Role
	procs.Usage
	err error
}

// tolerable is the maximum time for reading a daemon's memory during a batch.
const tolerable = 2 * time.Millisecond

// newStaff takes the first memory reading. It returns nil for a target without its own
// processes.
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

// begin reads the CPU times again, right before the release, and starts reading memory
// periodically.
func (s *staff) begin() {
	if s == nil {
		return
	}
	s.readCPU(s.before)
	s.done.Go(s.watch)
}

// end reads the CPU times of all processes as soon as the last lane is done. Which of
// them belong to the target is known only after the checks.
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

// finish reads the processes that exist after the batch. It runs after the checks,
// because only they find the containers, and thus the shims.
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

// atEnd returns the CPU time that a new process had at the end of the batch. It is 0
// for a process started later. If no clocks could be read, it returns cpu.
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

// watch reads the daemons' memory until the end. Daemons are few and outlive the batch.
// Reading a hundred shims would take longer than the shims exist.
func (s *staff) watch() {
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
}

// sums returns the usage of each role between two readings. A new process counts with
// all of its CPU time.
func sums(before, after map[procs.ID]reading, peaks map[procs.ID]int64) []record.Usage {
	var out []record.Usage
	for _, role := range lifecycle.Roles {
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
