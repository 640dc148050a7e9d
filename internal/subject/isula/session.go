package isula

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/engine"
)

// Open implements subject.Target.
func (t *Target) Open(ctx context.Context, env subject.Env) (subject.Session, error) {
	probe, err := env.Image()
	if err = errors.Join(t.supports(env.Workload), err); err != nil {
		return nil, fmt.Errorf("target %s: %w", t.name, err)
	}
	return t.commands(env, probe).Open(ctx, engine.Options{
		Target: t.name, Image: "isula " + t.address + " " + probe.Ref, Guest: engine.Clock(t.runtime) == "guest",
		Runtime: t.runtime, Source: "isula stats (up to 1.6 s old)",
		Daemons: func() []int { return engine.Listeners(t.address) },
	})
}

// supports returns the error of a workload that isula cannot run. Its --tmpfs takes a path
// without options (a colon would be part of the path), so the mount may grow to the kernel's
// default, half of the memory.
func (t *Target) supports(w subject.Workload) error {
	if w.Tmpfs > 0 && !t.takes("--tmpfs") {
		return fmt.Errorf("a tmpfs: this isula create has no --tmpfs: %w", subject.ErrUnsupported)
	}
	if w.Device != "" && !t.takes("--device") {
		return fmt.Errorf("a device: this isula create has no --device: %w", subject.ErrUnsupported)
	}
	if w.Tmpfs > 0 {
		var machine unix.Sysinfo_t
		if err := unix.Sysinfo(&machine); err != nil {
			return fmt.Errorf("read the memory size: %w", err)
		}
		if half := machine.Totalram / 2 * uint64(machine.Unit); uint64(w.Tmpfs) > half {
			return fmt.Errorf("a tmpfs of %d bytes: isula sets no size, so it may grow only to half of the memory, %d bytes: %w", w.Tmpfs, half, subject.ErrUnsupported)
		}
	}
	return engine.Passes(w, t.runtime)
}

// Clean implements subject.Cleaner.
func (t *Target) Clean(ctx context.Context, runID string, dryRun bool) ([]string, error) {
	return engine.Clean(ctx, t.commands(subject.Env{RunID: runID}, nil), t.name, "container", runID, dryRun)
}
