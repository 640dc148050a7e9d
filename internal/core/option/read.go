package option

import (
	"reflect"
	"slices"
	"strings"
)

// Read reads options from a mapping and returns their set, which flags can still override. what
// is the name of the mapping in error messages. Missing options keep their defaults.
func Read(n Node, what string, o Options) *Set {
	s := Of(o)
	s.file, s.anywhere, s.places = n.r.file, placeOf(n.yaml), places{}
	if n.Null() {
		return s // only defaults
	}
	n.places, n.path = s.places, ""
	s.read(n, what, "", "")
	for _, e := range s.check("") {
		s.place(e)
		n.r.mistakes = append(n.r.mistakes, e)
	}
	for _, do := range s.after {
		do()
	}
	return s
}

// Found reports whether the file contains the field.
func (s *Set) Found(key string) bool { return slices.Contains(s.inFile, key) }

// ReadPart reads a part of an option without checking it.
func ReadPart(n Node, what string, o Options) bool {
	return n.Clean(func() { Of(o).read(n, what, n.prefix, n.path+".") })
}

// Named sets the prefix of field names in error messages: "check.".
func (n Node) Named(prefix string) Node {
	n.prefix = prefix
	return n
}

// read reads the fields of a mapping. Error messages contain prefix and field. Places are stored
// under path and field.
func (s *Set) read(n Node, what, prefix, path string) {
	entries := n.Entries(what, "write its fields below it, each as name: value; the fields are "+s.keys())
	for _, e := range entries {
		s.inFile = append(s.inFile, e.Key)
		o := s.option(e.Key)
		switch {
		case o == nil:
			e.Wrong("unknown field %s in %s: the fields are %s", Quote(e.Key), what, s.keys())
		case o.refused != "":
			e.Value.Wrong("%s", o.refused)
		case e.Value.Null() && !o.nullable:
			e.Wrong("%s has no value: write one, or leave the line out", e.Key)
		default:
			v := e.Value
			v.field, v.path, v.places = prefix+e.Key, path+e.Key, n.places
			if o.read(v) {
				v.found()
				o.written = true
				if o.leftOut() { // convert an empty list to nil
					reflect.ValueOf(o.into).Elem().SetZero()
				}
			}
		}
	}
}

func (s *Set) option(key string) *Option {
	for _, o := range s.options {
		if o.key == key && key != "" {
			return o
		}
	}
	return nil
}

// Refused returns the keys that records may have and plan files may not.
func (s *Set) Refused() []string {
	return s.names(func(o *Option) string { return o.key }, func(o *Option) bool { return o.refused != "" })
}

func (s *Set) keys() string {
	return strings.Join(s.names(func(o *Option) string { return o.key }, func(o *Option) bool { return o.key != "" && o.refused == "" }), ", ")
}
