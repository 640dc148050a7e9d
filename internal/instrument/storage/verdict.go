package storage

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/finding"
	"github.com/tare-bench/tare/record"
)

// The bounds of the verdicts. Their reasons are in docs/storage.md.
const (
	missedBound    = 0.10     // of the claimed bytes that the device did not see
	shortRun       = 1.0      // s, of a run
	shortUnseen    = 5.0      // s, of a run that nothing was seen of
	fewIOs         = 100      // of a run
	throttledBound = 0.05     // of the time
	stolenBound    = 0.05     // of all CPUs' time
	starvedBound   = 0.1      // of the time
	waveringBound  = 0.25     // of the primary figure, to the farther end of its interval
	spreadFactor   = 2.0      // between the slowest and the fastest round, where there are too few for an interval
	sharedFactor   = 1.5      // times the claimed bytes at the device, and
	sharedBytes    = 16 << 20 // bytes for each round
	beyondFactor   = 1.5      // times a ceiling, or the host's own figure
	growthPart     = 0.5      // of the bytes in question that a cache grew by, to be named as their place
)

// judged judges the cell as a whole, and each of its rounds alone.
func (w *Cell) judged() {
	w.Reached = about("reached-device", w.labels(), nil)
	if w.Rounds == 0 {
		return
	}
	if _, part, ok := w.facts.reached(); ok {
		w.Reached.Estimate = figure.Exactly(part)
	}
	w.Verdict, w.Because = w.verdict(w.trials, &w.facts, true)
	for _, c := range w.trials {
		round := []*record.Cell{c}
		e := w.gather(round)
		v, _ := w.verdict(round, &e, false)
		w.alone = append(w.alone, v)
	}
}

// verdict goes through the rules for some rounds. The first that applies decides.
func (w *Cell) verdict(rounds []*record.Cell, e *evidence, whole bool) (Verdict, []string) {
	if because := w.contradicted(rounds); because != nil {
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
		return Throttled, []string{fmt.Sprintf("its cgroups were kept from the CPU for %.0f %% of the time; the bound is %.0f %%", 100*e.throttled, 100*throttledBound)}
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
		return Unjudged, []string{e.name + " is a loop device: what answered below it was not seen"}
	}
	if because := w.writtenLater(rounds); because != nil {
		return HostCache, because
	}
	return Device, w.trusted(e, e.sawText(d, part))
}

// atLimit and overLimit are how near to a limit a figure is that is the limit's: they
// let bursts through and hold back a little more than they say. One that was far
// exceeded was not in effect.
const (
	atLimit   = 0.8
	overLimit = 1.3
)

// limited says which limit of somebody's the figures of some rounds are, "" where
// they are none's.
func (w *Cell) limited(rounds []*record.Cell, e *evidence) string {
	devices := strings.Split(e.name, "+") // all disks, where the volume has none of its own
	if w.place != nil {
		devices = append(devices, w.place.Device)
	}
	for _, c := range rounds {
		if c.Reported.Paced != "" {
			return "the tool was told to hold back: " + c.Reported.Paced
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
				return fmt.Sprintf("cgroup %s may %s no more than %s on %s", l.Group, [directionCount]string{"read", "write"}[d], unit, l.Device)
			}
		}
	}
	return ""
}

// lies says whether a device is a disk, or a partition of it: sda1, nvme0n1p1.
func lies(device, disk string) bool {
	const digits = "0123456789"
	if device == disk {
		return true
	}
	if strings.TrimRight(disk, digits) != disk { // it ends in a number itself
		disk += "p"
	}
	number, of := strings.CutPrefix(device, disk)
	return of && number != "" && strings.Trim(number, digits) == ""
}

// ofMemory is the verdict on a volume that is memory by definition.
func (w *Cell) ofMemory(why string) (Verdict, []string) {
	if w.table.Cache == record.CacheDirect {
		return NotDirect, []string{why + ": O_DIRECT has nothing to reach there"}
	}
	return HostCache, []string{why + "; it is memory of the host"}
}

// ofCache is the verdict where the device saw less than what was claimed.
func (w *Cell) ofCache(e *evidence, d int, part float64) (Verdict, []string) {
	missing := e.claimed[d] - e.saw(d)
	because := []string{e.sawText(d, part)}
	hosts, guests, facts := w.whose(e, d, missing)
	if w.table.Cache == record.CacheDirect {
		because = append(because, "direct I/O was asked for, and yet memory answered")
		if w.place != nil && w.place.Direct == record.DirectRefused {
			because = append(because, "the file system refuses O_DIRECT")
		}
		return NotDirect, append(because, facts...)
	}
	if own := w.table.ownThreads(); own != "" && d == reading {
		because[0] += "; " + own // the first is what every report shows
	}
	if hasGuest(w.info) && guests > hosts {
		return GuestCache, append(because, facts...)
	}
	return HostCache, append(because, facts...)
}

