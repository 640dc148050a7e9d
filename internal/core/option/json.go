package option

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
)

// Marshal encodes the options for a record, in the order of their declaration. Records and plan
// files use the same names, so a record's plan is a valid plan file.
func Marshal(o Options) ([]byte, error) { return Of(o).MarshalJSON() }

// Unmarshal parses the result of Marshal. It ignores unknown options, which later versions write.
func Unmarshal(text []byte, o Options) error {
	read := reflect.New(reflect.TypeOf(o).Elem())
	if err := Of(read.Interface().(Options)).UnmarshalJSON(text); err != nil {
		return err
	}
	reflect.ValueOf(o).Elem().Set(read.Elem())
	return nil
}

// MarshalJSON encodes the options that are stored in a record.
func (s *Set) MarshalJSON() ([]byte, error) {
	words, err := s.Stored()
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	for _, w := range words {
		fmt.Fprintf(&out, ",%q:%s", w.Key, w.Value)
	}
	out.WriteByte('}')
	text := out.Bytes()
	if len(text) == 1 {
		return []byte("{}"), nil
	}
	text[0] = '{'
	return text, nil
}

// json encodes the value. An empty list is [], because readers do not accept null.
func (o *Option) json() ([]byte, error) {
	if v := reflect.ValueOf(o.into); v.IsValid() && v.Elem().Kind() == reflect.Slice && v.Elem().IsNil() {
		return []byte("[]"), nil
	}
	return json.Marshal(o.stored)
}

// UnmarshalJSON sets the options that text has.
func (s *Set) UnmarshalJSON(text []byte) error {
	var values map[string]json.RawMessage
	if err := json.Unmarshal(text, &values); err != nil {
		return err
	}
	for _, o := range s.options {
		value, ok := values[o.key]
		if !ok || o.key == "" {
			continue
		}
		if err := json.Unmarshal(value, o.stored); err != nil {
			return fmt.Errorf("%s: %w", o.key, err)
		}
	}
	return nil
}

// Schema is a JSON Schema (draft 2020-12), or a part of one.
type Schema map[string]any

// Describe returns the schema of a mapping with the options of a set.
func Describe(s *Set) Schema {
	properties := Schema{}
	for _, o := range s.options {
		if o.key != "" && o.refused == "" {
			properties[o.key] = o.describe()
		}
	}
	return Schema{"type": "object", "additionalProperties": false, "properties": properties}
}

func (o *Option) describe() Schema {
	s := o.rules.schema(o.schema)
	if o.group != nil {
		s = Describe(o.group)
	}
	s["description"] = o.help
	if o.into != nil && !o.empty() {
		if text, err := o.json(); err == nil {
			s["default"] = json.RawMessage(text)
		}
	}
	if o.nullable {
		s = Schema{"anyOf": []Schema{s, {"type": "null"}}}
	}
	return s
}

// schema adds the rules to the schema of a value, of list items, or of alternatives.
func (r *rules) schema(of Schema) Schema {
	s := Schema{}
	maps.Copy(s, of)
	if either, ok := s["oneOf"].([]Schema); ok {
		both := make([]Schema, len(either))
		for i, one := range either {
			both[i] = r.schema(one)
		}
		s["oneOf"] = both
		return s
	}
	if items, ok := s["items"].(Schema); ok {
		s["items"] = (&rules{bounds: r.bounds, choices: r.choices, orZero: r.orZero}).schema(items)
		if r.some != "" {
			s["minItems"] = 1
		}
		if r.most > 0 {
			s["maxItems"] = r.most
		}
		if r.once != "" {
			s["uniqueItems"] = true
		}
		return s
	}
	if r.choices != nil {
		s = Schema{"enum": slices.Clone(r.choices)}
	}
	if kind := s["type"]; r.bounds != nil && (kind == "integer" || kind == "number") {
		s["minimum"] = r.bounds.low
		if !math.IsInf(r.bounds.high, 1) {
			s["maximum"] = r.bounds.high
		}
		if r.orZero {
			s = Schema{"anyOf": []Schema{{"const": 0}, s}}
		}
	}
	return s
}
