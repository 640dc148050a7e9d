// Package option declares the options of measurements. A declaration consists of a variable and
// the option's name, allowed values and help. A [Set] of declarations is parsed from plan files
// and flags, stored in records, and described as JSON Schema. Mistakes are [FieldError]s with the
// flag or the line.
package option

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Options declare themselves to a set by pointers to their fields. The initial values of the
// fields are the defaults.
type Options interface{ Declare(s *Set) }

// checked is implemented by options that can contradict each other.
type checked interface{ Wrong() FieldErrors }

// final is implemented by options with additional checks before a run.
type final interface{ WrongToRun() FieldErrors }

// Option is a declared option. Without a key it exists only as a flag.
type Option struct {
	key, help                  string
	flag, short                string
	argument, hidden           bool // set by arguments; without a flag
	refused                    string
	nullable, quiet, omitEmpty bool

	into   any                // pointer to the value; nil for a group
	group  *Set               // options of a group, or nil
	stored any                // pointer for encoding/json
	read   func(Node) bool    // sets the value from a plan file, or reports a mistake
	parse  func(string) error // sets the value from a flag; nil: no flag
	show   func() string      // formats the value for a flag
	kind   string             // name of the type in help
	schema Schema
	rules
	given   bool // set by a flag
	written bool // set by a flag or in a file
}

// Set contains the options of one measurement.
type Set struct {
	of       Options
	options  []*Option
	before   []func(context.Context) error
	after    []func()
	places   places
	inFile   []string // keys present in the file
	file     string
	anywhere Place // place of the measurement in the file
}

// Of returns the set of options.
func Of(o Options) *Set {
	s := &Set{of: o, places: places{}}
	o.Declare(s)
	return s
}

// Attr sets an attribute of an option.
type Attr func(*Option)

// Flag sets the flag's name and shorthand. The default name is the key with dashes.
func Flag(name string, short ...string) Attr {
	return func(o *Option) { o.flag, o.short = name, strings.Join(short, "") }
}

// NoFlag makes an option available in files only.
func NoFlag(o *Option) { o.hidden = true }

// Arguments makes an option settable by the arguments of a command.
func Arguments(name string) Attr {
	return func(o *Option) { o.flag, o.argument, o.hidden = name, true, true }
}

// NoDefault hides the default in help. Use it if the help text mentions the default.
func NoDefault(o *Option) { o.quiet = true }

// Nullable allows a key without a value in a file.
func Nullable(o *Option) { o.nullable = true }

// Refused rejects an option in plan files and gives the reason.
func Refused(why string) Attr { return func(o *Option) { o.refused = why } }

// OmitEmpty omits an empty value from records. An empty value is valid, unless it is an explicit
// zero outside of the bounds.
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

// Before registers a function to call after all flags are set and before the checks.
func (s *Set) Before(do func(context.Context) error) { s.before = append(s.before, do) }

// After registers a function to call after successful checks.
func (s *Set) After(do func()) { s.after = append(s.after, do) }

// Given reports whether any of the flags was set.
func (s *Set) Given(flags ...string) bool {
	return slices.ContainsFunc(s.options, func(o *Option) bool { return o.given && slices.Contains(flags, o.flag) })
}

// GivenFlags returns the names of all flags that were set.
func (s *Set) GivenFlags() []string {
	return s.names(func(o *Option) string { return o.flag }, func(o *Option) bool { return o.given })
}

// names returns the names of the options for which is holds.
func (s *Set) names(name func(*Option) string, is func(*Option) bool) (all []string) {
	for _, o := range s.options {
		if is(o) {
			all = append(all, name(o))
		}
	}
	return all
}

// Finish completes the options after all flags are set. It returns all mistakes with their flags
// or their places in the file.
func (s *Set) Finish(ctx context.Context) error {
	for _, do := range s.before {
		if err := do(ctx); err != nil {
			return s.placed(err)
		}
	}
	if err := s.checkToRun(); err != nil {
		return s.placed(err)
	}
	for _, do := range s.after {
		do()
	}
	return nil
}

// FromFile reports whether the options come from a plan file.
func (s *Set) FromFile() bool { return s.file != "" }

// Check returns all mistakes in the options.
func Check(o Options) error { return Of(o).checkToRun() }

func (s *Set) checkToRun() error {
	all := s.check("")
	if f, ok := s.of.(final); ok {
		all = append(all, f.WrongToRun()...)
	}
	if len(all) == 0 {
		return nil
	}
	return all
}

// Mistakes returns the mistakes in options that are nested in others.
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

// placed sets the flag or the line of every mistake.
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

// leftOut reports whether the value is empty and may be omitted.
func (o *Option) leftOut() bool {
	if !o.omitEmpty || o.some != "" || !o.empty() {
		return false
	}
	_, number := float(reflect.ValueOf(o.into).Elem())
	return !number || !o.written
}

// Quote quotes a text and shortens it to fit in a line.
func Quote(s string) string { return fmt.Sprintf("%q", Shorten(s)) }

// Shorten shortens a text to fit in a line.
func Shorten(s string) string {
	if r := []rune(s); len(r) > 60 {
		return string(r[:60]) + "…"
	}
	return s
}
