package snapshot

import (
	"cmp"
	"context"
	"math"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/node/attribution"
	"github.com/tare-bench/tare/internal/node/disk"
	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/node/procs"
	"github.com/tare-bench/tare/record"
)

// Edge is the state of the node before or after a storage job.
type Edge struct {
	Reading record.Reading
	stats   disk.Stats
	moved   map[procs.ID]moved // by process, for those that do a sandbox's I/O on the host
	ownCPU  int64
	time    int64 // ns; when the disks were read
	err     error // of reading the disks
}

// moved is the bytes that a process has read and written by system calls, and the bytes
// that it fetched from storage.
type moved struct {
	record.Transfer
	fetched int64
}

// Begin reads the state before a job. It reads the disks last, which excludes the I/O of
// the reading itself.
func (s *Reader) Begin(ctx context.Context, boxes []attribution.Sandbox, daemons []int) *Edge {
	e := &Edge{}
	s.read(ctx, e, boxes, daemons)
	e.disks(s)
	return e
}

// End reads the state after a job. It reads the disks first.
func (s *Reader) End(ctx context.Context, boxes []attribution.Sandbox, daemons []int) *Edge {
	e := &Edge{}
	e.disks(s)
	s.read(ctx, e, boxes, daemons)
	return e
}

func (s *Reader) read(ctx context.Context, e *Edge, boxes []attribution.Sandbox, daemons []int) {
	x := s.Read(ctx, boxes, daemons, false)
	x.Problems.Add(&e.Reading.Problems) // of the disks
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

// Seen returns what changed between two edges on a block device and on the whole node. If
// device is "", it returns the changes on the node only. CPU time by role is left to the
// ledger.
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

// groupsOf returns the paths of the target's cgroups and of tare's own. The workload of the
// host target runs in tare's cgroups.
func groupsOf(groups []record.Group) (paths []string) {
	for i := range groups {
		paths = append(paths, groups[i].Path)
	}
	if own, err := procs.GroupsOf(os.Getpid()); err == nil {
		paths = append(paths, own.All...)
	}
	return append(paths, "/")
}

// charged returns the I/O and the throttled time of the sandboxes' groups between two
// readings. The I/O is nil without accounting.
func charged(then, now []record.Group) (use *record.GroupUse, throttled int64) {
	before := map[string]*record.Group{}
	for i := range then {
		before[then[i].Path] = &then[i]
	}
	for i := range now {
		g := &now[i]
		if g.Nested || g.Charge == record.ChargeShared {
			continue
		}
		b := cmp.Or(before[g.Path], &record.Group{})
		throttled += max(g.Throttled-b.Throttled, 0)
		if slices.Contains(g.Controllers, "blkio") || slices.Contains(g.Controllers, "io") {
			use = cmp.Or(use, &record.GroupUse{})
			use.ReadBytes += max(g.ReadBytes-b.ReadBytes, 0)
			use.WriteBytes += max(g.WriteBytes-b.WriteBytes, 0)
		}
	}
	return use, throttled
}

// transferred returns the sums over all processes, or nil if there are none.
func transferred(then, now map[procs.ID]moved) (by *record.Transfer, fetched *int64) {
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

// movers reads the transfers of the processes that do a guest's I/O on the host.
func (s *Reader) movers(r *record.Reading) map[procs.ID]moved {
	all := map[procs.ID]moved{}
	reader := procs.Reader{Root: s.root}
	for i := range r.Processes {
		p := &r.Processes[i]
		if !slices.Contains([]record.Role{record.RoleVMM, record.RoleVirtiofs, record.RoleSentry, record.RoleGofer}, p.Role) {
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
			all[procs.ID{Pid: p.Pid, Start: p.Start}] = t
		case !procs.Gone(err):
			r.Problems.Denied++
		}
	}
	return all
}

// Rest waits until a block device is idle. If device is "", it waits for all whole disks.
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

// Flush writes back all dirty pages of the node. It returns how many bytes a block device
// has written since an edge, or -1 if unknown. If device is "", it returns the sum of all
// whole disks.
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
