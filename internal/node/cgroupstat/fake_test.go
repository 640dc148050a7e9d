package cgroupstat

import (
	_ "embed"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/internal/testing/need"
	"github.com/tare-bench/tare/record"
)

// files maps the paths of a fake machine's files to their content. They contain the
// mounts and cgroups of the machine.
type files map[string]string

const mounts = "10 1 8:1 / / rw - ext4 /dev/sda1 rw\n"

// stat1 is a part of memory.stat of Linux 6.18 with cgroup v1.
//
//go:embed testdata/memory.stat.v1
var stat1 string

// stat2 is a part of memory.stat of Linux 6.18 with cgroup v2.
//
//go:embed testdata/memory.stat.v2
var stat2 string

//go:embed testdata/machine.v1
var version1 string

//go:embed testdata/machine.v2
var version2 string

func machine1() files { return filesIn(version1).with(files{"/cg/memory/a/memory.stat": stat1}) }

// machine2 has a nested group. Its parent enables only two controllers for it.
func machine2() files { return filesIn(version2).with(files{"/cg/a/memory.stat": stat2}) }

// filesIn parses lines with a path, a tab, and the content of the file.
func filesIn(text string) files {
	out := files{}
	for line := range strings.Lines(text) {
		path, held, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		out[path] = strings.ReplaceAll(held, `\n`, "\n")
	}
	return out
}

// with returns the files with some added or replaced. The content "-" removes a file.
func (f files) with(others files) files {
	out := maps.Clone(f)
	for name, text := range others {
		if text == "-" {
			delete(out, name)
		} else {
			out[name] = text
		}
	}
	return out
}

func (f files) make(t *testing.T) machine.Root {
	t.Helper()
	root := t.TempDir()
	for name, text := range f {
		must.Write(t, root+name, text)
	}
	return machine.Root(root)
}

func (f files) open(t *testing.T) *System {
	t.Helper()
	s := must.Get(Open(f.make(t)))(t)
	t.Cleanup(s.Close)
	return s
}

func (s *System) group(t *testing.T, path string) *Group {
	t.Helper()
	g := must.Get(s.Group(path))(t)
	t.Cleanup(g.Close)
	return g
}

// asNobody calls a function with the permissions of an unprivileged user.
func asNobody(t *testing.T, do func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		do()
		return
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	// The file-system user ID applies to one thread. A non-root ID drops the file
	// capabilities.
	must.OK(t, unix.Setfsuid(65534))
	defer func() { _ = unix.Setfsuid(0) }()
	do()
}

func TestUnreadableFilesAreErrorsAndOthersAreRead(t *testing.T) {
	need.Root(t)
	root := machine1().make(t)
	for _, open := range []string{filepath.Dir(string(root)), string(root)} {
		must.OK(t, os.Chmod(open, 0o755))
	}
	for _, locked := range []string{"/cg/memory/a/memory.stat", "/cg/pids/a/pids.current"} {
		must.OK(t, os.Chmod(string(root)+locked, 0))
	}
	must.OK(t, os.Chmod(string(root)+"/cg/blkio/a", 0))
	s := must.Get(Open(root))(t)
	defer s.Close()
	asNobody(t, func() {
		g := s.group(t, "/a")
		for range 2 {
			var got record.Group
			err := g.Read(&got)
			check.That(t, errors.Is(err, fs.ErrPermission) && !errors.Is(err, ErrGone), "read: %v", err)
			check.That(t, got.Memory == nil && got.CPU != nil && got.Throttled == 5000 && got.ReadBytes == 0 && got.Pids == 0, "read: %+v", got)
			var sample Sample
			err = g.Sample(&sample)
			check.That(t, errors.Is(err, fs.ErrPermission) && !sample.HaveMemory && sample.HaveCPU, "sample: %v, %+v", err, sample)
		}
	})
	for _, dir := range []string{"memory", "cpu,cpuacct", "pids"} {
		must.OK(t, os.Chmod(string(root)+"/cg/"+dir+"/a", 0))
	}
	asNobody(t, func() {
		// The folders can be traversed, but no file in them can be opened.
		g := must.Get(s.Group("/a"))(t)
		defer g.Close()
		var got record.Group
		err := g.Read(&got)
		check.That(t, errors.Is(err, fs.ErrPermission) && got.Memory == nil && got.CPU == nil, "read: %v, %+v", err, got)
	})
	must.OK(t, os.Chmod(string(root)+"/cg/memory", 0))
	for _, dir := range []string{"cpu,cpuacct", "blkio", "pids"} {
		must.OK(t, os.RemoveAll(string(root)+"/cg/"+dir+"/a"))
	}
	asNobody(t, func() {
		g, err := s.Group("/a")
		check.That(t, errors.Is(err, fs.ErrPermission) && !errors.Is(err, ErrGone), "a folder that may not be entered: %v, %v", g, err)
	})
}
