package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tare-bench/tare/internal/judge"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/record"
)

// storageUnits is said once, since the tools disagree: dd of GNU and fio 3 print
// MB of 10^6, fio 2, sysbench and dd of busybox MB or Mb of 2^20.
const storageUnits = "MB/s: 10^6 bytes a second, as GNU dd has it, whatever the tool prints · KiB, MiB and GiB: powers of 1024"

// storageHead says what ran where, and what a cell is.
func storageHead(rec *record.Record, v *judge.Storage, o Options) []string {
	if v.Imported {
		return []string{
			dotted("tare "+known(rec.Header.Version), "run "+known(rec.Header.RunID), outcome(rec)),
			"imported from " + importedFrom(rec) + "; nothing was seen from outside",
			dotted(targets(v.Targets, ""), toolsOf(v)),
			storageUnits,
		}
	}
	memory := ""
	if env := &rec.Header.Environment; env.Memory > 0 {
		memory = "memory " + size(float64(env.Memory))
	}
	lines := []string{
		dotted(ran(rec, v.Plan.Seed), memory),
		dotted(targets(v.Targets, ""), toolsOf(v)),
		dotted(roundsOf(v.Plan.Rounds), "a cell: "+aCell(v), scaled(v.Plan.Scale), limits(v.Plan.Limits)),
		storageUnits,
	}
	if o.Verbose {
		lines = append(lines, surroundings(&rec.Header))
	}
	return lines
}

// aCell is how the figures of one round come about.
func aCell(v *judge.Storage) string {
	text := "one job in a fresh sandbox, its files laid out there before"
	switch string(v.Plan.Drop) {
	case "node":
		text += ", all of the node's page cache dropped"
	case "files":
		text += ", the page cache of its files dropped"
	}
	if v.Plan.Settle > 0 {
		text += ", the device let come to rest"
	}
	if v.Plan.RuntimeLimit > 0 {
		text += "; at most " + duration(float64(v.Plan.RuntimeLimit))
	}
	return text
}

func scaled(scale float64) string {
	if scale == 0 || scale == 1 {
		return ""
	}
	return "sizes, counts and times × " + strconv.FormatFloat(scale, 'g', 4, 64)
}

// mostListed is how many files or versions a line names.
const mostListed = 8

// toolsOf are the versions of the tools that ran.
func toolsOf(v *judge.Storage) string {
	var all []string
	for i := range v.Tables {
		for j := range v.Tables[i].Cells {
			for _, version := range v.Tables[i].Cells[j].Versions {
				all = append(all, heading(version))
			}
		}
	}
	if all == nil {
		return ""
	}
	return "tools: " + listed(all)
}

// importedFrom are the files that the cells stood in, without their lines.
func importedFrom(rec *record.Record) string {
	var all []string
	for i := range rec.Cells {
		file := rec.Cells[i].Source
		if at := strings.LastIndexByte(file, ':'); at >= 0 {
			file = file[:at]
		}
		all = append(all, middle(term.Clean(known(file)), 2*longestName))
	}
	if all == nil {
		return "nothing"
	}
	return listed(all)
}

// listed names each once, in the order of the first, and counts the rest.
func listed(all []string) string {
	var once []string
	for _, one := range all {
		if !slices.Contains(once, one) {
			once = append(once, one)
		}
	}
	more := ""
	if n := len(once) - mostListed; n > 0 {
		once, more = once[:mostListed], fmt.Sprintf(" and %d more", n)
	}
	return strings.Join(once, ", ") + more
}
