package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/testing/must"
)

const page = "../docs/record.md"

const headerLine = `{"type":"header","schema":1}` + "\n"

const batchPrefix = `{"type":"batch","phase":"measure","target":"runc","op":"create","lanes":2,"released":1000,"samples":`

// examples are the example lines of the page: every type with every field.
func examples(t testing.TB) []string {
	t.Helper()
	text := must.Get(os.ReadFile(page))(t)
	var all []string
	for _, example := range regexp.MustCompile("(?s)```json\n(.*?)\n```").FindAllSubmatch(text, -1) {
		all = append(all, strings.Split(string(example[1]), "\n")...)
	}
	return all
}

// decoded returns the examples as lines.
func decoded(t testing.TB) (lines []any) {
	t.Helper()
	r := NewReader(strings.NewReader(strings.Join(examples(t), "\n") + "\n"))
	for {
		line, err := r.Next()
		if errors.Is(err, io.EOF) {
			return lines
		}
		must.OK(t, err)
		lines = append(lines, line)
	}
}

// written returns the output of a writer for lines, in total and per line.
func written(t testing.TB, lines []any) (string, []string) {
	t.Helper()
	var b strings.Builder
	w := NewWriter(&b)
	for _, line := range lines {
		must.OK(t, w.Write(line))
	}
	return b.String(), strings.SplitAfter(strings.TrimSuffix(b.String(), "\n"), "\n")
}

// count returns the number of lines in a record.
func count(r *Record) int {
	n := 1 // the header
	for v, i := reflect.ValueOf(*r), 1; i < v.NumField(); i++ {
		switch f := v.Field(i); {
		case f.Kind() == reflect.Slice && v.Type().Field(i).Name != "Problems":
			n += f.Len()
		case f.Kind() == reflect.Pointer && !f.IsNil():
			n++
		}
	}
	return n
}

// edited returns an example ("start", "start 2" for the second of its type). Values may
// be set, as in "processes.0.pid=0 & round=1", or removed, as in "round=".
func edited(t testing.TB, example, edits string) string {
	t.Helper()
	kind, nth, _ := strings.Cut(example, " ")
	n, _ := strconv.Atoi(nth)
	var line any
	for _, text := range examples(t) {
		if !strings.HasPrefix(text, `{"type":"`+kind+`"`) {
			continue
		}
		if n--; n > 0 {
			continue
		}
		decoder := json.NewDecoder(strings.NewReader(text))
		decoder.UseNumber()
		must.OK(t, decoder.Decode(&line))
		break
	}
	for edit := range strings.SplitSeq(edits, " & ") {
		if path, value, ok := strings.Cut(edit, "="); ok {
			set(line, strings.Split(path, "."), value)
		}
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	must.OK(t, encoder.Encode(line))
	return text.String()
}

func set(in any, path []string, value string) {
	switch in := in.(type) {
	case []any:
		i, _ := strconv.Atoi(path[0])
		if len(path) == 1 {
			in[i] = json.RawMessage(value)
			return
		}
		set(in[i], path[1:], value)
	case map[string]any:
		switch {
		case len(path) > 1:
			set(in[path[0]], path[1:], value)
		case value == "":
			delete(in, path[0])
		default:
			in[path[0]] = json.RawMessage(value)
		}
	}
}

// list repeats an element n times.
func list(n int, element string) string {
	return "[" + strings.TrimSuffix(strings.Repeat(element+",", n), ",") + "]"
}

// long returns a text of n bytes.
func long(n int) string { return `"` + strings.Repeat("x", n) + `"` }

// few returns the lines of a short record.
func few() []any {
	return []any{
		Header{RunID: "tare-1f", Experiment: "lifecycle"},
		Target{Name: "runc", Operations: map[string]Operation{"create": {Command: "runc create -b a ID && true", Done: StampReturned}}},
		Batch{Phase: PhaseWarmup, Target: "runc", Op: "create", Lanes: 1, Released: 1000, Samples: []Sample{{Start: 1100, Returned: 2000, First: 1500, Seen: 1600}}},
		Finding{Code: "drift", Message: "it drifts"},
		End{Status: "done", Batches: 1},
	}
}

func TestPageExamplesAreARecord(t *testing.T) {
	t.Parallel()
	lines := examples(t)
	got := must.Get(Read(strings.NewReader(strings.Join(lines, "\n") + "\n")))(t)
	if len(got.Problems) != 0 || got.End == nil || count(got) != 33 {
		t.Errorf("%d lines, end %v, problems %v", count(got), got.End, got.Problems)
	}
	// A reader would silently ignore a field that the types do not have.
	for _, line := range lines {
		kind := must.Get(lineType([]byte(line)))(t)
		decoder := json.NewDecoder(strings.NewReader(line))
		decoder.DisallowUnknownFields()
		must.OK(t, decoder.Decode(reflect.New(standard().byWord[kind].of).Interface()))
	}
}

func TestPageNamesEveryField(t *testing.T) {
	t.Parallel()
	text := must.Get(os.ReadFile(page))(t)
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
