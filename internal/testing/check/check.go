// Package check compares results with expected values. Unlike package must it lets the
// test continue.
package check

import (
	"errors"
	"reflect"
	"strings"
	"testing"
)

// Equal reports a failure if got differs from want; what names the value or the case.
func Equal[T any](t testing.TB, what any, got, want T) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%v: got %+v, want %+v", what, got, want)
	}
}

// That reports a failure with a message unless ok.
func That(t testing.TB, ok bool, format string, args ...any) {
	t.Helper()
	if !ok {
		t.Errorf(format, args...)
	}
}

// Error reports a failure if err does not contain want. If want is empty, err must be
// nil.
func Error(t testing.TB, err error, want string) {
	t.Helper()
	if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
		t.Errorf("got the error %v, want %q", err, want)
	}
}

// Contains reports a failure for each of wanted that text lacks.
func Contains(t testing.TB, what any, text string, wanted ...string) {
	t.Helper()
	for _, want := range wanted {
		if !strings.Contains(text, want) {
			t.Errorf("%v: no %q in:\n%s", what, want, text)
		}
	}
}

// Lacks reports a failure for each of unwanted that text contains.
func Lacks(t testing.TB, what any, text string, unwanted ...string) {
	t.Helper()
	for _, s := range unwanted {
		if strings.Contains(text, s) {
			t.Errorf("%v: %q in:\n%s", what, s, text)
		}
	}
}

// Is reports a failure if errors.Is(err, want) is false.
func Is(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("got the error %v, want %v", err, want)
	}
}
