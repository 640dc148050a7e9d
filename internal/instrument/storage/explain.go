package storage

import (
	"fmt"
	"strings"

	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/record"
)

// jobExplained shows all facts behind the figures and the verdicts of a table.
func jobExplained(j *Judgement, t *Table) *page.Section {
	s := &page.Section{Title: t.name() + ": why", Style: term.Bold}
	for _, c := range t.Cells {
		if c.Rounds == 0 {
			continue
		}
		l := page.List{Heading: page.Heading(c.Target)}
		addTexts(&l, "verdict", append([]string{c.says()}, c.Because...)...)
		addTexts(&l, "bytes", c.movedText(j.Imported))
		addTexts(&l, "CPU", c.cpuRatioText())
		addTexts(&l, "rounds", c.roundsText())
		addTexts(&l, "× "+page.Heading(page.Known(t.Base)), c.ratio().Reasons...)
		addTexts(&l, "layout", layoutText(c.trials))
		addTexts(&l, "source", sourcesText(c.trials))
		s.Lists = append(s.Lists, l)
	}
	if s.Lists == nil {
		return nil
	}
	return s
}

// addTexts appends the nonempty texts, the first one under the key.
func addTexts(l *page.List, key string, texts ...string) {
	for _, text := range texts {
		if text != "" {
			l.Items = append(l.Items, page.Item{Key: key, Text: clipped(text)})
			key = ""
		}
	}
}

// movedText compares the bytes that the tool reports with those that the device saw.
func (c *Cell) movedText(imported bool) string {
	claimed := with("claimed: ", c.bothWays("transferred"), "")
	switch reached := c.Of("reached-device"); {
	case imported:
		return page.Dotted(claimed, "there are no node readings")
	case !reached.Known():
		return page.Dotted(claimed, "device bytes unknown")
	default:
		return page.Dotted(claimed, "at the device: "+c.bothWays("device-bytes"), fmt.Sprintf("reached it: %.1f %%", 100*reached.Value))
	}
}

// bothWays shows a quantity in the directions that have it.
func (c *Cell) bothWays(quantity string) string {
	var parts []string
	for d, verb := range []string{"read", "written"} {
		if f := c.Of(quantity, "direction", directionNames[d]); f.Quantity != "" {
			parts = append(parts, page.Memory(f.Value)+" "+verb)
		}
	}
	return strings.Join(parts, ", ")
}

// cpuRatioText compares the CPU time per GiB with the base, with an interval but no verdict.
func (c *Cell) cpuRatioText() string {
	ratio := c.Of("cpu-per-byte-ratio")
	if !ratio.Known() || c.Target == c.table.Base {
		return ""
	}
	text := "per GiB " + page.Significant(ratio.Value) + "× " + page.Heading(c.table.Base)
	if ratio.Bounded {
		text += ", " + page.Between(ratio.Estimate, page.Significant)
	}
	return text
}

func (c *Cell) roundsText() string {
	each, setUp := "", int64(0)
	if took := c.Of("run-time"); took.Known() {
		each = page.Duration(took.Value) + " each"
	}
	for _, round := range c.trials {
		setUp = max(setUp, round.SetUp)
	}
	prepared := ""
	if setUp > 0 {
		prepared = "at most " + page.Duration(float64(setUp)) + " to set up"
	}
	return page.Dotted(fmt.Sprintf("%d with figures, %d failed", c.Rounds, c.Failed), each, prepared, versionsOf(c))
}

// versionsOf returns the tool versions in some cells.
func versionsOf(cells ...*Cell) string {
	var all []string
	for _, c := range cells {
		for _, version := range c.Versions {
			all = append(all, page.Heading(version))
		}
	}
	return page.Listed(all)
}

// layoutText describes the layout of the files and the preparation of the job, with the
// number of rounds.
func layoutText(ran []*record.Cell) string {
	laidOut := ""
	if l := ran[0].Layout; l != nil {
		laidOut = page.Amount(l.Files, "file") + " of together " + page.Size(float64(l.Bytes)) + " in " + page.Duration(float64(l.Took))
	}
	if ran[0].Source != "" {
		return laidOut
	}
	dropped, quiet := count(ran, func(c *record.Cell) bool { return c.Dropped != "" }), count(ran, func(c *record.Cell) bool { return c.Quiet })
	return page.Dotted(laidOut, fmt.Sprintf("caches dropped in %d/%d rounds", dropped, len(ran)), fmt.Sprintf("the device at rest in %d/%d", quiet, len(ran)))
}

func sourcesText(ran []*record.Cell) string {
	var all []string
	for _, c := range ran {
		if c.Source != "" {
			all = append(all, page.Middle(term.Clean(c.Source), 2*page.LongestName))
		}
	}
	return page.Listed(all)
}
