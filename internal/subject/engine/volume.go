package engine

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/tare-bench/tare/internal/mounts"
	"github.com/tare-bench/tare/internal/subject"
)

// Volumes are a session's shares in the folders of a run's volume, one folder per lane. A nil
// Volumes has none.
type Volumes struct {
	dir   string
	letGo []func() error
}

// OpenVolumes makes the folders "0" to lanes-1 below env.Workload.Volume. They are writable
// for all users, since the engine chooses the user ids of containers. The parent folder is
// closed to other users, who could otherwise plant a link for programs on the host to follow;
// engines run as root. Sessions may share a volume. Close does not remove folders that
// existed. A contradictory workload is an error.
func OpenVolumes(env subject.Env) (*Volumes, error) {
	w := env.Workload
	if w.Tmpfs < 0 || w.Tmpfs > 0 && w.Volume != "" {
		return nil, fmt.Errorf("cannot mount both a tmpfs of %d bytes and the volume %q at %s", w.Tmpfs, w.Volume, subject.VolumePath)
	}
	dir := w.Volume
	if dir == "" {
		return nil, nil
	}
	// Engines cut a mount at its colons.
	if !filepath.IsAbs(dir) || strings.ContainsAny(dir, ":,") {
		return nil, fmt.Errorf("volume %q: need an absolute path without a colon or a comma", dir)
	}
	if err := errors.Join(os.MkdirAll(dir, 0o700), os.Chmod(dir, 0o700)); err != nil {
		return nil, fmt.Errorf("make the volume's folder: %w", err)
	}
	v := &Volumes{dir: dir}
	for n := range env.Lanes {
		path := v.Folder(n)
		letGo, err := Hold("volume "+path, func() (bool, error) { return makeFolder(path) })
		if letGo != nil {
			v.letGo = append(v.letGo, func() error { return letGo(func() error { return mounts.RemoveTree(path) }) })
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("make the volume's folder of lane %d: %w", n, err), v.Close())
		}
	}
	return v, nil
}

func makeFolder(path string) (made bool, err error) {
	exists := os.Mkdir(path, 0o700)
	if exists != nil && !errors.Is(exists, os.ErrExist) {
		return false, exists
	}
	if info, err := os.Lstat(path); err != nil || !info.IsDir() { // chmod and the container would follow a link
		return false, cmp.Or(err, fmt.Errorf("%s exists and is not a folder", path))
	}
	return exists == nil, os.Chmod(path, 0o777)
}

// Folder returns a lane's folder on the host, "" without a volume.
func (v *Volumes) Folder(lane int) string {
	if v == nil {
		return ""
	}
	return filepath.Join(v.dir, strconv.Itoa(lane))
}

// Close removes the folders that were made once no other session uses them.
func (v *Volumes) Close() error {
	if v == nil {
		return nil
	}
	var errs []error
	for _, letGo := range v.letGo {
		errs = append(errs, letGo())
	}
	return errors.Join(errs...)
}
