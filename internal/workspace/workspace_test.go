package workspace

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/node/cgroup"
	"github.com/tare-bench/tare/internal/node/procs"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/internal/testing/need"
	"github.com/tare-bench/tare/internal/testing/untouched"
)

func roots(t *testing.T) Roots {
	t.Helper()
	dir := t.TempDir()
	return Roots{Data: filepath.Join(dir, "data"), State: filepath.Join(dir, "state")}
}

func start(t *testing.T, r Roots) *Run {
	t.Helper()
	run := must.Get(New(r))(t)
	return run
}

func TestStateFolderAllowsOneRunAtATime(t *testing.T) {
	r := roots(t)
	first := start(t, r)
	_, err := New(r)
	if busy, ok := errors.AsType[*busyError](err); !ok || !strings.Contains(busy.Holder, first.ID) {
		t.Errorf("second run with the same state folder: %v", err)
	}
	if err := start(t, roots(t)).Close(); err != nil { // allowed by the documentation
		t.Errorf("second run with another state folder: %v", err)
	}
	must.OK(t, first.Close())
	must.OK(t, start(t, r).Close())
}

func TestLiveRunIsNotALeftover(t *testing.T) {
	r := roots(t)
	run := start(t, r)
	defer run.Close()
	left, live, err := Leftovers(r)
	if err != nil || has(left, run.ID) || !slices.Contains(live, run.ID) {
		t.Errorf("left %v, live %v, %v", left, live, err)
	}
	// Another path to the same folders.
	link := filepath.Join(t.TempDir(), "link")
	must.OK(t, os.Symlink(r.State, link))
	if left, live, err := Leftovers(Roots{State: link, Data: r.Data}); err != nil || has(left, run.ID) || !slices.Contains(live, run.ID) {
		t.Errorf("symlink: left %v, live %v, %v", left, live, err)
	}
}

func TestConcurrentCheckDoesNotMakeADeadRunAlive(t *testing.T) {
	r := start(t, roots(t))
	defer r.Close()
	if _, alive := marked(r.stateDir(), r.ID); !alive {
		t.Error("the run counts as dead")
	}
	r.release() // as if killed
	look := func() int {
		fd, err := unix.Open(filepath.Join(r.stateDir(), markName), unix.O_RDWR, 0)
		if err == nil {
			err = unix.Flock(fd, unix.LOCK_SH|unix.LOCK_NB) // as marked does
		}
		must.OK(t, err)
		return fd
	}
	defer unix.Close(look())
	if is, alive := marked(r.stateDir(), r.ID); !is || alive {
		t.Errorf("marked: %v, alive: %v", is, alive)
	}
}

// A run may be killed while it starts a process. That process holds copies of the run's
// locks until it executes its program.
func TestKilledRunIsDeadOnceItsLastChildHasStarted(t *testing.T) {
	r := start(t, roots(t))
	child := exec.Command("sleep", "0.3")
	child.ExtraFiles = append(slices.Clone(r.marks), r.lock)
	must.OK(t, child.Start())
	r.release() // as if killed
	left, live, err := LeftoversOfEnded(r.roots)
	if err != nil || !has(left, r.ID) || len(live) > 0 {
		t.Errorf("left %v, live %v, %v", left, live, err)
	}
	next := start(t, r.roots)
	must.OK(t, child.Wait())
	next.Close()
}

func has(left []Leftover, id string) bool {
	return slices.ContainsFunc(left, func(l Leftover) bool { return l.RunID == id })
}

