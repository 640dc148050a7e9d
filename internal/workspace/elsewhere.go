package workspace

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
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
	if below, err = secure(below, false); err != nil {
		return "", err
	}
	var st unix.Stat_t
	if err := unix.Stat(below, &st); err != nil {
		return "", fmt.Errorf("look at %s: %w", below, os.NewSyscallError("stat", err))
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
