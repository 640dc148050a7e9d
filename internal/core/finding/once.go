package finding

import (
	"slices"

	"github.com/tare-bench/tare/record"
)

// Once returns the record without duplicate targets and batches. A file with repeated lines
// would count them twice. Each duplicate is added to the problems of the record.
func Once(rec *record.Record) *record.Record {
	type key struct {
		phase  record.Phase
		round  int
		target string
		op     string
		lanes  int
	}
	out := *rec
	out.Batches, out.Targets, out.Problems = nil, nil, slices.Clone(rec.Problems)
	leave := func(reason string) {
		if out.ProblemCount++; len(out.Problems) < record.MaxProblems {
			out.Problems = append(out.Problems, record.Problem{Reason: reason})
		}
	}
	names := map[string]bool{}
	for _, t := range rec.Targets {
		if names[t.Name] {
			leave("target " + t.Name + " is there twice")
			continue
		}
		names[t.Name] = true
		out.Targets = append(out.Targets, t)
	}
	seen := map[key]bool{}
	for _, b := range rec.Batches {
		k := key{b.Phase, b.Round, b.Target, b.Op, b.Lanes}
		if seen[k] {
			leave("a batch of " + b.Target + " " + b.Op + " is there twice")
			continue
		}
		seen[k] = true
		out.Batches = append(out.Batches, b)
	}
	return &out
}
