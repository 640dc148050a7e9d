package probe

import (
	"fmt"
	"os"
	"path/filepath"
)

// Rootfs makes a root file system that holds the probe and the empty folders
// on which runtimes mount what every container has.
func Rootfs(dir string) error {
	for _, d := range []string{"", "dev", "etc", "proc", "sys", "tmp"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			return fmt.Errorf("make the root file system: %w", err)
		}
	}
	return Install(dir)
}
