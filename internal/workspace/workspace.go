// Package workspace manages the folders of a run on a machine and the lock of an active
// run. It also removes the leftovers of interrupted runs.
package workspace

import (
	"crypto/rand"
	"encoding/base32"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/node/cgroup"
)

// Roots are the parent folders of all runs.
type Roots struct {
	Data  string // bundles and root file systems; must allow exec
	State string // runtimes' state and locks; /run is lost at a reboot
}

// DefaultRoots returns /var/lib/tare and /run/tare for root, and folders of the user
// otherwise. TARE_DATA_DIR and TARE_STATE_DIR override them.
func DefaultRoots() Roots {
	r := Roots{Data: "/var/lib/tare", State: "/run/tare"}
	if os.Geteuid() != 0 {
		base := filepath.Join(os.TempDir(), "tare-"+strconv.Itoa(os.Geteuid()))
		if dir := os.Getenv("XDG_RUNTIME_DIR"); dir != "" {
			base = filepath.Join(dir, "tare")
		}
		r = Roots{Data: filepath.Join(os.TempDir(), "tare-"+strconv.Itoa(os.Geteuid()), "data"), State: filepath.Join(base, "state")}
	}
	if dir := os.Getenv("TARE_DATA_DIR"); dir != "" {
		r.Data = dir
	}
	if dir := os.Getenv("TARE_STATE_DIR"); dir != "" {
		r.State = dir
	}
	return r
}

// Run is the set of folders of one run on the machine.
type Run struct {
	ID        string
	roots     Roots
	lock      *os.File // of the state folder: one run at a time
	marks     []*os.File
	elsewhere []apart
}

// Alive reports whether a run is active on this machine.
func Alive(roots Roots, id string) bool {
	if !isID(id) {
		return false
	}
	_, alive := marked(filepath.Join(roots.State, id), id)
	return alive
}

// busyError means that another run with the same state folder is measuring. Runs of other
// users or with another state folder have their own lock and are not detected.
type busyError struct{ Holder string }

func (e *busyError) Error() string {
	return fmt.Sprintf("another run is measuring on this machine (%s): concurrent runs would measure each other; wait for it, or stop it", e.Holder)
}

// New creates a run's folders and locks the state folder. The error is a *busyError if
// another run has the lock.
func New(roots Roots) (*Run, error) {
	// Containers run as other users, so the modes below must not depend on the umask.
	unix.Umask(0o022)
	r := &Run{ID: NewID(), roots: roots}
	for _, root := range []*string{&r.roots.State, &r.roots.Data} {
		path, err := checkRoot(*root, true)
		if err != nil {
			return nil, fmt.Errorf("create tare's folder: %w; or set TARE_DATA_DIR and TARE_STATE_DIR to other folders", err)
		}
		*root = path
	}
	lock, err := os.OpenFile(filepath.Join(r.roots.State, "lock"), os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open tare's lock: %w", err)
	}
	retry(func() bool {
		err = unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		return !errors.Is(err, unix.EWOULDBLOCK)
	})
	if err != nil {
		holder := make([]byte, 128)
		n, _ := lock.Read(holder)
		lock.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, &busyError{Holder: strings.Map(printable, strings.TrimSpace(string(holder[:n])))}
		}
		return nil, fmt.Errorf("lock %s: %w", lock.Name(), err)
	}
	_ = lock.Truncate(0)
	fmt.Fprintf(lock, "run %s, pid %d\n", r.ID, os.Getpid())
	r.lock = lock
	// Others have no access, since a user's image may have setuid programs.
	for _, dir := range []string{r.stateDir(), r.dataDir()} {
		err := os.Mkdir(dir, 0o700)
		if err == nil {
			var m *os.File
			if m, err = mark(dir, r.ID); err == nil {
				r.marks = append(r.marks, m)
			}
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("create the run's folder: %w; set TARE_DATA_DIR and TARE_STATE_DIR to writable folders", err), r.Close())
		}
	}
	return r, nil
}

// Refusal returns why runs cannot use a folder, which may not exist yet, or nil.
func Refusal(root string) error {
	_, err := checkRoot(root, false)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// checkRoot returns the path of a folder for runs without links. Programs run from it, so
// others must not have write permission, even if it is sticky.
func checkRoot(root string, create bool) (string, error) {
	path, err := secure(root, create)
	if err != nil {
		return "", err
	}
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return "", &os.PathError{Op: "lstat", Path: path, Err: err}
	}
	if int(st.Uid) != os.Geteuid() || st.Mode&0o022 != 0 {
		return "", fmt.Errorf("%s belongs to uid %d with mode %o: programs run from it, so it must belong to you and not be writable by others; chown and chmod it", path, st.Uid, st.Mode&0o7777)
	}
	return path, nil
}

func printable(c rune) rune {
	if c < ' ' || c > '~' {
		return -1
	}
	return c
}

// NewID returns a random run id, short enough for all names that contain it. Its 40 random
// bits make equal ids on one machine very unlikely.
func NewID() string {
	var b [5]byte
	rand.Read(b[:]) // never fails since Go 1.24
	return strings.ToLower(base32.StdEncoding.EncodeToString(b[:]))
}

func (r *Run) stateDir() string { return filepath.Join(r.roots.State, r.ID) }
func (r *Run) dataDir() string  { return filepath.Join(r.roots.Data, r.ID) }

// Dirs creates the two folders of one target of the run.
func (r *Run) Dirs(name string) (data, state string, err error) {
	safe := strings.Map(func(c rune) rune {
		if c == '/' || c < '!' || c > '~' {
			return '_'
		}
		return c
	}, name)
	if strings.Trim(safe, ".") == "" {
		safe = "_" + safe
	}
	data, state = filepath.Join(r.dataDir(), safe), filepath.Join(r.stateDir(), safe)
	for _, dir := range []string{data, state} {
		if err := os.MkdirAll(dir, 0o711); err != nil {
			return "", "", fmt.Errorf("create the folder of target %s: %w", name, err)
		}
	}
	return data, state, nil
}

// Leave releases the lock and keeps the run's folders, because tare clean needs them to
// remove what the run could not. From then on the run counts as dead.
func (r *Run) Leave() {
	_ = r.removeGroups() // otherwise tare clean removes them
	r.release()
}

// hierarchies is replaced by tests.
var hierarchies = cgroup.Hierarchies

func (r *Run) removeGroups() error {
	if os.Geteuid() != 0 {
		return nil
	}
	hs, err := hierarchies()
	if err != nil {
		return err
	}
	return cgroup.Remove(hs, cgroup.Prefix+r.ID)
}

func (r *Run) release() {
	if r.lock != nil {
		_ = r.lock.Truncate(0)
		r.lock.Close()
	}
	for _, m := range r.marks {
		_ = m.Close()
	}
}

// Close removes everything the run created and releases the lock.
func (r *Run) Close() error {
	away := removeElsewhere(r.ID, r.elsewhere)
	for _, a := range r.elsewhere {
		if !a.known() {
			away = errors.Join(away, fmt.Errorf("%s is unreachable", a.dir))
		}
	}
	groups := r.removeGroups()
	errs := []error{groups, away, removeMarked(r.stateDir())}
	if away == nil && groups == nil { // otherwise the run's folder has notes about them
		errs = append(errs, removeMarked(r.dataDir()))
	}
	r.release()
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("remove the files of run %s: %w; run: tare clean", r.ID, err)
	}
	return nil
}
