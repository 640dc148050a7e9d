package workspace

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// secure returns the path of a folder without links. It checks each folder on it, starting
// at /: the owner must be root, the owner of / or this user, and others must not have write
// permission. With create it creates missing folders.
//
// A folder that others can write to, such as /tmp, must be sticky, so that only the owner
// of an entry can rename it. The folder in TARE_PRIVATE_DIR may have any mode, because no
// other user can reach it: an emptyDir has mode 0777 and belongs to one pod.
//
// After the check only root and this user can redirect the path. So it may be passed to
// engines and runtimes, which do not accept descriptors. The walk itself uses descriptors,
// since a folder is only as safe as its parents.
func secure(dir string, create bool) (string, error) {
	path, err := resolved(dir)
	if err != nil {
		return "", fmt.Errorf("resolve %s: %w", dir, err)
	}
	const flags = unix.O_PATH | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	var root unix.Stat_t
	at, in := "/", unix.AT_FDCWD
	for name := range strings.SplitSeq("/"+strings.Trim(path, "/"), "/") {
		at = filepath.Join(at, name)
		if name == "" {
			name = "/"
		}
		fd, err := unix.Openat(in, name, flags, 0)
		if create && errors.Is(err, unix.ENOENT) {
			if err = unix.Mkdirat(in, name, 0o711); err == nil || errors.Is(err, unix.EEXIST) {
				fd, err = unix.Openat(in, name, flags, 0)
			}
		}
		if in >= 0 {
			unix.Close(in)
		}
		if err != nil {
			return "", &os.PathError{Op: "open", Path: at, Err: err}
		}
		in = fd
		var st unix.Stat_t
		if err = unix.Fstat(fd, &st); err == nil {
			if at == "/" {
				root = st // in a user namespace the owner need not be 0, and could move everything
			}
			shared := st.Mode&0o022 != 0 && st.Mode&unix.S_ISVTX == 0 && at != os.Getenv("TARE_PRIVATE_DIR")
			if shared || !slices.Contains([]uint32{0, uint32(os.Geteuid()), root.Uid}, st.Uid) {
				err = fmt.Errorf("%s belongs to uid %d with mode %o: others could replace the run's folder in %s; chown it to yourself and chmod go-w it, or choose a folder that only you and root can change, including its parents", at, st.Uid, st.Mode&0o7777, path)
			}
		}
		if err != nil {
			unix.Close(fd)
			return "", err
		}
	}
	return path, unix.Close(in)
}

// resolved returns a path without links. Missing folders at its end are kept.
func resolved(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	path, err := filepath.EvalSymlinks(dir)
	if errors.Is(err, os.ErrNotExist) && dir != "/" {
		path, err = resolved(filepath.Dir(dir))
		path = filepath.Join(path, filepath.Base(dir))
	}
	return path, err
}
