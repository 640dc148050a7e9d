package storage

import (
	"strconv"

	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/instrument/terms"
)

// units is said once, since the tools disagree: dd of GNU and fio 3 print
// MB of 10^6, fio 2, sysbench and dd of busybox MB or Mb of 2^20.
const units = "MB/s: 10^6 bytes a second, as GNU dd has it, whatever the tool prints · KiB, MiB and GiB: powers of 1024"

// head says what ran where, and what a cell is.
func head(j *Judgement, o page.Options) []string {
	rec := j.Record
	if j.Imported {
		var sources []string
		for i := range rec.Cells {
			sources = append(sources, rec.Cells[i].Source)
		}
		return append(page.Imported(rec, sources, "nothing was seen from outside"),
			page.Dotted(page.Targets(j.Targets, ""), with("tools: ", versionsOf(j.cells()...), "")), units)
	}
	memory := ""
	if env := &rec.Header.Environment; env.Memory > 0 {
		memory = "memory " + page.Size(float64(env.Memory))
	}
	lines := []string{
		page.Dotted(page.Ran(rec, j.Plan.Seed), memory),
		page.Dotted(page.Targets(j.Targets, ""), with("tools: ", versionsOf(j.cells()...), "")),
		page.Dotted(page.Amount(j.Plan.Rounds, "round"), "a cell: "+aCell(&j.Plan), timesScale(j.Plan.Scale), terms.LimitsText(j.Plan.Limits)),
		units,
	}
	if o.Verbose {
		lines = append(lines, page.Surroundings(rec)...)
	}
	return lines
}

// aCell is how the figures of one round come about.
func aCell(p *Options) string {
	text := "one job in a fresh sandbox, its files laid out there before"
	switch p.Drop {
	case DropNode:
		text += ", all of the node's page cache dropped"
	case DropFiles:
		text += ", the page cache of its files dropped"
	}
	if p.Settle > 0 {
		text += ", the device let come to rest"
	}
	if p.RuntimeLimit > 0 {
		text += "; at most " + page.Duration(float64(p.RuntimeLimit))
	}
	return text
}

func timesScale(scale float64) string {
	if scale == 0 || scale == 1 {
		return ""
	}
	return "sizes, counts and times × " + strconv.FormatFloat(scale, 'g', 4, 64)
}
