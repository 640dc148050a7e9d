package storage

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/core/finding"
	"github.com/tare-bench/tare/record"
)

// Codes of findings of storage runs only.
const (
	foundVersions     = "tool-versions-differ"
	foundDisagree     = "rounds-disagree"
	foundShared       = "device-shared"
	foundAbove        = "above-ceiling"
	foundCeilingDrift = "ceiling-drift"
	foundNoCeiling    = "ceiling-not-measured"
	foundFlushed      = "flushed-after"
	foundRestless     = "device-not-at-rest"
	foundIncomplete   = "incomplete"
)

// Thresholds of findings.
const (
	ceilingDrift = 0.20     // between before and after the rounds
	flushedShare = 0.10     // of the written bytes; both have to be exceeded
	flushedBytes = 16 << 20 // bytes per round
	maxNamed     = 5        // cells in one finding
)

// disbelieved has a message and an advice per verdict other than Device.
var disbelieved = []struct {
	verdict      Verdict // with hyphens it is the finding's code
	what, advice string
}{
	{Contradicted, "contradict the time or the rate that their tool reports", "do not use these figures: the tool's clock is wrong, or it counts I/O that it did not wait for; compare with another tool or version, and with the sandbox's clock"},
	{HostCache, "show memory of the host, or of the device itself, not the device",
		"to measure the device, use --cache direct, with more bytes than the machine has memory; for buffered I/O as in applications they are correct, but label them as such"},
	{GuestCache, "show memory inside the sandbox, not the device",
		"use --cache direct, with more bytes than the sandbox has memory; never compare them with targets that reach the device"},
	{NotDirect, "requested direct I/O, but memory answered: O_DIRECT did not reach the device",
		"use a volume that passes O_DIRECT to a device, such as device=…, or bind=/FOLDER on a file system that supports it; the runtime's configuration determines how the sandbox handles O_DIRECT (cache mode of virtiofs, 9p or the disk image)"},
	{TooShort, "are from runs that are too short for a rate", "raise --size, or the job's requests or runtime, until a run takes ten seconds"},
	{Throttled, "were held back by a limit", "raise or remove the named limit, for the CPU --limit cpu: the figures show the limit, not the storage"},
	{Noisy, "vary too much, or were disturbed", "stop other users of this machine or the disk, or raise --rounds"},
}

// importedFindings is the prefix of the codes of findings of an import.
const importedFindings = "import-"

func (j *Judgement) findings() []record.Finding {
	var out finding.List
	add := out.Add
	out.TakeOver(j.Record, importedFindings)
	out.Whole(j.Record)
	j.failed(add)
	j.disbelieved(add)
	j.disagreeing(add)
	j.aboveCeiling(add)
	j.versions(add)
	j.surroundings(add)
	j.ceilings(add)
	j.unread(add)
	j.fewRounds(add)
	out.Above(finding.Steal, finding.Rounds{Each: "job", Shares: j.stolen()}, finding.StealBound, finding.StolenTime, "use a machine with CPUs of its own, or add rounds; other machines on its hardware may use the disk, too")
	return out
}

// stolen returns the share of all CPUs' time that the hypervisor took in each job.
func (j *Judgement) stolen() (shares []float64) {
	cpus := float64(max(j.Record.Header.Environment.CPUs, 1))
	for i := range j.Record.Cells {
		if c := &j.Record.Cells[i]; c.Observed != nil && c.Failure == nil {
			shares = append(shares, c.Observed.Steal/cpus)
		}
	}
	return shares
}

// where describes a table for use in a sentence.
func (t *Table) where() string { return t.Job + with(" on ", t.Volume, "") + with(", ", t.Cache, "") }

// cells returns the cells of all tables in order.
func (j *Judgement) cells() (all []*Cell) {
	for _, t := range j.Tables {
		all = append(all, t.Cells...)
	}
	return all
}

// measured returns the cells with figures.
func (j *Judgement) measured() []*Cell {
	return slices.DeleteFunc(j.cells(), func(c *Cell) bool { return c.Rounds == 0 })
}

// list adds a finding about the cells for which fact returns true, if there are any. Its
// message names the first few, each with its fact.
func (j *Judgement) list(add func(record.Finding), f record.Finding, fact func(w *Cell) (string, bool)) {
	var all []*Cell
	var named []string
	for _, w := range j.measured() {
		text, applies := fact(w)
		if !applies {
			continue
		}
		if all = append(all, w); len(all) <= maxNamed {
			named = append(named, w.Target+" "+w.table.where()+with(" (", text, ")"))
		}
	}
	switch {
	case all == nil:
		return
	case len(all) == 1:
		f.Target, f.Op = all[0].Target, all[0].table.Job
	case len(all) > maxNamed:
		named = append(named, fmt.Sprintf("and %d more", len(all)-maxNamed))
	}
	f.Message += ": " + strings.Join(named, "; ")
	add(f)
}

