package vm

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

// install is what makes everything here that the machine needs.
const install = "run scripts/install-vm"

// program finds a program of this machine.
func program(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("no %s: %w; %s", name, err, install)
	}
	return filepath.Abs(path)
}

// Kernel is the kernel that scripts/install-vm unpacked last into the user's cache.
func Kernel() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no kernel: %w; set XDG_CACHE_HOME or HOME, and %s", err, install)
	}
	found, err := filepath.Glob(filepath.Join(cache, "tare", "vm-linux-image-*", "boot", "vmlinuz-*"))
	if err == nil && len(found) == 0 {
		err = errors.New("none in " + filepath.Join(cache, "tare"))
	}
	if err != nil {
		return "", fmt.Errorf("no kernel for the machine: %w; %s", err, install)
	}
	newest := func(a, b string) int {
		x, errX := os.Stat(filepath.Dir(filepath.Dir(a)))
		y, errY := os.Stat(filepath.Dir(filepath.Dir(b)))
		if errX != nil || errY != nil {
			return 0
		}
		return x.ModTime().Compare(y.ModTime())
	}
	return slices.MaxFunc(found, newest), nil
}
