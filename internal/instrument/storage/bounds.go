package storage

import (
	"fmt"
	"maps"
	"slices"

	"github.com/tare-bench/tare/internal/core/stat"
	"github.com/tare-bench/tare/record"
)

// What an imported cell must be to bound others.
const (
	longRun  = 30.0     // s: longer than what memory holds lasts
	largeRun = 32 << 30 // bytes, likewise
	largeSet = 4 << 30  // bytes of files that are jumped about in, beyond what controllers hold
)

// memorySpeed is how many requests a second no device answers one after the
// other: 5 µs for each are below what the fastest take, with the kernel's own path.
const memorySpeed = 200_000

// bound is the most that a device gives in one direction.
type bound struct {
	direction int
	iops      bool    // of random requests, of bs or more; else bandwidth
	value     float64 // 1/s, bytes/s
	bs        int64
	inFlight  float64 // requests at a time; 0: as many as the device takes
	device    string  // that gave it; "" where that is not known
	from      string  // in words
	figure    float64 // of a cell that is held beside it
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

// findBounds finds the bounds of each volume: what was measured on the host, and else
// what can stand for that. Direct I/O of the host counts, for as long or as much as no
// memory holds; where the host has none, that of targets that share its kernel.
func (j *Judgement) findBounds() {
	j.bounds = map[string][]bound{}
	for volume, cells := range j.nearDevice() {
		large := func(c *Cell) bool { return c.table.random() && c.table.job.Bytes() >= largeSet }
		some := slices.ContainsFunc(cells, large)
		for _, c := range cells {
			if !some || !c.table.random() || large(c) { // smaller files may be in a controller's memory
				j.bounds[volume] = append(j.bounds[volume], c.bound())
			}
		}
	}
	measured := map[string][]bound{}
	for _, c := range j.Ceilings {
		for _, x := range ceilingColumns {
			measured[c.Volume] = append(measured[c.Volume],
				bound{direction: x.direction, iops: x.iops, value: *x.of(&c), from: "the volume's ceiling on the host", device: c.Device})
		}
	}
	maps.Copy(j.bounds, measured)
}

// nearDevice are the steady cells of each volume whose targets are nearest to the
// device.
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

// bounds are those of the cell's volume and device. Notes that do not say where
// something lay are taken to speak of the machine's own storage, which a root file
// system and a folder of the host are on as well. An engine's root file system may lie
// on another device than the run's own folders, and then is on none that is known.
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

// standing is how near a target is to the device: 2 for the host, 1 for what
// shares its kernel, 0 for the rest.
func standing(t *record.Target) int {
	switch {
	case hasGuest(t):
		return 0
	case t.Name == host:
		return 2
	}
	return 1
}

// steady says whether a cell's rates can be those of a device: one direction,
// long or large, and direct. Buffered writes are too where every byte is
// written once, by dd and sysbench, not where a file is written over and over.
func (w *Cell) steady() bool {
	e := &w.facts
	if w.Rounds == 0 || (e.bandwidth[reading] > 0) == (e.bandwidth[writing] > 0) || e.seconds < longRun && e.claimed.sum()/float64(e.rounds) < largeRun {
		return false
	}
	if _, memory := w.inMemory(); memory || w.impossible(e) != "" || w.contradicted(w.trials) != nil {
		return false
	}
	t := w.table
	once := (t.Tool == ToolDD || t.Tool == ToolSysbench) && !t.random() && e.bandwidth[writing] > 0
	return t.Cache == record.CacheDirect || once
}

// bound is what a steady cell shows.
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

// nearest is the bound that a figure of the cell goes farthest beyond, or comes
// nearest to; nil where nothing bounds it. Of several bounds of one figure the
// loosest counts. Bandwidth says something of all blocks, IOPS of random ones:
// requests that follow each other can be joined.
func (w *Cell) nearest(e *evidence) *bound {
	bounds := w.bounds()
	var out *bound
	for d := range directionCount {
		for _, iops := range []bool{false, true} {
			figure := e.bandwidth[d]
			if iops {
				figure = e.iops[d]
			}
			b := w.table.loosest(bounds, d, iops)
			if b == nil || figure <= 0 {
				continue
			}
			b.figure = figure
			if stat.Finite(b.factor()) && (out == nil || b.factor() > out.factor()) {
				out = b
			}
		}
	}
	return out
}

// loosest is the largest of a figure's bounds, for as many requests at a time as the
// job has: more are answered at most that many times as fast.
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

// impossible says why no device gives the cell's figures, "" where one may.
func (w *Cell) impossible(e *evidence) string {
	n := w.table.inFlight()
	kind := "direct"
	if w.table.random() {
		kind = "random"
	} else if w.table.Cache != record.CacheDirect {
		return "" // what follows in order is read ahead, and answered from there
	}
	if total := e.iops.sum(); n > 0 && total > memorySpeed*n {
		return fmt.Sprintf("%.0f %s IOPS with %.0f at a time are %.2g µs for each: no device answers in under %d", total, kind, n, 1e6*n/total, int(1e6/memorySpeed))
	}
	return ""
}
