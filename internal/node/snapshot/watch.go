package snapshot

import (
	"time"

	"github.com/tare-bench/tare/internal/node/cgroupstat"
	"github.com/tare-bench/tare/internal/node/nodestat"
	"github.com/tare-bench/tare/internal/node/procs"
	"github.com/tare-bench/tare/internal/node/sampler"
	"github.com/tare-bench/tare/record"
)

// Watch implements overhead.Meter.
func (s *Reader) Watch(of *record.Reading, interval time.Duration) func() record.Series {
	w := &watch{values: map[string][]int64{}, pace: 1}
	for _, g := range of.Groups {
		if g.Nested || g.Charge == record.ChargeShared {
			continue
		}
		opened, err := s.groups.Group(g.Path)
		if err != nil {
			procs.Count(&w.problems, err)
			continue
		}
		w.groups = append(w.groups, &watched{group: opened, overhead: g.Charge == record.ChargeOverhead})
	}
	for _, p := range of.Processes {
		if p.Role == record.RoleDaemon {
			w.daemons = append(w.daemons, procs.ID{Pid: p.Pid, Start: p.Start})
		}
	}
	fast, err := nodestat.OpenFast(s.root)
	if err != nil {
		broken(&w.problems, err)
	}
	w.node = fast
	sampling := sampler.Start(interval, w.tick)
	return func() record.Series {
		stopped := sampling.Stop()
		for _, g := range w.groups {
			g.group.Close()
		}
		w.node.Close()
		return record.Series{Type: record.TypeSeries, Interval: interval.Nanoseconds() * int64(w.pace), Missed: stopped.Missed,
			OwnCPU: stopped.OwnCPU, Times: w.times, Values: w.values, Problems: w.problems}
	}
}

// watch samples one phase.
type watch struct {
	groups   []*watched
	daemons  []procs.ID
	node     *nodestat.Fast
	pace     int // every pace-th tick is kept
	skipped  int
	times    []int64
	values   map[string][]int64
	problems record.Problems
}

type watched struct {
	group    *cgroupstat.Group
	overhead bool
	gone     bool
	sample   cgroupstat.Sample
}

// maxTicks limits a series, which is one line of a record. When a phase reaches the limit,
// every second tick is dropped, and from then on half as many are kept.
const maxTicks = 20_000

func (w *watch) tick(at int64) {
	if w.skipped++; w.skipped < w.pace {
		return
	}
	w.skipped = 0
	if len(w.times) == maxTicks {
		w.thin()
	}
	w.times = append(w.times, at)
	pod, overhead := sum{usage: -1, cpu: -1}, sum{usage: -1, cpu: -1}
	for _, g := range w.groups {
		to := &pod
		if g.overhead {
			to = &overhead
		}
		if g.gone {
			to.broken = true
			continue
		}
		if err := g.group.Sample(&g.sample); err != nil {
			procs.Count(&w.problems, err)
			g.gone, to.broken = true, true
			continue
		}
		to.add(&g.sample)
	}
	for _, s := range []*sum{&pod, &overhead} {
		if s.broken {
			s.usage, s.cpu = -1, -1
		}
	}
	w.put(record.SeriesPodMemory, pod.usage)
	w.put(record.SeriesPodCPU, pod.cpu)
	w.put(record.SeriesOverheadMemory, overhead.usage)
	w.put(record.SeriesOverheadCPU, overhead.cpu)
	w.put(record.SeriesDaemonCPU, w.daemonCPU())
	w.nodeTick()
}

// thin drops every second tick.
func (w *watch) thin() {
	w.times = halved(w.times)
	for name, values := range w.values {
		w.values[name] = halved(values)
	}
	w.pace *= 2
}

func halved(v []int64) []int64 {
	for i := range len(v) / 2 {
		v[i] = v[2*i]
	}
	return v[:len(v)/2]
}

// sum is the total of several groups; -1 is unknown. One unreadable group makes the total
// unknown.
type sum struct {
	usage, cpu int64
	broken     bool
}

func (s *sum) add(g *cgroupstat.Sample) {
	if g.HaveMemory {
		s.usage = max(s.usage, 0) + g.Usage
	}
	if g.HaveCPU {
		s.cpu = max(s.cpu, 0) + g.CPU
	}
}

func (w *watch) daemonCPU() int64 {
	if len(w.daemons) == 0 {
		return -1
	}
	var total int64
	for _, id := range w.daemons {
		ns, err := id.CPU()
		if err != nil {
			return -1
		}
		total += ns
	}
	return total
}

func (w *watch) put(name string, value int64) { w.values[name] = append(w.values[name], value) }

func (w *watch) nodeTick() {
	var t nodestat.Tick
	if err := w.node.Read(&t); err != nil {
		broken(&w.problems, err)
	}
	w.put(record.SeriesNodeUsed, t.Used)
	w.put(record.SeriesNodeAvailable, t.Available)
	w.put(record.SeriesNodeCache, t.Cache)
	w.put(record.SeriesNodeBusy, t.Busy)
	w.put(record.SeriesNodeRead, t.Read)
	w.put(record.SeriesNodeWrite, t.Write)
	w.put(record.SeriesNodeLoad, t.Load1000)
}
