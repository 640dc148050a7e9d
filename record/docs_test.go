package record

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/testing/must"
)

func TestTheExamplesOfThePageAreARecord(t *testing.T) {
	t.Parallel()
	lines := examples(t)
	got, err := Read(strings.NewReader(strings.Join(lines, "\n") + "\n"))
	must.OK(t, err)
	if len(got.Problems) != 0 || got.End == nil || count(got) != 32 {
		t.Errorf("%d lines, end %v, problems %v", count(got), got.End, got.Problems)
	}
	// A field that the types do not have would be passed over in silence.
	for _, line := range lines {
		kind, err := lineType([]byte(line))
		must.OK(t, err)
		decoder := json.NewDecoder(strings.NewReader(line))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(reflect.New(standard().byWord[kind].of).Interface()); err != nil {
			t.Errorf("the example of %s: %v", kind, err)
		}
	}
}

func TestThePageNamesEveryField(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(page)
	must.OK(t, err)
	for kind, line := range standard().byWord {
		_, section, ok := strings.Cut(string(text), "\n## "+string(kind)+"\n")
		if !ok {
			t.Errorf("the page has no section %s", kind)
			continue
		}
		section, _, _ = strings.Cut(section, "\n## ")
		for _, field := range fieldNames(line.of) {
			if field != "type" && !strings.Contains(section, "`"+field+"`") {
				t.Errorf("the section %s does not explain %s", kind, field)
			}
			if !strings.Contains(section, `"`+field+`":`) {
				t.Errorf("the example of %s has no %s", kind, field)
			}
		}
	}
}

// fieldNames returns the JSON names of a struct and of the structs in it.
func fieldNames(t reflect.Type) []string {
	for t.Kind() == reflect.Slice || t.Kind() == reflect.Map || t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	var names []string
	if t.Kind() != reflect.Struct || t.PkgPath() != reflect.TypeFor[Header]().PkgPath() {
		return nil
	}
	for field := range t.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		names = append(names, name)
		names = append(names, fieldNames(field.Type)...)
	}
	return names
}
