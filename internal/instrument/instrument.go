// Package instrument says what an instrument is, and what is done with a list of
// them without knowing any by name: a record is judged by its own, and reported.
//
// An instrument is one question about runtimes, whole in a folder of its own: its
// options, its lines of the record, its judgement, figures and page, and in run/
// how it is performed. Package all lists those that there are.
package instrument

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/core/export"
	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/option"
	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/record"
)

// Instrument is what the rest of tare knows of one. How it is performed is not
// among it, so that a report can be made without any engine.
type Instrument struct {
	Name                 string // its verb, its key in a plan, its word in a record
	Help                 string // its question, in the schema of plans
	Short, Long, Example string // the help of its verb
	New                  func() option.Options
	Modes                []Mode            // ways to ask it, each with a verb of its own below
	Quantities           *figure.Catalogue // all that its figures can be of
	Lines                []record.LineType // of its records, beside those that package record declares
	Judge                func(*record.Record) (Judgement, error)
	Verbose              string            // what reports show with -v
	Formats              map[string]Format // forms of report that no other instrument has
}

// Mode is a part of an instrument's question, with defaults of its own.
type Mode struct {
	Name, Short, Long, Example string
	New                        func() option.Options
}

// Format is a form of report.
type Format struct {
	Help  string
	Write func(io.Writer, Judgement) error
}

// Judgement is what can be said of a run. It was made once; figures and page are
// projections of it.
type Judgement interface {
	Figures() []figure.Figure
	Page(page.Options) *page.Page
	Result() (failed, total int, findings []record.Finding)
}

// Judging is an instrument's own judge.
func Judging[J Judgement](f func(*record.Record) (J, error)) func(*record.Record) (Judgement, error) {
	return func(rec *record.Record) (Judgement, error) { return f(rec) }
}

// ReadPlan reads what the measurement of a record was asked for, if it is a record of
// the instrument of that name.
func ReadPlan(h *record.Header, name string, plan option.Options) error {
	if h.Experiment != name {
		return fmt.Errorf("this is a record of %q, not of %s", h.Experiment, name)
	}
	if err := option.Unmarshal(h.Plan, plan); err != nil {
		return fmt.Errorf("the record's plan cannot be read: %w", err)
	}
	return nil
}

// Baseline is the target that the others are compared with: the wanted one, or the
// first runtime, or else the first target; "" where there is one only.
func Baseline(wanted string, targets []record.Target) string {
	if len(targets) < 2 {
		return ""
	}
	for _, t := range targets {
		if t.Name == wanted {
			return wanted
		}
	}
	for _, t := range targets {
		if t.Kind != "host" && t.Kind != "floor" {
			return t.Name
		}
	}
	return targets[0].Name
}

// List are instruments, in the order in which people meet them.
type List []Instrument

// Of returns the instrument of that name.
func (l List) Of(name string) (*Instrument, bool) {
	i := slices.IndexFunc(l, func(one Instrument) bool { return one.Name == name })
	if i < 0 {
		return nil, false
	}
	return &l[i], true
}

// Names are those of all.
func (l List) Names() []string {
	out := make([]string, len(l))
	for i, one := range l {
		out[i] = one.Name
	}
	return out
}

// Lines are the types of line of all their records.
func (l List) Lines() (*record.Lines, error) {
	var own []record.LineType
	for _, one := range l {
		own = append(own, one.Lines...)
	}
	return record.NewLines(own...)
}

// Judge judges a record by its own instrument.
func (l List) Judge(rec *record.Record) (Judgement, error) {
	one, ok := l.Of(rec.Header.Experiment)
	if !ok {
		return nil, fmt.Errorf("this is a record of %q; this version of tare reports %s", rec.Header.Experiment, strings.Join(l.Names(), ", "))
	}
	return one.Judge(rec)
}

// Judged is a record and its judgement.
type Judged struct {
	Record *record.Record
	Judgement
}

// CheckFormat refuses a format that there is not of an instrument; "" asks for one
// that some instrument has.
func (l List) CheckFormat(format, name string) error {
	if _, ok := export.FormatOf(format); ok || slices.Contains(page.Formats, format) {
		return nil
	}
	var of []string
	for _, one := range l {
		if one.Formats[format].Write != nil {
			if name == "" || name == one.Name {
				return nil
			}
			of = append(of, one.Name)
		}
	}
	if of != nil {
		return fmt.Errorf("%s is of %s only, and not of %s; choose another format", format, strings.Join(of, ", "), name)
	}
	known := l.FormatNames(name)
	return fmt.Errorf("there is no format %q here: the formats are %s%s", format, strings.Join(known, ", "), term.Like(format, known))
}

// FormatNames are all formats of an instrument's reports; of "" those of every instrument.
func (l List) FormatNames(of string) []string {
	names := slices.Clone(page.Formats)
	for _, f := range export.Formats {
		names = append(names, f.Name)
	}
	for _, one := range l {
		if of == "" || of == one.Name {
			names = append(names, slices.Sorted(maps.Keys(one.Formats))...)
		}
	}
	return names
}

// Report writes the report of runs in a format: of those for people one below the
// other, of those for programs all in one document. An instrument's own format takes
// one run.
func (l List) Report(w io.Writer, format string, all []Judged, o page.Options) error {
	if slices.Contains(page.Formats, format) {
		pages := make([]*page.Page, len(all))
		for i, one := range all {
			pages[i] = one.Page(o)
			pages[i].Head = append(pages[i].Head, page.Labels(one.Record)...)
		}
		return page.Write(w, format, pages, o)
	}
	if f, ok := export.FormatOf(format); ok {
		return f.Write(w, Documents(all))
	}
	if len(all) > 1 {
		return fmt.Errorf("as %q one record is reported at a time: give the others in reports of their own", format)
	}
	for _, one := range all {
		if err := l.CheckFormat(format, one.Record.Header.Experiment); err != nil {
			return err
		}
		if instrument, ok := l.Of(one.Record.Header.Experiment); ok {
			if err := instrument.Formats[format].Write(w, one.Judgement); err != nil {
				return err
			}
		}
	}
	return nil
}

// Documents are judged runs as the formats of package export take them. What their
// records were labelled with are labels of their figures, too.
func Documents(all []Judged) []export.Document {
	out := make([]export.Document, len(all))
	for i, one := range all {
		failed, total, findings := one.Result()
		figures := one.Figures()
		for k := range figures {
			for _, l := range one.Record.Labelled() {
				if figures[k].Labels.Get(l.Key) == "" {
					figures[k].Labels = figures[k].Labels.With(l.Key, l.Value)
				}
			}
		}
		rec := one.Record // of which no more is kept than is written
		out[i] = export.Document{Record: &record.Record{Header: rec.Header, Targets: rec.Targets, End: rec.End}, Figures: figures, Findings: findings, Failed: failed, Total: total}
	}
	return out
}
