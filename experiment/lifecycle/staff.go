package lifecycle

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/tare-bench/tare/meter/process"
	"github.com/tare-bench/tare/record"
	"github.com/tare-bench/tare/target"
)

// peakEvery is how often memory is read during a batch. A reading of a daemon
// takes it about a millisecond for 100 MiB, in which it cannot map memory; at
// this pace that is lost in the noise, and short batches have none.
const peakEvery = 250 * time.Millisecond

// staff meters a target's own processes around one batch.
type staff struct {
	target target.Staffed
	before map[process.ID]reading
	peaks  map[process.ID]int64
	stop   chan struct{}
	done   sync.WaitGroup
}

type reading struct {
	role record.Role
	process.Usage
	err error
}

// newStaff takes the first reading. It returns nil for a target that has no
// processes of its own.
func newStaff(ctx context.Context, session target.Session) *staff {
	t, ok := session.(target.Staffed)
	if !ok {
		return nil
	}
	return &staff{target: t, before: readAll(ctx, t), peaks: map[process.ID]int64{}, stop: make(chan struct{})}
}

func readAll(ctx context.Context, t target.Staffed) map[process.ID]reading {
	out := map[process.ID]reading{}
	for _, p := range t.Processes(ctx) {
		id, err := process.Identify(p.Pid)
		r := reading{role: p.Role, err: err}
		if r.err == nil {
			r.CPU, r.err = id.CPU()
		}
		if r.err == nil {
			r.PSS, r.err = id.PSS()
		}
		out[id] = r
	}
	return out
}

// watch reads the daemons' memory until finish. There are few of them and they
// outlive the batch; a hundred shims would be read longer than they take.
func (s *staff) watch() {
	if s == nil {
		return
	}
	s.done.Add(1)
	go func() {
		defer s.done.Done()
		tick := time.NewTicker(peakEvery)
		defer tick.Stop()
		for {
			select {
			case <-s.stop:
				return
			case <-tick.C:
			}
			for id, r := range s.before {
				if r.role != record.RoleDaemon {
					continue
				}
				if pss, err := id.PSS(); err == nil {
					s.peaks[id] = max(s.peaks[id], pss)
				}
			}
		}
	}()
}

// finish takes the last reading and sums up by role.
func (s *staff) finish(ctx context.Context) []record.Usage {
	if s == nil {
		return nil
	}
	close(s.stop)
	s.done.Wait()
	return sums(s.before, readAll(ctx, s.target), s.peaks)
}

var roles = []record.Role{record.RoleDaemon, record.RoleShim, record.RoleMonitor, record.RoleVMM, record.RoleVirtiofs}

// sums is what the processes of each role used between two readings. What was
// not there before used all of its CPU time since.
func sums(before, after map[process.ID]reading, peaks map[process.ID]int64) []record.Usage {
	var out []record.Usage
	for _, role := range roles {
		u := record.Usage{Role: role}
		var peak int64
		for id, b := range before {
			if b.role != role {
				continue
			}
			u.Before++
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
