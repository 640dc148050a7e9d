// Package find turns names into targets, and finds the machine's targets. Only this package
// knows every kind of target.
package find

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/floor"
	"github.com/tare-bench/tare/internal/subject/host"
	"github.com/tare-bench/tare/internal/subject/oci"
	"github.com/tare-bench/tare/internal/subject/setting"
	"github.com/tare-bench/tare/internal/term"
)

// Found is the result for a name: a target, or the reason for having none.
type Found struct {
	Name   string
	Target subject.Target // nil if it cannot be measured
	Why    *subject.Unavailable
}

// Settings are how to reach and drive engines.
type Settings struct {
	// Engine returns the settings for a target's or an engine's name. May be nil.
	Engine func(name string) subject.Engine
	// Via are the interfaces of engines with several: "api", "cli". Empty: each engine's default.
	Via []string
}

func (s Settings) engine(name string) subject.Engine {
	if s.Engine == nil {
		return subject.Engine{}
	}
	return s.Engine(name)
}

// All finds every known target, in the order of tables: each runtime by itself, then behind
// each available engine. A cluster is included only with look, since it is shared.
func All(ctx context.Context, s Settings, look bool) []Found {
	var out []Found
	for _, name := range Names() {
		out = append(out, one(ctx, name, "", s))
	}
	for _, e := range engines {
		if look || !e.named {
			out = append(out, e.all(ctx, s)...)
		}
	}
	return out
}

// Named finds the targets of the given names: host, floor, a runtime's name, NAME=PATH for a
// runtime elsewhere, or ENGINE/RUNTIME. An invalid name is an error. A target that cannot be
// measured here has its reason.
func Named(ctx context.Context, names []string, s Settings) ([]Found, error) {
	var out []Found
	for _, arg := range names {
		name, path, given := strings.Cut(arg, "=")
		if err := valid(name); err != nil {
			return nil, err
		}
		expanded, isEngine, err := expand(ctx, name, s)
		switch {
		case err != nil:
			return nil, err
		case given && path == "":
			return nil, fmt.Errorf("target %q: no path after =", arg)
		case given && (name == host.Name || name == floor.Name):
			return nil, fmt.Errorf("target %q: %s has no path", arg, name)
		case given && isEngine:
			return nil, fmt.Errorf("target %q: a runtime behind an engine has no path: register it in the engine, or give a bare runtime: mine=%s", arg, path)
		case !isEngine && !given && !slices.Contains(Names(), name):
			return nil, fmt.Errorf("unknown target %q (supported: %s, any OCI runtime as NAME=PATH, and ENGINE/RUNTIME with the engines %s)%s",
				name, strings.Join(Names(), ", "), strings.Join(setting.EngineNames, ", "), term.Like(name, slices.Concat(Names(), setting.EngineNames)))
		}
		for _, n := range expanded {
			if slices.ContainsFunc(out, func(f Found) bool { return f.Name == n }) {
				if isEngine {
					return nil, fmt.Errorf("duplicate target %s", n)
				}
				return nil, fmt.Errorf("duplicate target %s: give one of them another name: %s2=PATH", n, n)
			}
			out = append(out, one(ctx, n, path, s))
		}
	}
	return out, nil
}

// Names returns the targets that need no path and no engine.
func Names() []string { return append([]string{host.Name, floor.Name}, oci.Names()...) }

// valid accepts names that are fit for tables, folders and cgroups.
func valid(name string) error {
	if name == "" || len(name) > 60 || name[0] == '-' || name[0] == '.' || name[0] == '/' || strings.Count(name, "/") > 1 ||
		strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-+/") != "" {
		return fmt.Errorf("target %q: a name has 1 to 60 letters, digits, dots, dashes, plus signs or underscores, and at most one slash in between", name)
	}
	return nil
}

func one(ctx context.Context, name, path string, s Settings) Found {
	var t subject.Target
	var err error
	e, way, runtime, isEngine := split(name)
	switch {
	case name == host.Name:
		t = host.New()
	case name == floor.Name:
		t, err = floor.New()
	case isEngine:
		t, err = e.new(ctx, name, runtime, way, s.engine(name))
	default:
		t, err = oci.New(ctx, name, path)
	}
	if err == nil {
		return Found{Name: name, Target: t}
	}
	return Found{Name: name, Why: why(name, err)}
}

func why(name string, err error) *subject.Unavailable {
	if u, ok := errors.AsType[*subject.Unavailable](err); ok {
		return u
	}
	return &subject.Unavailable{Name: name, Reason: err.Error()}
}
