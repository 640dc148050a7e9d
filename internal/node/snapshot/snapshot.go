// Package snapshot reads a node and a target on it: what the whole node has, which
// processes are the target's and in which role, what each uses, and which cgroups
// are charged for it. It puts together what the single meters see.
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

// Reader reads one machine. It is for one goroutine.
type Reader struct {
	root      machine.Root
	processes attribution.Reader
	groups    *cgroupstat.System
}

// New returns a reader of this machine. The error says why its cgroups cannot
// be read.
func New() (*Reader, error) { return Of("") }

// Of is New for another machine's files, in tests.
func Of(root machine.Root) (*Reader, error) {
	groups, err := cgroupstat.Open(root)
	if err != nil {
		return nil, fmt.Errorf("find the machine's cgroups: %w", err)
	}
	groups.SkipIdle(time.Second) // a tick needs no more of one in which nothing happens
	return &Reader{root: root, processes: attribution.Reader{Root: root}, groups: groups}, nil
}

// Close gives back what is kept open.
func (s *Reader) Close() { s.groups.Close() }

// Settle waits until the node's memory in use stays within calm for as long as
// steady looks, at most for a time, and tells whether it did. What was freed
// comes back late: a namespace or a cgroup is taken down by the kernel's own
// workers.
func (s *Reader) Settle(ctx context.Context, most time.Duration) bool {
	deadline := time.Now().Add(most)
	var seen []int64
	for {
		if h, err := nodestat.ReadHost(s.root); err == nil {
			seen = append(seen, h.Used())
		}
		if n := len(seen); n >= steady {
			if last := seen[n-steady:]; slices.Max(last)-slices.Min(last) <= calm {
				return true
			}
		}
		if ctx.Err() != nil || time.Now().After(deadline) {
			return false
		}
		_ = machine.Sleep(ctx, look)
	}
}

// A node is calm when five looks, a tenth of a second apart, differ by no more
// than 256 KiB: an idle one's own timers and daemons stay below that.
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
	// All clocks within a few milliseconds of the node's, before memory, whose
	// reading takes a hundredth of a second for each GiB.
	theirs := map[int]bool{}
	var read []attribution.Member
	for _, m := range members {
		theirs[m.Pid] = true
		p, err := s.processes.Look(m, &x.Problems)
		if err != nil {
			continue // it is counted
		}
		x.Processes, read = append(x.Processes, p), append(read, m)
	}
	x.Groups = s.readGroups(there.Charges(x.Processes, boxes), &x.Problems)
	if memory {
		x.Processes = s.memories(x.Processes, read, &x.Problems)
		x.Host.Related = new(there.Related(members))
	}
	x.Host.Others, x.Host.OthersCount = others(there, theirs)
	x.Problems.Add(&there.Problems)
	x.Took = machine.Now() - began
	return x
}

// memories reads the processes in full, and keeps their clocks.
func (s *Reader) memories(clocks []record.Process, members []attribution.Member, problems *record.Problems) []record.Process {
	out := clocks[:0]
	for i, c := range clocks {
		p, err := s.processes.Process(members[i], problems)
		if err != nil {
			continue // it is counted
		}
		p.CPU, p.VCPU, p.Waited = c.CPU, c.VCPU, c.Waited
		out = append(out, p)
	}
	return out
}

func (s *Reader) readGroups(charges []attribution.GroupCharge, problems *record.Problems) []record.Group {
	var out []record.Group
	for _, c := range charges {
		g, err := s.groups.Group(c.Path)
		if err == nil {
			read := record.Group{Path: c.Path, Charge: c.Charge, Lane: c.Lane, Nested: c.Nested}
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
	charges := make([]attribution.GroupCharge, len(paths))
	for i, path := range paths {
		charges[i] = attribution.GroupCharge{Path: path, Charge: record.ChargeShared, Lane: -1}
	}
	return s.readGroups(charges, &record.Problems{}) // one that is not there is no problem
}

// others is the anonymous memory of all processes that are not the target's.
func others(there *attribution.Snapshot, theirs map[int]bool) (bytes int64, count int) {
	for _, p := range there.Processes {
		if !theirs[p.Pid] && !p.Kernel {
			bytes += p.RssAnon
			count++
		}
	}
	return bytes, count
}

// broken counts what every node has and could not be read.
func broken(p *record.Problems, err error) {
	p.Broken++
	p.Note(err.Error())
}
