package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/judge"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/record"
)

// Storage writes the report of a storage run, or of what was imported: a record
// and its judgement. It fails when w does, and on a format that there is none of.
func Storage(w io.Writer, format Format, rec *record.Record, v *judge.Storage, o Options) error {
	switch format {
	case JSON:
		return writeValue(w, storageDocumentOf(rec, v))
	case CSV:
		return writeStorageCSV(w, v)
	case Text, Markdown:
		return writePage(w, format, storagePage(rec, v, o), o)
	}
	return format.Of("storage")
}

func storagePage(rec *record.Record, v *judge.Storage, o Options) *page {
	p := &page{command: "tare storage", title: short(term.Clean(v.Plan.Title), longestTitle), head: storageHead(rec, v, o)}
	if v.Imported {
		p.command = "tare import"
	}
	p.add(volumes(v), sizes(v), devices(v, o), storageInShort(v))
	for i := range v.Tables {
		t := &v.Tables[i]
		p.add(jobTable(v, t, i == 0, o))
		if o.Verbose {
			p.add(jobExplained(rec, v, t))
		}
	}
	if len(v.Tables) == 0 {
		p.add(&section{title: "no job was run"})
	}
	failed := section{title: fmt.Sprintf("failed %d/%d cells, round by round", v.Failed, v.Total)}
	if v.Failed > 0 {
		failed.style = term.Red
	}
	found := findings(v.Findings, sandboxesOf, o)
	p.add(&failed, needed(v.Targets), &found)
	return p
}

// jobName is how a table is called everywhere: its job, volume and cache. The
// last two are not always known of what was imported.
func jobName(t *judge.StorageTable) string {
	return strings.Join(slices.DeleteFunc([]string{heading(t.Job), heading(t.Volume), heading(t.Cache)}, func(part string) bool { return part == "" }), ", ")
}

// cellOf is a target's cell, nil where the table has none.
func cellOf(t *judge.StorageTable, target string) *judge.StorageCell {
	i := slices.IndexFunc(t.Cells, func(c judge.StorageCell) bool { return c.Target == target })
	if i < 0 {
		return nil
	}
	return &t.Cells[i]
}

// ofDevice tells whether a cell's figures are to be believed of the device.
func ofDevice(c *judge.StorageCell) bool {
	return c != nil && c.Rounds > 0 && c.Verdict == judge.VerdictDevice
}

// verdict is what stands before or beside a cell's figures in every form.
func verdict(c *judge.StorageCell) string {
	switch {
	case c.Absent != "":
		return "absent"
	case c.Rounds == 0 && c.Failed == 0:
		return "no figures"
	case c.Rounds == 0:
		return "failed"
	case c.Verdict == judge.VerdictUnjudged:
		return "not judged"
	}
	return heading(string(c.Verdict))
}

// meanings of the verdicts that are not the device's, in the order in which they
// are told.
var meanings = []struct {
	verdict judge.Verdict
	means   string
}{
	{judge.VerdictGuestCache, "memory inside the sandbox answered"},
	{judge.VerdictHostCache, "memory of the host, or of the device, answered"},
	{judge.VerdictNotDirect, "O_DIRECT was asked for and had no effect"},
	{judge.VerdictTooShort, "over before it could show anything"},
	{judge.VerdictThrottled, "held back by a quota"},
	{judge.VerdictNoisy, "too unsteady, or disturbed by others"},
	{judge.VerdictUnjudged, "too little is known of it"},
}
