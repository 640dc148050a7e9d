package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tare-bench/tare/internal/instrument/terms"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/engine"
	"github.com/tare-bench/tare/internal/subject/find"
	"github.com/tare-bench/tare/internal/subject/setting"
	"github.com/tare-bench/tare/internal/workspace"
)

// checkEngines rejects settings for unknown engines. Ignoring them could measure another
// daemon than the intended one.
func checkEngines(engines terms.Engines) error {
	for _, name := range slices.Sorted(maps.Keys(engines)) {
		if !find.IsEngine(name) {
			return fmt.Errorf("engines: unknown engine %q (supported: %s)", name, strings.Join(setting.EngineNames, ", "))
		}
	}
	return nil
}

// made is an engine on which a run creates containers. It is stored in the run's folder, so
// that tare clean finds the containers of a killed run.
type made struct {
	Name   string            `json:"name"`
	Engine subject.Engine    `json:"engine"`
	Env    map[string]string `json:"env,omitempty"` // variables with which the client found the engine
}

const madeFile = "engines.json"

// foundBy lists name prefixes of environment variables. Clients of engines use these
// variables to find daemons, storage and configuration. tare clean may run with other values
// of them.
var foundBy = []string{"DOCKER_", "CONTAINER_", "CONTAINERS_", "STORAGE_", "REGISTRIES_", "XDG_", "CONTAINERD_", "ISULAD_", "KUBECONFIG"}

func surroundings() map[string]string {
	env := map[string]string{}
	for _, v := range os.Environ() {
		name, value, _ := strings.Cut(v, "=")
		if slices.ContainsFunc(foundBy, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
			env[name] = value
		}
	}
	return env
}

// within calls do with the environment of an earlier run.
func within(env map[string]string, do func()) {
	was := surroundings()
	set := func(from, to map[string]string) {
		for name := range from {
			_ = os.Unsetenv(name)
		}
		for name, value := range to {
			_ = os.Setenv(name, value)
		}
	}
	set(was, env)
	defer set(env, was)
	do()
}

// sweeping is the timeout for cleaning one engine. busy is how long cleaning is retried
// after timeouts: the engine may still work on requests of the killed run.
const (
	sweeping = 3 * time.Minute
	busy     = time.Minute
)

// keepEngines stores the targets on which a run creates objects.
func keepEngines(run *workspace.Run, targets []subject.Target, engines terms.Engines) error {
	var all []made
	for _, t := range targets {
		if _, ok := t.(subject.Cleaner); ok {
			info := t.Info()
			found := subject.Engine{Address: info.Config["address"], Namespace: info.Config["namespace"], Context: info.Config["context"]}
			e := engines.Of(info.Name).Over(found)
			if path, err := filepath.Abs(e.Kubeconfig); err == nil && e.Kubeconfig != "" { // tare clean may run in another directory
				e.Kubeconfig = path
			}
			all = append(all, made{info.Name, e, surroundings()})
		}
	}
	if all == nil {
		return nil
	}
	b, err := json.Marshal(all)
	if err != nil {
		return fmt.Errorf("store the run's engines: %w", err)
	}
	return run.Keep(madeFile, b)
}

// sweep removes what a killed run left on engines, or only lists it. It uses the addresses
// of the run, except those that now overrides.
func sweep(ctx context.Context, l *workspace.Leftover, now terms.Engines, dryRun bool) ([]string, error) {
	b, err := l.Kept(madeFile)
	if err != nil {
		return nil, err
	}
	ids, err := l.Kept(engine.KeptSandboxes)
	if err != nil {
		return nil, err
	}
	var all []made
	if err := json.Unmarshal(b, &all); b != nil && err != nil {
		return nil, fmt.Errorf("run %s: %s cannot be read: %w", l.RunID, madeFile, err)
	}
	var out []string
	var errs []error
	for _, m := range all {
		m.Engine = now.Of(m.Name).Over(m.Engine)
		within(m.Env, func() {
			lines, err := insist(func() ([]string, error) { return sweepOne(ctx, l.RunID, m, dryRun) })
			for _, line := range lines {
				called, _, _ := strings.Cut(m.Name, "/")
				if line = called + ": " + line; !slices.Contains(out, line) {
					out = append(out, line)
				}
			}
			// Two clients of one daemon fail with the same reason.
			if err != nil && !slices.ContainsFunc(errs, func(e error) bool { return reasonOf(e) == reasonOf(err) }) {
				errs = append(errs, err)
			}
		})
	}
	// An operation that the engine no longer reports may still run, or may have left
	// objects.
	lines, err := engine.NewFlight(l.RunID, strings.Fields(string(ids))...).Settle(ctx, dryRun)
	if err != nil {
		errs = append(errs, fmt.Errorf("run %s: %w", l.RunID, err))
	}
	return append(out, lines...), errors.Join(errs...)
}

// reasonOf returns the reason why an engine is unavailable, or the whole error.
func reasonOf(err error) string {
	if u, ok := errors.AsType[*subject.Unavailable](err); ok {
		return u.Reason
	}
	return err.Error()
}

// insist retries while an engine times out, and returns everything that was found.
func insist(try func() ([]string, error)) (found []string, err error) {
	for began := time.Now(); ; {
		lines, err := try()
		for _, line := range lines {
			if !slices.Contains(found, line) {
				found = append(found, line)
			}
		}
		// gRPC, CRI-O and the engines' clients spell DeadlineExceeded differently.
		if err == nil || time.Since(began) > busy || !strings.Contains(strings.ReplaceAll(strings.ToLower(err.Error()), " ", ""), "deadlineexceeded") {
			return found, err
		}
		time.Sleep(time.Second)
	}
}

func sweepOne(ctx context.Context, id string, m made, dryRun bool) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, sweeping)
	defer cancel()
	found, err := find.Named(ctx, []string{m.Name}, find.Settings{Engine: func(string) subject.Engine { return m.Engine }})
	switch {
	case err != nil:
		return nil, err
	case found[0].Target == nil:
		return nil, fmt.Errorf("run %s may have left containers on %s, which is unavailable: %w", id, m.Name, found[0].Why)
	}
	s, ok := found[0].Target.(subject.Cleaner)
	if !ok {
		return nil, nil
	}
	lines, err := s.Clean(ctx, id, dryRun)
	if err != nil {
		err = fmt.Errorf("run %s on %s: %w", id, m.Name, err)
	}
	return lines, err
}
