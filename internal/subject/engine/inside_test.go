package engine

import (
	"fmt"
	"os"
	"os/exec"
	"path"
	"strings"
	"syscall"
	"testing"

	"github.com/tare-bench/tare/internal/node/procs"
	"github.com/tare-bench/tare/internal/testing/must"
)

func TestOnlyAContainersOwnGroupsBearItsID(t *testing.T) {
	const id = "tare-x-0-1"
	for _, c := range []struct {
		groups string
		want   bool
	}{
		{"4:memory:/tare-run-x/c/tare-x-0-1\n", true},
		{"0::/tare-run-x/c/tare-x-0-1/below\n", true},
		{"1:name=systemd:/\n2:cpu,cpuacct:/system.slice/cri-containerd-tare-x-0-1.scope\n", true},
		{"2:pids:/pod/crio-tare-x-0-1\n", true},
		{"2:pids:/a:b/tare-x-0-1\n", true},
		{"4:memory:/tare-run-x/c/tare-x-0-12\n", false},
		{"4:memory:/tare-run-x/c\n", false},
		{"0::/\n", false},
		{"nonsense tare-x-0-1\n", false},
		{"", false},
	} {
		if got := bears(procs.ParseGroups(c.groups), id); got != c.want {
			t.Errorf("%q: %v", c.groups, got)
		}
	}
}

// A VM's first process is in the machine's own PID namespace, and so is
// everything else.
func TestNothingIsKilledInTheMachinesOwnPIDNamespace(t *testing.T) {
	sleep := exec.Command("sleep", "60")
	must.OK(t, sleep.Start())
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", sleep.Process.Pid))
	must.OK(t, err)
	line, _, _ := strings.Cut(string(b), "\n")
	id := path.Base(line) // of whatever group this test is in
	for _, first := range []int{0, -1, 1, os.Getpid(), 1 << 22} {
		KillCommands(id, first)
	}
	if err := sleep.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("it was killed: %v", err)
	}
	_ = sleep.Process.Kill()
	if err := sleep.Wait(); err == nil || sleep.ProcessState.ExitCode() != -1 {
		t.Errorf("%v", err)
	}
}
