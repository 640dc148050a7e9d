// Package probe embeds the workload: a static program of a few kilobytes (src/probe.c). It
// reads CLOCK_MONOTONIC at its first instruction, prints it in one line, sleeps, and exits
// at once on SIGTERM. With other arguments it is a load of a known size.
//
// The built program is in the source tree; scripts/build-probe rebuilds and compares it.
package probe

import (
	"fmt"
	"os"
	"path/filepath"
)

// Name is the probe's path inside a container's root file system.
const Name = "/probe"

// Program returns the probe's ELF file for this architecture.
func Program() []byte { return program }

// Install writes the probe into a root file system.
func Install(root string) error {
	path := filepath.Join(root, Name)
	if err := os.WriteFile(path, program, 0o755); err != nil {
		return fmt.Errorf("install the probe: %w", err)
	}
	return os.Chmod(path, 0o755) // independent of the umask
}
