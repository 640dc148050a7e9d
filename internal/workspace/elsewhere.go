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

// elsewhereKept names the file that says where else the run has folders.
const elsewhereKept = "elsewhere"

// apart is a folder of a run's that is not below its roots, and what folder of the
// user's it was made in, see [identity].
type apart struct{ dir, below string }

// identity tells a folder from another that has its path: where a disk is not
// mounted, that of the folder below is not the disk's.
func identity(st *unix.Stat_t) string { return fmt.Sprintf("%d:%d", st.Dev, st.Ino) }

// known says whether it can be told that the folder is there, or that it is gone.
func (a apart) known() bool {
	var st unix.Stat_t
	return exists(a.dir) || unix.Stat(filepath.Dir(a.dir), &st) == nil && identity(&st) == a.below
}

// Elsewhere makes a folder of the run's below one of the user's, with a mark of its
// own. It is kept in mind before it is made, so that tare clean finds it.
func (r *Run) Elsewhere(below string) (dir string, err error) {
	if below, err = filepath.EvalSymlinks(below); err != nil {
		return "", fmt.Errorf("look at the folder that was given: %w", err)
	}
	var st unix.Stat_t
	if err := unix.Stat(below, &st); err != nil {
		return "", fmt.Errorf("look at %s: %w", below, os.NewSyscallError("stat", err))
	}
	if err := unmovable(below); err != nil {
		return "", err
	}
	dir = filepath.Join(below, elsewhereName(r.ID))
	all := append(r.elsewhere, apart{dir, identity(&st)})
	var text strings.Builder
	for _, a := range all {
		fmt.Fprintf(&text, "%s %s\n", a.below, a.dir)
	}
	if err := r.Keep(elsewhereKept, []byte(text.String())); err != nil {
		return "", err
	}
	r.elsewhere = all
	if err := os.Mkdir(dir, 0o711); err != nil {
		return "", fmt.Errorf("make the run's folder: %w", err)
	}
	m, err := mark(dir, r.ID)
	if err != nil {
		return "", errors.Join(err, os.Remove(dir))
	}
	r.marks = append(r.marks, m)
	return dir, nil
}

// unmovable refuses a folder of which somebody else could move the run's, or one on
// the way to it, and put another in its place: the run's is removed by its path.
// Who owns the root folder could do so anyway; in a user namespace that need not be 0.
func unmovable(dir string) error {
	var root unix.Stat_t
	if err := unix.Stat("/", &root); err != nil {
		return fmt.Errorf("look at /: %w", os.NewSyscallError("stat", err))
	}
	for at := dir; ; at = filepath.Dir(at) {
		var st unix.Stat_t
		if err := unix.Lstat(at, &st); err != nil {
			return fmt.Errorf("look at %s: %w", at, os.NewSyscallError("lstat", err))
		}
		shared := st.Mode&0o022 != 0 && st.Mode&unix.S_ISVTX == 0
		if shared || !slices.Contains([]uint32{0, uint32(os.Geteuid()), root.Uid}, st.Uid) {
			return fmt.Errorf("%s belongs to uid %d with mode %o: others could put another folder in the place of the run's in %s; chown it to yourself and chmod go-w it, or give a folder that only you and root can change, as those above it", at, st.Uid, st.Mode&0o7777, dir)
		}
		if at == filepath.Dir(at) {
			return nil
		}
	}
}

func elsewhereName(id string) string { return "tare-" + id }

// removeElsewhere removes the run's folders that are not below its roots. One that
// was made and not yet marked is empty.
func removeElsewhere(id string, all []apart) error {
	var errs []error
	for _, a := range all {
		if is, _ := marked(a.dir, id); is {
			errs = append(errs, removeMarked(a.dir))
		} else if err := os.Remove(a.dir); err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// elsewhere are the folders that a dead run kept in mind: those that are there, and
// those out of sight, of which it cannot be told, as where their disk is not
// mounted. A line that does not name one of its own is not believed.
func (l *Leftover) elsewhere() (there, absent []apart, err error) {
	text, err := l.Kept(elsewhereKept)
	for line := range strings.SplitSeq(string(text), "\n") {
		below, dir, ok := strings.Cut(line, " ")
		if strings.HasPrefix(line, "/") || !ok { // earlier versions kept the path alone
			below, dir = "", line
		}
		a := apart{dir, below}
		switch {
		case !filepath.IsAbs(dir) || filepath.Base(dir) != elsewhereName(l.RunID):
		case exists(dir):
			there = append(there, a)
		case !a.known():
			absent = append(absent, a)
		}
	}
	return there, absent, err
}

func paths(all []apart) (dirs []string) {
	for _, a := range all {
		dirs = append(dirs, a.dir)
	}
	return dirs
}
