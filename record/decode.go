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

// decoder decodes a line according to the declaration of its type. The result is the same as with
// encoding/json, but it needs one pass instead of three (syntax check, counting of list elements,
// decoding). This matters because a record of a thousand nodes has millions of samples. It also
// rejects duplicate field names and names in another case, which encoding/json accepts.
//
// The lists of a line may use about as much memory as its text, which is enough for real lines. In
// a malicious line, an empty element is two bytes of text and hundreds of bytes of memory. If a
// line needs more, the decoder first counts its elements. It decodes the line only if all counts
// are within the limits of the type.
type decoder struct {
	text     []byte
	at       int
	line     Type
	counting bool           // count elements only
	room     int            // bytes that lists may still allocate
	totals   map[*bound]int // number of elements for each list with a total
}

const little = 4 << 10 // bytes of memory allowed for any line

var (
	errMuch   = errors.New("its lists take more memory than its text")
	errSyntax = errors.New("not JSON")
)

// fill decodes a text into line, a pointer to a zero struct of the type.
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
		if syntax := json.Unmarshal(text, new(struct{})); syntax != nil { // get the position of the error
			return syntax
		}
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok { // the error text contains names of Go types
		return fmt.Errorf("%s: %s cannot hold a %s", t.word, wrong.Field, wrong.Value)
	}
	return err
}

// all decodes a line, which must be a single object.
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

// next skips white space and returns the next character, or 0 at the end of the text.
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

// take consumes the character c if it is the next one.
func (d *decoder) take(c byte) bool {
	if d.next() != c {
		return false
	}
	d.at++
	return true
}

// each calls read for every element of a list or an object. The next character must be its opening
// bracket. n starts at 1.
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
			return fmt.Errorf("duplicate field %q in one object", name)
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

// name reads the name of an object member and the following colon.
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

// named returns the index of the field with the given name, or -1. The search starts at index
// next, because tare writes fields in order.
func (b *bounds) named(name []byte, next int) (int, error) {
	for i := range b.fields {
		if at := (next + i) % len(b.fields); b.fields[at].name == string(name) {
			return at, nil
		}
	}
	for _, x := range b.fields {
		if strings.EqualFold(x.name, string(name)) { // encoding/json would accept it
			return -1, fmt.Errorf("unknown field %.40q: the name is %q", name, x.name)
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

// grow allocates space for the elements that the rest of the text may contain, estimated from the
// elements already read.
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

// dict decodes an object into a map. Duplicate names are an error.
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
			return fmt.Errorf("%s: duplicate %.40q", x.name, name)
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

// count checks the limits for the nth element of a list. It returns the number of elements still
// allowed, including this one.
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

// element decodes a field that is not a list or a map, or an element of one.
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

// value skips a value of any depth and returns its text.
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

// ends are the characters that terminate a number, true, false or null.
var ends = [256]bool{',': true, ':': true, ']': true, '}': true, '[': true, '{': true, '"': true, ' ': true, '\t': true, '\r': true, '\n': true}

// scalar decodes strings and integers in the form that tare writes. encoding/json handles other
// forms and values out of range.
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

const longestInteger = 18 // number of digits that always fit in an int64

// integer parses the integer at the current position and returns the position after it.
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

// string decodes a string, starting at its opening quote. ASCII without escapes is not copied.
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
