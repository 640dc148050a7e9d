package cli

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/core/compare"
	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/instrument"
)

// sides reads what to compare: a record, a folder of records, or NAME=PATH. Paths with the
// same name are one side.
func (s *app) sides(args []string) ([]compare.Side, error) {
	var out []compare.Side
	var of [][]string // paths of each side
	for _, arg := range args {
		name, path, named := strings.Cut(arg, "=")
		if _, err := os.Stat(arg); err == nil || !named {
			name, path = compare.SideName(arg, len(out)), arg
			if slices.ContainsFunc(out, func(side compare.Side) bool { return side.Name == name }) {
				name = s.given(arg)
			}
		}
		i := slices.IndexFunc(out, func(side compare.Side) bool { return side.Name == name })
		if i < 0 {
			i, out, of = len(out), append(out, compare.Side{Name: name}), append(of, nil)
		}
		of[i] = append(of[i], path)
	}
	for i := range out {
		var err error
		if out[i].Runs, err = s.runs(of[i]); err != nil {
			return nil, err
		}
		if out[i].Runs == nil {
			return nil, fmt.Errorf("%s: contains nothing to compare", out[i].Name)
		}
	}
	return out, nil
}

// mostKept is the memory limit for comparing a thousand nodes on each side. Figures take
// half of it. Without a limit, the heap would double before each garbage collection. For
// more records the limit grows with the live heap.
const mostKept = 400 << 20

// runs judges records and those in folders, and keeps their figures.
func (s *app) runs(paths []string) (out []compare.Run, err error) {
	own := os.Getenv("GOMEMLIMIT") == "" // the user sets no limit
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	labels := map[string]figure.Labels{}
	for f := range each(s, paths, "text", func(j instrument.Judged) compare.Run { return compare.NewRun(j.Record, j) }) {
		if err := f.skip(s); err != nil {
			return nil, err
		}
		for i := range f.kept {
			f.kept[i].Share(labels)
			if missing := f.kept[i].Missing; missing != "" {
				fmt.Fprintf(s.Err, "tare: %s\n", cleanLines(f.path+": "+missing+"; these samples are missing"))
			}
		}
		if own && len(out)%256 == 0 {
			metrics.Read(live)
			debug.SetMemoryLimit(max(mostKept, int64(live[0].Value.Uint64()*3/2)))
		}
		out = append(out, f.kept...)
	}
	return out, nil
}

var errOneSide = errors.New("cannot compare a single side: add another, or compare within it, such as with --col target")
