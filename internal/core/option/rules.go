package option

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"
)

// rules are what a value, or each item of a list, has to keep.
type rules struct {
	bounds   *bounds
	least    *least
	choices  []string
	orZero   bool
	some     string // why the list cannot be empty
	most     int    // items
	once     string // why none can be there twice
	mustHold func(any) error
}

type bounds struct {
	low, high  float64
	text       string // "from 1 to 5"
	what, more string
}

type least struct {
	low        float64
	text       string
	what, such string
}

type number interface {
	int | int64 | uint64 | float64 | time.Duration
}

// Bounds are the smallest and the largest value that is what it should be: "a
// number of rounds". More is said after them.
func Bounds[T number](low, high T, what string, more ...string) Attr {
	return func(o *Option) {
		o.bounds = &bounds{float64(low), float64(high), fmt.Sprintf("from %s to %s are allowed", plain(low), plain(high)), what, strings.Join(more, "")}
	}
}

// AtLeast is the smallest value. Below it, a value is as wrong as said:
// "would fail every operation".
func AtLeast[T number](low T, wrong, such string) Attr {
	return func(o *Option) {
		if such != "" {
			such = ", such as " + such
		}
		o.least = &least{float64(low), plain(low), wrong, such}
	}
}

// Choices are all that a text can be.
func Choices(words ...string) Attr { return func(o *Option) { o.choices = words } }

// OrZero allows for 0 outside the bounds.
func OrZero(o *Option) { o.orZero = true }

// Some lets no list be empty, and says what to write.
func Some(write string) Attr { return func(o *Option) { o.some = write } }

// AtMost is how many items a list can have.
func AtMost(n int) Attr { return func(o *Option) { o.most = n } }

// Once lets nothing stand in a list twice, and says why.
func Once(why string) Attr { return func(o *Option) { o.once = why } }

// Must is what only the option itself knows of its value, or of each item.
func Must[T any](check func(T) error) Attr {
	return func(o *Option) { o.mustHold = func(v any) error { return check(v.(T)) } }
}

func plain(v any) string {
	switch n := v.(type) {
	case time.Duration:
		return FormatDuration(n)
	case float64:
		if n == math.Trunc(n) && math.Abs(n) < 1e15 {
			return fmt.Sprintf("%.0f", n)
		}
	}
	return fmt.Sprint(v)
}

func (r *rules) check(field string, v reflect.Value) FieldErrors {
	if v.Kind() != reflect.Slice {
		if e := r.one(field, v); e != nil {
			return FieldErrors{e}
		}
		return nil
	}
	switch {
	case v.Len() == 0 && r.some != "":
		return FieldErrors{Wrongf(field, "the list is empty: %s", r.some)}
	case r.most > 0 && v.Len() > r.most:
		return FieldErrors{Wrongf(field, "%d are too many: at most %d are allowed", v.Len(), r.most)}
	}
	var all FieldErrors
	var before []any
	for i := range v.Len() {
		item := v.Index(i)
		e := r.one(field, item)
		if e == nil && r.once != "" && slices.Contains(before, item.Interface()) {
			e = Wrongf(field, "%v is there twice: %s", item, r.once)
		}
		if e != nil {
			all = append(all, e.At(i))
		}
		if r.once != "" {
			before = append(before, item.Interface())
		}
	}
	return all
}

func (r *rules) one(field string, v reflect.Value) *FieldError {
	n, numeric := float(v)
	switch {
	case numeric && n == 0 && r.orZero:
		return nil
	case r.bounds != nil && (math.IsNaN(n) || n < r.bounds.low || n > r.bounds.high):
		return Wrongf(field, "%v is not %s: %s%s", v, r.bounds.what, r.bounds.text, r.bounds.more)
	case r.least != nil && n < r.least.low:
		return Wrongf(field, "%v %s: write %s or more%s", v, r.least.what, r.least.text, r.least.such)
	case r.choices != nil && !slices.Contains(r.choices, v.String()):
		return Wrongf(field, "%s is not known: write %s", Quote(v.String()), or(r.choices))
	}
	if r.mustHold != nil {
		if err := r.mustHold(v.Interface()); err != nil {
			return Wrongf(field, "%v", err)
		}
	}
	return nil
}

func float(v reflect.Value) (float64, bool) {
	switch {
	case v.CanInt():
		return float64(v.Int()), true
	case v.CanUint():
		return float64(v.Uint()), true
	case v.CanFloat():
		return v.Float(), true
	}
	return 0, false
}

// or writes "a, b or c".
func or(words []string) string {
	words = slices.DeleteFunc(slices.Clone(words), func(w string) bool { return cmp.Compare(w, "") == 0 })
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}
