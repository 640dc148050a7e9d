package startup

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"strconv"

	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/record"
)

// otlpTraces is an ExportTraceServiceRequest of OpenTelemetry in OTLP's JSON form:
// names in lowerCamelCase, ids in hex, 64-bit numbers as text, enumerations as
// numbers. Every chosen start is a trace.
type otlpTraces struct {
	Resources []otlpResource `json:"resourceSpans"`
}

type otlpResource struct {
	Resource otlpAttributes `json:"resource"`
	Scopes   []otlpScope    `json:"scopeSpans"`
}

type otlpAttributes struct {
	Attributes []otlpAttribute `json:"attributes"`
}

type otlpScope struct {
	Scope otlpLibrary `json:"scope"`
	Spans []otlpSpan  `json:"spans"`
}

type otlpLibrary struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
}

type otlpSpan struct {
	Trace      string          `json:"traceId"`
	Span       string          `json:"spanId"`
	Parent     string          `json:"parentSpanId,omitempty"`
	Name       string          `json:"name"`
	Kind       int             `json:"kind"`              // 1: internal
	Began      string          `json:"startTimeUnixNano"` // ns since 1970
	Ended      string          `json:"endTimeUnixNano"`
	Attributes []otlpAttribute `json:"attributes"`
	Events     []otlpEvent     `json:"events,omitempty"`
	Status     otlpStatus      `json:"status"`
}

type otlpEvent struct {
	At   string `json:"timeUnixNano"`
	Name string `json:"name"`
}

type otlpStatus struct {
	Code    int    `json:"code,omitempty"` // 0: not said, 2: an error
	Message string `json:"message,omitempty"`
}

type otlpAttribute struct {
	Key   string    `json:"key"`
	Value otlpValue `json:"value"`
}

// otlpValue is one of these.
type otlpValue struct {
	Text *string `json:"stringValue,omitempty"`
	Int  *string `json:"intValue,omitempty"`
	Bool *bool   `json:"boolValue,omitempty"`
}

const (
	spanInternal = 1
	statusError  = 2
)

// approximate is said of times whose clock is not that of the day.
const approximate = "approximate: placed by the wall clock at the beginning of the run; differences are exact"

func otlpOf(rec *record.Record, v *Judgement) (all []any) {
	first := firstOf(v)
	for i := range v.Targets {
		t := &v.Targets[i]
		for _, d := range t.traced() {
			x := newSpans(rec, t, d, first)
			all = append(all, otlpTraces{[]otlpResource{{
				Resource: otlpAttributes{[]otlpAttribute{
					text("service.name", page.Known(t.Target)), text("tare.run_id", rec.Header.RunID), text("tare.engine", t.Engine),
				}},
				Scopes: []otlpScope{{otlpLibrary{"github.com/tare-bench/tare", rec.Header.Version}, x.all()}},
			}}})
		}
	}
	return all
}

// firstOf is when the first of the drawn starts began that are on the host's
// monotonic clock: that moment is taken for the beginning of the run.
func firstOf(v *Judgement) int64 {
	first := int64(math.MaxInt64)
	for i := range v.Targets {
		for _, d := range v.Targets[i].traced() {
			if d.Start.Clock == record.ClockMonotonic {
				first = min(first, d.Start.Began)
			}
		}
	}
	return first
}

// spans makes the spans of one start.
type spans struct {
	rec  *record.Record
	t    *Target
	d    *Drawn
	s    *record.Start
	zero int64 // ns since 1970 at which the start's clock was 0
	note string
}

func newSpans(rec *record.Record, t *Target, d *Drawn, first int64) *spans {
	x := &spans{rec: rec, t: t, d: d, s: d.Start}
	switch x.s.Clock {
	case record.ClockWall:
	case record.ClockMonotonic:
		x.zero, x.note = since(first, rec.Header.Started.UnixNano()), approximate
	default:
		x.zero, x.note = since(x.s.Began, rec.Header.Started.UnixNano()), approximate
	}
	return x
}

