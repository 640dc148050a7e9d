package option

import (
	"errors"
	"reflect"
	"slices"

	"github.com/spf13/pflag"
)

// AddFlags adds the flags of all options to fs.
func (s *Set) AddFlags(fs *pflag.FlagSet) {
	for _, o := range s.options {
		if !o.hidden {
			o.add(fs, &flag{o})
		}
	}
}

func (o *Option) add(fs *pflag.FlagSet, v pflag.Value) {
	f := fs.VarPF(v, o.flag, o.short, o.help)
	if o.quiet {
		f.DefValue = ""
	}
	if v.Type() == "bool" {
		f.NoOptDefVal = "true"
	}
}

// flag is the command-line flag of an option.
type flag struct{ o *Option }

func (f *flag) String() string { return f.o.show() }
func (f *flag) Type() string   { return f.o.kind }

// Choices returns the allowed values, or nil if they are not a fixed set.
func (f *flag) Choices() []string { return f.o.choices }

// Set sets the option. A repeated flag adds items to a list. For other options the last one wins.
func (f *flag) Set(text string) error {
	var before reflect.Value
	list := reflect.ValueOf(f.o.into)
	if list.IsValid() && list.Elem().Kind() == reflect.Slice && f.o.given {
		before = reflect.ValueOf(list.Elem().Interface())
	}
	if err := f.o.parse(text); err != nil {
		return &FieldError{Place: Place{Flag: f.o.flagName()}, Message: err.Error()}
	}
	if before.IsValid() {
		all := before.Slice3(0, before.Len(), before.Len())
	items:
		for _, item := range list.Elem().Seq2() {
			for _, other := range before.Seq2() {
				if f.o.once != "" && other.Equal(item) {
					continue items
				}
			}
			all = reflect.Append(all, item)
		}
		list.Elem().Set(all)
	}
	f.o.given, f.o.written = true, true
	return nil
}

// Given collects flags that override a plan file before the file is read.
type Given struct{ flags []*given }

// given is a flag with its values in order.
type given struct {
	name, kind string
	texts      []string
}

func (g *given) Set(text string) error { g.texts = append(g.texts, text); return nil }
func (g *given) String() string        { return "" }
func (g *given) Type() string          { return g.kind }

// Collect adds the flags of all sets. If several sets have a flag, the first one provides its
// help.
func Collect(fs *pflag.FlagSet, sets ...*Set) *Given {
	all := &Given{}
	for _, s := range sets {
		for _, o := range s.options {
			if o.hidden || fs.Lookup(o.flag) != nil {
				continue
			}
			g := &given{name: o.flag, kind: o.kind}
			if o.short != "" && fs.ShorthandLookup(o.short) != nil {
				o.short = ""
			}
			all.flags = append(all.flags, g)
			o.add(fs, g)
		}
	}
	return all
}

// Names returns the names of the flags that were set.
func (g *Given) Names() []string {
	var names []string
	for _, f := range g.flags {
		if len(f.texts) > 0 {
			names = append(names, f.name)
		}
	}
	return names
}

// Takes reports whether the set has a flag with this name.
func (s *Set) Takes(name string) bool { return slices.Contains(s.Flags(), name) }

// Flags returns the names of all flags.
func (s *Set) Flags() []string {
	return s.names(func(o *Option) string { return o.flag }, func(o *Option) bool { return !o.hidden })
}

// Lay applies the collected flags to the options of a set.
func (g *Given) Lay(s *Set) error {
	var all FieldErrors
	for _, f := range g.flags {
		for _, o := range s.options {
			if o.hidden || o.flag != f.name {
				continue
			}
			for _, text := range f.texts {
				var wrong *FieldError
				if errors.As((&flag{o}).Set(text), &wrong) {
					all = append(all, wrong)
				}
			}
		}
	}
	if len(all) > 0 {
		return all
	}
	return nil
}

// Arguments returns the name of the option that is set by arguments, and a function that sets it.
// They are empty if there is none.
func (s *Set) Arguments() (name string, take func([]string)) {
	for _, o := range s.options {
		if list, ok := o.into.(*[]string); ok && o.argument {
			return o.flag, func(args []string) { *list = args }
		}
	}
	return "", nil
}
