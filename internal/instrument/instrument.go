// Package instrument is the registry: the one place that knows all instruments.
//
// An instrument is one question about runtimes, whole in a folder of its own: its
// options, its lines of the record, its judgement, figures and page, and in run/
// how it is performed. A new one is a folder and a line in [All].
package instrument

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/core/export"
	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/instrument/bpf"
	"github.com/tare-bench/tare/internal/instrument/lifecycle"
	"github.com/tare-bench/tare/internal/instrument/overhead"
	"github.com/tare-bench/tare/internal/instrument/startup"
	"github.com/tare-bench/tare/internal/instrument/storage"
	"github.com/tare-bench/tare/record"
)

// Instrument is what the rest of tare knows of one.
type Instrument struct {
	Name  string // its verb, its key in a plan, its word in a record
	Judge func(*record.Record) (Judgement, error)
	// Formats are forms of report that no other instrument has, by name.
	Formats map[string]func(io.Writer, Judgement) error
}

// Judgement is what can be said of a run. It was made once; figures and page are
// projections of it.
type Judgement interface {
	Figures() []figure.Figure
	Page(page.Options) *page.Page
	Result() (failed, total int, findings []record.Finding)
}

// All instruments, in the order in which people meet them.
var All = []Instrument{
	{Name: lifecycle.Name, Judge: judge(lifecycle.Judge)},
	{Name: overhead.Name, Judge: judge(overhead.Judge)},
	{Name: storage.Name, Judge: judge(storage.Judge)},
	{Name: startup.Name, Judge: judge(startup.Judge), Formats: formatsOf(startup.Formats)},
	{Name: bpf.Name, Judge: judge(bpf.Judge)},
}

func judge[J Judgement](f func(*record.Record) (J, error)) func(*record.Record) (Judgement, error) {
	return func(rec *record.Record) (Judgement, error) { return f(rec) }
}

// formatsOf are formats that an instrument writes of its own judgement.
func formatsOf[J Judgement](own map[string]func(io.Writer, J) error) map[string]func(io.Writer, Judgement) error {
	out := map[string]func(io.Writer, Judgement) error{}
	for name, write := range own {
		out[name] = func(w io.Writer, j Judgement) error { return write(w, j.(J)) }
	}
	return out
}

// Of returns the instrument of that name.
func Of(name string) (*Instrument, bool) {
	i := slices.IndexFunc(All, func(one Instrument) bool { return one.Name == name })
	if i < 0 {
		return nil, false
	}
	return &All[i], true
}

// Judge judges a record by its own instrument.
func Judge(rec *record.Record) (Judgement, error) {
	one, ok := Of(rec.Header.Experiment)
	if !ok {
		return nil, fmt.Errorf("this is a record of %q; this version of tare reports %s", rec.Header.Experiment, strings.Join(names(), ", "))
	}
	return one.Judge(rec)
}

func names() []string {
	out := make([]string, len(All))
	for i, one := range All {
		out[i] = one.Name
	}
	return out
}

// Judged is a record and its judgement.
type Judged struct {
	Record *record.Record
	Judgement
}

// formats that every instrument has.
var formats = []string{"text", "json", "md", "csv"}

// CheckFormat refuses a format that there is not of an instrument; "" asks for one
// that some instrument has.
func CheckFormat(format, name string) error {
	if slices.Contains(formats, format) {
		return nil
	}
	var own []string
	for _, one := range All {
		if one.Formats[format] != nil && (name == "" || name == one.Name) {
			return nil
		}
		for f := range one.Formats {
			own = append(own, f+" (of "+one.Name+")")
		}
	}
	slices.Sort(own)
	return fmt.Errorf("there is no format %q here: the formats are %s", format, strings.Join(append(slices.Clone(formats), own...), ", "))
}

// Report writes the report of runs in a format: of text and Markdown one below the
// other, of the others all in one document.
func Report(w io.Writer, format string, all []Judged, o page.Options) error {
	switch format {
	case "text", "md":
		pages := make([]*page.Page, len(all))
		for i, one := range all {
			pages[i] = one.Page(o)
		}
		return page.Write(w, format, pages, o)
	case "json":
		return export.JSON(w, documents(all))
	case "csv":
		return export.CSV(w, documents(all))
	}
	for _, one := range all {
		if err := CheckFormat(format, one.Record.Header.Experiment); err != nil {
			return err
		}
		if instrument, ok := Of(one.Record.Header.Experiment); ok {
			if err := instrument.Formats[format](w, one.Judgement); err != nil {
				return err
			}
		}
	}
	return nil
}

func documents(all []Judged) []export.Document {
	out := make([]export.Document, len(all))
	for i, one := range all {
		failed, total, findings := one.Result()
		out[i] = export.Document{Record: one.Record, Figures: one.Figures(), Findings: findings, Failed: failed, Total: total}
	}
	return out
}
