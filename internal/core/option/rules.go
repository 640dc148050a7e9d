package option

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/tare-bench/tare/internal/term"
)

// rules are the checks of a value, or of each list item.
type rules struct {
	bounds   *bounds
	choices  []string
	orZero   bool
	some     string // advice for an empty list
	most     int    // maximum number of items
	once     string // advice for duplicates
	mustHold func(any) error
}

type bounds struct {
	low, high float64 // high may be infinite
	wrong     string  // after another value: "is not a number of rounds: from 1 to 5 are allowed"
}

type number interface {
	int | int64 | uint64 | float64 | time.Duration
}

// Bounds sets the smallest and the largest value. what describes a value: "a number of rounds".
// more is appended to the bounds in the message.
func Bounds[T number](low, high T, what string, more ...string) Attr {
	return func(o *Option) {
		o.bounds = &bounds{float64(low), float64(high), fmt.Sprintf("is not %s: from %s to %s are allowed%s", what, plain(low), plain(high), strings.Join(more, ""))}
	}
}

// AtLeast sets the smallest value. wrong describes the effect of a smaller one: "would fail every
// operation". such is an example value.
func AtLeast[T number](low T, wrong, such string) Attr {
	return func(o *Option) {
		if such != "" {
			such = ", such as " + such
		}
		o.bounds = &bounds{float64(low), math.Inf(1), fmt.Sprintf("%s: write %s or more%s", wrong, plain(low), such)}
	}
}

// Choices sets the allowed values of a text.
func Choices(words ...string) Attr { return func(o *Option) { o.choices = words } }

// OrZero allows 0 outside the bounds.
func OrZero(o *Option) { o.orZero = true }

// Some rejects an empty list. write is the advice on what to write.
func Some(write string) Attr { return func(o *Option) { o.some = write } }

// AtMost sets the maximum number of items of a list.
func AtMost(n int) Attr { return func(o *Option) { o.most = n } }

// Once rejects duplicates in a list, with a reason.
func Once(why string) Attr { return func(o *Option) { o.once = why } }

// Must adds a check for the value, or for each item.
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
		return Wrongf(field, "%v %s", v, r.bounds.wrong)
	case r.choices != nil && !slices.Contains(r.choices, v.String()):
		return Wrongf(field, "%s is not known: write %s%s", Quote(v.String()), or(r.choices), term.Like(v.String(), r.choices))
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

// or formats a list as "a, b or c".
func or(words []string) string {
	words = slices.DeleteFunc(slices.Clone(words), func(w string) bool { return w == "" })
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}
