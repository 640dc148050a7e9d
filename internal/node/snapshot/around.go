package snapshot

import (
	"context"
	"math"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/node/attribution"
	"github.com/tare-bench/tare/internal/node/disk"
	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/node/procs"
	"github.com/tare-bench/tare/record"
)

// Edge is what stood at one edge of a job on storage.
type Edge struct {
	Reading record.Reading
	stats   disk.Stats
	moved   map[mover]moved
	ownCPU  int64
	time    int64 // ns, when the disks were read
	err     error // of reading them
}

// mover is a process that does a sandbox's I/O on the host.
type mover struct {
	pid   int
	start uint64
}

// moved is what it has moved by system calls, and how much of that it had fetched
// from storage, in bytes.
type moved struct {
	record.Transfer
	fetched int64
}

// Begin reads what there is before a job: the disks last, so that nothing of the
// reading itself is in their figures.
func (s *Reader) Begin(ctx context.Context, boxes []attribution.Sandbox, daemons []int) *Edge {
	e := &Edge{}
	s.read(ctx, e, boxes, daemons)
	e.disks(s)
	return e
}

// End reads what there is after a job: the disks first.
func (s *Reader) End(ctx context.Context, boxes []attribution.Sandbox, daemons []int) *Edge {
	e := &Edge{}
	e.disks(s)
	s.read(ctx, e, boxes, daemons)
	return e
}

func (s *Reader) read(ctx context.Context, e *Edge, boxes []attribution.Sandbox, daemons []int) {
	x := s.Read(ctx, boxes, daemons, false)
	x.Problems.Add(&e.Reading.Problems) // the disks'
	e.moved = s.movers(&x)
	e.Reading = x
}

func (e *Edge) disks(s *Reader) {
	e.stats, e.err = disk.Read(s.root)
	e.ownCPU = procs.OwnCPU()
	e.time = machine.Now()
	if e.err != nil {
		broken(&e.Reading.Problems, e.err)
	}
}

// Seen is what happened between two edges on the block device of a name, "" for
// none, and on the whole node. CPU time by role is left to the ledger.
func (s *Reader) Seen(begin, end *Edge, device string) record.Observed {
	took := end.time - begin.time
	from, to := &begin.Reading, &end.Reading
	seen := record.Observed{Took: took, Flushed: -1, Cached: to.Host.Cache() - from.Host.Cache(), OwnCPU: max(end.ownCPU-begin.ownCPU, 0), CPU: []record.RoleTime{}}
	if device != "" {
		seen.Device = disk.Between(begin.stats.Of(device), end.stats.Of(device))
	}
	if whole, err := disk.ReadDisks(s.root); err == nil {
		names := end.stats.Whole(whole)
		seen.Disks = disk.Between(begin.stats.Of(names...), end.stats.Of(names...))
	} else {
		broken(&seen.Problems, err)
	}
	seen.Limits = disk.Limits(s.root, groupsOf(from.Groups))
	seen.Group, seen.Throttled = charged(from.Groups, to.Groups)
	seen.Outside, seen.Fetched = transferred(begin.moved, end.moved)
	if read := to.Time - from.Time; read > 0 {
		share := func(a, b int64) float64 { return math.Max(0, float64(b-a)/float64(read)) }
		seen.Busy, seen.Steal = share(from.Host.Busy, to.Host.Busy), share(from.Host.Steal, to.Host.Steal)
		if seen.HavePSI = from.Host.HavePSI && to.Host.HavePSI; seen.HavePSI {
			seen.PSICPU = min(share(from.Host.PSICPU, to.Host.PSICPU), 1)
			seen.PSIMemory = min(share(from.Host.PSIMemory, to.Host.PSIMemory), 1)
			seen.PSIIO = min(share(from.Host.PSIIO, to.Host.PSIIO), 1)
		}
	}
	seen.Problems.Add(&from.Problems)
	seen.Problems.Add(&to.Problems)
	return seen
}

