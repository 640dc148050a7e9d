package storage

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/finding"
	"github.com/tare-bench/tare/record"
)

// Thresholds of the verdicts. docs/storage.md gives the reasons.
const (
	missedBound    = 0.10     // share of the claimed bytes that the device did not see
	shortRun       = 1.0      // s, minimum duration of a run
	shortUnseen    = 5.0      // s, minimum duration of a run without node readings
	fewIOs         = 100      // minimum I/Os of a run
	throttledBound = 0.05     // share of the run time
	stolenBound    = 0.05     // share of the time of all CPUs
	starvedBound   = 0.1      // share of the run time
	waveringBound  = 0.25     // relative to the primary figure: distance to the farther end of its interval
	spreadFactor   = 2.0      // slowest to fastest round, used when there are too few rounds for an interval
	sharedFactor   = 1.5      // factor of claimed bytes at the device; sharedBytes is added to it
	sharedBytes    = 16 << 20 // bytes per round
	beyondFactor   = 1.5      // factor of a ceiling, or of the host's figure
	growthPart     = 0.5      // share of the missing bytes by which a cache must grow to count as their place
)

// judged sets the verdict of the cell, and the verdict of each round alone.
func (w *Cell) judged() {
	if w.Rounds == 0 {
		return
	}
	if _, part, ok := w.facts.reached(); ok {
		w.Of("reached-device").Estimate = figure.Exactly(part)
	}
	w.Verdict, w.Because = w.verdict(w.trials, &w.facts, true)
	for _, c := range w.trials {
		round := []*record.Cell{c}
		e := w.gather(round)
		v, _ := w.verdict(round, &e, false)
		w.alone = append(w.alone, v)
	}
}

// verdict applies the rules to the given rounds. The first rule that matches decides.
func (w *Cell) verdict(rounds []*record.Cell, e *evidence, whole bool) (Verdict, []string) {
	if because := inMost(rounds, w.contradiction); because != nil {
		return Contradicted, because
	}
	if why, ok := w.inMemory(); ok {
		return w.ofMemory(why)
	}
	d, part, seen := e.reached()
	if seen && part < 1-missedBound {
		return w.ofCache(e, d, part)
	}
	if seen && w.table.Cache == record.CacheDirect {
		if because := w.joined(e); because != "" {
			return NotDirect, []string{because, e.sawText(d, part)}
		}
	}
	if !seen {
		if v, because := w.ofClaims(e); v != "" {
			return v, because
		}
	}
	if because := w.tooShort(e); because != "" {
		return TooShort, []string{because}
	}
	if e.throttled > throttledBound {
		return Throttled, []string{fmt.Sprintf("its cgroups were throttled for %.0f %% of the time; the bound is %.0f %%", 100*e.throttled, 100*throttledBound)}
	}
	if because := w.limited(rounds, e); because != "" {
		return Throttled, []string{because}
	}
	if because := w.noise(e, whole); because != nil {
		return Noisy, because
	}
	switch {
	case !seen:
		return w.unseen(e)
	case w.place != nil && w.place.Unknown != "":
		return Unjudged, []string{"what answered for " + w.place.Device + " is not known: " + w.place.Unknown}
	case strings.HasPrefix(e.name, "loop"):
		return Unjudged, []string{e.name + " is a loop device: the device below it was not observed"}
	}
	if because := inMost(rounds, w.busyLonger); because != nil { // the kernel wrote to the device later
		return HostCache, because
	}
	return Device, w.trusted(e, e.sawText(d, part))
}

// atLimit and overLimit bound the ratio of a figure to an I/O limit. Inside the
// range the limit is taken as the cause: the kernel lets bursts through and
// throttles slightly too much. A limit that is far exceeded was not in effect.
const (
	atLimit   = 0.8
	overLimit = 1.3
)

