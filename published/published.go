// Package published holds figures from publications to show next to tare's own. They are tables
// as printed, with the machines, versions and methods behind them. Each column lists the tare
// targets that correspond to it.
//
// A publication is one JSON file, a [Report]. Some are embedded in tare; any other file in the
// same format can be read too. Nothing is computed from its figures: figures of other machines
// are shown next to tare's own, not compared with them.
//
// A [Claim] is a statement of a publication that contradicts its own figures. It has the formula
// that shows the contradiction, and a test computes every formula.
//
// Two publications are also available as records, for tare report. kata-io has the printed
// output of fio, dd and sysbench. kata-boot-2018 has starts that were broken down by hand. Tests
// in this package check the verdicts on them.
package published

import (
	"cmp"
	"embed"
	"fmt"
	"maps"
	"path"
	"strings"
)

// Version is the current version of the format.
const Version = 2

//go:embed */report.json
var shipped embed.FS

// Report is a publication.
type Report struct {
	Version       int       `json:"version"`
	Name          string    `json:"name"`  // short, as in file names: "isulad-2020"
	Title         string    `json:"title"` // in English
	OriginalTitle string    `json:"original_title,omitempty"`
	Author        string    `json:"author"`
	Date          string    `json:"date"`                 // date of publication, 2006-01-02
	Experiment    string    `json:"experiment,omitempty"` // tare experiment with corresponding figures; "": lifecycle
	Unit          string    `json:"unit"`                 // default unit of all values, see Units; a unit of time for lifecycle
	Statistic     string    `json:"statistic"`            // statistic over the rounds that a value is
	Method        []string  `json:"method,omitempty"`
	Notes         []string  `json:"notes,omitempty"`
	Machines      []Machine `json:"machines"`
	Engines       []Engine  `json:"engines"`
	Columns       []Column  `json:"columns"`
	Tables        []Table   `json:"tables"`
	Claims        []Claim   `json:"claims,omitempty"`
}

// Claim is a statement of the publication that contradicts its own figures.
type Claim struct {
	Says     string  `json:"says"`               // in English
	Original string  `json:"original,omitempty"` // as printed
	But      []Shown `json:"but"`
}

// Shown is a figure that follows from the publication's tables.
type Shown struct {
	What    string `json:"what"`              // description of the figure
	Formula string `json:"formula,omitempty"` // calculation from printed figures: "1160 / 675"
	Gives   string `json:"gives"`             // result with its unit: "1.72 times"
}

// Ours selects the tare figures that correspond to published values. Fields of a row override
// those of its column, which override those of its table.
type Ours struct {
	Quantity string            `json:"quantity,omitempty"` // NoQuantity, or "" at all levels: tare has no such quantity
	Unit     string            `json:"unit,omitempty"`     // unit of the published values, see Units
	Labels   map[string]string `json:"labels,omitempty"`   // patterns of path.Match; | separates alternatives
}

// Machine is a measured machine, as described in the publication.
type Machine struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	OS     string `json:"os,omitempty"`
	Kernel string `json:"kernel,omitempty"`
	CPU    string `json:"cpu,omitempty"`
	Memory string `json:"memory,omitempty"`
}

// Engine is an engine that was measured or used for measuring.
type Engine struct {
	ID      string   `json:"id"`
	Name    string   `json:"name"`
	Version string   `json:"version,omitempty"` // "": not stated
	Parts   []string `json:"parts,omitempty"`   // versions of its components
	Notes   []string `json:"notes,omitempty"`
}

// Column is a column of one or more tables.
type Column struct {
	ID      string   `json:"id"`
	Title   string   `json:"title"`
	Engine  string   `json:"engine,omitempty"` // id of the engine
	Targets []string `json:"targets"`          // patterns of path.Match for corresponding tare targets: "docker/*"
	Note    string   `json:"note,omitempty"`   // remaining differences from these targets
	Ours             // for experiments other than lifecycle
}

// Table is a table of a publication.
type Table struct {
	ID            string   `json:"id"`
	Title         string   `json:"title"` // in English
	OriginalTitle string   `json:"original_title,omitempty"`
	Machine       string   `json:"machine"`           // id of the machine
	Pods          bool     `json:"pods,omitempty"`    // operations on pods, or on containers in pods
	Lanes         int      `json:"lanes,omitempty"`   // concurrent operations, in a lifecycle
	Columns       []string `json:"columns"`           // ids of the columns
	Subject       string   `json:"subject,omitempty"` // column whose difference from others is printed
	Versus        []string `json:"versus,omitempty"`  // those other columns
	Notes         []string `json:"notes,omitempty"`
	Rows          []Row    `json:"rows"`
	Ours                   // for experiments other than lifecycle
}

