package snapshot_test

import (
	"slices"
	"testing"

	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/node/snapshot"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

func TestMountsThatBearTheIDOfASandboxAreFoundInEveryDaemonsNamespace(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	const cgroups = "20 1 0:20 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
	line := func(where string) string { return "30 1 0:30 / " + where + " rw - overlay overlay rw\n" }
	write(t, root, "sys/fs/cgroup/memory/tasks", "")
	write(t, root, "proc/self/mountinfo", cgroups)
	write(t, root, "proc/thread-self/mountinfo", cgroups+line("/run/task/tare-x-0-1/rootfs")+line("/run/task/tare-x-0-10/rootfs"))
	write(t, root, "proc/4711/mountinfo", "cut\n"+line("/run/task/tare-x-0-1/rootfs")+line("/run/shared/sandboxes/tare-x-0-2/shared"))
	meter, err := snapshot.Of(machine.Root(root))
	must.OK(t, err)
	defer meter.Close()
	daemons := []record.Process{{Pid: 4711, Role: record.RoleDaemon}, {Pid: 4712, Role: record.RoleDaemon}, {Pid: 1, Role: record.RoleShim}}
	left := meter.LeftBeside(&record.Reading{Processes: daemons}, []string{"tare-x-0-1", "tare-x-0-2"})
	if want := []string{"/run/task/tare-x-0-1/rootfs", "/run/shared/sandboxes/tare-x-0-2/shared"}; !slices.Equal(left.Mounts, want) || len(left.Processes) > 0 {
		t.Errorf("left %+v, want %q", left, want)
	}
	if left := meter.LeftBeside(&record.Reading{}, nil); left == nil || len(left.Mounts) > 0 {
		t.Errorf("without an id: %+v", left)
	}
	write(t, root, "proc/4713/mountinfo/no", "file")
	if left := meter.LeftBeside(&record.Reading{Processes: []record.Process{{Pid: 4713, Role: record.RoleDaemon}}}, []string{"tare-x-0-1"}); left.Mounts != nil {
		t.Errorf("mounts that could not all be read: %+v", left)
	}
	if got := meter.Around([]string{"/none"}); len(got) > 0 {
		t.Errorf("a group that is not there: %+v", got)
	}
}