// limited returns the I/O limit or the pacing that explains the figures of the
// rounds, or "" if there is none.
func (w *Cell) limited(rounds []*record.Cell, e *evidence) string {
	devices := strings.Split(e.name, "+") // all disks if the volume has no device of its own
	if w.place != nil {
		devices = append(devices, w.place.Device)
	}
	for _, c := range rounds {
		if c.Reported.Paced != "" {
			return "the tool was configured to limit its rate: " + c.Reported.Paced
		}
		if c.Observed == nil {
			continue
		}
		for _, l := range c.Observed.Limits {
			d, value, unit := reading, e.bandwidth, rateText(float64(l.Value))
			if l.Write {
				d = writing
			}
			if l.IOs {
				value, unit = e.iops, fmt.Sprintf("%d requests a second", l.Value)
			}
			part := value[d] / float64(l.Value)
			if part >= atLimit && part <= overLimit && slices.ContainsFunc(devices, func(name string) bool { return lies(name, l.Device) }) {
				return fmt.Sprintf("cgroup %s may %s no more than %s on %s", l.Group, directionNames[d], unit, l.Device)
			}
		}
	}
	return ""
}

// lies reports whether device is disk or a partition of it, such as sda1 or nvme0n1p1.
func lies(device, disk string) bool {
	const digits = "0123456789"
	if device == disk {
		return true
	}
	if strings.TrimRight(disk, digits) != disk { // a disk name that ends in a digit: partitions get a "p"
		disk += "p"
	}
	number, of := strings.CutPrefix(device, disk)
	return of && number != "" && strings.Trim(number, digits) == ""
}

// ofMemory returns the verdict for a volume that is memory by definition.
func (w *Cell) ofMemory(why string) (Verdict, []string) {
	if w.table.Cache == record.CacheDirect {
		return NotDirect, []string{why + ": O_DIRECT has nothing to reach there"}
	}
	return HostCache, []string{why + "; it is memory of the host"}
}

// ofCache returns the verdict when the device saw fewer bytes than the tool claimed.
func (w *Cell) ofCache(e *evidence, d int, part float64) (Verdict, []string) {
	missing := e.claimed[d] - e.saw(d)
	because := []string{e.sawText(d, part)}
	hosts, guests, facts := w.whose(e, d, missing)
	if w.table.Cache == record.CacheDirect {
		because = append(because, "direct I/O was requested, but memory answered")
		if w.place != nil && w.place.Direct == record.DirectRefused {
			because = append(because, "the file system refuses O_DIRECT")
		}
		return NotDirect, append(because, facts...)
	}
	if own := w.table.ownThreads(); own != "" && d == reading {
		because[0] += "; " + own // reports show only the first reason
	}
	if hasGuest(w.info) && guests > hosts {
		return GuestCache, append(because, facts...)
	}
	return HostCache, append(because, facts...)
}

// whose attributes the missing bytes, which the device did not see, to memory of the host
// and of the guest. Bytes that processes outside the sandbox moved by system calls had
// left the sandbox's memory. The same holds for bytes that the host flushed after the
// job. facts are the reasons as text.
func (w *Cell) whose(e *evidence, d int, missing float64) (hosts, guests float64, facts []string) {
	verb := [directionCount]string{"read", "wrote"}[d]
	if !e.outside.unknown && hasGuest(w.info) {
		hosts = max(e.outside.both[d]-e.device.both[d], 0)
		loaded := ""
		if d == reading && e.loading.sum() > 0 {
			loaded = ", without the " + finding.Bytes(e.loading.sum()) + " of loading the tool"
		}
		facts = append(facts, fmt.Sprintf("its processes outside of the sandbox %s %s by system calls%s", verb, finding.Bytes(e.outside.both[d]), loaded))
	}
	if d == writing && !e.flushed.unknown {
		flushed := min(e.flushed.sum(), missing) // more than missing was written by other processes
		hosts = max(hosts, flushed)
		facts = append(facts, fmt.Sprintf("%s more reached the disks when dirty pages were flushed after the job", finding.Bytes(flushed)))
	}
	if e.cached >= growthPart*missing {
		facts = append(facts, "the node's page cache grew by "+finding.Bytes(e.cached))
	}
	hosts = min(hosts, missing)
	return hosts, missing - hosts, facts
}

// sawText describes how much of the claimed bytes the device saw.
func (e *evidence) sawText(d int, part float64) string {
	in := ""
	if e.rounds > 1 {
		in = fmt.Sprintf(" in %d rounds", e.rounds)
	}
	others := ""
	if e.device.both[d]-e.saw(d) > countsShare*e.claimed[d] {
		others = ", and " + finding.Bytes(e.device.both[d]-e.saw(d)) + " for others"
	}
	return fmt.Sprintf("%s saw %.0f %% of the %s that the tool %s%s (%s%s)", e.deviceName(), 100*part, finding.Bytes(e.claimed[d]),
		[directionCount]string{"read", "wrote"}[d], in, finding.Bytes(e.saw(d)), others)
}

