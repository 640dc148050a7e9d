package record

import (
	"encoding/json"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

const page = "../docs/record.md"

func TestTheExamplesOfThePageAreARecord(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var file strings.Builder
	for _, example := range regexp.MustCompile("(?s)```json\n(.*?\n)```").FindAllSubmatch(text, -1) {
		file.Write(example[1])
	}
	got, err := Read(strings.NewReader(file.String()))
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Problems) != 0 || got.End == nil || len(lines(got)) != 23 {
		t.Errorf("%d lines, end %v, problems %v", len(lines(got)), got.End, got.Problems)
	}
	// A field that the types do not have would be passed over in silence.
	for _, line := range strings.Split(strings.TrimSpace(file.String()), "\n") {
		kind, err := lineType([]byte(line))
		if err != nil {
			t.Fatal(err)
		}
		value := reflect.New(lineTypes[kind]).Interface()
		decoder := json.NewDecoder(strings.NewReader(line))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(value); err != nil {
			t.Errorf("the example of %s: %v", kind, err)
		}
	}
}

func TestThePageNamesEveryField(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for kind, lineType := range lineTypes {
		_, section, ok := strings.Cut(string(text), "\n## "+string(kind)+"\n")
		if !ok {
			t.Errorf("the page has no section %s", kind)
			continue
		}
		section, _, _ = strings.Cut(section, "\n## ")
		for _, field := range fieldNames(lineType) {
			if field != "type" && !strings.Contains(section, "`"+field+"`") {
				t.Errorf("the section %s does not explain %s", kind, field)
			}
			if !strings.Contains(section, `"`+field+`":`) {
				t.Errorf("the example of %s has no %s", kind, field)
			}
		}
	}
}

var lineTypes = map[Type]reflect.Type{
	TypeHeader: reflect.TypeFor[Header](), TypeTarget: reflect.TypeFor[Target](), TypeBatch: reflect.TypeFor[Batch](),
	TypeNode: reflect.TypeFor[Node](), TypeReading: reflect.TypeFor[Reading](), TypeSeries: reflect.TypeFor[Series](),
	TypeCell: reflect.TypeFor[Cell](), TypePlace: reflect.TypeFor[Place](), TypeCeiling: reflect.TypeFor[Ceiling](),
	TypeStart: reflect.TypeFor[Start](), TypeLogs: reflect.TypeFor[Logs](),
	TypeProgram: reflect.TypeFor[Program](), TypePoint: reflect.TypeFor[Point](),
	TypeFinding: reflect.TypeFor[Finding](), TypeEnd: reflect.TypeFor[End](),
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
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		names = append(names, name)
		names = append(names, fieldNames(t.Field(i).Type)...)
	}
	return names
}
