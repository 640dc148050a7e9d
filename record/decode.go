package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"unicode/utf8"
)

// decoder reads a line by the declaration of its type. It makes of a line what
// encoding/json makes of it, in one pass instead of three (its check of the syntax, a
// count of what is in the lists, and the decoding), since a thousand nodes have millions
// of samples. And it refuses what encoding/json believes silently: the name of a field
// that is there twice, of which the last value would count, or in another case.
//
// What is in the lists of a line takes no more memory than its text has bytes, and a
// little: those of honest lines are about as long in both, while an empty element is two
// bytes of text and hundreds of memory. A line of which that is not true is gone through
// once to count it, and read only if it holds no more than its type allows.
type decoder struct {
	text     []byte
	at       int
	line     Type
	counting bool           // nothing is made
	room     int            // bytes that lists may still take
	totals   map[*bound]int // elements of each list that has a total
}

// little is how much memory no line has to deserve.
const little = 4 << 10

var (
	errMuch   = errors.New("its lists take more memory than its text")
	errSyntax = errors.New("not JSON")
)

// fill reads a text into a line of the type, a pointer to a struct that is zero.
func (t *LineType) fill(text []byte, line reflect.Value) error {
	d := decoder{text: text, line: t.word, room: len(text) + little}
	err := d.all(t.tags, line.Elem())
	if errors.Is(err, errMuch) {
		d = decoder{text: text, line: t.word, counting: true}
		if err = d.all(t.tags, reflect.Value{}); err == nil {
			line.Elem().SetZero()
			d = decoder{text: text, line: t.word, room: math.MaxInt}
			err = d.all(t.tags, line.Elem())
		}
	}
	if err != nil {
		if syntax := json.Unmarshal(text, new(struct{})); syntax != nil { // which says where
			return syntax
		}
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok { // its own words name types of Go
		return fmt.Errorf("%s: %s cannot hold a %s", t.word, wrong.Field, wrong.Value)
	}
	return err
}

// all reads the one object that a line is.
func (d *decoder) all(b *bounds, v reflect.Value) error {
	if d.next() != '{' {
		return errSyntax
	}
	if err := d.object(b, v); err != nil {
		return err
	}
	if d.next() != 0 || d.at < len(d.text) {
		return errSyntax
	}
	return nil
}

// next passes over blanks and returns what stands after them, 0 at the end.
func (d *decoder) next() byte {
	for ; d.at < len(d.text); d.at++ {
		switch c := d.text[d.at]; c {
		case ' ', '\t', '\n', '\r':
		default:
			return c
		}
	}
	return 0
}

// take passes over one character, if it is the next.
func (d *decoder) take(c byte) bool {
	if d.next() != c {
		return false
	}
	d.at++
	return true
}

// each calls read at everything between an opening bracket, which is next, and its end;
// it counts from 1.
func (d *decoder) each(end byte, read func(n int) error) error {
	d.at++
	if d.take(end) {
		return nil
	}
	for n := 1; ; n++ {
		if err := read(n); err != nil {
			return err
		}
		if d.take(end) {
			return nil
		}
		if !d.take(',') {
			return errSyntax
		}
	}
}

func (d *decoder) object(b *bounds, v reflect.Value) error {
	var seen uint64
	next := 0
	return d.each('}', func(int) error {
		name, err := d.name()
		if err != nil {
			return err
		}
		at, err := b.named(name, next)
		if err != nil {
			return err
		}
		if at < 0 {
			_, err := d.value()
			return err
		}
		if seen&(1<<at) != 0 {
			return fmt.Errorf("%q is there twice in one object", name)
		}
		seen, next = seen|1<<at, at+1
		x, field := b.fields[at], reflect.Value{}
		if !d.counting {
			field = v.Field(x.index)
		}
		err = d.field(x, field)
		if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			wrong.Field = strings.TrimSuffix(x.name+"."+wrong.Field, ".")
		}
		return err
	})
}

