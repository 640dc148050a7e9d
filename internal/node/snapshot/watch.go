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
		if w.node != nil {
			w.node.Close()
		}
		return record.Series{Type: record.TypeSeries, Interval: interval.Nanoseconds() * int64(w.pace), Missed: stopped.Missed,
			OwnCPU: stopped.OwnCPU, Times: w.times, Values: w.values, Problems: w.problems}
	}
}

// watch is what is sampled in one phase.
type watch struct {
	groups   []*watched
	daemons  []procs.ID
	node     *nodestat.Fast
	pace     int // one tick of so many is kept
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

// maxTicks bounds a series, which is one line of a record. A phase that lasts
// longer is kept at half the pace: every second tick is dropped, those before too.
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
	pod, overhead := sum{}, sum{}
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
	w.put(record.SeriesPodMemory, pod.memory())
	w.put(record.SeriesPodCPU, pod.time())
	w.put(record.SeriesOverheadMemory, overhead.memory())
	w.put(record.SeriesOverheadCPU, overhead.time())
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

// sum adds up groups. One that cannot be read any more leaves a hole, no dip.
type sum struct {
	usage, cpu       int64
	haveUse, haveCPU bool
	broken           bool
}

func (s *sum) add(g *cgroupstat.Sample) {
	if g.HaveMemory {
		s.usage, s.haveUse = s.usage+g.Usage, true
	}
	if g.HaveCPU {
		s.cpu, s.haveCPU = s.cpu+g.CPU, true
	}
}

func (s *sum) memory() int64 {
	if s.broken || !s.haveUse {
		return -1
	}
	return s.usage
}

func (s *sum) time() int64 {
	if s.broken || !s.haveCPU {
		return -1
	}
	return s.cpu
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
	t := nodestat.Tick{Used: -1, Available: -1, Cache: -1, Busy: -1, Read: -1, Write: -1, Load1000: -1}
	if w.node != nil {
		if err := w.node.Read(&t); err != nil {
			broken(&w.problems, err)
		}
	}
	w.put(record.SeriesNodeUsed, t.Used)
	w.put(record.SeriesNodeAvailable, t.Available)
	w.put(record.SeriesNodeCache, t.Cache)
	w.put(record.SeriesNodeBusy, t.Busy)
	w.put(record.SeriesNodeRead, t.Read)
	w.put(record.SeriesNodeWrite, t.Write)
	w.put(record.SeriesNodeLoad, t.Load1000)
}
