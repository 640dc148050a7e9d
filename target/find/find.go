// Package find turns names into targets, and finds those that the machine has.
// It is the one place that knows every kind of target.
package find

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tare-bench/tare/target"
	"github.com/tare-bench/tare/target/floor"
	"github.com/tare-bench/tare/target/host"
	"github.com/tare-bench/tare/target/oci"
)

// Found is what a name led to: a target, or why there is none.
type Found struct {
	Name   string
	Target target.Target // nil when it cannot be weighed
	Why    *target.Unavailable
}

// All looks for every target that tare knows, in the order tables show them.
func All(ctx context.Context) []Found {
	var out []Found
	for _, name := range append([]string{host.Name, floor.Name}, oci.Names()...) {
		out = append(out, one(ctx, name, ""))
	}
	return out
}

// Named finds the targets of the given names: host, floor, a runtime's name,
// or NAME=PATH for a runtime that is somewhere else. Every name must lead to a
// target.
func Named(ctx context.Context, names []string) ([]target.Target, error) {
	var out []target.Target
	var seen []string
	for _, arg := range names {
		name, path, given := strings.Cut(arg, "=")
		if err := valid(name); err != nil {
			return nil, err
		}
		if given && path == "" {
			return nil, fmt.Errorf("target %q: no path after =", arg)
		}
		if given && (name == host.Name || name == floor.Name) {
			return nil, fmt.Errorf("target %q: %s has no path", arg, name)
		}
		if slices.Contains(seen, name) {
			return nil, fmt.Errorf("target %s is named twice; give one of them another name: %s2=PATH", name, name)
		}
		seen = append(seen, name)
		if !given && !slices.Contains(Names(), name) {
			return nil, fmt.Errorf("unknown target %q: known are %s, and any OCI runtime as NAME=PATH", name, strings.Join(Names(), ", "))
		}
		f := one(ctx, name, path)
		if f.Target == nil {
			return nil, f.Why
		}
		out = append(out, f.Target)
	}
	return out, nil
}

// Names are the targets that need no path.
func Names() []string { return append([]string{host.Name, floor.Name}, oci.Names()...) }

// valid keeps names fit for tables, folders and cgroups.
func valid(name string) error {
	if name == "" || len(name) > 40 || name[0] == '-' || name[0] == '.' ||
		strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-+") != "" {
		return fmt.Errorf("target %q: a name is 1 to 40 letters, digits, dots, dashes, plus signs or underscores", name)
	}
	return nil
}

func one(ctx context.Context, name, path string) Found {
	var t target.Target
	var err error
	switch name {
	case host.Name:
		t = host.New()
	case floor.Name:
		t, err = typed(floor.New())
	default:
		t, err = typed(oci.New(ctx, name, path))
	}
	if err == nil {
		return Found{Name: name, Target: t}
	}
	var why *target.Unavailable
	if !errors.As(err, &why) {
		why = &target.Unavailable{Name: name, Reason: err.Error()}
	}
	return Found{Name: name, Why: why}
}

// typed keeps a nil pointer from becoming a non-nil interface.
func typed[T target.Target](t T, err error) (target.Target, error) {
	if err != nil {
		return nil, err
	}
	return t, nil
}
