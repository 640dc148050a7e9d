package plan

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/tare-bench/tare/internal/core/option"
	"github.com/tare-bench/tare/internal/instrument/all"
	"github.com/tare-bench/tare/internal/instrument/overhead"
	"github.com/tare-bench/tare/internal/instrument/storage"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/golden"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

// everything sets every field of every instrument to a value other than its default.
const everything = "testdata/everything.plan"

func ready(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("../../plans/*.yaml")
	must.That(t, err == nil && len(files) != 0, "no shipped plans: %v", err)
	return files
}

func load(path string) (*Plan, error) {
	text, err := option.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return Parse(path, text, all.Instruments)
}

// Each testdata/<case>.yaml is invalid, and <case>.golden has Parse's exact error text,
// because users act on it.
func TestPlanErrorsHavePositions(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.yaml")
	must.That(t, err == nil && len(files) != 0, "no test files: %v", err)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			_, err := load(file)
			must.That(t, err != nil, "no error")
			got := strings.ReplaceAll(err.Error(), "testdata/", "") + "\n"
			golden.Same(t, strings.TrimSuffix(file, ".yaml")+".golden", got)
		})
	}
}

func TestShippedPlansMatchTheSchema(t *testing.T) {
	t.Parallel()
	schema := compiled(t)
	for _, file := range append(ready(t), everything) {
		p := must.Get(load(file))(t)
		if file != everything && (p.Name != strings.TrimSuffix(filepath.Base(file), ".yaml") || p.Description == "") {
			t.Errorf("%s: name %q, description %q", file, p.Name, p.Description)
		}
		err := schema.Validate(document(t, file))
		check.That(t, err == nil, "%s: %v", file, err)
	}
}

func TestSchemaRefusesInvalidPlans(t *testing.T) {
	t.Parallel()
	schema := compiled(t)
	for _, name := range []string{"unknown-fields", "values-out-of-range", "overhead-out-of-range", "storage-out-of-range", "bpf-out-of-range", "items-of-the-wrong-kind", "version-newer", "measure-missing"} {
		check.That(t, schema.Validate(document(t, "testdata/"+name+".yaml")) != nil, "%s is valid by the schema", name)
	}
}

func compiled(t *testing.T) *jsonschema.Schema {
	t.Helper()
	text := must.Get(Schema(all.Instruments))(t)
	parsed := must.Get(jsonschema.UnmarshalJSON(bytes.NewReader(text)))(t)
	c := jsonschema.NewCompiler()
	must.OK(t, c.AddResource("plan.json", parsed))
	return must.Get(c.Compile("plan.json"))(t)
}

// document decodes a YAML file as a schema validator does.
func document(t *testing.T, file string) any {
	t.Helper()
	text, err := os.ReadFile(file)
	must.OK(t, err)
	if text, err = yaml.YAMLToJSON(text); err != nil {
		t.Fatal(err)
	}
	return must.Get(jsonschema.UnmarshalJSON(bytes.NewReader(text)))(t)
}

func TestEveryFieldRoundTripsThroughARecord(t *testing.T) {
	t.Parallel()
	p := must.Get(load(everything))(t)
	for k, m := range p.Measure {
		stored := must.JSON(t, m.Options)
		var fields map[string]json.RawMessage
		must.OK(t, json.Unmarshal(stored, &fields))
		plain := must.JSON(t, all.Instruments[k].New())
		var defaults map[string]json.RawMessage
		must.OK(t, json.Unmarshal(plain, &defaults))
		for key := range option.Describe(m.Set)["properties"].(option.Schema) {
			if fields[key] == nil || bytes.Equal(fields[key], defaults[key]) && key != "heavy" && key != "services" { // options of the reference datapath only
				t.Errorf("%s.%s was not parsed: %s", m.Name, key, fields[key])
			}
		}
		read := all.Instruments[k].New()
		if err := json.Unmarshal(stored, read); err != nil || !reflect.DeepEqual(read, m.Options) {
			t.Errorf("%s from JSON: %v\n%+v\n%+v", m.Name, err, read, m.Options)
		}
		again, err := Parse("record.json", []byte(`{"version":1,"measure":[{"`+m.Name+`":`+string(stored)+`}]}`), all.Instruments)
		check.That(t, err == nil && reflect.DeepEqual(again.Measure[0].Options, m.Options), "%s as a plan: %v", m.Name, err)
		err = json.Unmarshal([]byte(`{"budget":"soon"}`), all.Instruments[k].New())
		check.That(t, err != nil && strings.Contains(err.Error(), `budget: "soon" is not a duration`), "%s: %v", m.Name, err)
	}
}

func TestOmittedFieldsHaveDefaults(t *testing.T) {
	t.Parallel()
	for _, i := range all.Instruments {
		for name, text := range map[string]string{
			"null":           "version: 1\nmeasure:\n- x:\n",
			"empty mapping":  "version: 1\nmeasure: [x: {}]\n",
			"flow style":     "{version: 1, measure: [{x: {}}]}",
			"after a BOM":    "\uFEFFversion: 1\nmeasure:\n- x:\n",
			"CRLF":           "version: 1\r\nmeasure:\r\n- x:\r\n",
			"document marks": "---\nversion: 1\nmeasure:\n- x:\n...\n",
			"comments":       "# a\n\nversion: 1 # b\nmeasure: # c\n# d\n- x: # e\n",
		} {
			p, err := Parse("dir/some.yaml", []byte(strings.Replace(text, "x:", i.Name+":", 1)), all.Instruments)
			check.That(t, err == nil && p.Name == "some" && len(p.Measure) == 1 && reflect.DeepEqual(p.Measure[0].Options, i.New()),
				"%s, %s: %+v, %v", i.Name, name, p, err)
		}
		err := option.Check(i.New())
		check.That(t, err == nil, "%s: %v", i.Name, err)
	}
}