// all are the start itself, its rows below each other as they were called, and
// its gaps.
func (x *spans) all() []otlpSpan {
	end := max(endOf(x.d), x.s.Began)
	root := x.span(0, "", "start "+page.Known(x.t.Target), x.s.Began, end)
	root.Attributes = append(root.Attributes, number("tare.round", int64(x.s.Round)))
	for _, one := range []struct{ key, value string }{
		{"tare.target", x.t.Target}, {"tare.method", x.s.Method}, {"tare.clock", x.s.Clock}, {"tare.times", x.note}, {"tare.command", x.s.Command},
		{"tare.sandbox", x.s.Sandbox}, {"tare.source", x.s.Source},
	} {
		if one.value != "" {
			root.Attributes = append(root.Attributes, text(one.key, one.value))
		}
	}
	if x.s.First > x.s.Began {
		root.Events = []otlpEvent{{x.at(x.s.First), "first instruction"}}
	}
	if f := x.s.Failure; f != nil {
		root.Status = otlpStatus{statusError, f.Detail}
	}
	all := []otlpSpan{root}
	rows := slicesOf(x.d)
	for i := range rows {
		all = append(all, x.row(&rows[i], i, all))
	}
	for i, gap := range gapSlices(x.d) {
		all = append(all, x.gap(&gap, i, len(rows), &root))
	}
	return all
}

func (x *spans) row(r *slice, i int, above []otlpSpan) otlpSpan {
	s := x.span(1+i, above[1+r.parent].Span, r.name, r.began, r.ended) // the root is the parent of those without one
	s.Attributes = append(s.Attributes, text("tare.kind", r.kind))
	if r.container != "" {
		s.Attributes = append(s.Attributes, text("container.id", r.container))
	}
	if r.pid != 0 {
		s.Attributes = append(s.Attributes, number("process.pid", int64(r.pid)))
	}
	if r.cpu >= 0 {
		s.Attributes = append(s.Attributes, number("tare.cpu_ns", r.cpu))
	}
	if r.open {
		s.Attributes = append(s.Attributes, boolean("tare.still_there", true))
	}
	if r.exit != nil {
		s.Attributes = append(s.Attributes, number("process.exit.code", int64(*r.exit)))
		if *r.exit != 0 {
			s.Status = otlpStatus{statusError, fmt.Sprintf("exit code %d", *r.exit)}
		}
	}
	return s
}

func (x *spans) gap(r *slice, i, rows int, root *otlpSpan) otlpSpan {
	g := &x.d.Gaps[i]
	s := x.span(1+rows+i, root.Span, r.name, r.began, r.ended)
	s.Attributes = append(s.Attributes, text("tare.kind", r.kind), text("tare.after", g.After), text("tare.before", g.Before))
	if g.CPU >= 0 {
		s.Attributes = append(s.Attributes, number("tare.cpu_ns", g.CPU))
	}
	if g.Wait != nil {
		s.Attributes = append(s.Attributes, text("tare.why", g.Wait.Why))
	}
	return s
}

func (x *spans) span(i int, parent, name string, began, ended int64) otlpSpan {
	return otlpSpan{
		Trace: x.id(16, "trace", 0), Span: x.id(8, "span", i), Parent: parent, Name: page.Known(name), Kind: spanInternal,
		Began: x.at(began), Ended: x.at(max(began, ended)), Attributes: []otlpAttribute{},
	}
}

// id is made of what the span is of, so that the same record gives the same ids.
func (x *spans) id(bytes int, what string, i int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %q %q %d %q %d", what, x.rec.Header.RunID, x.t.Target, x.s.Round, x.s.Source, i))
	return hex.EncodeToString(sum[:bytes])
}

// at is a moment as ns since 1970.
func (x *spans) at(ns int64) string {
	return strconv.FormatInt(max(since(-x.zero, ns), 0), 10)
}

func text(key, value string) otlpAttribute {
	return otlpAttribute{key, otlpValue{Text: &value}}
}

func number(key string, value int64) otlpAttribute {
	s := strconv.FormatInt(value, 10)
	return otlpAttribute{key, otlpValue{Int: &s}}
}

func boolean(key string, value bool) otlpAttribute {
	return otlpAttribute{key, otlpValue{Bool: &value}}
}
