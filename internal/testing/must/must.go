// Package must performs steps that a test requires to succeed. A failure ends the test.
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

// OK ends the test if err is not nil.
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

// Get takes the results of a function. It returns a function that returns the value, or
// ends the test on an error: must.Get(os.Open(path))(t).
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

// Read returns the content of a file.
func Read(t testing.TB, path string) string {
	t.Helper()
	return string(Get(os.ReadFile(path))(t))
}

// Write writes a world-readable file and creates its parent folders.
func Write(t testing.TB, path, text string) {
	t.Helper()
	OK(t, os.MkdirAll(filepath.Dir(path), 0o755))
	OK(t, os.WriteFile(path, []byte(text), 0o644))
}

// JSON encodes a value as JSON.
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
