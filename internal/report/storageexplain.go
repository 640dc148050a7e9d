package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/judge"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/record"
)

// jobExplained is everything behind the figures and the verdicts of a table.
func jobExplained(rec *record.Record, v *judge.Storage, t *judge.StorageTable) *section {
	s := &section{title: jobName(t) + ": why", style: term.Bold}
	for i := range t.Cells {
		c := &t.Cells[i]
		if c.Rounds == 0 {
			continue
		}
		ran := cellsOf(rec, t, c.Target)
		l := list{heading: heading(c.Target)}
		l.add("verdict", append([]string{verdict(c)}, c.Because...)...)
		l.add("bytes", bytesText(v, c))
		l.add("CPU", cpuRatioText(t, c))
		l.add("rounds", roundsText(c, ran))
		if c.Why != "" {
			l.add("× "+heading(known(t.Base)), c.Why)
		}
		l.add("layout", layoutText(ran))
		l.add("source", sourcesText(ran))
		s.lists = append(s.lists, l)
	}
	if s.lists == nil {
		return nil
	}
	return s
}

// add appends the texts that there are, the first of them under the key.
func (l *list) add(key string, texts ...string) {
	for _, text := range texts {
		if text != "" {
			l.items = append(l.items, item{key: key, text: short(term.Clean(text), longestMessage)})
			key = ""
		}
	}
}

// cellsOf are the runs of one cell in the record, with figures.
func cellsOf(rec *record.Record, t *judge.StorageTable, target string) (out []*record.Cell) {
	for i := range rec.Cells {
		c := &rec.Cells[i]
		if c.Target == target && c.Job == t.Job && c.Volume == t.Volume && c.Cache == t.Cache && c.Failure == nil {
			out = append(out, c)
		}
	}
	return out
}

// bytesText is what the tool says it moved beside what the device saw.
func bytesText(v *judge.Storage, c *judge.StorageCell) string {
	claimed := ways(c.Read.Bytes, c.Write.Bytes, flows(&c.Read), flows(&c.Write))
	if claimed == "" && flows(&c.Total) {
		claimed = memory(c.Total.Bytes)
	}
	if claimed != "" {
		claimed = "claimed: " + claimed
	}
	switch {
	case v.Imported:
		return dotted(claimed, "nothing was seen from outside")
	case !c.ReachedKnown:
		return dotted(claimed, "what the device saw is not known")
	}
	return dotted(claimed, "at the device: "+ways(c.SeenRead, c.SeenWrite, true, true), "reached it: "+ratio(100*c.Reached, "%.1f %%"))
}

func ways(read, written float64, haveRead, haveWritten bool) string {
	var parts []string
	if haveRead {
		parts = append(parts, memory(read)+" read")
	}
	if haveWritten {
		parts = append(parts, memory(written)+" written")
	}
	return strings.Join(parts, ", ")
}

// cpuRatioText compares the CPU that a GiB costs. How it differs from the base's
// is for the reader of the interval: no verdict is given on it.
func cpuRatioText(t *judge.StorageTable, c *judge.StorageCell) string {
	if !c.CPURatio.Known || c.Target == t.Base {
		return ""
	}
	text := "per GiB " + significant(c.CPURatio.Value) + "× " + heading(t.Base)
	if c.CPURatio.Bounded {
		text += ", " + between(c.CPURatio.Lo, c.CPURatio.Hi, true, significant)
	}
	return text
}

func roundsText(c *judge.StorageCell, ran []*record.Cell) string {
	parts := []string{fmt.Sprintf("%d with figures, %d failed", c.Rounds, c.Failed)}
	if c.Seconds.Known {
		parts = append(parts, duration(1e9*c.Seconds.Value)+" each")
	}
	var setUp []int64
	for _, cell := range ran {
		if cell.SetUp > 0 {
			setUp = append(setUp, cell.SetUp)
		}
	}
	if setUp != nil {
		parts = append(parts, "at most "+duration(float64(slices.Max(setUp)))+" to set up")
	}
	var versions []string
	for _, version := range c.Versions {
		versions = append(versions, heading(version))
	}
	if versions != nil {
		parts = append(parts, listed(versions))
	}
	return dotted(parts...)
}

// layoutText is how the files were laid out and what was done before the job, in
// the rounds in which it was.
func layoutText(ran []*record.Cell) string {
	if len(ran) == 0 {
		return ""
	}
	var parts []string
	if l := ran[0].Layout; l != nil {
		files := "1 file"
		if l.Files != 1 {
			files = fmt.Sprintf("%d files", l.Files)
		}
		parts = append(parts, files+" of together "+size(float64(l.Bytes))+" in "+duration(float64(l.Took)))
	}
	dropped, quiet := 0, 0
	for _, c := range ran {
		if c.Dropped != "" {
			dropped++
		}
		if c.Quiet {
			quiet++
		}
	}
	if ran[0].Source == "" {
		parts = append(parts, fmt.Sprintf("caches dropped in %d/%d rounds", dropped, len(ran)), fmt.Sprintf("the device at rest in %d/%d", quiet, len(ran)))
	}
	return dotted(parts...)
}

func sourcesText(ran []*record.Cell) string {
	var all []string
	for _, c := range ran {
		if c.Source != "" {
			all = append(all, middle(term.Clean(c.Source), 2*longestName))
		}
	}
	if all == nil {
		return ""
	}
	return listed(all)
}
