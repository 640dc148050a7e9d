// Package instrument defines the Instrument type. It judges and reports records through a list of
// instruments, without depending on any of them.
//
// An instrument answers one question about runtimes. Its folder contains its options, record lines,
// judgement, figures and page; run/ contains the measurement itself. Package all lists the
// instruments.
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

// Instrument describes an instrument to the rest of tare. It does not include the measurement, so that
// reports can be made without an engine.
type Instrument struct {
	Name                 string // the verb, the key in a plan, and the experiment in a record
	Help                 string // the question it answers, for the schema of plans
	Short, Long, Example string // help of the verb
	New                  func() option.Options
	Modes                []Mode            // variants, each with its own verb
	Quantities           *figure.Catalogue // the quantities of its figures
	Lines                []record.LineType // record lines in addition to those of package record
	Judge                func(*record.Record) (Judgement, error)
	Verbose              string            // what -v adds to reports
	Formats              map[string]Format // report formats that only this instrument has
}

// Mode is a variant of an instrument with its own defaults.
type Mode struct {
	Name, Short, Long, Example string
	New                        func() option.Options
}

// Format is a report format.
type Format struct {
	Help  string
	Write func(io.Writer, Judgement) error
}

// Judgement is the evaluation of a run. Figures and Page present it without computing anything new.
type Judgement interface {
	Figures() []figure.Figure
	Page(page.Options) *page.Page
	Result() (failed, total int, findings []record.Finding)
}

// Judging adapts an instrument's judge to the type of Instrument.Judge.
func Judging[J Judgement](f func(*record.Record) (J, error)) func(*record.Record) (Judgement, error) {
	return func(rec *record.Record) (Judgement, error) { return f(rec) }
}

// ReadPlan reads the plan of a record. It returns an error if the record is not of the named
// instrument.
func ReadPlan(h *record.Header, name string, plan option.Options) error {
	if h.Experiment != name {
		return fmt.Errorf("this is a record of %q, not of %s", h.Experiment, name)
	}
	if err := option.Unmarshal(h.Plan, plan); err != nil {
		return fmt.Errorf("the record's plan cannot be read: %w", err)
	}
	return nil
}

// Baseline returns the target that the others are compared with: the wanted one, else the first
// runtime, else the first target. It returns "" for a single target.
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

// List is a list of instruments in display order.
type List []Instrument

// Of returns the instrument with the given name.
func (l List) Of(name string) (*Instrument, bool) {
	i := slices.IndexFunc(l, func(one Instrument) bool { return one.Name == name })
	if i < 0 {
		return nil, false
	}
	return &l[i], true
}

// Names returns the names of all instruments.
func (l List) Names() []string {
	out := make([]string, len(l))
	for i, one := range l {
		out[i] = one.Name
	}
	return out
}

// Lines returns the line types of all instruments' records.
func (l List) Lines() (*record.Lines, error) {
	var own []record.LineType
	for _, one := range l {
		own = append(own, one.Lines...)
	}
	return record.NewLines(own...)
}

// Judge judges a record with the record's own instrument.
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

// CheckFormat returns an error if the named instrument does not have the format. With an empty name,
// any instrument may have it.
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
		return fmt.Errorf("format %s is supported by %s only, not by %s; choose another format", format, strings.Join(of, ", "), name)
	}
	return term.Unknown("format", format, l.FormatNames(name))
}

// FormatNames returns all report formats of an instrument, or of every instrument if of is "".
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

// Report writes a report of runs. Formats for people contain one page per run, formats for programs a
// single document. A format of one instrument accepts a single run.
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
		return fmt.Errorf("format %q accepts one record at a time: report the others separately", format)
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

// Documents converts judged runs for package export. The labels of a record are added to its figures.
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
		rec := one.Record // keep only what is written
		out[i] = export.Document{Record: &record.Record{Header: rec.Header, Targets: rec.Targets, End: rec.End}, Figures: figures, Findings: findings, Failed: failed, Total: total}
	}
	return out
}