// groupsOf are the paths of the target's cgroups, and of tare's own, in which the
// workload of the host is.
func groupsOf(groups []record.Group) (paths []string) {
	for i := range groups {
		paths = append(paths, groups[i].Path)
	}
	own, _ := os.ReadFile("/proc/self/cgroup")
	for line := range strings.Lines(string(own)) {
		if fields := strings.SplitN(strings.TrimSpace(line), ":", 3); len(fields) == 3 {
			paths = append(paths, fields[2])
		}
	}
	return paths
}

// charged is what the sandboxes' own groups were charged for I/O from one
// reading to another, nil where that is not accounted, and for how long the CPU
// was kept from them.
func charged(then, now []record.Group) (use *record.GroupUse, throttled int64) {
	before := map[string]*record.Group{}
	for i := range then {
		before[then[i].Path] = &then[i]
	}
	for i := range now {
		g := &now[i]
		b := before[g.Path]
		if g.Nested || g.Charge == record.ChargeShared {
			continue
		}
		if b == nil {
			b = &record.Group{}
		}
		throttled += max(g.Throttled-b.Throttled, 0)
		for _, c := range g.Controllers {
			if c != "blkio" && c != "io" {
				continue
			}
			if use == nil {
				use = &record.GroupUse{}
			}
			use.ReadBytes += max(g.ReadBytes-b.ReadBytes, 0)
			use.WriteBytes += max(g.WriteBytes-b.WriteBytes, 0)
		}
	}
	return use, throttled
}

// transferred are nil where there are no movers.
func transferred(then, now map[mover]moved) (by *record.Transfer, fetched *int64) {
	if len(now) == 0 {
		return nil, nil
	}
	var sum moved
	for m, t := range now {
		sum.Read += max(t.Read-then[m].Read, 0)
		sum.Write += max(t.Write-then[m].Write, 0)
		sum.fetched += max(t.fetched-then[m].fetched, 0)
	}
	return &sum.Transfer, &sum.fetched
}

// movers reads what those processes have moved by system calls that do a
// sandbox's I/O outside of its guest.
func (s *Reader) movers(r *record.Reading) map[mover]moved {
	all := map[mover]moved{}
	reader := procs.Reader{Root: s.root}
	for i := range r.Processes {
		p := &r.Processes[i]
		switch p.Role {
		case record.RoleVMM, record.RoleVirtiofs, record.RoleSentry, record.RoleGofer:
		default:
			continue
		}
		d, err := reader.Open(p.Pid)
		var t moved
		if err == nil {
			t.Read, t.Write, t.fetched, err = d.Moved()
			d.Close()
		}
		switch {
		case err == nil:
			all[mover{p.Pid, p.Start}] = t
		case !procs.Gone(err):
			r.Problems.Denied++
		}
	}
	return all
}

// Rest waits until a block device, "" for all whole disks, is at rest.
func (s *Reader) Rest(ctx context.Context, device string, most time.Duration) bool {
	names := []string{device}
	if device == "" {
		stats, err := disk.Read(s.root)
		whole, diskErr := disk.ReadDisks(s.root)
		if err != nil || diskErr != nil {
			return false
		}
		names = stats.Whole(whole)
	}
	return disk.Rest(ctx, s.root, names, most)
}

// Drop drops the node's page cache.
func (s *Reader) Drop(ctx context.Context) error { return disk.DropCaches(ctx) }

// Flush writes back what is dirty on the whole node, and tells how many bytes a
// block device, "" for all whole disks, has written since the disks were read at
// an edge, so that nothing is lost between that and the flush; -1 where it does
// not say.
func (s *Reader) Flush(since *Edge, device string) int64 {
	if since == nil || since.err != nil {
		return -1
	}
	unix.Sync()
	now := &Edge{}
	now.disks(s)
	if now.err != nil {
		return -1
	}
	seen := s.Seen(since, now, device)
	use := seen.Disks
	if device != "" {
		use = seen.Device
	}
	if use.Name == "" {
		return -1
	}
	return use.WriteBytes
}
