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

// secure returns the path of a folder without links and checks each folder on it, from /
// down: it belongs to root, the owner of / or this user, and others cannot write to it.
// With create it makes missing folders.
//
// A folder such as /tmp, which others write to, must be sticky: there only an entry's owner
// renames it. The folder that TARE_PRIVATE_DIR names may have any mode: no other user reaches
// it, as with an emptyDir, which has mode 0777 and is one pod's.
//
// After the check only root and this user can make the path lead elsewhere, so that it may be
// given to engines and runtimes, which take no descriptors. The walk itself goes by
// descriptors, since a folder is only as safe as those above it.
func secure(dir string, create bool) (string, error) {
	path, err := resolved(dir)
	if err != nil {
		return "", fmt.Errorf("look at %s: %w", dir, err)
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
				root = st // in a user namespace its owner need not be 0, and could move everything
			}
			shared := st.Mode&0o022 != 0 && st.Mode&unix.S_ISVTX == 0 && at != os.Getenv("TARE_PRIVATE_DIR")
			if shared || !slices.Contains([]uint32{0, uint32(os.Geteuid()), root.Uid}, st.Uid) {
				err = fmt.Errorf("%s belongs to uid %d with mode %o: others could put another folder in the place of the run's in %s; chown it to yourself and chmod go-w it, or choose a folder that only you and root can change, as those above it", at, st.Uid, st.Mode&0o7777, path)
			}
		}
		if err != nil {
			unix.Close(fd)
			return "", err
		}
	}
	return path, unix.Close(in)
}

// resolved returns a path without links. Folders at its end that do not exist stay as they are.
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