// failed adds findings about cells without figures.
func (j *Judgement) failed(add func(record.Finding)) {
	for _, c := range j.cells() {
		if c.Failed == 0 {
			continue
		}
		message := fmt.Sprintf("%s failed in %d of %d rounds; the first: %s%s", c.table.where(), c.Failed, c.Failed+c.Rounds, c.Failure.Detail,
			with(": ", strings.TrimSpace(c.Failure.Output), ""))
		add(record.Finding{Code: finding.Failed, Level: finding.Error, Target: c.Target, Op: c.table.Job,
			Message: message, Advice: storageAdvice(c.Failure), Tried: c.Failure.Command})
	}
}

// storageAdvice returns the advice for a failure. A tool's message about a volume is more specific
// than its exit code.
func storageAdvice(f *record.Failure) string {
	said := strings.ToLower(f.Detail + " " + f.Output)
	for _, x := range []struct{ words, advice string }{
		{"not fit in", "there is too little room: lower --size or --scale, or free more of the volume"},
		{"nothing was written: ", "the device is in use by now: see the message for the user, and run again when it is free"},
		{"no space", "the volume is too small: lower --size or --scale, or free some of it"},
		{"read-only file system", "the volume is read-only: mount it writable, or leave the writing jobs out"},
		{"invalid argument", "if the volume does not support O_DIRECT, use --cache buffered; run the command by hand to check"},
	} {
		if strings.Contains(said, x.words) {
			return x.advice
		}
	}
	advice := map[string]string{
		record.FailWorkload: "run the command by hand: a tool that prints no figures, or those of another version, cannot be measured",
		record.FailTimeout:  "the volume may hang: check dmesg and the server; if it is only slow, raise --runtime-limit or lower --size",
	}
	return cmp.Or(advice[f.Kind], finding.Advice(f))
}

// disbelieved adds a finding per verdict with the cells whose figures are not those of the device.
// The finding gives the reason of the first cell only; the job tables have the reasons of all cells.
func (j *Judgement) disbelieved(add func(record.Finding)) {
	measured := j.measured()
	for _, d := range disbelieved {
		var cells []*Cell
		level := finding.Note // a tmpfs is memory: expected
		for _, w := range measured {
			if w.Verdict != d.verdict {
				continue
			}
			if cells = append(cells, w); volumeKind(w.table.Volume) != record.VolumeTmpfs {
				level = finding.Warning
			}
		}
		f := record.Finding{Code: strings.ReplaceAll(string(d.verdict), " ", "-"), Level: level, Message: fmt.Sprintf("%d of %d cells %s", len(cells), len(measured), d.what), Advice: d.advice}
		j.list(add, f, func(w *Cell) (string, bool) {
			if w.Verdict == d.verdict && w == cells[0] {
				return w.Because[0], true
			}
			return "", w.Verdict == d.verdict
		})
	}
}

// disagreeing adds a finding about cells whose rounds have different verdicts.
func (j *Judgement) disagreeing(add func(record.Finding)) {
	f := record.Finding{Code: foundDisagree, Level: finding.Warning, Message: "rounds of one cell have different verdicts",
		Advice: "the median may represent neither: add rounds, and compare the rounds in the record"}
	j.list(add, f, func(w *Cell) (string, bool) {
		var kinds []Verdict
		counts := map[Verdict]int{}
		for _, v := range w.alone {
			if counts[v]++; counts[v] == 1 {
				kinds = append(kinds, v)
			}
		}
		var parts []string
		for _, v := range kinds {
			parts = append(parts, fmt.Sprintf("%s: %d", v, counts[v]))
		}
		return strings.Join(parts, ", "), len(kinds) > 1
	})
}

// aboveCeiling adds a finding about cells that exceeded the ceiling measured on the host,
// although the device saw all bytes.
func (j *Judgement) aboveCeiling(add func(record.Finding)) {
	f := record.Finding{Code: foundAbove, Level: finding.Warning, Message: "the device saw every byte, but was faster than its ceiling",
		Advice: "the device has a cache, is a virtual disk on a host with one, or bursts: use a larger --size, or raise --ceiling"}
	j.list(add, f, func(w *Cell) (string, bool) {
		b := w.nearest(&w.facts)
		if w.Verdict != Device || !w.Of("reached-device").Known() || b == nil {
			return "", false
		}
		return b.text(), b.factor() > beyondFactor
	})
}
