package storage

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/core/finding"
	"github.com/tare-bench/tare/internal/core/stat"
	"github.com/tare-bench/tare/record"
)

// versions adds a finding if targets ran different versions of a tool.
func (j *Judgement) versions(add func(record.Finding)) {
	var versions, targets grouped
	for _, c := range j.cells() {
		for _, v := range c.Versions {
			versions.add(c.table.Tool, v)
			targets.add(c.table.Tool+" "+v, c.Target)
		}
	}
	for _, tool := range versions.keys {
		if len(versions.of[tool]) < 2 {
			continue
		}
		var parts []string
		for _, v := range versions.of[tool] {
			parts = append(parts, v+" on "+strings.Join(targets.of[tool+" "+v], ", "))
		}
		add(record.Finding{Code: foundVersions, Level: finding.Warning,
			Message: fmt.Sprintf("%s has different versions: %s", tool, strings.Join(parts, "; ")),
			Advice:  "differences may come from the tool: install one version everywhere, or let tare storage copy the host's into every sandbox"})
	}
}

// grouped holds distinct words by key. Keys and words keep the order of insertion.
type grouped struct {
	keys []string
	of   map[string][]string
}

// add adds a word to a key. With "" it adds only the key.
func (g *grouped) add(key, word string) {
	if g.of == nil {
		g.of = map[string][]string{}
	}
	if _, there := g.of[key]; !there {
		g.keys = append(g.keys, key)
		g.of[key] = nil
	}
	if word != "" && !slices.Contains(g.of[key], word) {
		g.of[key] = append(g.of[key], word)
	}
}

// surroundings adds findings about the node and the device.
func (j *Judgement) surroundings(add func(record.Finding)) {
	list := func(code, level, what, advice string, fact func(*Cell) (string, bool)) {
		j.list(add, record.Finding{Code: code, Level: level, Message: what, Advice: advice}, fact)
	}
	list(foundShared, finding.Warning, "others used the device meanwhile", "stop them, or use a dedicated device for the volume; tare top and iostat show the users",
		func(w *Cell) (string, bool) {
			bytes, _ := w.facts.shared()
			return finding.Bytes(bytes) + " beside the job's own", bytes > 0
		})
	late := func(direct bool) func(*Cell) (string, bool) {
		return func(w *Cell) (string, bool) {
			text, ok := w.facts.late()
			return text, ok && direct == (w.table.Cache == record.CacheDirect)
		}
	}
	list(foundFlushed, finding.Note, "writes had not reached the device when the tool reported them as done",
		"the tool reports the speed of memory until it is full: use --cache direct, or end_fsync in the job", late(false))
	list(foundFlushed, finding.Note, "direct writes had not reached the device when the tool reported them as done",
		"a layer in between delayed them, see the verdict: use end_fsync in the job, or a volume that passes O_DIRECT to a device", late(true))
	if !slices.ContainsFunc(j.Record.Findings, func(f record.Finding) bool { return f.Code == finding.NotDropped }) {
		list(finding.NotDropped, finding.Warning, "caches were not dropped before", "run tare as root; cached data may have answered", func(w *Cell) (string, bool) {
			n := count(w.trials, func(c *record.Cell) bool { return c.Dropped == "" && c.Layout != nil })
			_, memory := w.inMemory()
			return fmt.Sprintf("%d of %d rounds", n, w.Rounds), n > 0 && !memory && w.facts.seen
		})
	}
	list(foundRestless, finding.Note, "the device was not idle before the job", "another program uses it, or it still writes the laid-out files: raise --settle", func(w *Cell) (string, bool) {
		n := count(w.trials, func(c *record.Cell) bool { return !c.Quiet })
		return fmt.Sprintf("%d of %d rounds", n, w.Rounds), n > 0 && !w.facts.device.unknown
	})
}

