package plan

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/tare-bench/tare/internal/subject"
)

// Load reads the plan file at path. What is wrong with its content is
// returned as [Mistakes], all of it at once.
func Load(path string) (*Plan, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the plan: %w; give the path of a plan file", err)
	}
	defer file.Close() // nothing was written: closing cannot lose anything
	// One byte more than allowed is enough to know, even of /dev/zero.
	text, err := io.ReadAll(io.LimitReader(file, maxSize+1))
	if err != nil {
		return nil, fmt.Errorf("read the plan: %w; give the path of a plan file", err)
	}
	return Parse(path, text)
}

// Parse reads a plan from YAML, or from JSON, which is YAML. The name is that
// of the file, for mistakes and for a plan that has no name of its own.
func Parse(name string, data []byte) (*Plan, error) {
	r := &reading{file: name}
	document, err := parseDocument(data)
	if err != nil {
		var at *misplaced
		if !errors.As(err, &at) {
			at = &misplaced{top, err.Error()}
		}
		r.report(at.place, "%s", at.message)
		return nil, r.mistakes
	}
	p := r.plan(document)
	if len(r.mistakes) > 0 {
		r.mistakes.sort()
		return nil, r.mistakes
	}
	if p.Name == "" {
		p.Name = strings.TrimSuffix(filepath.Base(name), filepath.Ext(name))
	}
	return p, nil
}

func (r *reading) plan(node ast.Node) *Plan {
	p := new(Plan)
	found := r.fields("a plan", node, []field{
		{name: "version", read: func(n ast.Node) { p.Version = r.version(n) }},
		{name: "name", read: func(n ast.Node) { p.Name, _ = r.text("name", n) }},
		{name: "description", read: func(n ast.Node) { p.Description, _ = r.text("description", n) }},
		{name: "source", read: func(n ast.Node) { p.Source, _ = r.text("source", n) }},
		{name: "measure", empty: true, read: func(n ast.Node) { p.Measure = r.measures(n) }},
	})
	if _, ok := node.(ast.MapNode); !ok {
		return p
	}
	if _, ok := found["version"]; !ok {
		r.report(placeOf(node), "version is missing: write version: %d", Version)
	}
	at, ok := found["measure"]
	switch {
	case !ok:
		r.report(placeOf(node), "measure is missing: write what to measure, such as measure: [lifecycle: {}]")
	case p.Measure == nil:
		r.report(at, "measure is empty: write what to measure, such as measure: [lifecycle: {}]")
	}
	return p
}

func (r *reading) version(node ast.Node) int {
	n, ok := number(r, "version", node, strconv.Atoi)
	switch {
	case ok && n > Version:
		r.report(placeOf(node), "version %d is newer than this tare reads, which is %d: use a later tare", n, Version)
	case ok && n != Version:
		r.report(placeOf(node), "version %d does not exist: write version: %d", n, Version)
	}
	return n
}

// measures returns nil for an empty list. A list that is wrong in another way
// has been reported and is not nil.
func (r *reading) measures(node ast.Node) []Measure {
	if _, null := node.(*ast.NullNode); null {
		return nil
	}
	if list, ok := node.(*ast.SequenceNode); ok && len(list.Values) == 0 {
		return nil
	}
	all := []Measure{}
	r.items("measure", node, func(item ast.Node) { all = append(all, r.measure(item)) })
	return all
}

func (r *reading) measure(node ast.Node) Measure {
	var m Measure
	r.fields("an entry of measure", node, []field{
		{name: "lifecycle", empty: true, read: func(n ast.Node) { m.Lifecycle = r.lifecycle(n) }},
		{name: "overhead", empty: true, read: func(n ast.Node) { m.Overhead = r.overhead(n) }},
		{name: "storage", empty: true, read: func(n ast.Node) { m.Storage = r.storage(n) }},
		{name: "startup", empty: true, read: func(n ast.Node) { m.Startup = r.startup(n) }},
		{name: "bpf", empty: true, read: func(n ast.Node) { m.BPF = r.bpf(n) }},
	})
	mapping, ok := node.(ast.MapNode)
	if !ok {
		return m
	}
	first := ""
	for entries := mapping.MapRange(); entries.Next(); {
		switch name := scalarText(entries.Key()); {
		case first == "":
			first = name
		case name != first: // the same twice has been reported
			r.report(placeOf(entries.Key()), "%s is a second experiment in one entry of measure, after %s: give it an entry of its own, with its own -", quote(name), first)
		}
	}
	if first == "" {
		r.report(placeOf(node), "the entry of measure is empty: write an experiment, such as lifecycle: {}")
	}
	return m
}

