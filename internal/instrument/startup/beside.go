package startup

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/record"
)

// stepsBeside returns a table that compares the steps of all targets, in the form of a
// published report on Kata's boot with and without a template. Calls match by verb,
// for any runtime. Engine time matches by the preceding call.
func stepsBeside(j *Judgement) *page.Section {
	s, with := besideEachOther("step by step, side by side", j, record.KindCall, func(t *Target) []Step { return t.Table })
	if s == nil {
		return nil
	}
	sums := make([]figure.Figure, len(with))
	for i, t := range with {
		if sum, ok := fromFirstCall(t.Table); ok {
			sums[i].Estimate = figure.Exactly(sum)
		}
	}
	for _, total := range []struct {
		name string
		of   func(i int) *figure.Figure
	}{
		{"sum", func(i int) *figure.Figure { return &sums[i] }},
		{"wall", func(i int) *figure.Figure { return &with[i].Wall }},
		{"engine time", func(i int) *figure.Figure { return &with[i].EngineTime }},
	} {
		cells := []page.Cell{page.Words(total.name)}
		for i := range with {
			cells = append(cells, boundedCell(total.of(i)))
		}
		s.Table.Row(cells...)
	}
	s.Notes = []string{"medians of all starts; sum: medians from the first call to the end of the last; engine time: wall time without calls, per start"}
	return s
}

// phasesBeside returns a table that compares the phases from logs. They have the same
// names for every runtime.
func phasesBeside(j *Judgement) *page.Section {
	s, _ := besideEachOther("time by component, side by side", j, record.KindPhase, func(t *Target) []Step { return t.Phases })
	return s
}

// besideEachOther returns a table with a row per step, and its columns: the targets that
// have a step of the given kind. It returns nil for fewer than two targets.
func besideEachOther(title string, j *Judgement, kind string, of func(*Target) []Step) (s *page.Section, all []*Target) {
	for i := range j.Targets {
		if t := &j.Targets[i]; has(of(t), kind) {
			all = append(all, t)
		}
	}
	if len(all) < 2 {
		return nil, nil
	}
	s = &page.Section{Title: title, Style: term.Bold, Table: page.Names("step")}
	var keys []stepKey
	names, cells := map[stepKey]string{}, map[stepKey][]page.Cell{}
	for i, t := range all {
		s.Table.Columns = append(s.Table.Columns, page.Column{Title: page.Heading(page.Known(t.Target)), Right: true, Group: i + 1})
		steps, next := of(t), 0 // position for a step without a match in earlier targets
		for k, key := range keysOf(steps) {
			if at := slices.Index(keys, key); at >= 0 {
				next = at + 1
			} else {
				keys = slices.Insert(keys, next, key)
				next++
				names[key], cells[key] = steps[k].Name, slices.Repeat([]page.Cell{page.Words(page.None)}, len(all))
			}
			if cells[key][i] = boundedCell(&steps[k].Took); names[key] != steps[k].Name {
				names[key] = ""
			}
		}
	}
	for _, key := range keys[:min(len(keys), maxStepsShown)] {
		s.Table.Row(append([]page.Cell{page.Words(page.Cut(key.title(names[key]), longestStep))}, cells[key]...)...)
	}
	return s, all
}

// stepKey identifies the same step across targets: a call by its verb, engine time by
// the preceding call, any other step by its name. nth distinguishes repetitions.
type stepKey struct {
	kind, what string
	nth        int
}

func keysOf(steps []Step) []stepKey {
	keys, seen, call := make([]stepKey, len(steps)), map[stepKey]int{}, ""
	for i, s := range steps {
		key := stepKey{kind: s.Kind, what: s.Name}
		switch s.Kind {
		case record.KindEngine:
			key.what = call
		case record.KindCall:
			key.what = s.Name[strings.LastIndexByte(s.Name, ' ')+1:]
		}
		seen[key]++
		keys[i] = stepKey{key.kind, key.what, seen[key]}
		if s.Kind == record.KindCall {
			call = keys[i].title("")
		}
	}
	return keys
}

// title returns the title of a row. name is the step's name if all targets share it,
// else "".
func (k stepKey) title(name string) string {
	switch {
	case k.kind == record.KindEngine:
		if name = cmp.Or(name, "engine"); k.what != "" {
			name += ", after " + k.what
		}
	case name == "":
		name = k.what
	}
	if k.nth > 1 {
		name += fmt.Sprintf(" (%d)", k.nth)
	}
	return name
}