// late returns the part of the written bytes that reached the device only when dirty
// pages were flushed, as text. ok is false if it is small. Bytes that the device saw
// earlier were not late. Bytes beyond the job's own are dirty pages of others.
func (e *evidence) late() (text string, ok bool) {
	written := e.claimed[writing]
	bytes := min(e.flushed.sum(), written)
	if !e.device.unknown {
		bytes = min(bytes, max(written-e.device.both[writing], 0))
	}
	if e.flushed.unknown || bytes <= flushedShare*written || bytes <= flushedBytes*float64(e.rounds) {
		return "", false
	}
	return fmt.Sprintf("%s of %s", finding.Bytes(bytes), finding.Bytes(written)), true
}

// count returns the number of rounds that satisfy is.
func count(rounds []*record.Cell, is func(*record.Cell) bool) int {
	return len(slices.DeleteFunc(slices.Clone(rounds), func(c *record.Cell) bool { return !is(c) }))
}

// ceilings adds findings about devices that changed between the first and the last
// measurement. It also reports devices that could not be measured.
func (j *Judgement) ceilings(add func(record.Finding)) {
	for i, c := range j.Record.Ceilings {
		if c.Failure != nil {
			add(record.Finding{Code: foundNoCeiling, Level: finding.Warning, Op: c.Volume, Tried: c.Failure.Command,
				Message: fmt.Sprintf("the ceiling of %s could not be measured %s the rounds: %s", c.Volume, c.When, c.Failure.Detail),
				Advice:  "its cells are judged without it"})
			continue
		}
		first := slices.IndexFunc(j.Record.Ceilings, func(b record.Ceiling) bool { return b.Failure == nil && b.Volume == c.Volume && b.Device == c.Device })
		if first == i {
			continue
		}
		b := &j.Record.Ceilings[first]
		var moved []string
		for _, x := range ceilingColumns {
			if change := *x.of(&c)/(*x.of(b)) - 1; stat.Finite(change) && *x.of(&c) > 0 && max(change, -change) > ceilingDrift {
				moved = append(moved, fmt.Sprintf("%s %+.0f %%", x.name, 100*change))
			}
		}
		if moved != nil {
			add(record.Finding{Code: foundCeilingDrift, Level: finding.Warning, Op: c.Volume,
				Message: fmt.Sprintf("the ceiling of %s under %s changed from before the rounds to after: %s", cmp.Or(c.Device, "the storage"), c.Volume, strings.Join(moved, ", ")),
				Advice:  "it warmed up, filled up, ran out of credits, or is shared; rounds are paired, so ratios hold better than figures"})
		}
	}
}

// unread adds a finding per target about values that could not be read during its jobs.
func (j *Judgement) unread(add func(record.Finding)) {
	for i := range j.Targets {
		var sum record.Problems
		for _, w := range j.measured() {
			for _, c := range w.trials {
				if c.Target == j.Targets[i].Name && c.Observed != nil {
					sum.Add(&c.Observed.Problems)
				}
			}
		}
		lost := sum.Denied + sum.Broken + sum.Backwards
		if lost == 0 {
			continue // processes that exited during the read belong to the jobs
		}
		message := fmt.Sprintf("node readings are incomplete: %d not permitted, %d of an unknown form, %d counters that went back%s",
			sum.Denied, sum.Broken, sum.Backwards, with("; ", strings.Join(sum.Examples, "; "), ""))
		add(record.Finding{Code: foundIncomplete, Level: finding.Warning, Target: j.Targets[i].Name, Message: message, Advice: "run tare as root; verdicts and CPU figures rest on less than they should"})
	}
}

// fewRounds adds one finding if there are too few rounds for intervals or comparisons.
func (j *Judgement) fewRounds(add func(record.Finding)) {
	need := j.Plan.RoundsFor(j.Comparisons)
	most, least, any := 0, need, false
	for _, w := range j.measured() {
		if w.compared() {
			least = min(least, w.Rounds)
		}
		if !w.primary().Bounded {
			most, any = max(most, w.Rounds), true
		}
	}
	if any {
		least = most
	}
	if f, few := finding.TooFew(least, need, 0); few && !j.Imported {
		add(f)
	}
}
