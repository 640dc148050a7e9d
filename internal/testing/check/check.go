// Package check compares what a test got with what it wants. Unlike package must it lets
// the test go on.
package check

import (
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

// Error reports a failure if err does not contain want, or, if want is empty, is not nil.
func Error(t testing.TB, err error, want string) {
	t.Helper()
	if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
		t.Errorf("got the error %v, want %q", err, want)
	}
}
