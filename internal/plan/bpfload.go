package plan

import (
	"fmt"
	"math"
	"strconv"

	"github.com/goccy/go-yaml/ast"
)

func (r *reading) bpf(node ast.Node) *BPF {
	b := DefaultsOfBPF()
	if _, null := node.(*ast.NullNode); null {
		return &b // all defaults
	}
	at := places{}
	r.fields("bpf", node, []field{
		{name: "title", read: func(n ast.Node) { set(at, "title", n, &b.Title, r.text) }},
		{name: "case", read: func(n ast.Node) { set(at, "case", n, &b.Case, r.text) }},
		{name: "datapath", read: func(n ast.Node) { set(at, "datapath", n, &b.Datapath, r.text) }},
		{name: "kmesh", read: func(n ast.Node) { set(at, "kmesh", n, &b.Kmesh, r.boolean) }},
		{name: "names", read: func(n ast.Node) { setSome(r, at, "names", n, &b.Names) }},
		{name: "pins", read: func(n ast.Node) { setSome(r, at, "pins", n, &b.Pins) }},
		{name: "cgroups", read: func(n ast.Node) { setSome(r, at, "cgroups", n, &b.Cgroups) }},
		{name: "owners", read: func(n ast.Node) { setList(r, at, "owners", n, &b.Owners, r.whole) }},
		{name: "url", read: func(n ast.Node) { set(at, "url", n, &b.URL, r.text) }},
		{name: "connections", read: func(n ast.Node) { r.counts(at, "connections", n, &b.Connections) }},
		{name: "qps", read: func(n ast.Node) { set(at, "qps", n, &b.QPS, r.figure) }},
		{name: "keep_alive", read: func(n ast.Node) { set(at, "keep_alive", n, &b.KeepAlive, r.boolean) }},
		{name: "duration", read: func(n ast.Node) { set(at, "duration", n, &b.Duration, r.duration) }},
		{name: "idle", read: func(n ast.Node) { set(at, "idle", n, &b.Idle, r.duration) }},
		{name: "rounds", read: func(n ast.Node) { set(at, "rounds", n, &b.Rounds, r.whole) }},
		{name: "cpus", read: func(n ast.Node) { set(at, "cpus", n, &b.CPUs, r.figure) }},
		{name: "instances", read: func(n ast.Node) { set(at, "instances", n, &b.Instances, r.whole) }},
		{name: "heavy", read: func(n ast.Node) { setList(r, at, "heavy", n, &b.Heavy, r.whole64) }},
		{name: "services", read: func(n ast.Node) { r.counts(at, "services", n, &b.Services) }},
		{name: "budget", read: func(n ast.Node) { set(at, "budget", n, &b.Budget, r.duration) }},
		{name: "timeout", read: func(n ast.Node) { set(at, "timeout", n, &b.Timeout, r.duration) }},
		{name: "seed", read: func(n ast.Node) { set(at, "seed", n, &b.Seed, r.seed) }},
	})
	if len(b.Owners) == 0 {
		b.Owners = nil
	}
	for _, c := range b.complaints() {
		r.report(at.of(c, placeOf(node)), "%s", c.Error())
	}
	return &b
}

func (r *reading) figure(what string, node ast.Node) (float64, bool) {
	return scalar(r, what, node, func(s string) (float64, error) {
		v, err := strconv.ParseFloat(s, 64)
		if err != nil || math.IsInf(v, 0) || math.IsNaN(v) {
			return 0, fmt.Errorf("%s is no number", quote(s))
		}
		return v, nil
	})
}
