package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf16"

	"github.com/tare-bench/tare/record"
)

// documentHead is what every JSON report begins with.
type documentHead struct {
	Version     string             `json:"tare_version"`
	RunID       string             `json:"run_id"`
	Experiment  string             `json:"experiment"`
	Started     time.Time          `json:"started"`
	Command     []string           `json:"command"`
	Environment record.Environment `json:"environment"`
	Status      string             `json:"status"` // "done", "interrupted", "failed", "cut off"
	Why         string             `json:"why,omitempty"`
	Elapsed     int64              `json:"elapsed"` // ns; 0 when cut off
}

func headOf(rec *record.Record) documentHead {
	h := &rec.Header
	d := documentHead{
		Version: h.Version, RunID: h.RunID, Experiment: h.Experiment, Started: h.Started, Command: h.Command,
		Environment: h.Environment, Status: status(rec),
	}
	if rec.End != nil {
		d.Why, d.Elapsed = rec.End.Why, rec.End.Elapsed
	}
	return d
}

func writeValue(w io.Writer, value any) error {
	text, err := json.MarshalIndent(numbers(reflect.ValueOf(value)), "", "  ")
	if err != nil {
		return fmt.Errorf("write the report as JSON: %w", err)
	}
	_, err = w.Write(append(quiet(text), '\n'))
	return err
}

// object is a JSON object that keeps the order of its members.
type object []member

type member struct {
	name  string
	value any
}

// MarshalJSON implements [json.Marshaler].
func (o object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		name, err := json.Marshal(m.name)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(m.value)
		if err != nil {
			return nil, err
		}
		b.Write(name)
		b.WriteByte(':')
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// numbers is v as encoding/json would write it, except that a number that is
// none (NaN, an infinity) is null, for which JSON would give up the whole
// report, and that a list without elements is one and not null.
func numbers(v reflect.Value) any {
	if _, ok := v.Interface().(json.Marshaler); ok {
		return v.Interface()
	}
	switch v.Kind() {
	case reflect.Float64:
		if !finite(v.Float()) {
			return nil
		}
	case reflect.Pointer:
		if v.IsNil() {
			return nil
		}
		return numbers(v.Elem())
	case reflect.Slice:
		list := make([]any, v.Len())
		for i := range list {
			list[i] = numbers(v.Index(i))
		}
		return list
	case reflect.Map:
		o := object{}
		for _, key := range v.MapKeys() {
			o = append(o, member{key.String(), numbers(v.MapIndex(key))})
		}
		slices.SortFunc(o, func(a, b member) int { return strings.Compare(a.name, b.name) })
		return o
	case reflect.Struct:
		return fields(v)
	}
	return v.Interface()
}

// fields are the members of a struct. What it has embedded is its own, as in
// encoding/json; a name without a tag is written small, as all others are.
func fields(v reflect.Value) object {
	o := object{}
	for i := range v.NumField() {
		field := v.Type().Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" && field.Anonymous && field.Type.Kind() == reflect.Struct { // exported or not, its fields may be
			o = append(o, fields(v.Field(i))...)
			continue
		}
		if !field.IsExported() || options == "omitempty" && empty(v.Field(i)) {
			continue
		}
		if name == "" {
			name = strings.ToLower(field.Name)
		}
		o = append(o, member{name, numbers(v.Field(i))})
	}
	return o
}

func empty(v reflect.Value) bool {
	if v.Kind() == reflect.Slice || v.Kind() == reflect.Map {
		return v.Len() == 0
	}
	return v.IsZero()
}

// quiet writes characters that a terminal obeys or does not show as escapes,
// which encoding/json does only for those below a space. The text stays the
// same to a reader of JSON: outside of strings there are none.
func quiet(text []byte) []byte {
	out := make([]byte, 0, len(text))
	for _, r := range string(text) {
		switch {
		case r == '\n' || unicode.IsGraphic(r):
			out = append(out, string(r)...)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
	}
	return out
}
