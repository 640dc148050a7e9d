package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/record"
)

// writeOutput writes the file that -o names atomically. It writes directly to a FIFO or a
// character device. It rejects records, disks and links that another user can change. Other
// existing files need force.
func writeOutput(path string, text []byte, force bool) error {
	if err := refuseForeignLink(path); err != nil {
		return err
	}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		place := renameNew
		if force { // replace a dangling link
			place = os.Rename
		}
		if err := writeWhole(path, text, 0o644, place); err != nil {
			return fmt.Errorf("%w; name another file with -o", err)
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("%w; name another file with -o", err)
	}
	switch mode := info.Mode(); {
	case mode.IsDir():
		return fmt.Errorf("%s is a folder; name a file with -o", path)
	case mode.IsRegular():
		return replaceOutput(path, text, force)
	case mode&(fs.ModeCharDevice|fs.ModeNamedPipe) != 0:
		return writeInto(path, text)
	}
	return fmt.Errorf("%s is a disk or a socket; name a file with -o", path)
}

func replaceOutput(path string, text []byte, force bool) error {
	isRecord, err := holdsRecord(path)
	switch {
	case err != nil:
		return fmt.Errorf("%w; name another file with -o", err)
	case isRecord:
		return fmt.Errorf("%s is a record and is not overwritten; name another file with -o", path)
	case !force:
		return fmt.Errorf("%s exists; name another file with -o, or replace it with --force", path)
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	return writeWhole(real, text, 0o644, os.Rename)
}

// holdsRecord reports whether a file has the name or the first bytes of a record.
func holdsRecord(path string) (bool, error) {
	if record.IsName(path) {
		return true, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	head, err := io.ReadAll(io.LimitReader(f, 64))
	return bytes.HasPrefix(head, []byte(`{"type":"header"`)) || bytes.HasPrefix(head, []byte("\x28\xb5\x2f\xfd")), err // RFC 8878, 3.1.1
}

// writeInto writes to a file that has no content to overwrite, such as /dev/stdout.
func writeInto(path string, text []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
}

// refuseForeignLink rejects an output path with a symbolic link that belongs neither to root
// nor to this user. All commands with -o call it.
func refuseForeignLink(path string) error {
	whole, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	for at := whole; at != "/"; at = filepath.Dir(at) {
		info, err := os.Lstat(at)
		if err != nil || info.Mode()&fs.ModeSymlink == 0 {
			continue // the caller handles missing files
		}
		if owner := info.Sys().(*syscall.Stat_t).Uid; owner != 0 && int(owner) != os.Geteuid() {
			return fmt.Errorf("%s is a link of another user; name the file itself with -o", at)
		}
	}
	return nil
}

// writeWhole writes a file atomically: under a temporary name, which place then renames.
func writeWhole(path string, text []byte, mode os.FileMode, place func(from, to string) error) error {
	return makeWhole(path, mode, place, func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	})
}

func makeWhole(path string, mode os.FileMode, place func(from, to string) error, write func(io.Writer) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), record.Hidden+"*")
	if err != nil {
		return withName(err, path)
	}
	if err = errors.Join(write(f), f.Chmod(mode), f.Close()); err == nil {
		err = place(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}

// newRecord creates a record atomically, under a temporary path until it is complete. It
// writes directly to pipes and devices.
func (s *app) newRecord(path string, write func(w *record.Writer, at string) error) error {
	if err := checkRecordName(path); err != nil {
		return err
	}
	if err := refuseForeignLink(path); err != nil { // before a folder is made
		return err
	}
	at := path
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		dir, err := os.MkdirTemp(filepath.Dir(path), record.Hidden+"*")
		if err != nil {
			return fmt.Errorf("create record: %w; name another file with -o", withName(err, path))
		}
		defer os.RemoveAll(dir)
		at = filepath.Join(dir, filepath.Base(path))
	}
	w, err := s.lines().Create(at)
	if err != nil {
		return err
	}
	err = write(w, at)
	if wrong := w.Close(); wrong != nil {
		err = fmt.Errorf("%w; nothing was kept: free some space, or name another file with -o", errors.Unwrap(wrong))
	}
	if err == nil && at != path {
		err = renameNew(at, path)
	}
	return withName(err, path)
}

// renameNew renames a file and fails if the target exists.
func renameNew(from, to string) error {
	err := unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) { // for example on NFS
		if err = os.Link(from, to); err == nil {
			return os.Remove(from)
		}
	}
	switch {
	case errors.Is(err, fs.ErrExist):
		return fmt.Errorf("%s: %w and is not overwritten", to, fs.ErrExist)
	case err != nil:
		return &os.PathError{Op: "create", Path: to, Err: err}
	}
	return nil
}

// withName replaces a temporary path in a system error by path.
func withName(err error, path string) error {
	if wrong, ok := errors.AsType[*os.PathError](err); ok && strings.Contains(wrong.Path, record.Hidden) {
		wrong.Path = path
	}
	return err
}
