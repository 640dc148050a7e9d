package kata

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/node/cgroup"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/internal/testing/need"
)

// The ID of the sandbox exists in all places at once. The test has three hierarchies of
// cgroup v1.
func TestRemoveOnlyTouchesEndedSandboxesOfTheRun(t *testing.T) {
	id := fmt.Sprintf("tare-kataleft-%d-1", os.Getpid())
	for name, c := range map[string]struct {
		make  []string // folders
		group []string // in each hierarchy
		used  bool     // by a process of the sandbox
		gone  []string
		says  string
	}{
		"folders and cgroups of an interrupted start are removed": {make: []string{states + "/ID", "/run/vc/vm/ID/sub", "/run/kata-containers/shared/sandboxes/ID/shared"}, group: []string{"ID"},
			gone: []string{"/kata_overhead/ID", "/run/vc/sbs/ID", "/run/vc/vm/ID", "/run/kata-containers/shared/sandboxes/ID"}},
		"folder of runtime-rs is removed": {make: []string{"/run/kata/ID"}, gone: []string{"/run/kata/ID"}},
		"cgroup with a child stays":       {make: []string{"/run/vc/vm/ID"}, group: []string{"ID/in-use"}, gone: []string{"/run/vc/vm/ID"}, says: "/kata_overhead/ID/cgroup.procs"},
		"cgroup with a process stays":     {make: []string{"/run/vc/vm/ID"}, group: []string{"ID"}, used: true, says: "(qemu-system-x86_64) uses it"},
		"nothing to remove":               {},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			hs := []cgroup.Hierarchy{{Mount: t.TempDir()}, {Mount: t.TempDir()}, {Mount: t.TempDir()}}
			with := func(s string) string { return strings.ReplaceAll(s, "ID", id) }
			others := []string{filepath.Join(root, states, "web"), filepath.Join(root, "/run/vc/vm/tare-other-0-1"), filepath.Join(hs[1].Mount, overhead, "web"), filepath.Join(hs[2].Mount, id)}
			mkdir := func(dir string) { must.OK(t, os.MkdirAll(dir, 0o755)) }
			for _, dir := range others {
				mkdir(dir)
			}
			for _, dir := range c.make {
				mkdir(filepath.Join(root, with(dir)))
			}
			for _, group := range c.group {
				for _, h := range hs {
					mkdir(filepath.Join(h.Mount, overhead, with(group)))
				}
			}
			if c.used {
				in, w, err := os.Pipe()
				must.OK(t, err)
				qemu := exec.Cmd{Path: "/bin/sh", Args: []string{"qemu-system-x86_64", "-c", "read x", "sh", "unix:/run/vc/vm/" + id + "/qmp.sock"}, Stdin: in}
				must.OK(t, qemu.Start())
				defer func() { _, _, _ = in.Close(), w.Close(), qemu.Wait() }()
			}
			mine := func(name string) bool { return name == id }
			if there := len(c.make)+len(c.group) > 0; there != slices.Equal(Sandboxes(root, hs, mine), []string{id}) {
				t.Errorf("found %q", Sandboxes(root, hs, mine))
			}
			removed, err := Remove(root, hs, id)
			check.Error(t, err, with(c.says))
			var want []string
			for _, path := range c.gone {
				if path = with(path); !strings.HasPrefix(path, "/kata") {
					path = root + path
				}
				want = append(want, path)
			}
			check.Equal(t, "removed", removed, want)
			for _, dir := range others {
				must.Get(os.Stat(dir))(t)
			}
		})
	}
}

// named binds a new network namespace to a name below root, like the runtime of Kata. It
// returns the path and the inode.
func named(t *testing.T, root, name string) (path string, ino uint64) {
	t.Helper()
	path = file(t, root, filepath.Join(networks, name), "")
	if out, err := exec.Command("unshare", "--net", "mount", "--bind", "/proc/self/ns/net", path).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	t.Cleanup(func() { _ = unix.Unmount(path, unix.MNT_DETACH) })
	return path, inode(path)
}

func TestNetworkNamespaceIsAttributedByItsInode(t *testing.T) {
	need.Root(t)
	need.Tool(t, "unshare")
	root := t.TempDir()
	booted, one := named(t, root, "cnitest-booted")
	written, two := named(t, root, "cnitest-written")
	foreign, _ := named(t, root, "cnitest-foreign")
	used, three := named(t, root, "cnitest-used")
	named(t, root, "web")
	state := func(id, text string) { file(t, root, filepath.Join(states, id, "persist.json"), text) }
	state("s", `{"State":"ready","Network":{"NetworkID":"/var/run/netns/cnitest-written","NetworkCreated":true}}`)
	state("given", `{"Network":{"NetworkID":"/var/run/netns/cnitest-foreign","NetworkCreated":false}}`)
	state("hostile", `{"Network":{"NetworkID":"../../../../etc/passwd","NetworkCreated":true}}`)
	check.Equal(t, "network created by Kata", Network(root, "s"), two)
	for _, id := range []string{"given", "hostile", "none"} {
		check.Equal(t, id, Network(root, id), uint64(0))
	}
	in, w, err := os.Pipe()
	must.OK(t, err)
	inside := exec.Command("nsenter", "--net="+used, "/bin/sh", "-c", "echo; read x")
	inside.Stdin = in
	out := must.Get(inside.StdoutPipe())(t)
	must.OK(t, inside.Start())
	defer func() { _, _, _ = in.Close(), w.Close(), inside.Wait() }()
	must.Get(out.Read(make([]byte, 1)))(t) // the process is in the namespace
	check.Equal(t, "network of a process", NetworkOf(inside.Process.Pid), three)
	check.Equal(t, "network of this process", NetworkOf(os.Getpid()), uint64(0))
	mine, unknown := Networks(root, map[uint64]bool{one: true, two: true, three: true})
	check.Equal(t, "mine", mine, []string{booted, written})
	check.Equal(t, "unknown", unknown, []string{foreign})
	for _, path := range append(mine, filepath.Join(root, networks, "cnitest-gone")) {
		must.OK(t, RemoveNetwork(path))
		if _, err := os.Lstat(path); err == nil {
			t.Errorf("%s was not removed", path)
		}
	}
}
