package option

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// Kind defines how values of a type are parsed and formatted.
type Kind[T any] struct {
	Read   func(Node) (T, bool)    // parses a value in a plan file
	Parse  func(string) (T, error) // parses a flag; nil: no flag
	Format func(T) string          // formats the value of a flag
	Type   string                  // name of the type in help
	Schema Schema
}

// Var declares an option.
func Var[T any](s *Set, p *T, key, help string, k Kind[T], attrs ...Attr) {
	o := &Option{key: key, help: help, into: p, stored: p, kind: k.Type, schema: k.Schema}
	if d, ok := any(p).(*time.Duration); ok {
		o.stored = (*durationText)(d)
	}
	o.read = func(n Node) bool {
		value, ok := k.Read(n)
		if ok {
			*p = value
		}
		return ok
	}
	o.show = func() string { return fmt.Sprint(*p) }
	if k.Format != nil {
		o.show = func() string { return k.Format(*p) }
	}
	if k.Parse != nil {
		o.parse = func(text string) error {
			value, err := k.Parse(text)
			if err == nil {
				*p = value
			}
			return err
		}
	}
	s.add(o, attrs)
}

// durationText encodes a duration in a record as text, "10m".
type durationText time.Duration

func (d *durationText) MarshalJSON() ([]byte, error) {
	return json.Marshal(FormatDuration(time.Duration(*d)))
}

func (d *durationText) UnmarshalJSON(text []byte) error {
	var s string
	if err := json.Unmarshal(text, &s); err != nil || s == "" {
		return err
	}
	value, err := parseDuration(s)
	*d = durationText(value)
	return err
}

// Written returns a kind with its own syntax, independent of YAML types.
func Written[T any](parse func(string) (T, error), format func(T) string, schema Schema) Kind[T] {
	return written("string", parse, format, schema)
}

func written[T any](name string, parse func(string) (T, error), format func(T) string, schema Schema) Kind[T] {
	return Kind[T]{
		Read:  func(n Node) (T, bool) { return Scalar(n, parse) },
		Parse: parse, Format: format, Type: name, Schema: schema,
	}
}

// Kinds of common options.
var (
	Duration = written("duration", parseDuration, FormatDuration,
		Schema{"type": "string", "pattern": `^\+?([0-9]+(\.[0-9]*)?(ns|us|µs|ms|s|m|h))+$`})
	Integer   = integer(strconv.Atoi, "int")
	Integer64 = integer(func(s string) (int64, error) { return strconv.ParseInt(s, 10, 64) }, "int")
	Natural   = integer(func(s string) (uint64, error) { return strconv.ParseUint(s, 10, 64) }, "uint")
	Number    = written("float", parseNumber, nil, Schema{"type": "number"})
	Truth     = Kind[bool]{Read: Node.Bool, Parse: strconv.ParseBool, Type: "bool", Schema: Schema{"type": "boolean"}}
	// Word is text exactly as written, even if YAML would parse it as a number or a boolean.
	Word = written("", func(s string) (string, error) { return s, nil }, nil, Schema{"type": []string{"string", "number", "boolean"}})
)

// TextOf returns the kind of a string type.
func TextOf[T ~string]() Kind[T] {
	return Kind[T]{
		Read:  func(n Node) (T, bool) { s, ok := n.text(); return T(s), ok },
		Parse: func(s string) (T, error) { return T(s), nil }, Type: "string", Schema: Schema{"type": "string"},
	}
}

func integer[T int | int64 | uint64](parse func(string) (T, error), name string) Kind[T] {
	least := ""
	if name == "uint" {
		least = " from 0 on"
	}
	return Kind[T]{
		Read: func(n Node) (T, bool) { return whole(n, parse) },
		Parse: func(s string) (T, error) {
			n, err := parse(strings.TrimSpace(s))
			if errors.Is(err, strconv.ErrRange) {
				return 0, fmt.Errorf("%s is too large", Shorten(s))
			} else if err != nil {
				return 0, fmt.Errorf("%s is not a whole number%s", Quote(s), least)
			}
			return n, nil
		},
		Type: name, Schema: Schema{"type": "integer"},
	}
}

func parseNumber(s string) (float64, error) {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsInf(v, 0) || math.IsNaN(v) {
		return 0, fmt.Errorf("%s is not a number", Quote(s))
	}
	return v, nil
}

