package report

import (
	"encoding/csv"
	"io"
	"strconv"
	"time"

	"github.com/tare-bench/tare/published"
	"github.com/tare-bench/tare/record"
)

// besideDocument is the JSON form. Times are in milliseconds, as theirs are.
type besideDocument struct {
	Statement string             `json:"statement"`
	TimeUnit  string             `json:"time_unit"`
	Published *published.Report  `json:"published"`
	Runs      []besideRun        `json:"runs"`
	Tables    []besideTableShown `json:"tables"`
}

// besideRun is one of our records.
type besideRun struct {
	RunID       string             `json:"run_id"`
	Started     time.Time          `json:"started"`
	Version     string             `json:"tare_version"`
	Status      string             `json:"status"`
	Environment record.Environment `json:"environment"`
	Targets     []record.Target    `json:"targets"`
	Failed      int                `json:"failed"`
	Total       int                `json:"total"`
	Findings    []record.Finding   `json:"findings"`
}

type besideTableShown struct {
	ID      string        `json:"id"`
	Title   string        `json:"title"`
	Machine string        `json:"machine"` // theirs
	Figures []besideShown `json:"figures"`
}

// besideShown is one figure.
type besideShown struct {
	Side   string           `json:"side"` // "theirs", "ours"
	Lanes  int              `json:"lanes"`
	Op     string           `json:"op"`
	Column string           `json:"column,omitempty"` // of theirs; of ours the one that the target is akin to
	Target string           `json:"target,omitempty"` // of ours
	RunID  string           `json:"run_id,omitempty"` // of ours
	Value  published.Figure `json:"ms"`               // null where there is none
	N      int              `json:"n,omitempty"`      // rounds, of ours
	Failed int              `json:"failed,omitempty"`
	Total  int              `json:"total,omitempty"`
	Note   string           `json:"note,omitempty"`
}

func (b *beside) document() besideDocument {
	d := besideDocument{Statement: noVerdict, TimeUnit: "ms", Published: b.theirs}
	for _, one := range b.ours {
		h, l := &one.Record.Header, one.Lifecycle
		d.Runs = append(d.Runs, besideRun{
			RunID: h.RunID, Started: h.Started, Version: h.Version, Status: status(one.Record), Environment: h.Environment,
			Targets: l.Targets, Failed: l.Failed, Total: l.Total, Findings: l.Findings,
		})
	}
	for i := range b.tables {
		t := &b.tables[i]
		d.Tables = append(d.Tables, besideTableShown{ID: t.ID, Title: t.Title, Machine: t.Machine, Figures: b.figures(t)})
	}
	return d
}

// figures are all of a table, row by row.
func (b *beside) figures(t *besideTable) []besideShown {
	var out []besideShown
	for _, row := range t.rows {
		for i, c := range t.columns {
			f := besideShown{Lanes: row.lanes, Op: string(row.op), Column: c.akin}
			switch ours := row.ours[i]; {
			case c.theirs >= 0 && row.theirs != nil:
				f.Side, f.Value, f.Note = "theirs", published.Figure(b.number(row.theirs.Values[c.theirs])), row.theirs.Note
			case ours != nil:
				f.Side, f.Target, f.RunID = "ours", ours.Target, c.run.Record.Header.RunID
				f.N, f.Failed, f.Total = ours.Summary.N, ours.Failed, ours.Total
				if ours.Trimmed != nil && finite(*ours.Trimmed) {
					f.Value = published.Figure(strconv.FormatFloat(*ours.Trimmed/1e6, 'f', 6, 64))
				}
			default:
				continue
			}
			out = append(out, f)
		}
	}
	return out
}

// number is a value of theirs in milliseconds, "" where there is none.
func (b *beside) number(f published.Figure) string {
	if text := b.printed(f); text != none {
		return text
	}
	return ""
}

var besideColumns = []string{"table", "machine", "lanes", "op", "side", "column", "target", "run_id", "ms", "n", "failed", "total", "note"}

func (b *beside) writeCSV(w io.Writer) error {
	rows := [][]string{besideColumns}
	for i := range b.tables {
		t := &b.tables[i]
		for _, f := range b.figures(t) {
			row := []string{harmless(t.ID), "", strconv.Itoa(f.Lanes), harmless(f.Op), f.Side, harmless(f.Column), harmless(f.Target), harmless(f.RunID), string(f.Value), "", "", "", harmless(f.Note)}
			if f.Side == "theirs" {
				row[1] = harmless(t.Machine)
			} else {
				row[9], row[10], row[11] = strconv.Itoa(f.N), strconv.Itoa(f.Failed), strconv.Itoa(f.Total)
			}
			rows = append(rows, row)
		}
	}
	return csv.NewWriter(w).WriteAll(rows)
}