// name reads that of a member of an object, with its colon.
func (d *decoder) name() ([]byte, error) {
	if d.next() != '"' {
		return nil, errSyntax
	}
	name, err := d.string()
	if err == nil && !d.take(':') {
		err = errSyntax
	}
	return name, err
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

func (d *decoder) field(x *bound, v reflect.Value) error {
	c := d.next()
	switch {
	case c == 'n' || !x.list && !x.dict:
		return d.element(x, v)
	case x.list && c != '[':
		return fmt.Errorf("%s is not a list", x.name)
	case x.dict && c != '{':
		return fmt.Errorf("%s is not an object", x.name)
	case x.list:
		return d.list(x, v)
	}
	return d.dict(x, v)
}

func (d *decoder) list(x *bound, v reflect.Value) error {
	begin := d.at
	if !d.counting {
		v.Set(reflect.MakeSlice(v.Type(), 0, 0))
	}
	return d.each(']', func(n int) error {
		left, err := d.count(x, n)
		switch {
		case err != nil:
			return err
		case d.counting:
			return d.element(x, v)
		case n > v.Cap():
			if err := d.grow(v, begin, left); err != nil {
				return err
			}
		}
		v.SetLen(n)
		return d.element(x, v.Index(n-1))
	})
}

// grow makes room for as many elements as the rest of the text may hold, by those that
// were read.
func (d *decoder) grow(v reflect.Value, begin, left int) error {
	more := 4
	if n := v.Len(); n > 0 {
		more = 1 + (len(d.text)-d.at)*n/(d.at-begin)
	}
	more = min(more, left)
	if d.room -= more * int(v.Type().Elem().Size()); d.room < 0 {
		return errMuch
	}
	v.Grow(more)
	return nil
}

// dict refuses a name that is there twice, too: which of its values counts is
// not for JSON to say.
func (d *decoder) dict(x *bound, v reflect.Value) error {
	if !d.counting {
		v.Set(reflect.MakeMap(v.Type()))
	}
	seen := map[string]bool{}
	return d.each('}', func(n int) error {
		text, err := d.name()
		if err != nil {
			return err
		}
		name := string(text)
		if seen[name] {
			return fmt.Errorf("%s: %.40q is there twice", x.name, name)
		}
		seen[name] = true
		if _, err := d.count(x, n); err != nil {
			return err
		}
		if d.counting {
			return d.element(x, v)
		}
		e := reflect.New(v.Type().Elem()).Elem()
		err = d.element(x, e)
		v.SetMapIndex(reflect.ValueOf(name).Convert(v.Type().Key()), e)
		return err
	})
}

// count says whether there may be n elements in this list, and one more in all, and for
// how many, this one included, there is room.
func (d *decoder) count(x *bound, n int) (left int, err error) {
	most := x.max
	if x.total > 0 {
		if d.totals == nil {
			d.totals = map[*bound]int{}
		}
		d.totals[x]++
		n, most = d.totals[x], x.total
	}
	switch {
	case n > most && x.listed:
		return 0, fmt.Errorf("more than %d in a list of %s", most, x.name)
	case n > most:
		return 0, fmt.Errorf("more than %d %s in one %s", most, x.name, d.line)
	}
	return most - n + 1, nil
}

// element reads a field that is no list and no object of names, or an element of one.
func (d *decoder) element(x *bound, v reflect.Value) error {
	c := d.next()
	if !d.counting && c != 'n' && !x.itself && v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}
	switch {
	case x.itself:
	case x.inner != nil && c == '{':
		return d.object(x.inner, v)
	case x.each > 0 && c == '[':
		return d.list(&bound{name: x.name, max: x.each, listed: true}, v)
	case !d.counting && d.scalar(c, v):
		return nil
	}
	text, err := d.value()
	if err != nil || d.counting {
		return err
	}
	return json.Unmarshal(text, v.Addr().Interface())
}

// value passes over a value, however deep it is, and returns its text.
func (d *decoder) value() ([]byte, error) {
	d.next()
	begin := d.at
	for depth := 0; ; {
		switch c := d.next(); c {
		case 0, ',', ':':
			d.at++
		case '"':
			if _, err := d.string(); err != nil {
				return nil, err
			}
		case '{', '[':
			d.at++
			depth++
		case '}', ']':
			d.at++
			depth--
		default:
			for d.at++; d.at < len(d.text) && !ends[d.text[d.at]]; d.at++ {
			}
		}
		if depth <= 0 || d.at >= len(d.text) {
			break
		}
	}
	if text := d.text[begin:min(d.at, len(d.text))]; json.Valid(text) {
		return text, nil
	}
	return nil, errSyntax
}

// ends are what a number, true, false and null end at.
var ends = [256]bool{',': true, ':': true, ']': true, '}': true, '[': true, '{': true, '"': true, ' ': true, '\t': true, '\r': true, '\n': true}

// scalar reads texts and whole numbers in the form in which they are written. What is in
// another one, or cannot be held, stays for encoding/json.
func (d *decoder) scalar(c byte, v reflect.Value) bool {
	if v.Kind() == reflect.String && c == '"' {
		begin := d.at
		s, err := d.string()
		if err != nil {
			d.at = begin
			return false
		}
		v.SetString(string(s))
		return true
	}
	if !v.CanInt() && !v.CanUint() {
		return false
	}
	n, at, ok := d.integer()
	switch {
	case !ok:
		return false
	case v.CanInt() && !v.OverflowInt(n):
		v.SetInt(n)
	case v.CanUint() && n >= 0 && !v.OverflowUint(uint64(n)):
		v.SetUint(uint64(n))
	default:
		return false
	}
	d.at = at
	return true
}

// longestInteger is how many digits surely fit.
const longestInteger = 18

// integer is the whole number that stands here, and where it ends.
func (d *decoder) integer() (n int64, at int, ok bool) {
	at = d.at
	minus := at < len(d.text) && d.text[at] == '-'
	if minus {
		at++
	}
	begin := at
	for ; at < len(d.text) && d.text[at] >= '0' && d.text[at] <= '9'; at++ {
		n = 10*n + int64(d.text[at]-'0')
	}
	if minus {
		n = -n
	}
	digits := at - begin
	ok = digits == 1 || digits > 1 && digits <= longestInteger && d.text[begin] != '0'
	return n, at, ok && (at == len(d.text) || ends[d.text[at]])
}

// string reads a text, the quote of which is next. One of ASCII without escapes is as it
// stands there.
func (d *decoder) string() ([]byte, error) {
	begin, plain := d.at, true
	for d.at++; d.at < len(d.text); d.at++ {
		switch c := d.text[d.at]; {
		case c == '"':
			d.at++
			if plain {
				return d.text[begin+1 : d.at-1], nil
			}
			var s string
			err := json.Unmarshal(d.text[begin:d.at], &s)
			return []byte(s), err
		case c == '\\':
			plain = false
			d.at++
		case c < ' ' || c >= utf8.RuneSelf:
			plain = false
		}
	}
	return nil, errSyntax
}
