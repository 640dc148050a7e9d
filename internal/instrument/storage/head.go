package storage

import (
	"strconv"

	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/instrument/terms"
)

// units explains the units in the report, since tools disagree. GNU dd and fio 3 print MB of
// 10^6; fio 2, sysbench and busybox dd print MB or Mb of 2^20.
const units = "MB/s: 10^6 bytes a second, as in GNU dd, regardless of the tool's own units · KiB, MiB and GiB: powers of 1024"

// head identifies the run, or the imported outputs.
func head(j *Judgement) []string {
	rec := j.Record
	if j.Imported {
		var sources []string
		for i := range rec.Cells {
			sources = append(sources, rec.Cells[i].Source)
		}
		return append(page.Imported(rec, sources, "there are no node readings"),
			page.Dotted(page.Targets(j.Targets, ""), with("tools: ", versionsOf(j.cells()...), "")), units)
	}
	return []string{page.Identity(rec, j.Plan.Rounds)}
}

// whole shows what ran where, and how a cell is measured; nil for imported results.
func whole(j *Judgement, o page.Options) *page.Section {
	if j.Imported {
		return nil
	}
	s := page.Run(j.Record, j.Plan.Seed, "", o.Verbose)
	s.Lists[0].Items = append(s.Lists[0].Items,
		page.Item{Key: "tools", Text: page.Known(with("", versionsOf(j.cells()...), ""))},
		page.Item{Key: "a cell", Text: page.Dotted(aCell(&j.Plan), timesScale(j.Plan.Scale), terms.LimitsText(j.Plan.Limits), page.NodeMemory(j.Record))},
		page.Item{Key: "units", Text: units})
	return s
}

// aCell describes how one round of a cell is measured.
func aCell(p *Options) string {
	text := "one job in a new sandbox, with its files laid out in advance"
	text += map[Drop]string{DropNode: ", the node's page cache dropped", DropFiles: ", the page cache of its files dropped"}[p.Drop]
	if p.Settle > 0 {
		text += ", started once the device is idle"
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
