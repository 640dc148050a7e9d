package run_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	densityrun "github.com/tare-bench/tare/internal/instrument/density/run"
	"github.com/tare-bench/tare/internal/node/cgroup"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/internal/testing/need"
	"github.com/tare-bench/tare/internal/thread"
	"github.com/tare-bench/tare/record"
)

// levels returns the levels of a machine by name.
func levels(m *densityrun.Machine) (map[string]densityrun.Level, error) {
	m.Floor = func(int64) int64 { return 1 }
	of := map[string]densityrun.Level{}
	all, err := m.Levels()
	for _, l := range all {
		of[l.Name] = l
	}
	return of, err
}

// The engine's disk is guarded in addition to the run's, including its inodes. A disk
// shared by both is guarded once.
func TestEngineDiskIsGuarded(t *testing.T) {
	need.Root(t)
	dir, own := t.TempDir(), t.TempDir()
	must.OK(t, unix.Mount("tmpfs", own, "tmpfs", 0, "size=1g,nr_inodes=5000"))
	t.Cleanup(func() {
		check.Error(t, unix.Unmount(own, unix.MNT_DETACH), "")
	})
	of := must.Get(levels(&densityrun.Machine{Dir: dir, Roots: map[string]string{"docker/runc": own, "podman/crun": own, "docker/crun": dir}}))(t)
	for _, twice := range []string{"disk of docker/crun", "disk of podman/crun", "inodes of podman/crun"} {
		_, is := of[twice]
		check.That(t, !is, "%s is listed twice", twice)
	}
	d := of["disk of docker/runc"]
	check.That(t, of["disk"].Total != 0 && d.Total == 1<<30 && d.Floor == 512<<20 && d.Left > d.Floor, "disks: %+v and %+v", of["disk"], d)
	i := of["inodes of docker/runc"]
	check.That(t, i.Total == 5000 && i.Floor == 1024 && i.Left > 4000 && i.Left < 5000, "inodes: %+v", i)
}

// A container without a cgroup namespace has its own cgroup mounted at the root of a
// hierarchy.
func TestLimitsOfTaresOwnContainerAreGuarded(t *testing.T) {
	need.Root(t)
	hs := must.Get(cgroup.Hierarchies())(t)
	const own = cgroup.Prefix + "densitybox1"
	t.Cleanup(func() {
		check.Error(t, cgroup.Remove(hs, own), "")
	})
	if err := cgroup.Delegate(hs, own, "pids", "memory"); errors.Is(err, cgroup.ErrWithheld) {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	var of map[string]densityrun.Level
	err := thread.Apart(func() error {
		err := errors.Join(unix.Unshare(unix.CLONE_FS|unix.CLONE_NEWNS), unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""))
		for _, h := range cgroup.Using(hs, "pids", "memory") {
			for _, l := range cgroup.Limits(h, cgroup.Wanted{Pids: 5000, Memory: 1 << 30}) {
				err = errors.Join(err, os.WriteFile(filepath.Join(h.Mount, own, l.File), []byte(l.Value), 0))
			}
			err = errors.Join(err, unix.Mount(filepath.Join(h.Mount, own), h.Mount, "", unix.MS_BIND, ""))
		}
		if err != nil {
			return err
		}
		of, err = levels(&densityrun.Machine{Dir: t.TempDir()})
		return err
	})
	must.OK(t, err)
	l := of["pids of tare's cgroup"]
	check.That(t, l.Total == 5000 && l.Floor == 250, "processes: %+v in %+v", l, of)
	l = of["memory of tare's cgroup"]
	check.That(t, l.Total == 1<<30 && l.Floor == 64<<20 && l.Left > l.Floor, "memory: %+v in %+v", l, of)
}

// told is a target with an engine that reports its data folder.
type told struct {
	*node
	name   string
	config map[string]string
}

func (t told) Info() record.Target { return record.Target{Name: t.name, Config: t.config} }

func TestEngineDiskIsKnownIfReportedAndLocal(t *testing.T) {
	t.Parallel()
	here := t.TempDir()
	got := densityrun.Roots([]subject.Target{
		told{nil, "containerd", map[string]string{"storage root": here}},
		told{nil, "docker", map[string]string{"root": here, "daemon": "on this machine"}},
		told{nil, "docker far away", map[string]string{"root": here, "daemon": "elsewhere: by ssh"}},
		told{nil, "in mounts of its own", map[string]string{"storage root": here + "/none"}},
		told{nil, "nonsense", map[string]string{"storage root": "."}},
		told{nil, "silent", nil},
	})
	check.That(t, len(got) == 2 && got["containerd"] == here && got["docker"] == here, "%v", got)
}
