package report

import (
	"fmt"
	"io"

	"github.com/tare-bench/tare/internal/judge"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/record"
)

// BPF writes the report of what BPF programs cost: a record and its judgement. It
// fails when w does, and on a format that there is none of.
func BPF(w io.Writer, format Format, rec *record.Record, v *judge.BPF, o Options) error {
	switch format {
	case JSON:
		return writeValue(w, bpfDocumentOf(rec, v))
	case CSV:
		return writeBPFCSV(w, v)
	case Text, Markdown:
		return writePage(w, format, bpfPage(rec, v, o), o)
	}
	return format.Of("bpf")
}

func bpfPage(rec *record.Record, v *judge.BPF, o Options) *page {
	p := &page{command: "tare bpf", title: short(term.Clean(v.Plan.Title), longestTitle), head: bpfHead(rec, v, o)}
	p.add(quotaTable(v), growthTable(v), growthEach(v, o), cpuByLoad(v), requestsByLoad(v), bpfByProgram(v, o))
	if len(v.Rows) == 0 && len(v.Growth) == 0 {
		p.add(&section{title: "no point was measured"})
	}
	p.add(bpfPrograms(v, o), bpfMaps(v, o))
	failed := section{title: fmt.Sprintf("failed %d/%d points, round by round", v.Failed, v.Total)}
	if v.Failed > 0 {
		failed.style = term.Red
	}
	found := findings(v.Findings, lanesOf, o)
	p.add(&failed, bpfMeasured(v), needed(rec.Targets), &found)
	return p
}
