package storage

import (
	"fmt"
	"slices"

	"github.com/tare-bench/tare/internal/core/stat"
	"github.com/tare-bench/tare/record"
)

// Minimum extent of a cell whose rates serve as bounds of other cells.
const (
	longRun  = 30.0     // s; long enough to outlast a cache
	largeRun = 32 << 30 // bytes; large enough to exceed a cache
	largeSet = 4 << 30  // bytes of files for random I/O; more than the caches of controllers
)

// memorySpeed is a rate of sequential requests, per second, that no device reaches. It
// allows 5 µs per request; the fastest devices take longer, including the kernel's path.
const memorySpeed = 200_000

// bound is the maximum that a device delivers in one direction.
type bound struct {
	direction int
	iops      bool    // random requests of at least bs bytes; otherwise bandwidth
	value     float64 // 1/s, bytes/s
	bs        int64
	inFlight  float64 // concurrent requests; 0 means as many as the device accepts
	device    string  // the measured device; "" if unknown
	from      string  // source, as text
	figure    float64 // figure of the cell that is compared with the bound
}

func (b *bound) factor() float64 { return b.figure / b.value }

func (b *bound) text() string {
	verb := [directionCount]string{"read", "written"}[b.direction]
	if b.iops {
		return fmt.Sprintf("%.0f IOPS %s are %s the %.0f of %s", b.figure, verb, timesText(b.factor()), b.value, b.from)
	}
	return fmt.Sprintf("%s %s are %s the %s of %s", rateText(b.figure), verb, timesText(b.factor()), rateText(b.value), b.from)
}

func timesText(factor float64) string {
	if factor >= 10 {
		return fmt.Sprintf("%.0f ×", factor)
	}
	return fmt.Sprintf("%.2g ×", factor)
}

// findBounds sets the bounds of each volume: the ceilings measured on the host, or
// substitutes for them. Direct I/O of the host is a substitute if it lasted longer or
// moved more than a cache can hold. Without figures of the host, those of targets that
// share its kernel are used.
func (j *Judgement) findBounds() {
	j.bounds = map[string][]bound{}
	for volume, cells := range j.nearDevice() {
		large := func(c *Cell) bool { return c.table.random() && c.table.job.Bytes() >= largeSet }
		some := slices.ContainsFunc(cells, large)
		for _, c := range cells {
			if !some || !c.table.random() || large(c) { // smaller files may fit in a controller's cache
				j.bounds[volume] = append(j.bounds[volume], c.bound())
			}
		}
	}
	for _, c := range j.Ceilings {
		delete(j.bounds, c.Volume)
	}
	for _, c := range j.Ceilings {
		for _, x := range ceilingColumns {
			j.bounds[c.Volume] = append(j.bounds[c.Volume],
				bound{direction: x.direction, iops: x.quantity == "ceiling-iops", value: *x.of(&c), from: "the volume's ceiling on the host", device: c.Device})
		}
	}
}

// nearDevice returns the steady cells of each volume, of the targets nearest to the device.
func (j *Judgement) nearDevice() map[string][]*Cell {
	all := map[string][]*Cell{}
	for _, c := range j.cells() {
		own, volume := standing(c.info), c.table.Volume
		if own == 0 || !c.steady() {
			continue
		}
		if others := all[volume]; others == nil || own > standing(others[0].info) {
			all[volume] = []*Cell{c}
		} else if own == standing(others[0].info) {
			all[volume] = append(others, c)
		}
	}
	return all
}

// bounds returns the bounds of the cell's volume and device. Imported results without a
// volume are assumed to come from the machine's own storage, so their bounds also apply
// to root file systems and host directories. An engine's root file systems may be on
// another device than the run's directories. They have no bounds then.
func (w *Cell) bounds() []bound {
	all, volume := w.judge.bounds[w.table.Volume], w.table.Volume
	if all == nil && (volume == record.VolumeRootfs || volume == record.VolumeBind) {
		all = w.judge.bounds[""]
	}
	if w.place == nil {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(b bound) bool { return b.device != w.place.Device })
}

