package workspace

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/mounts"
	"github.com/tare-bench/tare/internal/node/machine"
)

// The folder of a run has a mark: a file with the run's id and the boot id. It belongs to
// the owner of the run, which locks it while it is alive. Only marked folders are removed.
// A folder with a locked mark stays, in every namespace.

const markName = ".tare-run"

func markText(id, boot string) string { return "tare run " + id + "\nboot " + boot + "\n" }

// bootID returns the kernel's boot id, or "".
func bootID() string {
	id, err := machine.Root("").FirstLine("/proc/sys/kernel/random/boot_id", 64)
	if err != nil {
		return ""
	}
	return id
}

// mark writes and locks the mark of a run's folder. The mark gets its name only when it is
// locked. It survives a power failure, because tare never removes a folder without a mark.
func mark(dir, id string) (*os.File, error) {
	f, err := persist(filepath.Join(dir, markName), []byte(markText(id, bootID())), func(f *os.File) error {
		return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	})
	if err != nil {
		return nil, fmt.Errorf("mark the run's folder: %w", err)
	}
	return f, nil
}

// removeMarked removes a run's folder and its mark last, so that a partly removed folder is
// still recognized.
func removeMarked(dir string) error {
	if !exists(dir) {
		return nil
	}
	if _, err := secure(filepath.Dir(dir), false); err != nil { // same check as at creation
		return err
	}
	if err := empty(dir); err != nil {
		return err
	}
	return mounts.RemoveTree(dir)
}

// empty removes the content of a run's folder except the mark and the names in stay.
func empty(dir string, stay ...string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	errs := []error{err}
	for _, e := range entries {
		if e.Name() != markName && !slices.Contains(stay, e.Name()) {
			errs = append(errs, mounts.RemoveTree(filepath.Join(dir, e.Name())))
		}
	}
	return errors.Join(errs...)
}

// marked reports whether a folder belongs to a run of tare, and whether the run is
// alive.
func marked(dir, id string) (is, alive bool) {
	_, is, alive = readMark(dir, id)
	return is, alive
}

// readMark reads a mark and its boot id, which is "" for earlier versions of tare. A run
// that was killed while writing its mark left it under its unfinished name.
func readMark(dir, id string) (boot string, is, alive bool) {
	const flags = os.O_RDWR | unix.O_NOFOLLOW | unix.O_NONBLOCK
	f, err := os.OpenFile(filepath.Join(dir, markName), flags, 0)
	if errors.Is(err, os.ErrNotExist) {
		f, err = os.OpenFile(filepath.Join(dir, markName+unfinished), flags, 0)
	}
	if err != nil {
		return "", false, false
	}
	defer func() { _ = f.Close() }()
	var st unix.Stat_t
	if unix.Fstat(int(f.Fd()), &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG || int(st.Uid) != os.Geteuid() {
		return "", false, false
	}
	text := make([]byte, 128)
	n, _ := f.Read(text)
	first, rest, _ := strings.Cut(string(text[:n]), "\n")
	if first != "tare run "+id {
		return "", false, false
	}
	line, _, _ := strings.Cut(rest, "\n")
	boot, _ = strings.CutPrefix(line, "boot ")
	// A shared lock, so that two readers do not mistake each other for the run.
	return boot, true, errors.Is(unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB), unix.EWOULDBLOCK)
}

// patience bounds the wait for the locks of a run that was killed. A process that it was just
// starting has copies of the locks until it executes its program.
const patience = time.Second

// retry calls try until it reports that no other run has a lock, for a second at most.
func retry(try func() (free bool)) {
	for end := time.Now().Add(patience); !try() && time.Now().Before(end); {
		time.Sleep(20 * time.Millisecond)
	}
}

// LeftoversOfEnded is [Leftovers] for a caller that removes them: it waits a second for runs
// that were killed just now.
func LeftoversOfEnded(roots Roots) (left []Leftover, live []string, err error) {
	retry(func() bool {
		left, live, err = Leftovers(roots)
		return err != nil || len(live) == 0
	})
	return left, live, err
}
