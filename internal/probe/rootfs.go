package probe

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// File is a file of the host that is copied into a container.
type File struct {
	Path   string      // in the container, absolute and clean
	Source string      // on the host; a link is followed
	Mode   os.FileMode // permission bits
}

// Folders are the folders of every root file system: mount points of runtimes, and a
// folder for a workload.
var Folders = []string{"data", "dev", "etc", "proc", "run", "sys", "tmp"}

// Rootfs creates a root file system with the probe, the given files, and the mount points
// of runtimes.
func Rootfs(dir string, files ...File) error {
	for _, d := range append([]string{""}, Folders...) {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			return fmt.Errorf("create the root file system: %w", err)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("create the root file system: %w", err)
	}
	defer root.Close()
	for _, f := range files {
		if err := f.Copy(root); err != nil {
			return err
		}
	}
	return Install(dir)
}

// Copy copies the file into a root file system. It follows no link out of the root.
func (f File) Copy(root *os.Root) error {
	name := f.Name()
	content, err := os.ReadFile(f.Source)
	if err == nil {
		err = root.MkdirAll(path.Dir(name), 0o755)
	}
	if err == nil {
		if err = root.Remove(name); errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	}
	if err == nil {
		err = root.WriteFile(name, content, 0o600)
	}
	if err == nil {
		err = root.Chmod(name, f.Mode.Perm()) // independent of the umask
	}
	if err != nil {
		return fmt.Errorf("copy %s into the root file system: %w", f.Source, err)
	}
	return nil
}

// Name returns the file's path from the root.
func (f File) Name() string { return strings.TrimPrefix(path.Clean("/"+f.Path), "/") }
