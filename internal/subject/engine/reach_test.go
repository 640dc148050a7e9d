package engine

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/tare-bench/tare/internal/node/cgroup"
	"github.com/tare-bench/tare/internal/testing/must"
)

func TestAProcessIsAContainersByItsGroupsAlone(t *testing.T) {
	hs, err := cgroup.Hierarchies()
	must.OK(t, err)
	const id = "0123456789abcdef"
	name := cgroup.Prefix + "owns-" + NewName("r", 0)
	sleep := exec.Command("sleep", "1000")
	must.OK(t, sleep.Start())
	t.Cleanup(func() {
		_ = sleep.Process.Kill()
		_ = sleep.Wait()
		if err := cgroup.Remove(hs, name); err != nil {
			t.Error(err)
		}
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
