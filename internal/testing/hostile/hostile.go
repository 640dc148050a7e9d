// Package hostile inserts harmful text into every field of a record that may have
// external content. It is for tests.
package hostile

import (
	"encoding/json"
	"reflect"
	"slices"

	"github.com/tare-bench/tare/record"
)

// words are the fields that stay unchanged: they have text of tare itself, or keys that
// connect records.
var words = []string{"Type", "Kind", "Phase", "Case", "Method", "Op", "Done", "Status", "Experiment", "Code", "Volume", "Cache", "RW", "Tool", "Clock", "Schema", "Absent", "Job", "Unit", "Charge", "Cgroup", "Driver"}

// Record appends a text to every external text in a record, and to its plan's title.
func Record(rec *record.Record, text string) error {
	add(reflect.ValueOf(rec), "", text)
	for _, line := range rec.Own() {
		add(reflect.ValueOf(line), "", text)
	}
	var plan map[string]json.RawMessage
	if err := json.Unmarshal(rec.Header.Plan, &plan); err != nil {
		return err
	}
	title, err := json.Marshal("T" + text)
	if err != nil {
		return err
	}
	plan["title"] = title
	rec.Header.Plan, err = json.Marshal(plan)
	return err
}

func add(v reflect.Value, field, text string) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			add(v.Elem(), field, text)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				add(v.Field(i), v.Type().Field(i).Name, text)
			}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return // the plan has its own reader
		}
		for i := range v.Len() {
			add(v.Index(i), field, text)
		}
	case reflect.String:
		if v.Type().Name() == "string" && v.Len() > 0 && !slices.Contains(words, field) {
			v.SetString(v.String() + text)
		}
	}
}
