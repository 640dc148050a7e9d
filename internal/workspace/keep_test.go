package workspace

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/tare-bench/tare/internal/node/cgroup"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/internal/testing/need"
	"github.com/tare-bench/tare/internal/testing/untouched"
)

func TestKeptFilesOfADeadRunAreReadable(t *testing.T) {
	need.Root(t)
	untouched.Alone(t)
	roots := roots(t)
	r := start(t, roots)
	must.OK(t, r.Keep("engines.json", []byte("[]")))
	own, other := t.TempDir(), t.TempDir()
	for _, below := range []string{own, other} {
		at, err := r.FolderBelow(below)
		if err == nil {
			err = os.WriteFile(filepath.Join(at, "f"), nil, 0o600)
		}
		must.OK(t, err)
	}
	for _, m := range r.marks { // as if killed
		_ = m.Close()
	}
	left, _, err := Leftovers(roots)
	if len(left) == 1 && (len(left[0].Folders) != 4 || left[0].Folders[2] != filepath.Join(own, "tare-"+r.ID)) {
		t.Errorf("folders %v", left[0].Folders)
	}
	if err != nil || len(left) != 1 {
		t.Fatalf("%v %v", left, err)
	}
	check.Equal(t, "kept file", string(must.Get(left[0].Kept("engines.json"))(t)), "[]")
	if b, err := left[0].Kept("other.json"); b != nil || err != nil {
		t.Errorf("%q %v", b, err)
	}
	must.OK(t, os.Symlink("/etc/passwd", filepath.Join(r.dataDir(), "link")))
	if b, err := left[0].Kept("link"); b != nil || err == nil {
		t.Error("followed a symlink")
	}
	must.OK(t, left[0].Remove(false))
	if b, _ := left[0].Kept("engines.json"); b != nil {
		t.Error("the removed file is still readable")
	}
	for _, below := range []string{own, other} {
		if all, _ := filepath.Glob(filepath.Join(below, "tare-*")); len(all) > 0 {
			t.Errorf("not removed: %v", all)
		}
	}
}

// killed returns the folders of a killed run, and its folder on another disk.
func killed(t *testing.T, disk string) (Roots, string) {
	t.Helper()
	roots := roots(t)
	r := start(t, roots)
	at := must.Get(r.FolderBelow(disk))(t)
	r.release()
	return roots, at
}

// cleaned removes the leftovers. It reports whether there were any, and which folders are
// unreachable.
func cleaned(t *testing.T, roots Roots, forget bool) (found bool, absent []string, err error) {
	t.Helper()
	left, _, err := Leftovers(roots)
	if err != nil || len(left) == 0 {
		return false, nil, err
	}
	return true, left[0].Absent, left[0].Remove(forget)
}

func TestFolderOnAnUnmountedDiskIsRememberedUntilRemovedOrForgotten(t *testing.T) {
	untouched.Alone(t)
	for _, forget := range []bool{false, true} {
		disk := filepath.Join(t.TempDir(), "disk")
		must.OK(t, os.Mkdir(disk, 0o700))
		roots, at := killed(t, disk)
		must.OK(t, errors.Join(os.Rename(disk, disk+".away"), os.Mkdir(disk, 0o700))) // as if unmounted
		for range 2 {
			found, absent, err := cleaned(t, roots, false)
			if !found || !slices.Equal(absent, []string{at}) || err == nil || !strings.Contains(err.Error(), at+" is unreachable") {
				t.Fatalf("%v %v %v", found, absent, err)
			}
		}
		if !forget {
			must.OK(t, errors.Join(os.Remove(disk), os.Rename(disk+".away", disk)))
		}
		if found, _, err := cleaned(t, roots, forget); !found || err != nil {
			t.Errorf("%v %v", found, err)
		}
		if found, _, err := cleaned(t, roots, false); found || err != nil || !forget && exists(at) {
			t.Errorf("second clean: %v %v", found, err)
		}
	}
}

func TestMissingFolderOnAMountedDiskIsForgotten(t *testing.T) {
	untouched.Alone(t)
	roots, at := killed(t, t.TempDir())
	must.OK(t, os.RemoveAll(at))
	if found, absent, err := cleaned(t, roots, false); !found || absent != nil || err != nil {
		t.Errorf("%v %v %v", found, absent, err)
	}
	if found, _, err := cleaned(t, roots, false); found || err != nil {
		t.Errorf("second clean: %v %v", found, err)
	}
}

