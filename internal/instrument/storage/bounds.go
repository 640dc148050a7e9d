package storage

import (
	"fmt"

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
}

// beside is a figure beside the bound that applies to it.
type beside struct {
	bound
	figure float64
	limit  float64 // value, for as many requests at a time as the cell has
}

func (b *beside) factor() float64 { return b.figure / b.limit }

func (b *beside) text() string {
	verb := [directionCount]string{"read", "written"}[b.direction]
	if b.iops {
		return fmt.Sprintf("%.0f IOPS %s are %s the %.0f of %s", b.figure, verb, timesText(b.factor()), b.limit, b.from)
	}
	return fmt.Sprintf("%s %s are %s the %s of %s", rateText(b.figure), verb, timesText(b.factor()), rateText(b.limit), b.from)
}

func timesText(factor float64) string {
	if factor >= 10 {
		return fmt.Sprintf("%.0f ×", factor)
	}
	return fmt.Sprintf("%.2g ×", factor)
}

// measured are the bounds that were measured on the host.
func (j *Judgement) measured(volume string) []bound {
	var out []bound
	for _, c := range j.Ceilings {
		if c.Volume != volume {
			continue
		}
		for _, x := range ceilingColumns {
			out = append(out, bound{direction: x.direction, iops: x.iops, value: *x.of(&c), from: "the volume's ceiling on the host", device: c.Device})
		}
	}
	return out
}

// on is the device that the cell's volume lies on; ok is false where no place was
// recorded, as in what was imported. An engine's root file system may lie on
// another device than the run's own folders, and then is on none that is known.
func (w *Cell) on() (device string, ok bool) {
	if w.place == nil {
		return "", false
	}
	return w.place.Device, true
}

// ofSameDevice leaves those bounds that are of the cell's own device.
func (w *Cell) ofSameDevice(bounds []bound) []bound {
	device, known := w.on()
	if !known {
		return bounds
	}
	var out []bound
	for _, b := range bounds {
		if b.device == device {
			out = append(out, b)
		}
	}
	return out
}

// estimateBounds finds what else can stand for the ceiling of each volume.
// Direct I/O of the host counts, for as long or as much as no memory holds;
// where the host has none, that of targets that share its kernel.
func (j *Judgement) estimateBounds() {
	j.bounds = map[string][]bound{}
	ranks := map[string]int{}
	sets := map[string]bool{} // volumes with random cells over large files
	type candidate struct {
		*Cell
		rank int
	}
	var all []candidate
	for _, t := range j.Tables {
		for _, c := range t.Cells {
			rank := standing(c.info)
			if rank == 0 || !c.steady() {
				continue
			}
			all = append(all, candidate{c, rank})
			ranks[t.Volume] = max(ranks[t.Volume], rank)
		}
	}
	for _, c := range all {
		if v := c.table.Volume; c.rank == ranks[v] && c.table.random() && c.table.set() >= largeSet {
			sets[v] = true
		}
	}
	for _, c := range all {
		v := c.table.Volume
		cached := sets[v] && c.table.random() && c.table.set() < largeSet
		if c.rank == ranks[v] && !cached {
			j.bounds[v] = append(j.bounds[v], c.bound())
		}
	}
}

// boundsOf are those that were measured, or else estimated, of a volume. Notes
// that do not say where something lay are taken to speak of the machine's own
// storage, which a root file system and a folder of the host are on as well.
func (j *Judgement) boundsOf(volume string) []bound {
	if measured := j.measured(volume); len(measured) > 0 {
		return measured
	}
	if own := j.bounds[volume]; len(own) > 0 || volume != record.VolumeRootfs && volume != record.VolumeBind {
		return own
	}
	return j.bounds[""]
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

// set is the size of the job's files together, 0 where it is not known.
func (t *Table) set() int64 {
	if t.job.FileSize > 0 {
		return t.job.FileSize * int64(max(t.job.Files, 1))
	}
	return t.job.Size
}

// steady says whether a cell's rates can be those of a device: one direction,
// long or large, and direct. Buffered writes are too where every byte is
// written once, by dd and sysbench, not where a file is written over and over.
func (w *Cell) steady() bool {
	e := &w.facts
	if w.Rounds == 0 || (e.bandwidth[reading] > 0) == (e.bandwidth[writing] > 0) || e.seconds < longRun && e.claimed.sum()/float64(e.rounds) < largeRun {
		return false
	}
	if _, memory := w.inMemory(); memory || w.impossible(e) != "" {
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
	from := fmt.Sprintf("%s's %s, which ran %s", w.Target, t.Job, secondsText(e.seconds))
	device, _ := w.on()
	if t.random() {
		return bound{direction: d, iops: true, value: e.iops[d], bs: t.BS, inFlight: t.inFlight(), from: from, device: device}
	}
	return bound{direction: d, value: e.bandwidth[d], from: from, device: device}
}

// nearest is the figure of the cell that goes farthest beyond its bound, or
// comes nearest to it; nil where nothing bounds it. Of several bounds of one
// figure the loosest counts. Bandwidth says something of all blocks, IOPS of
// random ones: requests that follow each other can be joined.
func (w *Cell) nearest(e *evidence) *beside {
	bounds := w.ofSameDevice(w.judge.boundsOf(w.table.Volume))
	var out *beside
	for d := range directionCount {
		for _, iops := range []bool{false, true} {
			figure := e.bandwidth[d]
			if iops {
				figure = e.iops[d]
			}
			b := w.loosest(bounds, d, iops)
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

func (w *Cell) loosest(bounds []bound, d int, iops bool) *beside {
	t := w.table
	var out *beside
	for _, b := range bounds {
		if b.direction != d || b.iops != iops || !(b.value > 0) || iops && (!t.random() || t.BS < b.bs) {
			continue
		}
		limit := b.value
		if iops && b.inFlight > 0 {
			// More at a time are answered at most that many times as fast.
			if t.inFlight() == 0 {
				continue
			}
			limit *= max(t.inFlight()/b.inFlight, 1)
		}
		if out == nil || limit > out.limit {
			out = &beside{bound: b, limit: limit}
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
