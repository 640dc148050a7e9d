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

// Elsewhere makes a folder of the run's below one of the user's, with a mark of its
// own. It is kept in mind before it is made, so that tare clean finds it.
func (r *Run) Elsewhere(below string) (dir string, err error) {
	var st unix.Stat_t
	if err := unix.Stat(below, &st); err != nil {
		return "", fmt.Errorf("look at %s: %w", below, os.NewSyscallError("stat", err))
	}
	if st.Mode&0o022 != 0 && st.Mode&unix.S_ISVTX == 0 {
		return "", fmt.Errorf("%s is writable by others (mode %o), who could put another folder in the place of the run's: take that away (chmod go-w), or give a folder of your own", below, st.Mode&0o7777)
	}
	dir = filepath.Join(below, elsewhereName(r.ID))
	if err := r.Keep(elsewhereKept, []byte(strings.Join(append(r.elsewhere, dir), "\n"))); err != nil {
		return "", err
	}
	r.elsewhere = append(r.elsewhere, dir)
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
func removeElsewhere(id string, dirs []string) error {
	var errs []error
	for _, dir := range dirs {
		if is, _ := marked(dir, id); is {
			errs = append(errs, removeMarked(dir))
		} else if err := os.Remove(dir); err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// elsewhere are the folders that a dead run kept in mind and that are there. A
// line that does not name one of its own is not believed.
func (l *Leftover) elsewhere() (dirs []string, err error) {
	text, err := l.Kept(elsewhereKept)
	for dir := range strings.SplitSeq(string(text), "\n") {
		if filepath.IsAbs(dir) && filepath.Base(dir) == elsewhereName(l.RunID) && exists(dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs, err
}
