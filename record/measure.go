package record

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// measure counts what is in the lists and objects of a line before the line is
// decoded: an honest element of a list is some hundred bytes, an empty one is
// two, and a line of those would take fifty times its own length in memory. It
// refuses what encoding/json believes silently: the name of a field that is there
// twice, of which the last value would count, or in another case. Text that is not
// JSON is left for the decoder to refuse.
func measure(text []byte, line Type, b *bounds) error {
	s := scanner{text: text, line: line, totals: map[*bound]int{}}
	return s.object(b)
}

type scanner struct {
	text   []byte
	at     int
	line   Type
	totals map[*bound]int // elements of each list that has a total
}

// next passes over blanks and returns what stands after them, 0 at the end.
func (s *scanner) next() byte {
	for ; s.at < len(s.text); s.at++ {
		switch c := s.text[s.at]; c {
		case ' ', '\t', '\n', '\r':
		default:
			return c
		}
	}
	return 0
}

// take passes over one character, if it is the next.
func (s *scanner) take(c byte) bool {
	if s.next() != c {
		return false
	}
	s.at++
	return true
}

// text returns a string with its quotes, as it stands there.
func (s *scanner) quoted() []byte {
	begin := s.at
	for s.at++; s.at < len(s.text); s.at++ {
		switch s.text[s.at] {
		case '\\':
			s.at++
		case '"':
			s.at++
			return s.text[begin:s.at]
		}
	}
	s.at = len(s.text)
	return s.text[begin:]
}

// ends are what a number, true, false and null end at.
var ends = [256]bool{',': true, ':': true, ']': true, '}': true, '[': true, '{': true, '"': true, ' ': true, '\t': true, '\r': true, '\n': true}

// skip passes over a value, however deep it is.
func (s *scanner) skip() {
	for depth := 0; ; {
		switch s.next() {
		case 0:
			return
		case '"':
			s.quoted()
		case '{', '[':
			s.at++
			depth++
		case '}', ']':
			s.at++
			depth--
		case ',', ':':
			s.at++
		default:
			for s.at++; s.at < len(s.text) && !ends[s.text[s.at]]; s.at++ {
			}
		}
		if depth <= 0 {
			return
		}
	}
}

// object measures the fields of a struct.
func (s *scanner) object(b *bounds) error {
	if !s.take('{') {
		s.skip()
		return nil
	}
	seen, next := make([]bool, len(b.fields)), 0
	return s.members(func(name []byte) error {
		at, err := b.named(name, next)
		switch {
		case err != nil:
			return err
		case at < 0:
			s.skip()
			return nil
		case seen[at]:
			return fmt.Errorf("%q is there twice in one object", name)
		}
		seen[at], next = true, at+1
		return s.field(b.fields[at])
	})
}

// members calls take at the value of every member of an object that has begun.
func (s *scanner) members(take func(name []byte) error) error {
	for s.next() == '"' {
		text := s.quoted()
		name := text[1:max(1, len(text)-1)]
		if bytes.IndexByte(name, '\\') >= 0 {
			var plain string
			if json.Unmarshal(text, &plain) != nil {
				return nil
			}
			name = []byte(plain)
		}
		if !s.take(':') {
			return nil
		}
		if err := take(name); err != nil {
			return err
		}
		s.take(',')
	}
	s.take('}')
	return nil
}

// named returns the place of the field of this name, -1 without one. It is looked for
// at next first, where it is in what tare wrote.
func (b *bounds) named(name []byte, next int) (int, error) {
	for i := range b.fields {
		if at := (next + i) % len(b.fields); b.fields[at].name == string(name) {
			return at, nil
		}
	}
	for _, x := range b.fields {
		if strings.EqualFold(x.name, string(name)) { // as encoding/json finds one
			return -1, fmt.Errorf("%.40q is there, and the name is %q", name, x.name)
		}
	}
	return -1, nil
}

// field measures the value of a field.
func (s *scanner) field(x *bound) error {
	c := s.next()
	switch {
	case c == 'n': // null
	case x.list && c != '[':
		return fmt.Errorf("%s is not a list", x.name)
	case x.dict && c != '{':
		return fmt.Errorf("%s is not an object", x.name)
	case x.list:
		return s.list(x)
	case x.dict:
		return s.dict(x)
	case x.inner != nil:
		return s.object(x.inner)
	}
	s.skip()
	return nil
}

func (s *scanner) list(x *bound) error {
	return s.elements(func(n int) error {
		if err := s.count(x, n); err != nil {
			return err
		}
		return s.element(x)
	})
}

// elements calls take at each element of a list, which it counts from 1.
func (s *scanner) elements(take func(n int) error) error {
	s.take('[')
	for n := 1; s.next() != ']' && s.next() != 0; n++ {
		if err := take(n); err != nil {
			return err
		}
		s.take(',')
	}
	s.take(']')
	return nil
}

// dict refuses a name that is there twice, too: which of its values counts is
// not for JSON to say.
func (s *scanner) dict(x *bound) error {
	s.take('{')
	seen := map[string]bool{}
	return s.members(func(name []byte) error {
		if seen[string(name)] {
			return fmt.Errorf("%s: %.40q is there twice", x.name, name)
		}
		seen[string(name)] = true
		if err := s.count(x, len(seen)); err != nil {
			return err
		}
		return s.element(x)
	})
}

func (s *scanner) element(x *bound) error {
	switch c := s.next(); {
	case x.inner != nil && c == '{':
		return s.object(x.inner)
	case x.each > 0 && c == '[':
		return s.elements(func(n int) error {
			if n > x.each {
				return fmt.Errorf("more than %d in a list of %s", x.each, x.name)
			}
			s.skip()
			return nil
		})
	}
	s.skip()
	return nil
}

// count says whether there may be n elements in this list, and one more in all.
func (s *scanner) count(x *bound, n int) error {
	most := x.max
	if x.total > 0 {
		s.totals[x]++
		n, most = s.totals[x], x.total
	}
	if n > most {
		return fmt.Errorf("more than %d %s in one %s", most, x.name, s.line)
	}
	return nil
}