// TestOnlyObjectsOfADeadRunAreRemoved creates the leftovers of a dead run among
// other files and processes.
func TestOnlyObjectsOfADeadRunAreRemoved(t *testing.T) {
	need.Root(t)
	r := roots(t)
	untouched.Alone(t)
	const id = "deadrun2"
	mine := []string{filepath.Join(r.State, id, "runc"), filepath.Join(r.Data, id, "runc", "bundles")}
	others := []string{filepath.Join(r.State, "lock.d"), filepath.Join(r.Data, "somebody"), filepath.Join(r.Data, "DEADRUN2"), filepath.Join(r.Data, "deadrun2x"), filepath.Join(r.Data, "postgres", "data"), filepath.Join(r.State, "machines")}
	for _, dir := range append(mine, others...) {
		must.OK(t, os.MkdirAll(dir, 0o755))
	}
	for _, dir := range []string{filepath.Join(r.State, id), filepath.Join(r.Data, id)} {
		f := must.Get(mark(dir, id))(t)
		f.Close() // as if its process had exited
	}
	must.OK(t, unix.Mount("tare-test", mine[0], "tmpfs", 0, "size=4k"))
	defer unix.Unmount(mine[0], unix.MNT_DETACH)
	hs := must.Get(cgroup.Hierarchies())(t)
	must.OK(t, cgroup.Delegate(hs, cgroup.Prefix+id+"/runc/x", "memory", "pids"))
	defer cgroup.Remove(hs, cgroup.Prefix+id)
	begin := func(env []string, args ...string) *exec.Cmd {
		c := exec.Command("sleep", append([]string{"600"}, args...)...)
		c.Env = env
		must.OK(t, c.Start())
		t.Cleanup(func() {
			c.Process.Kill()
			c.Wait()
		})
		return c
	}
	inside := begin(nil)
	for _, h := range cgroup.Using(hs, "memory") {
		must.Write(t, filepath.Join(h.Mount, cgroup.Prefix+id, "runc", "x", "cgroup.procs"), strconv.Itoa(inside.Process.Pid))
	}
	outside := begin(nil, mine[1])                       // names a folder of the run, but is not a runtime
	own := begin([]string{procs.RunVariable + "=" + id}) // a process on the host that only has the environment of the run
	other := begin([]string{procs.RunVariable + "=" + id + "x", "X" + procs.RunVariable + "=" + id})

	// The removal must not follow a link into a mount.
	link := filepath.Join(t.TempDir(), "link")
	must.OK(t, os.Symlink(r.Data, link))
	precious := t.TempDir()
	must.Write(t, filepath.Join(precious, "file"), "x")
	defer func() {
		if _, err := os.Stat(filepath.Join(precious, "file")); err != nil {
			t.Errorf("removed through a mount: %v", err)
		}
	}()
	must.OK(t, unix.Mount(precious, mine[1], "", unix.MS_BIND, ""))
	defer unix.Unmount(mine[1], unix.MNT_DETACH)
	left, _, err := Leftovers(Roots{State: r.State, Data: link})
	must.OK(t, err)
	at := slices.IndexFunc(left, func(l Leftover) bool { return l.RunID == id })
	if at < 0 {
		t.Fatalf("the dead run is not among %+v", left)
	}
	found := &left[at]
	if len(found.Processes) != 2 || !slices.Contains(found.Processes, inside.Process.Pid) || !slices.Contains(found.Processes, own.Process.Pid) || len(found.Mounts) != 2 || len(found.Folders) != 2 || len(found.Cgroups) == 0 {
		t.Errorf("found %+v; the process is %d", found, inside.Process.Pid)
	}
	ended := make(chan error, 1)
	go func() { ended <- errors.Join(inside.Wait(), own.Wait()) }() // otherwise they stay zombies in the cgroup
	must.OK(t, found.Remove(false))
	<-ended
	if err := errors.Join(unix.Kill(outside.Process.Pid, 0), unix.Kill(other.Process.Pid, 0)); err != nil {
		t.Error("killed a process of another owner")
	}
	for _, dir := range others {
		if !exists(dir) {
			t.Errorf("removed a folder of another owner: %s", dir)
		}
	}
	for _, h := range hs {
		if exists(filepath.Join(h.Mount, cgroup.Prefix+id)) {
			t.Errorf("the cgroup of the run in %s was not removed", h.Mount)
		}
	}
	if exists(filepath.Join(r.Data, id)) {
		t.Error("the folder of the run was not removed")
	}
}

func TestFoldersOfARunArePrivate(t *testing.T) {
	r := roots(t)
	run := start(t, r)
	defer run.Close()
	data, state, err := run.Dirs("docker/runc")
	must.OK(t, err)
	for _, dir := range []string{data, state} {
		if info, err := os.Stat(filepath.Dir(dir)); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v %v", dir, info.Mode(), err)
		}
	}
}

func TestTargetNamesAreSafeFolderNames(t *testing.T) {
	run := start(t, roots(t))
	defer run.Close()
	for _, name := range []string{"runc", "docker/runc", "..", "../../etc", "a b\x1b"} {
		data, state, err := run.Dirs(name)
		must.OK(t, err)
		for _, dir := range []string{data, state} {
			if parent := filepath.Base(filepath.Dir(dir)); parent != run.ID {
				t.Errorf("target %q has the folder %s", name, dir)
			}
		}
	}
}