// Row is a row of a table, such as one operation.
type Row struct {
	Label  string   `json:"label"`            // as printed: "100 * create"
	Op     string   `json:"op,omitempty"`     // corresponding tare operation, in a lifecycle
	Values []Figure `json:"values"`           // one per column
	Versus []string `json:"versus,omitempty"` // as printed, one per entry of the table's Versus
	Note   string   `json:"note,omitempty"`
	Ours            // for experiments other than lifecycle
}

// NoQuantity marks a row that does not have the quantity of its table.
const NoQuantity = "none"

// Akin returns the selection of tare figures that correspond to the value of a row in a column.
// c is nil for a value in no column.
func (t *Table) Akin(c *Column, row *Row) Ours {
	out := Ours{Labels: map[string]string{}}
	all := []Ours{t.Ours, row.Ours}
	if c != nil {
		all = []Ours{t.Ours, c.Ours, row.Ours}
	}
	for _, o := range all {
		out.Quantity, out.Unit = cmp.Or(o.Quantity, out.Quantity), cmp.Or(o.Unit, out.Unit)
		maps.Copy(out.Labels, o.Labels)
	}
	if out.Quantity == NoQuantity {
		out.Quantity = ""
	}
	return out
}

// Figure is a number as printed, including trailing zeros: "12.50". In JSON it is a number, or
// null for a missing figure, which is "".
type Figure string

// MarshalJSON implements [json.Marshaler].
func (f Figure) MarshalJSON() ([]byte, error) {
	if f == "" {
		return []byte("null"), nil
	}
	return []byte(f), nil
}

// UnmarshalJSON implements [json.Unmarshaler].
func (f *Figure) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		*f = ""
		return nil
	}
	if !strings.ContainsRune("-0123456789", rune(text[0])) {
		return fmt.Errorf("%s is not a number", text)
	}
	*f = Figure(text)
	return nil
}

// Machine returns the machine with the given id, which Validate has checked.
func (r *Report) Machine(id string) Machine {
	return find(r.Machines, func(m Machine) string { return m.ID }, id)
}

// Engine returns the engine with the given id.
func (r *Report) Engine(id string) Engine {
	return find(r.Engines, func(e Engine) string { return e.ID }, id)
}

// Column returns the column with the given id.
func (r *Report) Column(id string) Column {
	return find(r.Columns, func(c Column) string { return c.ID }, id)
}

func find[T any](all []T, id func(T) string, wanted string) T {
	for _, one := range all {
		if id(one) == wanted {
			return one
		}
	}
	var none T
	return none
}

// Akin reports whether a tare target corresponds to the column.
func (c *Column) Akin(target string) bool {
	for _, pattern := range c.Targets {
		if ok, err := path.Match(pattern, target); ok && err == nil {
			return true
		}
	}
	return false
}

// Nears returns patterns for the numbers of lanes whose figures may replace missing figures with
// the table's own number. For several lanes, any number above one matches. For one lane, no
// other number does, and the result is "".
func (t *Table) Nears() string {
	if t.Lanes > 1 {
		return "[2-9]*|1?*"
	}
	return ""
}

// Unit is a unit as a multiple of one of tare's units.
type Unit struct {
	Base   string // unit of figures; "": no figure has it
	Factor float64
}

// Units maps the units used in publications to tare's units.
var Units = map[string]Unit{
	"ns": {"ns", 1}, "us": {"ns", 1e3}, "ms": {"ns", 1e6}, "s": {"ns", 1e9},
	"KiB": {"bytes", 1 << 10}, "MiB": {"bytes", 1 << 20}, "GiB": {"bytes", 1 << 30},
	"MB/s": {"bytes/s", 1e6}, "KiB/s": {"bytes/s", 1 << 10}, "MiB/s": {"bytes/s", 1 << 20},
	"1/s": {"1/s", 1}, "%": {"ratio", 0.01}, "% of a CPU": {"cpus", 0.01}, "m": {"cpus", 1e-3},
	"load": {"load", 1}, "count": {"count", 1},
}
