package option

import (
	"errors"
	"reflect"
	"slices"

	"github.com/spf13/pflag"
)

// AddFlags adds a flag for each option that has one.
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

// flag is an option on a command line.
type flag struct{ o *Option }

func (f *flag) String() string { return f.o.show() }
func (f *flag) Type() string   { return f.o.kind }

// Set gives the option the flag's value. A list grows with every further flag by what
// is not in it; other values are the last flag's.
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
		for _, item := range list.Elem().Seq2() {
			if f.o.once == "" || !holds(before, item) {
				all = reflect.Append(all, item)
			}
		}
		list.Elem().Set(all)
	}
	f.o.given, f.o.written = true, true
	return nil
}

func holds(list, item reflect.Value) bool {
	for _, other := range list.Seq2() {
		if other.Equal(item) {
			return true
		}
	}
	return false
}

// Given are flags for options that are not known yet: those of a plan's file.
type Given struct{ flags []*given }

// given is one of them, with every value in order.
type given struct {
	name, kind string
	texts      []string
}

func (g *given) Set(text string) error { g.texts = append(g.texts, text); return nil }
func (g *given) String() string        { return "" }
func (g *given) Type() string          { return g.kind }

// Collect adds a flag for each that one of the sets has. The first tells what
// it is for.
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

// Names are the flags that were given.
func (g *Given) Names() []string {
	var names []string
	for _, f := range g.flags {
		if len(f.texts) > 0 {
			names = append(names, f.name)
		}
	}
	return names
}

// Takes says whether a set has a flag of that name.
func (s *Set) Takes(name string) bool { return slices.Contains(s.Flags(), name) }

// Flags are the names of all that it has.
func (s *Set) Flags() []string {
	var names []string
	for _, o := range s.options {
		if !o.hidden {
			names = append(names, o.flag)
		}
	}
	return names
}

// Lay puts the flags that the set has over what its options hold.
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

// Arguments are what the option that is given by arguments is called, and how it
// takes them; nil where there is none.
func (s *Set) Arguments() (name string, take func([]string)) {
	for _, o := range s.options {
		if list, ok := o.into.(*[]string); ok && o.argument {
			return o.flag, func(args []string) { *list = args }
		}
	}
	return "", nil
}
