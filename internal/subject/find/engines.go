package find

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/setting"
)

// engine is a kind of engine as this package knows it.
type engine struct {
	name     string   // as in ENGINE/RUNTIME; "cri" stands for every cri+NAME
	ways     []string // how it can be driven, the usual way first; empty: there is one only
	new      func(ctx context.Context, name, runtime, way string, e subject.Engine) (subject.Target, error)
	runtimes func(ctx context.Context, e subject.Engine) ([]string, error) // its default first
	named    bool                                                          // it is others' too: weighed only where it is named
}

// split takes ENGINE[+WAY][/RUNTIME] apart. A name without a slash is an
// engine's only if it is one's exactly.
func split(name string) (e *engine, way, runtime string, ok bool) {
	before, runtime, _ := strings.Cut(name, "/")
	for i := range engines {
		e := &engines[i]
		if before == e.name {
			return e, e.usual(), runtime, true
		}
		if rest, found := strings.CutPrefix(before, e.name+"+"); found && slices.Contains(e.ways, rest) {
			return e, rest, runtime, true
		}
	}
	if e, ok := unlisted(before); ok {
		return &e, "", runtime, true
	}
	return nil, "", "", false
}

func (e *engine) usual() string {
	if len(e.ways) == 0 {
		return ""
	}
	return e.ways[0]
}

// in is the engine's name when it is driven in a way.
func (e *engine) in(way string) string {
	if way == e.usual() {
		return e.name
	}
	return e.name + "+" + way
}

// behind is the name of a runtime behind the engine, driven in a way. One that does
// not tell what its default is called is that by itself.
func (e *engine) behind(way, runtime string) string {
	if runtime == "" {
		return e.in(way)
	}
	return e.in(way) + "/" + runtime
}

// ways in which the settings want the engine driven.
func (e *engine) wanted(s Settings) []string {
	var out []string
	for _, way := range s.Via {
		if slices.Contains(e.ways, way) {
			out = append(out, way)
		}
	}
	if out == nil {
		return []string{e.usual()}
	}
	return out
}

// expand makes the names of targets from one that a user gave: the engine's
// default runtime where none is named, and a target for each way where the
// name does not say one and the settings do.
func expand(ctx context.Context, name string, s Settings) (names []string, isEngine bool, err error) {
	before, runtime, slash := strings.Cut(name, "/")
	if before == criPrefix+"cli" {
		return crictl(ctx, runtime, s), true, nil
	}
	e, _, _, ok := split(name)
	switch {
	case ok && slash && runtime == "":
		return nil, true, fmt.Errorf("target %q: no runtime after the slash", name)
	case ok:
	case !slash:
		return []string{name}, false, nil
	case before == "podman+api":
		return nil, false, fmt.Errorf("target %q: podman's service is weighed as docker: docker --docker-host unix:///run/podman/podman.sock", name)
	default:
		return nil, false, fmt.Errorf("target %q: there is no engine %q; the engines are %s", name, before, strings.Join(setting.EngineNames, ", "))
	}
	if runtime == "" {
		found, err := e.runtimes(ctx, s.engine(name))
		if err != nil || len(found) == 0 {
			return []string{name}, true, nil // one says why
		}
		runtime = found[0]
	}
	if before != e.name { // the name says the way
		return []string{strings.TrimSuffix(before+"/"+runtime, "/")}, true, nil
	}
	for _, w := range e.wanted(s) {
		names = append(names, e.behind(w, runtime))
	}
	return names, true, nil
}

// crictl are the targets that it drives: on every CRI endpoint that is here, with
// that runtime or its default; on every one that is known where none is, so that each
// says why.
func crictl(ctx context.Context, runtime string, s Settings) (names []string) {
	var known []string
	for i := range engines {
		e := &engines[i]
		if !slices.Contains(e.ways, "cli") || !strings.HasPrefix(e.name, criPrefix) {
			continue
		}
		name := e.behind("cli", runtime)
		known = append(known, name)
		if found, err := e.runtimes(ctx, s.engine(name)); err == nil {
			if runtime == "" && len(found) > 0 {
				name = e.behind("cli", found[0])
			}
			names = append(names, name)
		}
	}
	if names == nil {
		return known
	}
	return names
}

// all are the engine's targets: each of its runtimes, in each wanted way.
func (e *engine) all(ctx context.Context, s Settings) []Found {
	settings := s.engine(e.name)
	runtimes, err := e.runtimes(ctx, settings)
	if err != nil {
		return []Found{{Name: e.name, Why: why(e.name, err)}}
	}
	var out []Found
	for _, runtime := range runtimes {
		for _, way := range e.wanted(s) {
			out = append(out, one(ctx, e.behind(way, runtime), "", s))
		}
	}
	return out
}

// IsEngine tells whether a target's name is that of an engine or of a runtime
// behind one.
func IsEngine(name string) bool {
	_, _, _, ok := split(name)
	return ok
}
