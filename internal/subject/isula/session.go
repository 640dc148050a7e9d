package isula

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/node/procs"
	"github.com/tare-bench/tare/internal/probe/image"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/engine"
	"github.com/tare-bench/tare/internal/subject/engine/cli"
	"github.com/tare-bench/tare/record"
)

// Open implements subject.Target.
func (t *Target) Open(ctx context.Context, env subject.Env) (subject.Session, error) {
	if err := t.takes(env.Workload); err != nil {
		return nil, fmt.Errorf("target %s: %w", t.name, err)
	}
	probe, err := image.Probe(env.Workload.Files...)
	if err != nil {
		return nil, fmt.Errorf("target %s: %w", t.name, err)
	}
	c := &commands{Target: t, image: probe, env: env}
	s, err := cli.Open(ctx, cli.Options{
		Target: t.name, Called: "iSulad", Program: t.isula, Line: c.Line, Engine: c, Env: env,
		Exec: t.exec, Refused: refused,
		Image: "isula " + t.address + " " + probe.Ref, Settled: t.settled,
	})
	if err != nil {
		return nil, err
	}
	return &session{Session: s, target: t, socket: engine.Socket(t.address)}, nil
}

// takes is the error of a workload that isula cannot have. Its --tmpfs takes a
// path and no options (what follows a colon would be part of the path): the mount
// may grow to half of the memory, the kernel's default, whatever was asked for.
func (t *Target) takes(w subject.Workload) error {
	if w.Tmpfs > 0 && !t.tmpfs {
		return fmt.Errorf("a tmpfs: this isula create has no --tmpfs: %w", subject.ErrUnsupported)
	}
	if w.Device != "" && !t.devices {
		return fmt.Errorf("a device: this isula create has no --device: %w", subject.ErrUnsupported)
	}
	if w.Tmpfs > 0 {
		var machine unix.Sysinfo_t
		if err := unix.Sysinfo(&machine); err != nil {
			return fmt.Errorf("ask how much memory there is: %w", err)
		}
		if half := machine.Totalram / 2 * uint64(machine.Unit); uint64(w.Tmpfs) > half {
			return fmt.Errorf("a tmpfs of %d bytes: isula gives one no size, so that it may grow to half of the memory, %d bytes: %w", w.Tmpfs, half, subject.ErrUnsupported)
		}
	}
	return engine.Passes(w, t.runtime)
}

// settled makes sure that it is the chosen runtime that was weighed.
func (t *Target) settled(_ subject.Op, s cli.State) *record.Failure {
	if t.runtime == "" || s.Runtime == "" || s.Runtime == t.runtime {
		return nil
	}
	return &record.Failure{Kind: record.FailState, Detail: fmt.Sprintf("iSulad says that the container's runtime is %s, not %s", s.Runtime, t.runtime)}
}

type session struct {
	*cli.Session
	target *Target
	socket string
}

// Processes implements subject.HelperProcesses.
func (s *session) Processes(context.Context) []subject.Process {
	var out []subject.Process
	if pid, err := procs.Listener(s.socket); err == nil {
		out = append(out, subject.Process{Role: record.RoleDaemon, Pid: pid})
	}
	return append(out, cli.Staff(s.Held())...)
}

// Clean implements subject.Cleaner. The workload's images go if no container is
// left that could use one.
func (t *Target) Clean(ctx context.Context, runID string, dryRun bool) ([]string, error) {
	c := &commands{Target: t, env: subject.Env{RunID: runID}}
	names, err := c.List(ctx)
	if err != nil {
		return nil, fmt.Errorf("target %s: look for what run %s left: %w", t.name, runID, err)
	}
	var found []string
	for _, n := range names {
		found = append(found, "container "+n)
	}
	if len(names) > 0 && !dryRun {
		if _, err := cli.Clear(ctx, c, names, func(string) bool { return true }, 0); err != nil {
			return found, fmt.Errorf("target %s: remove what run %s left: %w", t.name, runID, err)
		}
	}
	refs, err := t.images(ctx)
	if err != nil || len(refs) == 0 {
		return found, err
	}
	all, err := t.list(ctx)
	if err != nil || slices.ContainsFunc(all, func(n string) bool { return strings.HasPrefix(n, "tare-") && !engine.OfRun(n, runID) }) {
		return found, err // another run's
	}
	for _, ref := range refs {
		found = append(found, "image "+ref)
		if dryRun {
			continue
		}
		if err := t.drop(ctx, ref); err != nil {
			return found, fmt.Errorf("target %s: %w", t.name, err)
		}
	}
	return found, nil
}

const (
	daemonConfig = "/etc/isulad/daemon.json"
	builtIn      = "runc" // since 2.1.4; lcr before
)

// configured are the runtimes of the configuration of the daemon that listens
// on a socket, its default first.
func configured(socket string) []string {
	def := builtIn
	if pid, err := procs.Listener(socket); err == nil {
		if said := procs.Flag(procs.ArgsOf(pid), "--default-runtime"); said != "" {
			return []string{said}
		}
	}
	f, err := os.Open(daemonConfig)
	if err != nil {
		return []string{def}
	}
	defer f.Close()
	return runtimesOf(io.LimitReader(f, 1<<20), def)
}

// runtimesOf reads a daemon.json.
func runtimesOf(r io.Reader, def string) []string {
	var config struct {
		Default  string         `json:"default-runtime"`
		Runtimes map[string]any `json:"runtimes"`
	}
	if json.NewDecoder(r).Decode(&config) == nil && config.Default != "" {
		def = config.Default
	}
	out := []string{def}
	for _, name := range slices.Sorted(maps.Keys(config.Runtimes)) {
		if name != def {
			out = append(out, name)
		}
	}
	return out
}