// whose shares out bytes that the device did not see between memory of the host
// and memory of the sandbox's own kernel: what the processes outside of it moved
// by system calls passed the sandbox's memory, and so did what the host had to
// flush afterwards. It tells the facts in words.
func (w *Cell) whose(e *evidence, d int, missing float64) (hosts, guests float64, facts []string) {
	verb := [directionCount]string{"read", "wrote"}[d]
	if e.haveOut && hasGuest(w.info) {
		hosts = max(e.outside[d]-e.device[d], 0)
		loaded := ""
		if d == reading && e.loading > 0 {
			loaded = ", without the " + finding.Bytes(e.loading) + " of loading the tool"
		}
		facts = append(facts, fmt.Sprintf("its processes outside of the sandbox %s %s by system calls%s", verb, finding.Bytes(e.outside[d]), loaded))
	}
	if d == writing && e.haveFlush {
		flushed := min(e.flushed, missing) // the rest is others'
		hosts = max(hosts, flushed)
		facts = append(facts, fmt.Sprintf("%s more went to the disks when what was dirty was flushed after the job", finding.Bytes(flushed)))
	}
	if e.cached >= growthPart*missing {
		facts = append(facts, "the node's page cache grew by "+finding.Bytes(e.cached))
	}
	hosts = min(hosts, missing)
	return hosts, missing - hosts, facts
}

// sawText says how much of what was claimed the device saw.
func (e *evidence) sawText(d int, part float64) string {
	in := ""
	if e.rounds > 1 {
		in = fmt.Sprintf(" in %d rounds", e.rounds)
	}
	others := ""
	if e.device[d]-e.saw(d) > countsShare*e.claimed[d] {
		others = ", and " + finding.Bytes(e.device[d]-e.saw(d)) + " for others"
	}
	return fmt.Sprintf("%s saw %.0f %% of the %s that the tool %s%s (%s%s)", e.deviceName(), 100*part, finding.Bytes(e.claimed[d]),
		[directionCount]string{"read", "wrote"}[d], in, finding.Bytes(e.saw(d)), others)
}

// tooShort says why a run is, "" where it is long enough.
func (w *Cell) tooShort(e *evidence) string {
	bound := shortRun
	if !e.seen {
		bound = shortUnseen
	}
	switch {
	case e.seconds > 0 && e.seconds < bound && e.seen:
		return fmt.Sprintf("it ran %s; under %s start and end weigh too much", secondsText(e.seconds), secondsText(bound))
	case e.seconds > 0 && e.seconds < bound:
		return fmt.Sprintf("it ran %s, and nothing was seen from outside; under %s memory that nobody counted can hold all of it", secondsText(e.seconds), secondsText(bound))
	case e.few():
		return fmt.Sprintf("it made %.0f I/Os; fewer than %d give no rate", e.asked.sum()/float64(e.rounds), fewIOs)
	}
	return ""
}

func (e *evidence) few() bool { return e.haveIOs && e.asked.sum()/float64(e.rounds) < fewIOs }

// noise says why the figures waver, nil where they do not.
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
		because = append(because, fmt.Sprintf("the hypervisor took %.1f %% of all CPUs' time away; the bound is %.0f %%", 100*e.stolen, 100*stolenBound))
	}
	if _, others := e.shared(); others != "" {
		because = append(because, others)
	}
	return because
}

func (w *Cell) figure() string {
	if w.table.byIOPS {
		return "IOPS"
	}
	return "bandwidth"
}

// shared says what the device did for others, in bytes and in words. What the
// sandbox's own cgroups were charged for was not for others: reading ahead, or
// writing a block for a part of it.
func (e *evidence) shared() (bytes float64, text string) {
	if !e.haveDevice {
		return 0, ""
	}
	all, own := e.device.sum(), e.claimed.sum()
	if e.haveOwn {
		own = max(own, min(e.own, all))
	}
	if all <= sharedFactor*own+sharedBytes*float64(e.rounds) {
		return 0, ""
	}
	return all - own, fmt.Sprintf("%s moved %s, %s more than the job: others used it meanwhile", e.deviceName(), finding.Bytes(all), finding.Bytes(all-own))
}

// trusted says what speaks for a cell.
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

// rateText prints bytes/s as tools do, in decimal units.
func rateText(r float64) string {
	switch {
	case r >= 1e9:
		return fmt.Sprintf("%.2f GB/s", r/1e9)
	case r >= 1e6:
		return fmt.Sprintf("%.1f MB/s", r/1e6)
	}
	return fmt.Sprintf("%.1f kB/s", r/1e3)
}
