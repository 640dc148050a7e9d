package workspace

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// elsewhereKept is the file that lists the run's other folders.
const elsewhereKept = "elsewhere"

// apart is a folder of a run outside of its roots. below is the identity of the user's
// folder that contains it.
type apart struct{ dir, below string }

// identity identifies a folder independent of its path. If a disk is not mounted,
// another folder may have the path.
func identity(st *unix.Stat_t) string { return fmt.Sprintf("%d:%d", st.Dev, st.Ino) }

// known reports whether the state of the folder is known: it exists or is gone.
func (a apart) known() bool {
	var st unix.Stat_t
	return exists(a.dir) || unix.Stat(filepath.Dir(a.dir), &st) == nil && identity(&st) == a.below
}

// FolderBelow creates a marked folder of the run below one of the user's. Its path is stored
// first, so that tare clean finds it.
func (r *Run) FolderBelow(below string) (dir string, err error) {
	if below, err = secure(below, false); err != nil {
		return "", err
	}
	var st unix.Stat_t
	if err := unix.Stat(below, &st); err != nil {
		return "", fmt.Errorf("stat %s: %w", below, os.NewSyscallError("stat", err))
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

// removeElsewhere removes the run's folders outside of its roots. A folder that is not
// yet marked is empty.
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

// elsewhere returns the other folders of a dead run: those that exist, and those in an
// unknown state, such as on an unmounted disk. It ignores lines with other names.
func (l *Leftover) elsewhere() (there, absent []apart, err error) {
	text, err := l.Kept(elsewhereKept)
	for line := range strings.SplitSeq(string(text), "\n") {
		below, dir, ok := strings.Cut(line, " ")
		if strings.HasPrefix(line, "/") || !ok { // earlier versions stored the path alone
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
