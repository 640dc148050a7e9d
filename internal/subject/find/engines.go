package find

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/setting"
	"github.com/tare-bench/tare/internal/term"
)

// engine is a kind of engine.
type engine struct {
	name     string   // as in ENGINE/RUNTIME; "cri" stands for every cri+NAME
	ways     []string // interfaces, the default first; empty: only one
	new      func(ctx context.Context, name, runtime, way string, e subject.Engine) (subject.Target, error)
	runtimes func(ctx context.Context, e subject.Engine) ([]string, error) // its default first
	named    bool                                                          // shared with others: measured only if named
}

// split parses ENGINE[+WAY][/RUNTIME]. A name without a slash has to be exactly an engine's.
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

// behind returns the target name of a runtime behind the engine, with a way unless that is
// the default. The default runtime may have no name.
func (e *engine) behind(way, runtime string) string {
	name := e.name
	if way != e.usual() {
		name += "+" + way
	}
	if runtime != "" {
		name += "/" + runtime
	}
	return name
}

// wanted returns the ways that the settings select.
func (e *engine) wanted(s Settings) []string {
	out := slices.DeleteFunc(slices.Clone(s.Via), func(way string) bool { return !slices.Contains(e.ways, way) })
	if len(out) == 0 {
		return []string{e.usual()}
	}
	return out
}

// expand returns the target names for a name that the user gave. Without a runtime in the
// name it uses the engine's default one. Without a way in the name it returns one target for
// each way that the settings select.
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
		return nil, false, fmt.Errorf("target %q: %w", name, term.Unknown("engine", before, setting.EngineNames))
	}
	if runtime == "" {
		found, err := e.runtimes(ctx, s.engine(name))
		if err != nil || len(found) == 0 {
			return []string{name}, true, nil // the target itself returns the reason
		}
		runtime = found[0]
	}
	if before != e.name { // the name has a way
		return []string{strings.TrimSuffix(before+"/"+runtime, "/")}, true, nil
	}
	for _, w := range e.wanted(s) {
		names = append(names, e.behind(w, runtime))
	}
	return names, true, nil
}

// crictl returns the targets of cri+cli, one per available CRI endpoint, with that runtime or
// the default. If none is available, it returns one per known endpoint, each with its reason.
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

// all returns the engine's targets: each of its runtimes, with each selected way.
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

// IsEngine reports whether a target's name is that of an engine or of a runtime behind one.
func IsEngine(name string) bool {
	_, _, _, ok := split(name)
	return ok
}
