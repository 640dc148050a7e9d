// Package must is for tests: it does what a test needs and is not about, and ends the test
// where that does not work.
package must

import (
	"encoding/csv"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// OK ends the test at an error.
func OK(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// That ends the test with a message unless ok.
func That(t testing.TB, ok bool, format string, args ...any) {
	t.Helper()
	if !ok {
		t.Fatalf(format, args...)
	}
}

// Get takes what a function returned. Its result returns the value, or ends the test at the
// error: must.Get(os.Open(path))(t).
func Get[T any](value T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		OK(t, err)
		return value
	}
}

// Eventually ends the test unless problem returns "" within a minute.
func Eventually(t testing.TB, problem func() string) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for left := problem(); left != ""; left = problem() {
		if time.Now().After(deadline) {
			t.Fatal(left)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// Read is what is in a file.
func Read(t testing.TB, path string) string {
	t.Helper()
	return string(Get(os.ReadFile(path))(t))
}

// Write writes a file that anybody may read, and makes the folders above it.
func Write(t testing.TB, path, text string) {
	t.Helper()
	OK(t, os.MkdirAll(filepath.Dir(path), 0o755))
	OK(t, os.WriteFile(path, []byte(text), 0o644))
}

// JSON is a value as JSON has it.
func JSON(t testing.TB, value any) []byte {
	t.Helper()
	return Get(json.Marshal(value))(t)
}

// Rows returns the rows of a table in a file: cells separated by tabs, comments after #.
func Rows(t testing.TB, path string) [][]string {
	t.Helper()
	r := csv.NewReader(strings.NewReader(Read(t, path)))
	r.Comma, r.Comment, r.LazyQuotes = '\t', '#', true
	rows, err := r.ReadAll()
	OK(t, err)
	for _, row := range rows {
		for i, cell := range row {
			row[i] = strings.NewReplacer(`\n`, "\n", `\x1b`, "\x1b").Replace(cell)
		}
	}
	return rows
}
