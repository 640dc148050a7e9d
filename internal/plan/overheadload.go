package plan

import (
	"strings"

	"github.com/goccy/go-yaml/ast"
)

func (r *reading) overhead(node ast.Node) *Overhead {
	o := DefaultsOfOverhead()
	if _, null := node.(*ast.NullNode); null {
		return &o // all defaults
	}
	at := places{}
	r.fields("overhead", node, []field{
		{name: "title", read: func(n ast.Node) { set(at, "title", n, &o.Title, r.text) }},
		{name: "targets", read: func(n ast.Node) { setList(r, at, "targets", n, &o.Targets, r.text) }},
		{name: "missing", read: func(n ast.Node) { set(at, "missing", n, &o.Missing, r.missing) }},
		{name: "via", read: func(n ast.Node) { setSome(r, at, "via", n, &o.Via) }},
		{name: "engines", read: func(n ast.Node) { o.Engines = r.engines(at, n) }},
		{name: "phases", read: func(n ast.Node) { setList(r, at, "phases", n, &o.Phases, r.phase) }},
		{name: "sandboxes", read: func(n ast.Node) { r.counts(at, "sandboxes", n, &o.Sandboxes) }},
		{name: "rounds", read: func(n ast.Node) { set(at, "rounds", n, &o.Rounds, r.whole) }},
		{name: "hold", read: func(n ast.Node) { set(at, "hold", n, &o.Hold, r.duration) }},
		{name: "interval", read: func(n ast.Node) { set(at, "interval", n, &o.Interval, r.duration) }},
		{name: "settle", read: func(n ast.Node) { set(at, "settle", n, &o.Settle, r.duration) }},
		{name: "budget", read: func(n ast.Node) { set(at, "budget", n, &o.Budget, r.duration) }},
		{name: "timeout", read: func(n ast.Node) { set(at, "timeout", n, &o.Timeout, r.duration) }},
		{name: "patience", read: func(n ast.Node) { set(at, "patience", n, &o.Patience, r.duration) }},
		{name: "seed", read: func(n ast.Node) { set(at, "seed", n, &o.Seed, r.seed) }},
		{name: "limits", read: func(n ast.Node) { r.limits(at, n, &o.Limits) }},
		{name: "check", read: func(n ast.Node) { o.Check = r.check(at, n) }},
	})
	for _, c := range o.complaints() {
		r.report(at.of(c, placeOf(node)), "%s", c.Error())
	}
	o.Phases = WithIdle(o.Phases)
	return &o
}

// phase takes a size that YAML would have as a number for what it is, so that
// what is wrong with it is said as of any other phase.
func (r *reading) phase(what string, node ast.Node) (string, bool) {
	return scalar(r, what, node, func(s string) (string, error) { return strings.Join(strings.Fields(s), " "), nil })
}

// check returns nil where nothing of it could be read, which has been reported.
func (r *reading) check(at places, node ast.Node) *PodFixed {
	p := new(PodFixed)
	before := len(r.mistakes)
	r.fields("check", node, []field{
		{name: "cpu", read: func(n ast.Node) { set(at, "check.cpu", n, &p.CPU, r.milliCPU) }},
		{name: "memory", read: func(n ast.Node) { set(at, "check.memory", n, &p.Memory, r.memory) }},
	})
	if len(r.mistakes) > before {
		return nil
	}
	at["check"] = []place{placeOf(node)}
	return p
}

func (r *reading) milliCPU(what string, node ast.Node) (int64, bool) {
	return scalar(r, what, node, ParseMilliCPU)
}
