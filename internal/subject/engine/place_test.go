package engine

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/node/cgroup"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
)

func TestAPlaceIsWhatTheWorkloadAsksFor(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "volume")
	for name, c := range map[string]struct {
		w    subject.Workload
		want string
	}{
		"nothing":  {want: ""},
		"a volume": {w: subject.Workload{Volume: dir}, want: "--volume " + dir + "/1:/data:Z"},
		"a tmpfs":  {w: subject.Workload{Tmpfs: 4096}, want: "--tmpfs /data:nosuid,nodev,mode=1777,size=4096,exec"},
	} {
		p := must.Get(OpenPlaces(subject.Env{Lanes: 2, Workload: c.w}))(t)
		place := p.On(1)
		check.Equal(t, name, strings.Join(place.Flags(place.Tmpfs...), " "), c.want)
		must.OK(t, p.Close())
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	must.OK(t, (*Places)(nil).Close())
}

func TestADeviceIsGivenByItsOwnNode(t *testing.T) {
	dir := t.TempDir()
	link, node := filepath.Join(dir, "pci-0:1"), filepath.Join(dir, "node")
	if out, err := exec.Command("mknod", node, "b", "7", "200").CombinedOutput(); err != nil {
		t.Fatalf("mknod takes root: %v: %s", err, out)
	}
	must.OK(t, os.Symlink("node", link))
	p := must.Get(OpenPlaces(subject.Env{Lanes: 1, Workload: subject.Workload{Device: link}}))(t)
	check.Equal(t, "flags", p.On(0).Flags(), []string{"--device", node + ":/dev/tare:rwm"})
	if p, err := OpenPlaces(subject.Env{Workload: subject.Workload{Device: "/dev/null"}}); err == nil {
		t.Errorf("a character device is taken: %+v", p)
	}
}

func TestWhatASandboxCannotHaveIsUnsupported(t *testing.T) {
	device, volume := subject.Workload{Device: "/dev/x"}, subject.Workload{Volume: "/v"}
	for name, c := range map[string]struct {
		err  error
		want string // "" for no error
	}{
		"a volume here":      {err: Elsewhere(volume, "daemon", "")},
		"a volume elsewhere": {Elsewhere(volume, "daemon", "by ssh"), "a volume on a daemon elsewhere (by ssh)"},
		"a device elsewhere": {Elsewhere(device, "service", "by ssh"), "a device on a service elsewhere (by ssh)"},
		"a tmpfs elsewhere":  {err: Elsewhere(subject.Workload{Tmpfs: 1}, "daemon", "by ssh")},
	} {
		if (c.err == nil) != (c.want == "") || c.err != nil && (!errors.Is(c.err, subject.ErrUnsupported) || !strings.Contains(c.err.Error(), c.want)) {
			t.Errorf("%s: %v", name, c.err)
		}
	}
}

func TestAProcessIsAContainersByItsGroupsAlone(t *testing.T) {
	hs := must.Get(cgroup.Hierarchies())(t)
	const id = "0123456789abcdef"
	name := cgroup.Prefix + "owns-" + NewName("r", 0)
	sleep := exec.Command("sleep", "1000")
	must.OK(t, sleep.Start())
	t.Cleanup(func() {
		_ = sleep.Process.Kill()
		_ = sleep.Wait()
		must.OK(t, cgroup.Remove(hs, name))
	})
	pid := sleep.Process.Pid
	for _, c := range []State{{}, {ID: id}, {ID: id, Group: "/" + name, Asked: true}, {Group: "/", Asked: true}} {
		if c.owns(pid) {
			t.Errorf("%+v: a process of elsewhere", c)
		}
	}
	must.OK(t, cgroup.Delegate(hs, name+"/"+id, "pids"))
	for _, h := range cgroup.Using(hs, "pids") {
		must.OK(t, os.WriteFile(filepath.Join(h.Mount, name, id, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0o600))
	}
	for want, all := range map[bool][]State{
		true:  {{ID: id}, {ID: "other", Pod: Pod{ID: id}}, {ID: "other", Group: "/" + name, Asked: true}},
		false: {{ID: "other", Group: "/" + name}, {ID: "other", Group: "/" + name + "-2", Asked: true}, {}},
	} {
		for _, c := range all {
			if c.owns(pid) != want {
				t.Errorf("%+v: not %v of one in %s/%s", c, want, name, id)
			}
		}
	}
}