func (r *reading) lifecycle(node ast.Node) *Lifecycle {
	l := Defaults()
	if _, null := node.(*ast.NullNode); null {
		return &l // all defaults
	}
	at := places{}
	r.fields("lifecycle", node, []field{
		{name: "title", read: func(n ast.Node) { set(at, "title", n, &l.Title, r.text) }},
		{name: "targets", read: func(n ast.Node) { setList(r, at, "targets", n, &l.Targets, r.text) }},
		{name: "missing", read: func(n ast.Node) { set(at, "missing", n, &l.Missing, r.missing) }},
		{name: "via", read: func(n ast.Node) { setSome(r, at, "via", n, &l.Via) }},
		{name: "engines", read: func(n ast.Node) { l.Engines = r.engines(at, n) }},
		{name: "baseline", read: func(n ast.Node) { set(at, "baseline", n, &l.Baseline, r.text) }},
		{name: "subject", read: func(n ast.Node) { set(at, "subject", n, &l.Subject, r.text) }},
		{name: "lanes", read: func(n ast.Node) { r.counts(at, "lanes", n, &l.Lanes) }},
		{name: "ops", read: func(n ast.Node) { setList(r, at, "ops", n, &l.Ops, r.op) }},
		{name: "rounds", read: func(n ast.Node) { set(at, "rounds", n, &l.Rounds, r.whole) }},
		{name: "warmup", read: func(n ast.Node) { set(at, "warmup", n, &l.Warmup, r.whole) }},
		{name: "precision", read: func(n ast.Node) { set(at, "precision", n, &l.Precision, r.precision) }},
		{name: "budget", read: func(n ast.Node) { set(at, "budget", n, &l.Budget, r.duration) }},
		{name: "timeout", read: func(n ast.Node) { set(at, "timeout", n, &l.Timeout, r.duration) }},
		{name: "seed", read: func(n ast.Node) { set(at, "seed", n, &l.Seed, r.seed) }},
		{name: "limits", read: func(n ast.Node) { r.limits(at, n, &l.Limits) }},
	})
	for _, c := range l.complaints() {
		r.report(at.of(c, placeOf(node)), "%s", c.Error())
	}
	return &l
}

func (r *reading) missing(what string, node ast.Node) (Missing, bool) {
	s, ok := r.text(what, node)
	return Missing(s), ok
}

// counts may be one number or a list of them.
func (r *reading) counts(at places, name string, node ast.Node, into *[]int) {
	if _, ok := node.(*ast.SequenceNode); ok {
		setList(r, at, name, node, into, r.whole)
		return
	}
	if n, ok := r.whole(name, node); ok {
		*into = []int{n}
		at[name] = []place{placeOf(node), placeOf(node)}
	}
}

func (r *reading) op(what string, node ast.Node) (subject.Op, bool) {
	s, ok := r.text(what, node)
	return subject.Op(s), ok
}

func (r *reading) whole(what string, node ast.Node) (int, bool) {
	return number(r, what, node, strconv.Atoi)
}

func (r *reading) whole64(what string, node ast.Node) (int64, bool) {
	return number(r, what, node, decimal)
}

func (r *reading) seed(what string, node ast.Node) (uint64, bool) {
	return number(r, what, node, naturalNumber)
}

func (r *reading) precision(what string, node ast.Node) (float64, bool) {
	return scalar(r, what, node, ParsePrecision)
}
