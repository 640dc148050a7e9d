package containerd

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/tare-bench/tare/internal/mounts"
)

// Volume is the folder of the host below which each lane has one of its own. The
// zero value is none.
type Volume struct {
	dir  string
	made []string // the folders that were not there before
}

// MakeVolume makes the folders of n lanes below dir, and dir itself if there is
// none: for everybody to write to, since a container's user may be anyone. What
// is there already is used as it is. The volume tells what was made even when
// that failed half-way. An empty dir is no volume.
func MakeVolume(dir string, n int) (*Volume, error) {
	v := &Volume{dir: dir}
	if dir == "" {
		return v, nil
	}
	for lane := -1; lane < n; lane++ {
		path := dir
		if lane >= 0 {
			path = v.Of(lane)
		}
		if err := v.make(path); err != nil {
			return v, fmt.Errorf("make the folder of lane %d of the volume %s: %w", max(lane, 0), dir, err)
		}
	}
	return v, nil
}

func (v *Volume) make(path string) error {
	switch err := os.Mkdir(path, 0o777); {
	case err == nil:
		v.made = append(v.made, path)
		return os.Chmod(path, 0o777) // whatever the umask
	case !errors.Is(err, os.ErrExist):
		return err
	}
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		return errors.Join(fmt.Errorf("%s is no folder", path), err)
	}
	return nil
}

// Of is the folder of a lane; "" where there is no volume.
func (v *Volume) Of(lane int) string {
	if v == nil || v.dir == "" {
		return ""
	}
	return filepath.Join(v.dir, strconv.Itoa(lane))
}

// Remove removes the folders that were made, with what is in them.
func (v *Volume) Remove() error {
	if v == nil {
		return nil
	}
	var errs []error
	for _, path := range slices.Backward(v.made) {
		errs = append(errs, mounts.RemoveTree(path))
	}
	return errors.Join(errs...)
}
