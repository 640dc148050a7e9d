// Package snapshot reads the state of a node and of a target on it: the whole node, the
// target's processes with role and usage, and the cgroups that are charged for them.
package snapshot

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tare-bench/tare/internal/node/attribution"
	"github.com/tare-bench/tare/internal/node/cgroupstat"
	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/node/nodestat"
	"github.com/tare-bench/tare/internal/node/procs"
	"github.com/tare-bench/tare/record"
)

// Reader reads one machine. One goroutine may use it.
type Reader struct {
	root      machine.Root
	processes attribution.Reader
	groups    *cgroupstat.System
}

// New returns a reader of this machine. It fails if the cgroups are unreadable.
func New() (*Reader, error) { return Of("") }

// Of returns a reader of the files below root. Tests use it.
func Of(root machine.Root) (*Reader, error) {
	groups, err := cgroupstat.Open(root)
	if err != nil {
		return nil, fmt.Errorf("find the machine's cgroups: %w", err)
	}
	groups.SkipIdle(time.Second)
	return &Reader{root: root, processes: attribution.Reader{Root: root}, groups: groups}, nil
}

// Close closes the cgroup files that the reader keeps open.
func (s *Reader) Close() { s.groups.Close() }

// Settle waits until the node's memory in use is stable: it varies by at most calm over
// the last steady looks. It reports false after the time most. The kernel frees
// namespaces and cgroups late, in workers.
func (s *Reader) Settle(ctx context.Context, most time.Duration) bool {
	var seen []int64
	return machine.Await(ctx, most, look, func() bool {
		if h, err := nodestat.ReadHost(s.root); err == nil {
			seen = append(seen, h.Used())
		}
		last := seen[max(len(seen)-steady, 0):]
		return len(last) == steady && slices.Max(last)-slices.Min(last) <= calm
	})
}

// On an idle node, timers and daemons change memory by less than calm.
const (
	calm   = 256 << 10
	steady = 5
	look   = 100 * time.Millisecond
)

// Read implements overhead.Meter.
func (s *Reader) Read(ctx context.Context, boxes []attribution.Sandbox, daemons []int, memory bool) record.Reading {
	began := machine.Now()
	x := record.Reading{Type: record.TypeReading}
	there, err := s.processes.Snapshot(ctx)
	if err != nil {
		broken(&x.Problems, fmt.Errorf("the processes of the node: %w", err))
		there = &attribution.Snapshot{}
	}
	members := there.Members(boxes, daemons, &x.Problems)
	refreshed := memory && s.root == "" && nodestat.Refresh()
	x.Time = machine.Now()
	if x.Host, err = nodestat.ReadHost(s.root); err != nil {
		broken(&x.Problems, fmt.Errorf("the node: %w", err))
	}
	x.Host.Refreshed = refreshed
	// Read all clocks within a few milliseconds of the node's. Memory comes later, because
	// reading it takes a hundredth of a second per GiB.
	theirs := map[int]bool{}
	var read []attribution.Member
	for _, m := range members {
		theirs[m.Pid] = true
		p, err := s.processes.Process(m, false, &x.Problems)
		if err != nil {
			continue // Process counts it
		}
		x.Processes, read = append(x.Processes, p), append(read, m)
	}
	x.Groups = s.readGroups(there.Charges(read, boxes), &x.Problems)
	if memory {
		x.Processes = s.memories(x.Processes, read, &x.Problems)
		x.Host.Related = new(there.Related(members))
	}
	x.Host.Others, x.Host.OthersCount = others(there, theirs)
	x.Problems.Add(&there.Problems)
	x.Took = machine.Now() - began
	return x
}

// memories reads the processes in full and keeps the clocks of the first reading.
func (s *Reader) memories(clocks []record.Process, members []attribution.Member, problems *record.Problems) []record.Process {
	out := clocks[:0]
	for i, c := range clocks {
		p, err := s.processes.Process(members[i], true, problems)
		if err != nil {
			continue // Process counts it
		}
		p.CPU, p.VCPU, p.Waited = c.CPU, c.VCPU, c.Waited
		out = append(out, p)
	}
	return out
}

func (s *Reader) readGroups(charges []record.Group, problems *record.Problems) []record.Group {
	var out []record.Group
	for _, read := range charges {
		g, err := s.groups.Group(read.Path)
		if err == nil {
			err = g.Read(&read)
			g.Close()
			if err == nil || len(read.Controllers) > 0 {
				out = append(out, read)
			}
		}
		procs.Count(problems, err)
	}
	return out
}

// Around implements overhead.Meter.
func (s *Reader) Around(paths []string) []record.Group {
	charges := make([]record.Group, len(paths))
	for i, path := range paths {
		charges[i] = record.Group{Path: path, Charge: record.ChargeShared, Lane: -1}
	}
	return s.readGroups(charges, &record.Problems{}) // a missing group is not a problem
}

// others returns the anonymous memory and the number of all other processes.
func others(there *attribution.Snapshot, theirs map[int]bool) (bytes int64, count int) {
	for _, p := range there.Processes {
		if !theirs[p.Pid] && !p.Kernel {
			bytes += p.RssAnon
			count++
		}
	}
	return bytes, count
}

// broken counts a read failure of something that every node has.
func broken(p *record.Problems, err error) {
	p.Broken++
	p.Note(err.Error())
}
