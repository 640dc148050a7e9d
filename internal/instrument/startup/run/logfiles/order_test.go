package logfiles

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/instrument/startup/logs"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/golden"
	"github.com/tare-bench/tare/internal/testing/must"
)

// pieces splits a text into pieces.
func pieces(t *testing.T, text string) []piece {
	t.Helper()
	_, all, _, err := piecesOf(t.Context(), logs.Source{}, []byte(text))
	must.OK(t, err)
	return all
}

func TestLinesAreSortedByTime(t *testing.T) {
	t.Parallel()
	golden.Cases(t, "testdata/cases/pieces.txt", func(t *testing.T, text string) string {
		o, all, _, err := piecesOf(t.Context(), logs.Source{}, []byte(text))
		must.OK(t, err)
		_, numbers := sorted(all, o.isReversed())
		return fmt.Sprintf("jumps %d, the first at %d; reversed %v; order %v", o.jumps, o.step.line, o.isReversed(), numbers)
	})
}

// A file with two logs is read like the two original files.
func TestLogsInOneFileAreMerged(t *testing.T) {
	t.Parallel()
	var apart []logs.Source
	all := ""
	for _, name := range []string{"cripod.kata.log", "cripod.containerd.log"} {
		text := fixture(t, name) + "\n"
		all += text
		apart = append(apart, logs.Source{Reader: strings.NewReader(text)})
	}
	text, numbers := sorted(pieces(t, all), false)
	read := func(sources ...logs.Source) (all []string) {
		_, err := logs.Read(t.Context(), sources, func(e *logs.Event) error {
			all = append(all, fmt.Sprintf("%d %d %v %s %s", e.Time, e.Arrived, e.Form, e.Program, e.Message))
			return nil
		})
		must.OK(t, err)
		slices.Sort(all)
		return slices.Compact(all) // a duplicate line is read once
	}
	if !slices.Equal(read(logs.Source{Reader: bytes.NewReader(text), Lines: numbers}), read(apart...)) {
		t.Error("the joined file and the separate files differ")
	}
}

func FuzzOrder(f *testing.F) {
	f.Add([]byte("I1121 02:27:17.292309 1 a] b\nI1121 02:27:10.292309 1 a] b\n"))
	f.Add([]byte("__CURSOR=1\n__REALTIME_TIMESTAMP=1795229127500000\nMESSAGE=a\n\n__CURSOR=1\n__REALTIME_TIMESTAMP=1\n"))
	f.Add([]byte("{\"time\":"))
	f.Fuzz(func(t *testing.T, text []byte) {
		_, all, lines, err := piecesOf(t.Context(), logs.Source{}, text)
		must.OK(t, err)
		whole := 0
		for _, p := range all {
			whole += len(p.text)
		}
		check.Equal(t, "bytes in pieces", whole, len(text))
		for _, isReversed := range []bool{false, true} {
			sorted, numbers := sorted(slices.Clone(all), isReversed)
			if n := bytes.Count(sorted, []byte("\n")); n != len(numbers) || int64(n) > lines || len(sorted) > len(text)+1 {
				t.Fatalf("%d lines of %d, %d numbers", n, lines, len(numbers))
			}
		}
	})
}
