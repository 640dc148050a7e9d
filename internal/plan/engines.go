package plan

import (
	"regexp"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/tare-bench/tare/internal/subject"
)

// engines reads a mapping whose keys are the reader's own.
func (r *reading) engines(at places, node ast.Node) Engines {
	all := Engines{}
	mapping, ok := node.(ast.MapNode)
	if !ok {
		r.report(placeOf(node), "engines is %s: write engines or targets below it, such as docker: {address: unix:///run/docker.sock}", describe(node))
		return nil
	}
	for entries := mapping.MapRange(); entries.Next(); {
		name, where := scalarText(entries.Key()), placeOf(entries.Key())
		if _, again := all[name]; again {
			r.report(where, "%s is there twice: keep one of them", quote(name))
			continue
		}
		at["engines."+name] = []place{where}
		all[name] = r.engine(name, entries.Value())
	}
	if len(all) == 0 {
		return nil // a record leaves it out
	}
	return all
}

func (r *reading) engine(name string, node ast.Node) subject.Engine {
	var e subject.Engine
	at := places{}
	text := func(name string, into *string) field {
		return field{name: name, read: func(n ast.Node) { set(at, name, n, into, r.text) }}
	}
	r.fields("engine "+quote(name), node, []field{
		text("address", &e.Address), text("namespace", &e.Namespace), text("command", &e.Command),
		{name: "args", read: func(n ast.Node) { setList(r, at, "args", n, &e.Args, r.text) }},
		{name: "env", read: func(n ast.Node) { e.Env = r.texts("env", n) }},
		text("root", &e.Root), text("runroot", &e.RunRoot), text("network", &e.Network),
	})
	return e
}

// texts reads a mapping of names to text.
func (r *reading) texts(what string, node ast.Node) map[string]string {
	out := map[string]string{}
	mapping, ok := node.(ast.MapNode)
	if !ok {
		r.report(placeOf(node), "%s is %s: write NAME: value below it", what, describe(node))
		return nil
	}
	for entries := mapping.MapRange(); entries.Next(); {
		if value, ok := r.text(what+" "+scalarText(entries.Key()), entries.Value()); ok {
			out[scalarText(entries.Key())] = value
		}
	}
	return out
}

// engineName is an engine's name or a target's.
var engineName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9._+-]*(/[A-Za-z0-9][A-Za-z0-9._+@:-]*)?$`)

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func engineComplaints(engines Engines, ways []string, missing Missing) []complaint {
	var all []complaint
	for name, e := range engines {
		field := "engines." + name
		if !engineName.MatchString(name) {
			all = append(all, complain(field, "%s names no engine: write docker, podman, containerd, cri+NAME or isula, or a target's name", quote(name)))
		}
		switch e.Network {
		case "", subject.NetworkNone, subject.NetworkBridge, subject.NetworkHost:
		default:
			all = append(all, complain(field, "network: %s is not one of none, bridge, host", quote(e.Network)))
		}
		for key, value := range e.Env {
			if !envName.MatchString(key) || strings.ContainsRune(value, 0) {
				all = append(all, complain(field, "env: %s is no name of a variable", quote(key)))
			}
		}
	}
	for i, via := range ways {
		if via != "api" && via != "cli" {
			all = append(all, complain("via", "%s is not a way to drive an engine: write api or cli", quote(via)).at(i))
		}
	}
	switch missing {
	case "", MissingFail, MissingSkip:
	default:
		all = append(all, complain("missing", "%s is not known: write fail or skip", quote(string(missing))))
	}
	return all
}
