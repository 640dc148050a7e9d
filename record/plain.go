package record

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strconv"
	"unicode/utf8"
)

// plain reads a line as [Writer] writes it: the fields of every object in the order of
// its struct, each once, without blanks, escapes, nulls or maps. It goes through a line
// once, where counting its lists, encoding/json's checking and its decoding go through it
// three times, and a thousand nodes have millions of samples. Of any other line it knows
// nothing, not even whether it is JSON: those are read by encoding/json, and both read
// the same out of what both can read.
type plain struct {
	text   []byte
	at     int
	made   int            // bytes of lists
	totals map[*bound]int // elements of each list that has a total
}

// readPlain fills a struct that is zero, and tells whether the text was plain. Of one
// that was not the struct may hold a part.
func readPlain(text []byte, b *bounds, line reflect.Value) bool {
	p := plain{text: text}
	return p.object(b, line) && p.at == len(text)
}

// take passes over one character, if it is the next.
func (p *plain) take(c byte) bool {
	if p.at >= len(p.text) || p.text[p.at] != c {
		return false
	}
	p.at++
	return true
}

func (p *plain) object(b *bounds, v reflect.Value) bool {
	if !p.take('{') {
		return false
	}
	if p.take('}') {
		return true
	}
	for _, x := range b.fields {
		if !bytes.HasPrefix(p.text[p.at:], x.key) {
			continue
		}
		p.at += len(x.key)
		if !p.value(x, v.Field(x.index)) {
			return false
		}
		if !p.take(',') {
			return p.take('}')
		}
	}
	return false // a name that is not known, stands there twice, or ahead of its place
}

func (p *plain) value(x *bound, v reflect.Value) bool {
	if x.itself || x.dict {
		return false
	}
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}
	switch {
	case x.list:
		return p.list(x, v)
	case x.inner != nil:
		return p.object(x.inner, v)
	}
	return p.scalar(v)
}

// list takes no more elements than [measure] would.
func (p *plain) list(x *bound, v reflect.Value) bool {
	if !p.take('[') {
		return false
	}
	v.Set(reflect.MakeSlice(v.Type(), 0, 0))
	if p.take(']') {
		return true
	}
	room, begin := x.max, p.at
	if x.total > 0 {
		room = x.total - p.totals[x]
	}
	for n := 0; n < room; {
		if n == v.Cap() && !p.grow(v, begin, room-n) {
			return false
		}
		v.SetLen(n + 1)
		e := v.Index(n)
		n++
		if x.inner == nil && !p.scalar(e) || x.inner != nil && (e.Kind() != reflect.Struct || !p.object(x.inner, e)) {
			return false
		}
		if p.take(',') {
			continue
		}
		if x.total > 0 {
			if p.totals == nil {
				p.totals = map[*bound]int{}
			}
			p.totals[x] += n
		}
		return p.take(']')
	}
	return false
}

// little is how much memory no line has to deserve.
const little = 4 << 10

// grow makes room for as many elements as the rest of the text may hold, by those that
// were read, but not for more bytes than the text has: those of honest lines are about as
// long in both, and what may be none is counted before any of it is made.
func (p *plain) grow(v reflect.Value, begin, room int) bool {
	more := 4
	if n := v.Len(); n > 0 {
		more = 1 + (len(p.text)-p.at)*n/(p.at-begin)
	}
	more = min(more, room)
	if p.made += more * int(v.Type().Elem().Size()); p.made > len(p.text)+little {
		return false
	}
	v.Grow(more)
	return true
}

func (p *plain) scalar(v reflect.Value) bool {
	switch {
	case v.CanInt():
		n, ok := p.integer()
		v.SetInt(n)
		return ok && v.Int() == n
	case v.CanUint():
		n, ok := p.integer()
		v.SetUint(uint64(n))
		return ok && n >= 0 && v.Uint() == uint64(n)
	case v.CanFloat():
		n, ok := p.number()
		v.SetFloat(n)
		return ok && v.Kind() == reflect.Float64
	case v.Kind() == reflect.Bool:
		return p.truth(v)
	case v.Kind() == reflect.String:
		s, ok := p.string()
		v.SetString(s)
		return ok
	}
	return false
}

// longestInteger is how many digits surely fit.
const longestInteger = 18

// integer ends where its digits do: behind a point or an e no member goes on.
func (p *plain) integer() (n int64, ok bool) {
	minus := p.take('-')
	begin := p.at
	for ; p.at < len(p.text) && p.text[p.at] >= '0' && p.text[p.at] <= '9'; p.at++ {
		n = 10*n + int64(p.text[p.at]-'0')
	}
	digits := p.at - begin
	if minus {
		n = -n
	}
	return n, digits == 1 || digits > 1 && digits <= longestInteger && p.text[begin] != '0'
}

func (p *plain) number() (float64, bool) {
	begin := p.at
	for p.at < len(p.text) && !ends[p.text[p.at]] {
		p.at++
	}
	if token := p.text[begin:p.at]; json.Valid(token) { // ParseFloat takes more than JSON does
		n, err := strconv.ParseFloat(string(token), 64)
		return n, err == nil
	}
	return 0, false
}

func (p *plain) truth(v reflect.Value) bool {
	for _, word := range []string{"true", "false"} {
		if bytes.HasPrefix(p.text[p.at:], []byte(word)) {
			p.at += len(word)
			v.SetBool(word == "true")
			return true
		}
	}
	return false
}

func (p *plain) string() (string, bool) {
	if !p.take('"') {
		return "", false
	}
	for begin := p.at; p.at < len(p.text); p.at++ {
		switch c := p.text[p.at]; {
		case c == '"':
			p.at++
			return string(p.text[begin : p.at-1]), true
		case c < ' ' || c == '\\' || c >= utf8.RuneSelf:
			return "", false
		}
	}
	return "", false
}
