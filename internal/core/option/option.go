// Package option lets a measurement declare each of its options once: where it
// is kept, what it is called, what it may be and what it is for. A [Set] of such
// declarations is read from a plan file and from flags, written into a record
// and read back from one, and described as JSON Schema. What is wrong with an
// option is a [FieldError], which knows the flag or the line that it stands in.
package option

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Options declare themselves onto a set, by pointers to their fields. What the
// fields hold then are the defaults.
type Options interface{ Declare(s *Set) }

// checked are options that can contradict one another.
type checked interface{ Wrong() FieldErrors }

// final are options of which more has to hold when they are run than when a
// file with them is read.
type final interface{ WrongToRun() FieldErrors }

// Option is one declaration. One without a key is a flag only.
type Option struct {
	key, help                  string
	flag, short                string
	argument, hidden           bool // is given by arguments; is no flag
	refused                    string
	nullable, quiet, omitEmpty bool

	into   any                // the pointer to its value; nil of a group
	group  *Set               // the options that it has of its own, or nil
	stored any                // a pointer of which encoding/json makes what a record holds
	read   func(Node) bool    // takes it from a plan file, or leaves it as it is and says why
	parse  func(string) error // takes it from a flag; nil: none can give it
	show   func() string      // it as a flag would have it
	kind   string             // what help calls it
	schema Schema
	rules
	given   bool // by a flag
	written bool // by a flag or in a file
}

// Set is all that one measurement can be asked for.
type Set struct {
	of       Options
	options  []*Option
	before   []func(context.Context) error
	after    []func()
	places   places
	there    []string // keys in the file
	file     string
	anywhere Place // where the measurement itself stands in the file
}

// Of returns the set that options declare.
func Of(o Options) *Set {
	s := &Set{of: o, places: places{}}
	o.Declare(s)
	return s
}

// Attr says more of an option.
type Attr func(*Option)

// Flag is the option's name on the command line, where it is not its key with
// dashes, and its shorthand.
func Flag(name string, short ...string) Attr {
	return func(o *Option) { o.flag, o.short = name, strings.Join(short, "") }
}

// NoFlag keeps an option to files.
func NoFlag(o *Option) { o.hidden = true }

// Arguments are what a command line names without a flag.
func Arguments(name string) Attr {
	return func(o *Option) { o.flag, o.argument, o.hidden = name, true, true }
}

// NoDefault keeps help from showing the default, of which it tells itself.
func NoDefault(o *Option) { o.quiet = true }

// Nullable leaves it to the value what a key in a file without one is.
func Nullable(o *Option) { o.nullable = true }

// Refused keeps an option out of plan files, with the reason.
func Refused(why string) Attr { return func(o *Option) { o.refused = why } }

// OmitEmpty leaves an empty value out of records; being empty, it is right, but for a
// number that somebody wrote: a zero has to keep its bounds.
func OmitEmpty(o *Option) { o.omitEmpty = true }

func (s *Set) add(o *Option, attrs []Attr) {
	if o.hidden = o.parse == nil; !o.hidden {
		o.flag = strings.ReplaceAll(o.key, "_", "-")
	}
	for _, a := range attrs {
		a(o)
	}
	s.options = append(s.options, o)
}

// Before is done once all flags are known, before anything is checked.
func (s *Set) Before(do func(context.Context) error) { s.before = append(s.before, do) }

// After is done when everything is right.
func (s *Set) After(do func()) { s.after = append(s.after, do) }

// Given says whether a flag of that name was.
func (s *Set) Given(flags ...string) bool {
	return slices.ContainsFunc(s.options, func(o *Option) bool { return o.given && slices.Contains(flags, o.flag) })
}

// GivenFlags are the names of all that were.
func (s *Set) GivenFlags() []string {
	var names []string
	for _, o := range s.options {
		if o.given {
			names = append(names, o.flag)
		}
	}
	return names
}

// Finish takes what flags left to do, and says everything that is wrong, each
// by its flag or its place in the file.
func (s *Set) Finish(ctx context.Context) error {
	for _, do := range s.before {
		if err := do(ctx); err != nil {
			return s.placed(err)
		}
	}
	all := s.check("")
	if f, ok := s.of.(final); ok {
		all = append(all, f.WrongToRun()...)
	}
	if len(all) > 0 {
		return s.placed(all)
	}
	for _, do := range s.after {
		do()
	}
	return nil
}

// FromFile tells whether a plan says what is asked for, and not arguments.
func (s *Set) FromFile() bool { return s.file != "" }

// Check says everything that is wrong with options, by their names.
func Check(o Options) error {
	all := Of(o).check("")
	if f, ok := o.(final); ok {
		all = append(all, f.WrongToRun()...)
	}
	if len(all) == 0 {
		return nil
	}
	return all
}

// Mistakes are those of options that are a part of others.
func Mistakes(o Options) FieldErrors { return Of(o).check("") }

func (s *Set) check(prefix string) FieldErrors {
	var all FieldErrors
	for _, o := range s.options {
		if o.group != nil {
			all = append(all, o.group.check(prefix+o.key+".")...)
		}
		if o.key != "" && o.into != nil && !o.leftOut() {
			all = append(all, o.rules.check(prefix+o.key, reflect.ValueOf(o.into).Elem())...)
		}
	}
	if c, ok := s.of.(checked); ok {
		all = append(all, c.Wrong()...)
	}
	return all
}

// placed gives every mistake the flag or the line that it is about.
func (s *Set) placed(err error) error {
	var all FieldErrors
	var one *FieldError
	switch {
	case errors.As(err, &all):
	case errors.As(err, &one):
		all = FieldErrors{one}
	default:
		return err
	}
	for _, e := range all {
		if e.Place == (Place{}) {
			s.place(e)
		}
	}
	return all.sorted()
}

func (s *Set) place(e *FieldError) {
	key, _, _ := strings.Cut(e.Field, ".")
	at := slices.IndexFunc(s.options, func(o *Option) bool { return o.key == key && key != "" })
	switch {
	case at >= 0 && s.options[at].flag != "" && (s.file == "" || s.Given(s.options[at].flag)):
		e.Place.Flag = s.options[at].flagName()
	case s.file != "":
		e.Place = s.places.of(e.path, s.anywhere)
		e.Place.File = s.file
	}
}

func (o *Option) flagName() string {
	if o.argument {
		return o.flag
	}
	return "--" + o.flag
}

func (o *Option) empty() bool {
	v := reflect.ValueOf(o.into)
	if !v.IsValid() {
		return false
	}
	v = v.Elem()
	switch v.Kind() {
	case reflect.Slice, reflect.Map:
		return v.Len() == 0
	}
	return v.IsZero()
}

// leftOut is an empty value that is right.
func (o *Option) leftOut() bool {
	if !o.omitEmpty || o.some != "" || !o.empty() {
		return false
	}
	_, number := float(reflect.ValueOf(o.into).Elem())
	return !number || !o.written
}

// Quote shows what was written, cut to what fits in a line.
func Quote(s string) string { return fmt.Sprintf("%q", Shorten(s)) }

// Shorten cuts what was written to what fits in a line.
func Shorten(s string) string {
	if r := []rune(s); len(r) > 60 {
		return string(r[:60]) + "…"
	}
	return s
}