// tooShort returns why the run is too short, or "" if it is long enough.
func (w *Cell) tooShort(e *evidence) string {
	bound, text := shortRun, "it ran %s; under %s the start and the end dominate"
	if !e.seen {
		bound, text = shortUnseen, "it ran %s, and there are no node readings; under %s uncounted memory can hold all of it"
	}
	switch {
	case e.seconds > 0 && e.seconds < bound:
		return fmt.Sprintf(text, secondsText(e.seconds), secondsText(bound))
	case e.few():
		return fmt.Sprintf("it made %.0f I/Os; fewer than %d are not enough for a rate", e.asked.sum()/float64(e.rounds), fewIOs)
	}
	return ""
}

func (e *evidence) few() bool { return e.haveIOs && e.asked.sum()/float64(e.rounds) < fewIOs }

// noise returns why the figures vary too much, or nil if they do not.
func (w *Cell) noise(e *evidence, whole bool) []string {
	var because []string
	if whole {
		p := w.primary()
		if half := max(p.Hi-p.Value, p.Value-p.Lo); p.Bounded && p.Value > 0 && half > waveringBound*p.Value {
			because = append(because, fmt.Sprintf("the interval of its %s is %+.0f %% to %+.0f %% of the median; the bound is ±%.0f %%",
				w.figure(), 100*(p.Lo/p.Value-1), 100*(p.Hi/p.Value-1), 100*waveringBound))
		}
		if values := figure.Ordered(w.primary().Values()); !p.Bounded && len(values) > 1 {
			if low, high := slices.Min(values), slices.Max(values); high > spreadFactor*low {
				because = append(because, fmt.Sprintf("the %s of its %d rounds is %s apart; the bound is %g ×", w.figure(), len(values), timesText(high/low), spreadFactor))
			}
		}
	}
	if e.starved > starvedBound {
		because = append(because, fmt.Sprintf("some task waited for memory for %.1f %% of the time; the bound is %.0f %%", 100*e.starved, 100*starvedBound))
	}
	if e.stolen > stolenBound {
		because = append(because, fmt.Sprintf("the hypervisor took %.1f %% of all CPUs' time; the bound is %.0f %%", 100*e.stolen, 100*stolenBound))
	}
	if _, others := e.shared(); others != "" {
		because = append(because, others)
	}
	return because
}

func (w *Cell) figure() string {
	return map[string]string{"iops": "IOPS", "bandwidth": "bandwidth"}[w.table.primary]
}

// shared returns the bytes that the device moved for other users, and a text about them.
// Bytes charged to the sandbox's own cgroups do not count as those of others: they come
// from readahead, or from writing a whole block although only part of it changed.
func (e *evidence) shared() (bytes float64, text string) {
	if e.device.unknown {
		return 0, ""
	}
	all, own := e.device.sum(), e.claimed.sum()
	if !e.own.unknown {
		own = max(own, min(e.own.sum(), all))
	}
	if all <= sharedFactor*own+sharedBytes*float64(e.rounds) {
		return 0, ""
	}
	return all - own, fmt.Sprintf("%s moved %s, %s more than the job: others used it at the same time", e.deviceName(), finding.Bytes(all), finding.Bytes(all-own))
}

// trusted returns the facts that support the Device verdict.
func (w *Cell) trusted(e *evidence, saw string) []string {
	because := []string{saw}
	if b := w.nearest(e); b != nil {
		because = append(because, b.text())
	}
	if w.table.Cache == record.CacheDirect && e.cached >= growthPart*e.claimed.sum() {
		because = append(because, fmt.Sprintf("the node's page cache grew by %s: direct I/O ended above it, but the device was waited for", finding.Bytes(e.cached)))
	}
	return because
}

func secondsText(s float64) string { return fmt.Sprintf("%.3g s", s) }

// rateText formats bytes/s in decimal units, as the tools do.
func rateText(r float64) string {
	switch {
	case r >= 1e9:
		return fmt.Sprintf("%.2f GB/s", r/1e9)
	case r >= 1e6:
		return fmt.Sprintf("%.1f MB/s", r/1e6)
	}
	return fmt.Sprintf("%.1f kB/s", r/1e3)
}
