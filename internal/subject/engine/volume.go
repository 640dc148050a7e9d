package engine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/tare-bench/tare/internal/mounts"
	"github.com/tare-bench/tare/internal/subject"
)

// Volumes are the folders of a run's volume, one for each lane, that a session
// takes part in. Nil is none.
type Volumes struct {
	dir   string
	letGo []func() error
}

// OpenVolumes makes the folders "0" to lanes-1 below env.Workload.Volume,
// writable for everybody: which user a container's root is on the host is the
// engine's to say. The folder above them lets nobody else through, or anybody could put
// a link there that what runs on the host then follows; engines, which are root, mount
// what is below. Sessions may share a volume. One that is there is used, and
// not removed by Close. A workload that contradicts itself is refused.
func OpenVolumes(env subject.Env) (*Volumes, error) {
	if err := checkVolume(env.Workload); err != nil {
		return nil, err
	}
	dir := env.Workload.Volume
	if dir == "" {
		return nil, nil
	}
	// Engines cut a mount at its colons.
	if !filepath.IsAbs(dir) || strings.ContainsAny(dir, ":,") {
		return nil, fmt.Errorf("the volume %q: the folder's path has to be absolute, without a colon or a comma", dir)
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
	err = os.Mkdir(path, 0o700)
	if errors.Is(err, os.ErrExist) {
		info, err := os.Lstat(path) // a link would lead the mode, and the container, elsewhere
		if err == nil && !info.IsDir() {
			err = fmt.Errorf("%s is there and no folder", path)
		}
		if err != nil {
			return false, err
		}
	} else if err != nil {
		return false, err
	}
	return !errors.Is(err, os.ErrExist), os.Chmod(path, 0o777)
}

// Folder is that of a lane on the host, "" where there is no volume.
func (v *Volumes) Folder(lane int) string {
	if v == nil {
		return ""
	}
	return filepath.Join(v.dir, strconv.Itoa(lane))
}

// Close removes the folders that were made, with what is in them, once no other
// session uses them.
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
