package probe

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
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
	for _, f := range files {
		if err := f.copy(dir); err != nil {
			return fmt.Errorf("copy %s into the root file system: %w", f.Source, err)
		}
	}
	return Install(dir)
}

func (f File) copy(root string) error {
	to := filepath.Join(root, filepath.Clean("/"+f.Path))
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	in, err := os.Open(f.Source)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, f.Mode.Perm())
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if closed := out.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Chmod(to, f.Mode.Perm()) // independent of the umask
	}
	return err
}
