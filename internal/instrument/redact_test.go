package instrument_test

import (
	"encoding/json"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

// redacted is a record with pseudonyms.
func redacted(t *testing.T, rec *record.Record) (*record.Record, *record.Redaction) {
	t.Helper()
	r, out := &record.Redaction{}, &record.Record{}
	v := reflect.ValueOf(rec).Elem()
	add := func(line reflect.Value) {
		copied, err := r.Line(line.Addr().Interface())
		must.OK(t, err)
		must.OK(t, record.Validate(copied))
		out.Add(copied)
	}
	for i := range v.NumField() {
		switch f := v.Field(i); {
		case v.Type().Field(i).Name == "Problems" || !v.Type().Field(i).IsExported():
		case f.Kind() == reflect.Struct:
			add(f)
		case f.Kind() == reflect.Pointer && !f.IsNil():
			add(f.Elem())
		case f.Kind() == reflect.Slice:
			for k := range f.Len() {
				add(f.Index(k))
			}
		}
	}
	for _, line := range rec.Own() {
		add(reflect.ValueOf(line).Elem())
	}
	return out, r
}

// digits are all that is measured in a figure.
func digits(t *testing.T, f figure.Figure) string {
	t.Helper()
	f.Labels, f.Reasons = nil, nil
	text, err := json.Marshal(f)
	must.OK(t, err)
	return string(text)
}

func TestARedactionKeepsEveryFigureAndNoName(t *testing.T) {
	t.Parallel()
	tells := regexp.MustCompile(`/(usr|var|run|tmp|home|sys|proc|root|mnt|etc|dev)/|--[a-z]+|\.(sock|log|json|md|txt)\b|\b[0-9]*[a-f][0-9a-f]{11,}|[0-9]+\.[0-9]+\.[0-9]+\.[0-9]+`)
	for _, name := range names(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rec := load(t, name)
			out, r := redacted(t, rec)
			before := judged(t, rec)
			after := judged(t, out)
			a, b := before.Figures(), after.Figures()
			if len(a) != len(b) || len(a) == 0 {
				t.Fatalf("%d figures, and %d after", len(a), len(b))
			}
			for i := range a {
				if x, y := digits(t, a[i]), digits(t, b[i]); x != y {
					t.Fatalf("figure %d, %s, was\n%s\nand is\n%s", i, a[i].Labels, x, y)
				}
			}
			if len(r.Removed()) == 0 {
				t.Error("nothing was removed")
			}
			hidden := *out
			hidden.Findings = nil
			for i := range hidden.Targets { // a digest is of a program, not of a machine
				hidden.Targets[i].Digest = ""
			}
			text, err := json.Marshal(hidden)
			must.OK(t, err)
			if at := tells.FindIndex(text); at != nil {
				t.Errorf("it still tells: %s", text[max(0, at[0]-80):min(len(text), at[1]+80)])
			}
			if strings.Contains(string(text), rec.Header.RunID) {
				t.Error("it still has the run's id")
			}
		})
	}
}
