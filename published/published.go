// Package published holds the figures of publications that tare's own are set
// beside: tables as they were printed, with the machines, versions and methods
// behind them, and which of tare's targets each of their columns is akin to.
//
// A publication is one JSON file, a [Report]. Those that come with tare are
// embedded; any other file of the same form can be read as well. Nothing is
// computed from what stands in it: figures of other machines are to be seen
// beside one's own, not to be compared with them.
//
// What a publication says and its own figures contradict is a [Claim], with the
// formula by which that follows; a test computes every one.
//
// Two publications are records as well, for tare report: kata-io holds what fio, dd
// and sysbench printed, kata-boot-2018 starts that were taken apart by hand. Their
// verdicts are tested here.
package published

import (
	"cmp"
	"embed"
	"fmt"
	"maps"
	"path"
	"strings"
)

// Version is the version of the form.
const Version = 2

//go:embed */report.json
var shipped embed.FS

// Report is a publication.
type Report struct {
	Version       int       `json:"version"`
	Name          string    `json:"name"`  // short, as a file is called: "isulad-2020"
	Title         string    `json:"title"` // in English
	OriginalTitle string    `json:"original_title,omitempty"`
	Author        string    `json:"author"`
	Date          string    `json:"date"`                 // of publication, as 2006-01-02
	Experiment    string    `json:"experiment,omitempty"` // of tare's, whose figures are akin; "": lifecycle
	Unit          string    `json:"unit"`                 // of all values, see Units; of a lifecycle it is a time
	Statistic     string    `json:"statistic"`            // what a value is of its rounds
	Method        []string  `json:"method,omitempty"`
	Notes         []string  `json:"notes,omitempty"`
	Machines      []Machine `json:"machines"`
	Engines       []Engine  `json:"engines"`
	Columns       []Column  `json:"columns"`
	Tables        []Table   `json:"tables"`
	Claims        []Claim   `json:"claims,omitempty"`
}

// Claim is a sentence of the publication that its own figures contradict.
type Claim struct {
	Says     string  `json:"says"`               // in English
	Original string  `json:"original,omitempty"` // as it stands there
	But      []Shown `json:"but"`
}

// Shown is a figure that follows from what the publication's tables hold.
type Shown struct {
	What    string `json:"what"`              // it is of
	Formula string `json:"formula,omitempty"` // how it follows, of figures as they were printed: "1160 / 675"
	Gives   string `json:"gives"`             // what that comes to, with its unit: "1.72 times"
}

// Ours says which of tare's figures are akin to values, by what figures are told
// apart by. What a row says counts before what its column and its table do.
type Ours struct {
	Quantity string            `json:"quantity,omitempty"` // NoQuantity, or "" everywhere: tare has none like it
	Unit     string            `json:"unit,omitempty"`     // of theirs; see Units
	Labels   map[string]string `json:"labels,omitempty"`   // patterns of path.Match, several with | between them
}

// Machine is one that was measured on, in the publication's own words.
type Machine struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	OS     string `json:"os,omitempty"`
	Kernel string `json:"kernel,omitempty"`
	CPU    string `json:"cpu,omitempty"`
	Memory string `json:"memory,omitempty"`
}

// Engine is one that was measured, or measured with.
type Engine struct {
	ID      string   `json:"id"`
	Name    string   `json:"name"`
	Version string   `json:"version,omitempty"` // "": not stated
	Parts   []string `json:"parts,omitempty"`   // versions of what it is made of
	Notes   []string `json:"notes,omitempty"`
}

// Column is one of the tables' columns, which can be in several of them.
type Column struct {
	ID      string   `json:"id"`
	Title   string   `json:"title"`
	Engine  string   `json:"engine,omitempty"` // its ID
	Targets []string `json:"targets"`          // names of tare's targets that are akin, as patterns of path.Match: "docker/*"
	Note    string   `json:"note,omitempty"`   // how they differ nevertheless
	Ours             // of other experiments than lifecycle
}

// Table is one of the tables.
type Table struct {
	ID            string   `json:"id"`
	Title         string   `json:"title"` // in English
	OriginalTitle string   `json:"original_title,omitempty"`
	Machine       string   `json:"machine"`           // its ID
	Pods          bool     `json:"pods,omitempty"`    // of pods, or of containers in them
	Lanes         int      `json:"lanes,omitempty"`   // operations at once, of a lifecycle
	Columns       []string `json:"columns"`           // their IDs
	Subject       string   `json:"subject,omitempty"` // the column whose difference from others is printed
	Versus        []string `json:"versus,omitempty"`  // those others
	Notes         []string `json:"notes,omitempty"`
	Rows          []Row    `json:"rows"`
	Ours                   // of other experiments than lifecycle
}

// Row is one operation.
type Row struct {
	Label  string   `json:"label"`            // as printed: "100 * create"
	Op     string   `json:"op,omitempty"`     // the operation of tare that is akin, of a lifecycle
	Values []Figure `json:"values"`           // one for each column
	Versus []string `json:"versus,omitempty"` // as printed, one for each of the table's Versus
	Note   string   `json:"note,omitempty"`
	Ours            // of other experiments than lifecycle
}

// NoQuantity is what a row says that has none of its table's.
const NoQuantity = "none"

// Akin says which figures of ours are akin to the value of a row in a column, or in
// none of theirs where that is nil.
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

// Figure is a number as it was printed: what is "12.50" stays so. In JSON it is
// a number, and null where there is none, which is "".
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
		return fmt.Errorf("%s is no number", text)
	}
	*f = Figure(text)
	return nil
}

// Machine returns the machine of that ID; Validate has seen that there is one.
func (r *Report) Machine(id string) Machine {
	return find(r.Machines, func(m Machine) string { return m.ID }, id)
}

// Engine returns the engine of that ID.
func (r *Report) Engine(id string) Engine {
	return find(r.Engines, func(e Engine) string { return e.ID }, id)
}

// Column returns the column of that ID.
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

// Akin tells whether one of tare's targets is akin to the column.
func (c *Column) Akin(target string) bool {
	for _, pattern := range c.Targets {
		if ok, err := path.Match(pattern, target); ok && err == nil {
			return true
		}
	}
	return false
}

// Nears are patterns of the lanes that stand beside the table's where there are none of
// as many: for more than one at once any other such number, for one none.
func (t *Table) Nears() string {
	if t.Lanes > 1 {
		return "[2-9]*|1?*"
	}
	return ""
}

// Unit is how much of one of tare's own units something is.
type Unit struct {
	Base   string // as figures have it; "": of no figure
	Factor float64
}

// Units are those in which publications print.
var Units = map[string]Unit{
	"ns": {"ns", 1}, "us": {"ns", 1e3}, "ms": {"ns", 1e6}, "s": {"ns", 1e9},
	"KiB": {"bytes", 1 << 10}, "MiB": {"bytes", 1 << 20}, "GiB": {"bytes", 1 << 30},
	"MB/s": {"bytes/s", 1e6}, "KiB/s": {"bytes/s", 1 << 10}, "MiB/s": {"bytes/s", 1 << 20},
	"1/s": {"1/s", 1}, "%": {"ratio", 0.01}, "% of a CPU": {"cpus", 0.01}, "m": {"cpus", 1e-3},
	"load": {"load", 1}, "count": {"count", 1},
}
