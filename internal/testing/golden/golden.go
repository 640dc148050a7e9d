// Package golden compares test results with files in testdata. With the flag -update a
// test writes the file instead; review the change like code.
package golden

import (
	"flag"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/testing/must"
)

var update = flag.Bool("update", false, "write the golden files")

// Same reports a failure unless the file contains exactly the text.
func Same(t testing.TB, path, got string) {
	t.Helper()
	if *update {
		must.Write(t, path, got)
	}
	if want := must.Read(t, path); got != want {
		t.Errorf("%s differs (-update writes it); got:\n%s\nwant:\n%s", path, got, want)
	}
}

const (
	claimMark  = "// "
	resultMark = "\n⇒ " // precedes each line of a result
)

// Cases calls a function with the input of each case in a file and compares the results.
// A case consists of its claim, its input and its result; empty lines separate cases. A
// quoted input is a Go string literal:
//
//	// a prefix stands for 1024
//	4k
//	⇒ 4096
func Cases(t *testing.T, path string, result func(t *testing.T, input string) string) {
	t.Helper()
	var file strings.Builder
	text := "\n\n" + strings.TrimSuffix(must.Read(t, path), "\n")
	for _, one := range strings.Split(text, "\n\n"+claimMark)[1:] {
		claim, rest, _ := strings.Cut(one, "\n")
		input, want, _ := strings.Cut("\n"+rest, resultMark)
		want = strings.ReplaceAll(want, resultMark, "\n")
		t.Run(claim, func(t *testing.T) {
			text := strings.TrimPrefix(input, "\n")
			if quoted, err := strconv.Unquote(text); err == nil {
				text = quoted
			}
			got := result(t, text)
			if got != want && !*update {
				t.Errorf("%s (-update writes it); got:\n%s\nwant:\n%s", path, got, want)
			}
			file.WriteString("\n\n" + claimMark + claim + input + resultMark + strings.ReplaceAll(got, "\n", resultMark))
		})
	}
	if *update && !t.Failed() {
		must.Write(t, path, strings.TrimPrefix(file.String(), "\n\n")+"\n")
	}
}

// Lines is like Cases with one result per input line: a value or an error.
func Lines(t *testing.T, path string, result func(t *testing.T, line string) (any, error)) {
	t.Helper()
	Cases(t, path, func(t *testing.T, input string) string {
		var results []string
		for line := range strings.SplitSeq(input, "\n") {
			if quoted, err := strconv.Unquote(line); err == nil {
				line = quoted
			}
			got, err := result(t, line)
			if err != nil {
				got = err
			}
			results = append(results, fmt.Sprintf("%+v", got))
		}
		return strings.Join(results, "\n")
	})
}