func TestFolderThatOthersCouldReplaceIsRefused(t *testing.T) {
	need.Root(t)
	r := start(t, roots(t))
	defer r.Close()
	for claim, c := range map[string]struct {
		uid  int
		mode os.FileMode
		used bool
	}{
		"own":                 {0, 0o755, true},
		"own, sticky":         {0, 0o777 | os.ModeSticky, true},
		"own, world-writable": {0, 0o777, false},
		"own, group-writable": {0, 0o775, false},
		"other user":          {1000, 0o755, false},
		"other user, sticky":  {1000, 0o777 | os.ModeSticky, false},
		"other user, private": {1000, 0o700, false},
	} {
		dir := t.TempDir()
		inner, linked, link := filepath.Join(dir, "inner"), filepath.Join(dir, "linked"), filepath.Join(t.TempDir(), "link")
		must.OK(t, errors.Join(os.Mkdir(inner, 0o755), os.Mkdir(linked, 0o755), os.Symlink(linked, link), os.Chown(dir, c.uid, c.uid), os.Chmod(dir, c.mode)))
		for at, below := range map[string]string{"": dir, ", subfolder": inner, ", symlink": link} {
			if made, err := r.FolderBelow(below); (err == nil) != c.used || exists(made) != c.used {
				t.Errorf("%s%s: %q, %v", claim, at, made, err)
			} else if err == nil {
				continue
			} else if !strings.Contains(err.Error(), dir+" belongs to uid "+strconv.Itoa(c.uid)) {
				t.Errorf("%s%s: %v", claim, at, err)
			}
			// The same applies to the folders of runs. Leftovers are not searched in a
			// refused folder.
			roots := Roots{Data: filepath.Join(below, "new", "data"), State: filepath.Join(t.TempDir(), "state")}
			run, err := New(roots)
			if (err == nil) != c.used || (Refusal(roots.Data) == nil) != c.used {
				t.Errorf("%s%s: New: %v; Refusal: %v", claim, at, err, Refusal(roots.Data))
			}
			if err == nil {
				must.OK(t, run.Close())
				continue
			}
			check.Error(t, err, dir+" belongs to uid "+strconv.Itoa(c.uid)+" with mode ")
			if exists(filepath.Join(below, "new")) {
				t.Errorf("%s%s: a folder was created", claim, at)
			}
			must.OK(t, os.MkdirAll(roots.Data, 0o700))
			_, _, err = Leftovers(roots)
			check.Error(t, err, dir+" belongs to uid ")
		}
	}
}

func TestPrivateVolumeMayHaveAnyMode(t *testing.T) {
	dir := t.TempDir()
	must.OK(t, os.Chmod(dir, 0o777))
	t.Setenv("TARE_PRIVATE_DIR", dir)
	must.OK(t, start(t, Roots{Data: filepath.Join(dir, "data"), State: filepath.Join(dir, "state")}).Close())
}

func TestRunKilledDuringItsStartIsRemoved(t *testing.T) {
	untouched.Alone(t)
	roots := roots(t)
	r := start(t, roots)
	r.release() // as if killed
	for _, dir := range []string{r.stateDir(), r.dataDir()} {
		must.OK(t, os.Rename(filepath.Join(dir, markName), filepath.Join(dir, markName+unfinished)))
	}
	if found, _, err := cleaned(t, roots, false); !found || err != nil || exists(r.stateDir()) || exists(r.dataDir()) {
		t.Errorf("found %v, %v; state folder exists: %v, data folder: %v", found, err, exists(r.stateDir()), exists(r.dataDir()))
	}
}

func TestFailedKeepLeavesNoPartialFile(t *testing.T) {
	r := start(t, roots(t))
	defer r.Close()
	inTheWay := filepath.Join(r.dataDir(), "engines.json")
	must.OK(t, os.MkdirAll(filepath.Join(inTheWay, "x"), 0o700)) // makes the rename fail
	for range 2 {
		check.Error(t, r.Keep("engines.json", []byte("[]")), "file exists")
	}
	must.OK(t, os.RemoveAll(inTheWay))
	must.OK(t, r.Keep("engines.json", []byte("[]")))
}

func TestStickyFolderPreventsMovesByOtherUsers(t *testing.T) {
	need.Root(t)
	shared := t.TempDir()
	must.OK(t, errors.Join(os.Chmod(filepath.Dir(shared), 0o755), os.Chmod(shared, 0o777|os.ModeSticky)))
	r := start(t, Roots{Data: filepath.Join(shared, "data"), State: filepath.Join(shared, "state")})
	defer r.Close()
	for _, own := range []string{"data", "state"} {
		other := exec.Command("mv", own, own+"2")
		other.Dir = shared
		other.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 2002, Gid: 2002}}
		if said, err := other.CombinedOutput(); err == nil || !strings.Contains(string(said), "not permitted") {
			t.Errorf("%s was moved by another user: %v %s", own, err, said)
		}
	}
}

func TestFolderThatOthersCouldReplaceIsNotRemoved(t *testing.T) {
	need.Root(t)
	untouched.Alone(t)
	roots := roots(t)
	r := start(t, roots)
	above := filepath.Dir(roots.Data)
	must.OK(t, os.Chown(above, 2002, 2002))
	check.Error(t, r.Close(), above+" belongs to uid 2002")
	if !exists(r.dataDir()) {
		t.Error("the folder was removed")
	}
	must.OK(t, os.Chown(above, 0, 0))
	if found, _, err := cleaned(t, roots, false); !found || err != nil {
		t.Errorf("clean: %v %v", found, err)
	}
}

func TestRunWithUnknownCgroupsStaysALeftover(t *testing.T) {
	need.Root(t)
	untouched.Alone(t)
	roots := roots(t)
	r := start(t, roots)
	real := hierarchies
	defer func() { hierarchies = real }()
	hierarchies = func() ([]cgroup.Hierarchy, error) { return nil, errors.New("not now") }
	check.Error(t, r.Close(), "not now; run: tare clean")
	hierarchies = real
	if found, _, err := cleaned(t, roots, false); !found || err != nil {
		t.Errorf("clean: %v %v", found, err)
	}
	if found, _, err := cleaned(t, roots, false); found || err != nil {
		t.Errorf("second clean: %v %v", found, err)
	}
}
