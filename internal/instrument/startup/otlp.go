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

// object is an object in OTLP's JSON form. Field names follow
// opentelemetry/proto/trace/v1/trace.proto in lowerCamelCase. Ids are hex, 64-bit
// numbers are text, enumerations are numbers.
type object = map[string]any

const (
	spanInternal = 1
	statusError  = 2
)

// approximate is the note on times from a clock other than the wall clock.
const approximate = "approximate: placed by the wall clock at the beginning of the run; differences are exact"

// otlpOf returns OpenTelemetry ExportTraceServiceRequests. Each chosen start is a
// trace.
func otlpOf(rec *record.Record, v *Judgement) (all []any) {
	first := firstOf(v)
	for i := range v.Targets {
		t := &v.Targets[i]
		for _, d := range t.traced() {
			x := newSpans(rec, t, d, first)
			all = append(all, object{"resourceSpans": []object{{
				"resource": object{"attributes": attributes("service.name", page.Known(t.Target), "tare.run_id", rec.Header.RunID, "tare.engine", t.Engine)},
				"scopeSpans": []object{{
					"scope": object{"name": "github.com/tare-bench/tare", "version": rec.Header.Version}, "spans": x.all(),
				}},
			}}})
		}
	}
	return all
}

// firstOf returns the time at which the first of the chosen starts began, in ns on the host's
// monotonic clock. It counts as the beginning of the run.
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

// spans builds the spans of one start.
type spans struct {
	rec  *record.Record
	t    *Target
	d    *Drawn
	s    *record.Start
	zero int64 // time of the start's clock zero, ns since 1970
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

// all returns the spans of the start, its nested rows, and its gaps.
func (x *spans) all() []object {
	root := x.span(0, "", "start "+page.Known(x.t.Target), x.s.Began, max(endOf(x.d), x.s.Began),
		"tare.round", int64(x.s.Round), "tare.target", x.t.Target, "tare.method", x.s.Method, "tare.clock", x.s.Clock, "tare.times", x.note,
		"tare.command", x.s.Command, "tare.sandbox", x.s.Sandbox, "tare.source", x.s.Source)
	var events []object
	for name, ns := range milestones(x.s) {
		events = append(events, object{"timeUnixNano": x.at(ns), "name": name})
	}
	if events != nil {
		root["events"] = events
	}
	if f := x.s.Failure; f != nil {
		root["status"] = object{"code": statusError, "message": f.Detail}
	}
	all := []object{root}
	rows, gaps := slicesOf(x.d)
	for i, r := range append(rows, gaps...) {
		pid := int64(r.Pid)
		if pid == 0 {
			pid = -1
		}
		one := x.span(1+i, x.id(8, "span", 1+r.parent), r.Name, r.Began, r.Ended, // rows without a parent are children of the root
			"tare.kind", r.Kind, "container.id", r.Container, "process.pid", known(pid), "tare.after", r.after, "tare.before", r.before,
			"tare.cpu_ns", known(r.CPU), "tare.still_there", r.Open, "tare.why", r.why)
		if r.Exit != nil {
			one["attributes"] = append(one["attributes"].([]object), attributes("process.exit.code", int64(*r.Exit))...)
			if *r.Exit != 0 {
				one["status"] = object{"code": statusError, "message": fmt.Sprintf("exit code %d", *r.Exit)}
			}
		}
		all = append(all, one)
	}
	return all
}

func (x *spans) span(i int, parent, name string, began, ended int64, pairs ...any) object {
	o := object{
		"traceId": x.id(16, "trace", 0), "spanId": x.id(8, "span", i), "name": page.Known(name), "kind": spanInternal,
		"startTimeUnixNano": x.at(began), "endTimeUnixNano": x.at(max(began, ended)), "attributes": attributes(pairs...), "status": object{},
	}
	if parent != "" {
		o["parentSpanId"] = parent
	}
	return o
}

// id derives an id from the identity of a span, so that equal records have equal ids.
func (x *spans) id(bytes int, what string, i int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %q %q %d %q %d", what, x.rec.Header.RunID, x.t.Target, x.s.Round, x.s.Source, i))
	return hex.EncodeToString(sum[:bytes])
}

// at returns a time in ns since 1970.
func (x *spans) at(ns int64) string {
	return strconv.FormatInt(max(since(-x.zero, ns), 0), 10)
}

// attributes converts key-value pairs to attributes and omits empty values.
func attributes(pairs ...any) []object {
	all := []object{}
	for i := 0; i+1 < len(pairs); i += 2 {
		var value object
		switch v := pairs[i+1].(type) {
		case string:
			if v == "" {
				continue
			}
			value = object{"stringValue": v}
		case int64:
			value = object{"intValue": strconv.FormatInt(v, 10)}
		case bool:
			if !v {
				continue
			}
			value = object{"boolValue": v}
		default:
			continue
		}
		all = append(all, object{"key": pairs[i], "value": value})
	}
	return all
}

// known returns v, or nil if v is negative (unknown).
func known(v int64) any {
	if v < 0 {
		return nil
	}
	return v
}