func TestPlanErrorsAreFieldErrors(t *testing.T) {
	t.Parallel()
	_, err := Parse("a.yaml", []byte("version: 1\nmeasure: [lifecycle: {rounds: 0}]"), all.Instruments)
	one, ok := errors.AsType[*option.FieldError](err)
	check.That(t, ok && one.Field == "rounds" && one.Place == (option.Place{File: "a.yaml", Line: 2, Column: 31}), "got %+v", one)
	_, err = Parse("a.yaml", []byte("version: 1\nmeasure: [lifecycle: {ops: ["+strings.Repeat("x,", 1000)+"]}]"), all.Instruments)
	if text := err.Error(); strings.Count(text, "\n") != 20 || !strings.HasSuffix(text, "a.yaml: and 980 more mistakes") {
		t.Errorf("a thousand errors are not truncated: %q", text[len(text)-60:])
	}
}

func TestLoadErrorNamesThePath(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"testdata/none.yaml": "give the path of a plan file", "testdata": "give the path of a plan file", "/dev/zero": "/dev/zero:1:1: the plan is larger than 1 MiB",
	} {
		_, err := load(path)
		check.That(t, err != nil && strings.Contains(err.Error(), path) && strings.Contains(err.Error(), want), "%s: %v", path, err)
	}
}

// Any input either is a plan that can be run and encoded again, or has an error with a
// position in the file.
func FuzzParse(f *testing.F) {
	files := must.Get(filepath.Glob("testdata/*.[yp]*"))(f)
	for _, file := range files {
		text := must.Get(os.ReadFile(file))(f)
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := Parse("fuzz.yaml", text, all.Instruments)
		if err != nil {
			var all option.FieldErrors
			must.That(t, errors.As(err, &all) && len(all) != 0, "%v is not option.FieldErrors", err)
			for _, e := range all {
				must.That(t, e.Place.Line >= 1 && e.Place.Column >= 1 && e.Message != "", "error without a position: %+v", e)
			}
			return
		}
		for _, m := range p.Measure {
			stored := must.JSON(t, m.Options)
			read := reflect.New(reflect.TypeOf(m.Options).Elem()).Interface()
			err := json.Unmarshal(stored, read)
			must.That(t, err == nil && reflect.DeepEqual(read, any(m.Options)), "%+v round-trips to %+v: %v", m.Options, read, err)
			wrong := option.Mistakes(m.Options)
			must.That(t, len(wrong) == 0, "%v", wrong)
		}
	})
}

// The plan in a record parses to the same plan. The exception is a device to overwrite,
// which is only accepted on the command line.
func TestPlanOfARecordRepeatsTheRun(t *testing.T) {
	t.Parallel()
	files := must.Get(filepath.Glob("../../record/testdata/v1/*.jsonl"))(t)
	lines := must.Get(all.Instruments.Lines())(t)
	again := map[string]bool{}
	for _, file := range files {
		rec := must.Get(lines.Load(file))(t)
		p, err := ofRecord(file, &rec.Header)
		if kept := rec.End.Why == "imported" || rec.End.Why == "read"; kept || err != nil {
			check.That(t, kept && err != nil && strings.Contains(err.Error(), "imported from other tools' output"), "%s: %v", file, err)
			continue
		}
		i, _ := all.Instruments.Of(rec.Header.Experiment)
		want := i.New()
		must.OK(t, option.Unmarshal(rec.Header.Plan, want))
		check.That(t, len(p.Measure) == 1 && p.Measure[0].Name == i.Name && reflect.DeepEqual(p.Measure[0].Options, want),
			"%s: plan in the record\n%+v, parsed again\n%+v", file, want, p.Measure)
		again[i.Name] = true
	}
	check.That(t, len(again) == len(all.Instruments), "only these instruments have records: %v", again)
	h := record.Header{Experiment: "storage", Plan: json.RawMessage(`{"volumes":["bind"],"i_know_this_destroys":["/dev/sdz"]}`), Environment: record.Environment{Kernel: "6"}}
	p, err := ofRecord("r", &h)
	check.That(t, err == nil && len(p.Measure[0].Options.(*storage.Options).Destroys) == 0, "%v, %+v", err, p)
}

// ofRecord returns the plan of a record.
func ofRecord(name string, h *record.Header) (*Plan, error) {
	text, err := Again(name, []*record.Header{h}, all.Instruments)
	if err != nil {
		return nil, err
	}
	return Parse(name, text, all.Instruments)
}

// The findings of the report depend on the pods' limits, which the plan must set.
func TestKataPlanLimitsItsPods(t *testing.T) {
	t.Parallel()
	p := must.Get(load("../../plans/kata-overhead.yaml"))(t)
	pod := p.Measure[0].Options.(*overhead.Options).Limits.Pod()
	check.That(t, pod.Memory == 1184<<20 && pod.CPUQuota() == 125_000 && pod.CPUShares == 1280, "%+v", pod)
}