// standing returns how near a target is to the device: 2 for the host, 1 for targets that
// share its kernel, 0 for others.
func standing(t *record.Target) int {
	switch {
	case hasGuest(t):
		return 0
	case t.Name == host:
		return 2
	}
	return 1
}

// steady reports whether a cell's rates can be those of a device: one direction, long or
// large, and direct. Buffered writes of dd and sysbench count, too, because they write
// every byte once. Buffered overwrites do not.
func (w *Cell) steady() bool {
	e := &w.facts
	if w.Rounds == 0 || (e.bandwidth[reading] > 0) == (e.bandwidth[writing] > 0) || e.seconds < longRun && e.claimed.sum()/float64(e.rounds) < largeRun {
		return false
	}
	if _, memory := w.inMemory(); memory || w.impossible(e) != "" || inMost(w.trials, w.contradiction) != nil || inMost(w.trials, w.busyLonger) != nil {
		return false
	}
	t := w.table
	once := (t.Tool == ToolDD || t.Tool == ToolSysbench) && !t.random() && e.bandwidth[writing] > 0
	return t.Cache == record.CacheDirect || once
}

// bound returns the bound that follows from a steady cell.
func (w *Cell) bound() bound {
	e, t := &w.facts, w.table
	d := reading
	if e.bandwidth[writing] > 0 {
		d = writing
	}
	b := bound{direction: d, value: e.bandwidth[d], from: fmt.Sprintf("%s's %s, which ran %s", w.Target, t.Job, secondsText(e.seconds))}
	if t.random() {
		b.iops, b.value, b.bs, b.inFlight = true, e.iops[d], t.BS, t.inFlight()
	}
	if w.place != nil {
		b.device = w.place.Device
	}
	return b
}

// nearest returns the bound with the highest ratio of figure to bound, or nil if no
// figure has a bound. If a figure has several bounds, the loosest counts. Bandwidth
// bounds all jobs; IOPS bounds only random ones, because sequential requests can be
// merged.
func (w *Cell) nearest(e *evidence) *bound {
	bounds := w.bounds()
	var out *bound
	for d := range directionCount {
		for i, rates := range []both{e.bandwidth, e.iops} {
			b := w.table.loosest(bounds, d, i == 1)
			if b == nil || rates[d] <= 0 {
				continue
			}
			b.figure = rates[d]
			if stat.Finite(b.factor()) && (out == nil || b.factor() > out.factor()) {
				out = b
			}
		}
	}
	return out
}

// loosest returns the largest bound of a figure, scaled to the job's number of concurrent
// requests. With n times as many requests, the rate can be at most n times as high.
func (t *Table) loosest(bounds []bound, d int, iops bool) *bound {
	var out *bound
	for _, b := range bounds {
		if b.direction != d || b.iops != iops || !(b.value > 0) || iops && (!t.random() || t.BS < b.bs) {
			continue
		}
		if iops && b.inFlight > 0 {
			if t.inFlight() == 0 {
				continue
			}
			b.value *= max(t.inFlight()/b.inFlight, 1)
		}
		if out == nil || b.value > out.value {
			out = &b
		}
	}
	return out
}

// impossible returns why no device can deliver the cell's figures, or "".
func (w *Cell) impossible(e *evidence) string {
	n := w.table.inFlight()
	kind := "direct"
	if w.table.random() {
		kind = "random"
	} else if w.table.Cache != record.CacheDirect {
		return "" // sequential I/O is served from readahead
	}
	if total := e.iops.sum(); n > 0 && total > memorySpeed*n {
		return fmt.Sprintf("%.0f %s IOPS with %.0f at a time are %.2g µs for each: no device answers in under %d", total, kind, n, 1e6*n/total, int(1e6/memorySpeed))
	}
	return ""
}