// ListOf returns the kind of lists. Commas separate the items of a flag.
func ListOf[T any](item Kind[T]) Kind[[]T] {
	k := Kind[[]T]{Type: "string", Schema: Schema{"type": "array", "items": item.Schema}}
	k.Read = func(n Node) ([]T, bool) {
		all := []T{}
		if n.Null() { // if null is allowed
			return all, true
		}
		clean := n.Clean(func() {
			items, _ := n.Items()
			for _, each := range items {
				each = each.at(len(all))
				value, ok := item.Read(each)
				if ok {
					each.found()
					all = append(all, value)
					continue
				}
				for path := range n.places { // the next item gets this index
					if strings.HasPrefix(path, each.path+".") {
						delete(n.places, path)
					}
				}
			}
		})
		return all, clean || len(all) > 0
	}
	if item.Parse == nil {
		return k
	}
	k.Parse = func(s string) (all []T, err error) {
		for word := range strings.SplitSeq(s, ",") {
			value, err := item.Parse(strings.TrimSpace(word))
			if err != nil {
				return nil, err
			}
			all = append(all, value)
		}
		return all, nil
	}
	k.Format = func(all []T) string {
		words := make([]string, len(all))
		for i, v := range all {
			words[i] = fmt.Sprint(v)
		}
		return strings.Join(words, ",")
	}
	return k
}

// Repeated returns the kind of lists whose flag has one item and can be repeated.
func Repeated(k Kind[[]string]) Kind[[]string] {
	k.Type = "stringArray"
	k.Parse = func(s string) ([]string, error) { return []string{s}, nil }
	return k
}

// OneOrMore returns the kind of lists that may be written as a single item without brackets.
func OneOrMore[T any](item Kind[T]) Kind[[]T] {
	k := ListOf(item)
	list := k.Read
	k.Read = func(n Node) ([]T, bool) {
		if n.List() {
			return list(n)
		}
		value, ok := item.Read(n)
		if ok {
			n.at(0).found()
		}
		return []T{value}, ok
	}
	k.Schema = Schema{"oneOf": []Schema{item.Schema, k.Schema}}
	return k
}

// Fields returns the kind of mappings with declared options. begin contains the defaults.
func Fields[T any, P interface {
	*T
	Options
}](what string, begin T) Kind[T] {
	return Kind[T]{
		Read: func(n Node) (T, bool) {
			value := begin
			ok := ReadPart(n, what, P(&value))
			return value, ok
		},
		Schema: Describe(Of(P(new(begin)))),
	}
}

// Texts returns the kind of mappings from names to text.
func Texts(name string) Kind[map[string]string] {
	return Kind[map[string]string]{
		Read: func(n Node) (map[string]string, bool) {
			out := map[string]string{}
			for _, e := range n.Entries(n.field, "write "+name+": value below it") {
				e.Value.field = n.field + " " + e.Key
				if text, ok := e.Value.text(); ok {
					out[e.Key] = text
				}
			}
			if len(out) == 0 {
				return nil, n.Mapping()
			}
			return out, true
		},
		Schema: Schema{"type": "object", "additionalProperties": Schema{"type": "string"}},
	}
}

// Text declares a text option.
func Text[T ~string](s *Set, p *T, key, help string, attrs ...Attr) {
	Var(s, p, key, help, TextOf[T](), attrs...)
}

// List declares a list of texts.
func List[T ~string](s *Set, p *[]T, key, help string, attrs ...Attr) {
	Var(s, p, key, help, ListOf(TextOf[T]()), attrs...)
}

// Int declares an integer option.
func Int(s *Set, p *int, key, help string, attrs ...Attr) { Var(s, p, key, help, Integer, attrs...) }

// Bool declares a boolean option.
func Bool(s *Set, p *bool, key, help string, attrs ...Attr) { Var(s, p, key, help, Truth, attrs...) }

// Time declares a duration option.
func Time(s *Set, p *time.Duration, key, help string, attrs ...Attr) {
	Var(s, p, key, help, Duration, attrs...)
}

// Group declares a mapping with its own options. Its flag has the form "name=value,…".
func Group(s *Set, o Options, key, help string, attrs ...Attr) {
	group := Of(o)
	s.add(&Option{
		key: key, help: help, group: group, stored: group, kind: "string",
		read: func(n Node) bool {
			group.read(n, key, n.field+".", n.path+".")
			return true
		},
		parse: func(text string) error { return group.parse(key, text) },
		show:  func() string { return "" },
	}, attrs)
}

// parse parses "name=value,…".
func (s *Set) parse(what, text string) error {
	seen := map[string]bool{}
	for word := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(word, "=")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		o := s.option(name)
		switch {
		case o == nil:
			return fmt.Errorf("unknown %s in %s: write some of %s, each with = and a value", Quote(name), Quote(text), s.keys())
		case seen[name]:
			return fmt.Errorf("%s is there twice in %s: keep one of them", Quote(name), Quote(text))
		}
		seen[name] = true
		if err := o.parse(value); err != nil {
			return err
		}
		if o.empty() {
			return fmt.Errorf("%s=%s is empty: leave it out, or write a value", name, value)
		}
		if found := o.rules.check(what+"."+name, reflect.ValueOf(o.into).Elem()); len(found) > 0 {
			return errors.New(found[0].Message)
		}
	}
	return nil
}
