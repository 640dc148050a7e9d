// Package plan reads plan files, which list measurements in order. The given instruments define
// the options of each measurement. Errors have the file, line and column.
package plan

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/tare-bench/tare/internal/core/option"
	"github.com/tare-bench/tare/internal/instrument"
	"github.com/tare-bench/tare/record"
)

// Version is the version of the plan format.
const Version = 1

// Plan is a plan file.
type Plan struct {
	Version     int
	Name        string
	Description string
	Source      string // publication that the plan reproduces
	Measure     []Measure
}

// Measure is one entry of a plan: the name of the instrument and its options.
type Measure struct {
	Name    string
	Options option.Options
	Set     *option.Set // declares the options, so that flags can override them
}

// Parse reads a plan from YAML or JSON, which is a subset of YAML. name is the file name, used in
// errors and as the default name of the plan. Parse returns all mistakes together, as
// [option.FieldErrors].
func Parse(name string, text []byte, instruments instrument.List) (*Plan, error) {
	f := &file{Plan: Plan{Version: Version}, instruments: instruments}
	if err := option.Parse(name, text, f.read); err != nil {
		return nil, err
	}
	if f.Name == "" {
		f.Name = strings.TrimSuffix(filepath.Base(name), filepath.Ext(name))
	}
	return &f.Plan, nil
}

// Again returns a plan that repeats the measurements of records: the same targets and settings in
// the same random order. name is used in errors.
func Again(name string, headers []*record.Header, instruments instrument.List) ([]byte, error) {
	var measures bytes.Buffer
	of := &record.Part{}
	for _, h := range headers {
		i, ok := instruments.Of(h.Experiment)
		if !ok {
			return nil, fmt.Errorf("%s is a record of %q; the measurements are %s", name, h.Experiment, strings.Join(instruments.Names(), ", "))
		}
		if h.Environment.Kernel == "" {
			return nil, fmt.Errorf("%s was imported from other tools' output: tare did not measure it and cannot repeat it", name)
		}
		fmt.Fprintf(&measures, "  - %s:\n", i.Name)
		if err := again(&measures, h.Plan, option.Of(i.New()).Refused()); err != nil {
			return nil, fmt.Errorf("%s: the record's plan cannot be read: %w", name, err)
		}
		if h.Of != nil {
			of = h.Of
		}
	}
	out := bytes.NewBufferString(fmt.Sprintf("version: %d\n", Version))
	for _, field := range [][2]string{{"name", of.Plan}, {"description", of.Description}, {"source", of.Source}} {
		if text, err := json.Marshal(field[1]); err == nil && field[1] != "" {
			fmt.Fprintf(out, "%s: %s\n", field[0], text)
		}
	}
	out.WriteString("measure:\n")
	out.Write(measures.Bytes())
	return out.Bytes(), nil
}

// again writes the fields of a record's plan, except those in but, in their order. The values are
// JSON, which is valid YAML.
func again(out *bytes.Buffer, fields json.RawMessage, but []string) error {
	d := json.NewDecoder(bytes.NewReader(fields))
	if begin, err := d.Token(); err != nil || begin != json.Delim('{') {
		return cmp.Or(err, errors.New("it is not an object"))
	}
	for d.More() {
		key, err := d.Token()
		var value json.RawMessage
		if err == nil {
			err = d.Decode(&value)
		}
		if err != nil {
			return err
		}
		if name, _ := key.(string); !slices.Contains(but, name) {
			if strings.Trim(name, "abcdefghijklmnopqrstuvwxyz_") != "" {
				name = strconv.QuoteToASCII(name) // not a plain word: not one of tare's names
			}
			fmt.Fprintf(out, "      %s: ", name)
			if err := json.Compact(out, value); err != nil {
				return err
			}
			out.WriteByte('\n')
		}
	}
	return nil
}

// Schema returns the JSON Schema (draft 2020-12) of plan files, for editors. It describes the
// structure and the ranges of values; Parse checks everything else.
func Schema(instruments instrument.List) ([]byte, error) {
	s := option.Describe(option.Of(&file{instruments: instruments}))
	s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	s["title"], s["description"], s["required"] = "tare plan", "The measurements of a tare run.", []string{"version", "measure"}
	text, err := json.MarshalIndent(s, "", "  ")
	return append(text, '\n'), err
}

// file is a plan that is being parsed.
type file struct {
	Plan
	instruments instrument.List
}

func (f *file) read(n option.Node) {
	s := option.Read(n, "a plan", f)
	if !n.Mapping() {
		return
	}
	const write = "write what to measure, such as measure: [lifecycle: {}]"
	if !s.Found("version") {
		n.Plainly("version is missing: write version: %d", Version)
	}
	if !s.Found("measure") {
		n.Plainly("measure is missing: %s", write)
	}
}

// Declare declares the fields of a plan.
func (f *file) Declare(s *option.Set) {
	version := option.Integer
	version.Schema = option.Schema{"const": Version}
	option.Var(s, &f.Version, "version", "version of the plan format", version, option.Must(checkVersion))
	option.Text(s, &f.Name, "name", "name of the plan in records and reports (default: the file's name)")
	option.Text(s, &f.Description, "description", "what the plan is for")
	option.Text(s, &f.Source, "source", "the publication whose tables the plan reproduces")
	option.Var(s, &f.Measure, "measure", "the measurements, in order", option.Kind[[]Measure]{Read: f.measures, Schema: f.schema()}, option.Nullable)
}

func checkVersion(n int) error {
	switch {
	case n > Version:
		return fmt.Errorf("%d is newer than the supported version %d: use a later tare", n, Version)
	case n != Version:
		return fmt.Errorf("%d is not supported: write version: %d", n, Version)
	}
	return nil
}

func (f *file) measures(n option.Node) (all []Measure, ok bool) {
	const empty = "it is empty: write what to measure, such as measure: [lifecycle: {}]"
	if n.Null() {
		n.Wrong(empty)
		return nil, false
	}
	items, ok := n.Items()
	if ok && len(items) == 0 {
		n.Wrong(empty)
	}
	for _, item := range items {
		all = append(all, f.measure(item)...)
	}
	return all, ok
}

// measure reads an entry, which must have a single key.
func (f *file) measure(n option.Node) (all []Measure) {
	fields := strings.Join(f.instruments.Names(), ", ")
	entries := n.Entries("an entry of measure", "write its fields below it, each as name: value; the fields are "+fields)
	if n.Mapping() && len(entries) == 0 {
		n.Plainly("the entry of measure is empty: write an experiment, such as lifecycle: {}")
	}
	for k, e := range entries {
		i, known := f.instruments.Of(e.Key)
		switch {
		case !known:
			e.Wrong("unknown field %s in an entry of measure: the fields are %s", option.Quote(e.Key), fields)
		case k == 0:
			o := i.New()
			all = append(all, Measure{i.Name, o, option.Read(e.Value, i.Name, o)})
		}
		if k > 0 {
			e.Wrong("%s is a second experiment in one entry of measure, after %s: give it an entry of its own, with its own -", option.Quote(e.Key), entries[0].Key)
		}
	}
	return all
}

func (f *file) schema() option.Schema {
	properties := option.Schema{}
	for _, i := range f.instruments {
		one := option.Describe(option.Of(i.New()))
		one["type"], one["description"] = []string{"object", "null"}, i.Help
		properties[i.Name] = one
	}
	return option.Schema{"type": "array", "minItems": 1, "items": option.Schema{
		"type": "object", "additionalProperties": false, "minProperties": 1, "maxProperties": 1, "properties": properties,
	}}
}
