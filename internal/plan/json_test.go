package plan

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"
)

// The plan in a record is all that is needed to do the run again.
func TestThePlanOfARecordIsAPlanFile(t *testing.T) {
	full := Defaults()
	full.Targets, full.Baseline, full.Lanes = []string{"runc", "crun=/opt/crun"}, "runc", []int{1, 50}
	full.Precision, full.Seed, full.Budget = 0.05, 1<<64-1, 90*time.Second
	plain := Defaults()
	want := &Plan{Version: 1, Name: "n", Description: "two\nlines \"quoted\"", Measure: []Measure{{Lifecycle: &full}, {Lifecycle: &plain}}}
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Parse("record.json", text)
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("as a file: got %+v", got)
	}
	read := new(Plan)
	if err := json.Unmarshal(text, read); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(read, want) {
		t.Errorf("as JSON: got %+v", read)
	}
}

func TestDurationsInJSONAreText(t *testing.T) {
	text, err := json.Marshal(Lifecycle{Budget: 10 * time.Minute, Timeout: 30 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"budget":"10m"`, `"timeout":"30s"`, `"targets":[]`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %s in %s", want, text)
		}
	}
	if err := json.Unmarshal([]byte(`{"budget":"soon"}`), new(Lifecycle)); err == nil || !strings.Contains(err.Error(), `budget: "soon" is not a duration`) {
		t.Errorf("got %v", err)
	}
}
