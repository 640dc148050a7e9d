package cgroupstat

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

// asNobody does something with the rights of an ordinary user.
func asNobody(t *testing.T, do func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		do()
		return
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	// The user for files is the thread's own, and with it go root's rights to them.
	must.OK(t, unix.Setfsuid(65534))
	defer func() { _ = unix.Setfsuid(0) }()
	do()
}

func TestWhatMayNotBeReadIsSaidAndTheRestIsRead(t *testing.T) {
	root := machine1().make(t)
	for _, open := range []string{filepath.Dir(string(root)), string(root)} {
		must.OK(t, os.Chmod(open, 0o755))
	}
	for _, locked := range []string{"/cg/memory/a/memory.stat", "/cg/pids/a/pids.current"} {
		must.OK(t, os.Chmod(string(root)+locked, 0))
	}
	must.OK(t, os.Chmod(string(root)+"/cg/blkio/a", 0))
	s, err := Open(root)
	must.OK(t, err)
	defer s.Close()
	asNobody(t, func() {
		g := s.group(t, "/a")
		for range 2 {
			var got record.Group
			if err := g.Read(&got); !errors.Is(err, fs.ErrPermission) || errors.Is(err, ErrGone) {
				t.Errorf("read: %v", err)
			}
			if got.Memory != nil || got.CPU == nil || got.Throttled != 5000 || got.ReadBytes != 0 || got.Pids != 0 {
				t.Errorf("read: %+v", got)
			}
			var sample Sample
			if err := g.Sample(&sample); !errors.Is(err, fs.ErrPermission) || sample.HaveMemory || !sample.HaveCPU {
				t.Errorf("sample: %v, %+v", err, sample)
			}
		}
	})
	for _, dir := range []string{"memory", "cpu,cpuacct", "pids"} {
		must.OK(t, os.Chmod(string(root)+"/cg/"+dir+"/a", 0))
	}
	asNobody(t, func() {
		// The folders can be entered as paths, and nothing be opened in them.
		g, err := s.Group("/a")
		must.OK(t, err)
		defer g.Close()
		var got record.Group
		if err := g.Read(&got); !errors.Is(err, fs.ErrPermission) || got.Memory != nil || got.CPU != nil {
			t.Errorf("read: %v, %+v", err, got)
		}
	})
	must.OK(t, os.Chmod(string(root)+"/cg/memory", 0))
	for _, dir := range []string{"cpu,cpuacct", "blkio", "pids"} {
		must.OK(t, os.RemoveAll(string(root)+"/cg/"+dir+"/a"))
	}
	asNobody(t, func() {
		if g, err := s.Group("/a"); !errors.Is(err, fs.ErrPermission) || errors.Is(err, ErrGone) {
			t.Errorf("a folder that may not be entered: %v, %v", g, err)
		}
	})
}
