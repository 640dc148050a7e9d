package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/core/compare"
	"github.com/tare-bench/tare/record"
)

// sides reads what is compared: a record, a folder of records, or NAME=PATH, of which
// those of one name are one side. One record after the other is judged, and only its
// figures are kept.
func (s *app) sides(args []string) ([]compare.Side, error) {
	var out []compare.Side
	for _, arg := range args {
		name, path, named := strings.Cut(arg, "=")
		if _, err := os.Stat(arg); err == nil || !named {
			name, path = record.Stem(filepath.Base(filepath.Clean(arg))), arg
			if slices.ContainsFunc(out, func(side compare.Side) bool { return side.Name == name }) {
				name = s.given(arg)
			}
		}
		runs, err := s.runs(path)
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(out, func(side compare.Side) bool { return side.Name == name })
		if i < 0 {
			i, out = len(out), append(out, compare.Side{Name: name})
		}
		out[i].Runs = append(out[i].Runs, runs...)
	}
	return out, nil
}

// runs judges a record, or all of a folder.
func (s *app) runs(path string) (out []compare.Run, err error) {
	paths, err := recordsOf(path)
	if err != nil {
		return nil, err
	}
	for _, one := range paths {
		judged, err := s.judged([]string{one}, "text")
		if err != nil {
			return nil, err
		}
		for _, j := range judged { // several of a file that was joined
			out = append(out, compare.NewRun(j.Record, j.Figures()))
		}
	}
	return out, nil
}

// recordsOf are the records of a folder; of anything else it is the path itself.
func recordsOf(path string) (paths []string, err error) {
	entries, err := os.ReadDir(path)
	if err != nil {
		return []string{path}, nil
	}
	for _, e := range entries {
		if record.IsName(e.Name()) {
			paths = append(paths, filepath.Join(path, e.Name()))
		}
	}
	if paths == nil {
		return nil, fmt.Errorf("%s: no record in this folder: they end in .jsonl or .jsonl.zst", path)
	}
	return paths, nil
}

var errOneSide = errors.New("one side has nothing to be compared with: give another, or say what in it is compared, such as --col target")
