package record

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// check checks the values of a struct: first each field, then the whole struct with its Check.
func (b *bounds) check(v reflect.Value) error {
	for _, x := range b.fields {
		if err := x.check(v.Field(x.index), v); err != nil {
			return err
		}
	}
	if b.checks {
		return v.Addr().Interface().(Checker).Check()
	}
	return nil
}

func (x *bound) check(v, in reflect.Value) error {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return nil
		}
		v = v.Elem()
	}
	switch {
	case x.list:
		return x.checkList(v)
	case x.dict:
		return x.checkDict(v)
	case x.inner != nil:
		if err := x.inner.check(v); err != nil {
			return fmt.Errorf("%s: %w", x.name, err)
		}
		return nil
	}
	if err := x.value(v); err != nil {
		return fmt.Errorf("%s %w", x.name, err)
	}
	if x.after != "" && !(x.zero && v.IsZero()) {
		return after(x.name, x.after, in.Field(x.afterIndex).Int(), v.Int())
	}
	return nil
}

func (x *bound) checkList(v reflect.Value) error {
	if x.max > 0 && v.Len() > x.max {
		return fmt.Errorf("%d %s: at most %d are read", v.Len(), x.name, x.max)
	}
	if x.any {
		return nil
	}
	seen, ascending := map[string]bool{}, x.inner != nil && x.inner.ascending(v)
	for i := range v.Len() {
		e := reflect.Indirect(v.Index(i))
		switch {
		case !e.IsValid(): // null
		case x.inner == nil:
			if err := x.value(e); err != nil {
				return fmt.Errorf("%s: element %d %w", x.name, i, err)
			}
		case x.inner.id == nil:
			if err := x.inner.check(e); err != nil {
				return fmt.Errorf("%s: %w", x.name, err)
			}
		default:
			if !ascending {
				key := x.inner.identity(e)
				if seen[key] {
					return fmt.Errorf("%s: duplicate %s", x.name, x.inner.shown(e))
				}
				seen[key] = true
			}
			if err := x.inner.check(e); err != nil {
				return fmt.Errorf("%s: %s: %w", x.name, x.inner.shown(e), err)
			}
		}
	}
	return nil
}

// ascending reports whether a single number identifies the elements and increases, as in records
// written by tare. In that case there are no duplicates.
func (b *bounds) ascending(v reflect.Value) bool {
	if len(b.id) != 1 || v.Type().Elem().Kind() != reflect.Struct {
		return false
	}
	for i := range v.Len() {
		n := v.Index(i).Field(b.id[0].index)
		if !n.CanInt() || i > 0 && n.Int() <= v.Index(i-1).Field(b.id[0].index).Int() {
			return false
		}
	}
	return true
}

// identity returns the key that identifies an element in its list.
func (b *bounds) identity(v reflect.Value) string {
	var key []byte
	for _, x := range b.id {
		switch f := v.Field(x.index); {
		case f.CanInt():
			key = strconv.AppendInt(key, f.Int(), 10)
		case f.CanUint():
			key = strconv.AppendUint(key, f.Uint(), 10)
		default:
			key = append(key, f.String()...)
		}
		key = append(key, ' ')
	}
	return string(key)
}

func (b *bounds) shown(v reflect.Value) string {
	x := b.id[0]
	if f := v.Field(x.index); f.Kind() == reflect.String {
		return fmt.Sprintf("%s %.200q", x.name, f.String())
	}
	return fmt.Sprintf("%s %v", x.name, v.Field(x.index))
}

func (x *bound) checkDict(v reflect.Value) error {
	if x.max > 0 && v.Len() > x.max {
		return fmt.Errorf("%d %s: at most %d are read", v.Len(), x.name, x.max)
	}
	for i := v.MapRange(); i.Next(); {
		if n := i.Key().Len(); x.keys > 0 && n > x.keys {
			return fmt.Errorf("%s: a name is %d bytes long: at most %d are read", x.name, n, x.keys)
		}
		e := reflect.New(i.Value().Type()).Elem() // values in a map are not addressable
		e.Set(i.Value())
		var err error
		if e = reflect.Indirect(e); x.inner == nil {
			err = x.value(e)
		} else if e.IsValid() {
			err = x.inner.check(e)
		}
		if err != nil {
			return fmt.Errorf("%s: %.40q %w", x.name, i.Key(), err)
		}
	}
	return nil
}

// value checks a number or a text. It accepts all other kinds.
func (x *bound) value(v reflect.Value) error {
	switch {
	case x.any:
		return nil
	case v.Kind() == reflect.String:
		return x.text(v.String())
	case v.CanInt():
		return x.number(v.Int())
	case v.CanUint():
		return x.number(int64(min(v.Uint(), math.MaxInt64)))
	case v.CanFloat():
		return x.share(v.Float())
	}
	return nil
}

func (x *bound) number(n int64) error {
	switch {
	case x.unknown && n == -1:
		return nil
	case n > x.most && x.maxSaid != "":
		return fmt.Errorf("is %d and must be at most %s", n, x.maxSaid)
	case n > x.most:
		return fmt.Errorf("is %d and must be at most %d", n, x.most)
	case n >= x.least:
		return nil
	case x.unknown:
		return fmt.Errorf("is %d and cannot be negative; -1 means unknown", n)
	case x.least == 0:
		return fmt.Errorf("is %d and cannot be negative", n)
	}
	return fmt.Errorf("is %d and must be at least %d", n, x.least)
}

// share checks a fraction. NaN is an error.
func (x *bound) share(f float64) error {
	switch {
	case f >= 0 && f <= x.maxShare:
		return nil
	case x.maxShare == math.MaxFloat64:
		return fmt.Errorf("is %g and must be at least 0", f)
	}
	return fmt.Errorf("is %g and must be from 0 to %g", f, x.maxShare)
}

// text checks a text. Errors quote only the beginning of the text.
func (x *bound) text(s string) error {
	switch {
	case s == "" && x.needed:
		return errors.New("is missing")
	case s == "":
		return nil
	case x.words != nil && !slices.Contains(x.words, s):
		return fmt.Errorf("is %.40q and must be one of %s", s, strings.Join(x.words, ", "))
	case x.chars > 0 && len(s) > x.chars:
		return fmt.Errorf("is %d bytes long: at most %d are read", len(s), x.chars)
	case x.rooted && s[0] != '/':
		return errors.New("must begin with /")
	}
	return nil
}

// after checks that a stamp is not before another one, and at most a year after it.
func after(name, earlier string, began, ended int64) error {
	switch {
	case ended < began:
		return fmt.Errorf("%s %d is before %s %d", name, ended, earlier, began)
	case ended-began > int64(longestSpan):
		return fmt.Errorf("%s %d is more than a year after %s %d: it comes from another clock", name, ended, earlier, began)
	}
	return nil
}
