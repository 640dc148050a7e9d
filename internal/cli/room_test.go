package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/core/finding"
	"github.com/tare-bench/tare/internal/node/cgroup"
	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

func TestLanesAreHeldAgainstWhatTheMachineHas(t *testing.T) {
	t.Parallel()
	plenty := room{tasks: 1 << 22, memory: 1 << 40, own: -1}
	host := record.Target{Name: "host", Kind: "host"}
	runc := record.Target{Name: "runc", Kind: "oci"}
	docker := record.Target{Name: "docker/runc", Kind: "docker", Config: map[string]string{"via": "api", "runtime": "runc"}}
	command := record.Target{Name: "docker+cli/runc", Kind: "docker", Config: map[string]string{"via": "cli", "runtime": "runc"}}
	kata := record.Target{Name: "containerd/kata", Kind: "containerd", Config: map[string]string{"via": "api", "runtime": "io.containerd.kata.v2"}}
	for name, c := range map[string]struct {
		room        room
		targets     []record.Target
		lanes       int
		said, lacks string // "" for nothing
	}{
		"a few lanes are not worth a word":                    {plenty, []record.Target{host, runc}, 20, "", ""},
		"what a thousand need is said":                        {plenty, []record.Target{host, runc}, 1000, "runc may need 15000 processes and threads", ""},
		"the neediest counts, for one comes after the other":  {plenty, []record.Target{kata, docker, host}, 1000, "containerd/kata may need", ""},
		"what takes more than half is said":                   {room{tasks: 1000, memory: 1 << 40, own: -1}, []record.Target{runc}, 50, "runc may need 750", ""},
		"more than the PIDs that are left":                    {room{tasks: 700, memory: 1 << 40, own: -1}, []record.Target{runc}, 50, "750", "700 processes and threads are left"},
		"more than the memory that is available":              {room{tasks: 1 << 22, memory: 1 << 30, own: -1}, []record.Target{kata}, 20, "kata", "1.00 GiB of memory is available"},
		"more than the limit of tare's own group":             {room{tasks: 1 << 22, memory: 1 << 40, own: 700, ownFile: "/g/pids.max"}, []record.Target{runc}, 50, "750", "/g/pids.max"},
		"what a daemon starts is not in tare's group":         {room{tasks: 1 << 22, memory: 1 << 40, own: 700, ownFile: "/g/pids.max"}, []record.Target{docker}, 50, "", ""},
		"what an engine's command line starts is":             {room{tasks: 1 << 22, memory: 1 << 40, own: 700, ownFile: "/g/pids.max"}, []record.Target{command}, 50, "docker+cli", "/g/pids.max"},
		"a limit that is not known binds nothing":             {room{tasks: -1, memory: 1 << 40, own: -1}, []record.Target{runc}, 1000, "15000", ""},
		"a runtime that nobody knows is taken for a wide one": {plenty, []record.Target{{Name: "mine", Kind: "oci"}}, 1000, "mine may need 15000", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			said, lacks := c.room.fits(c.targets, c.lanes)
			if (said == "") != (c.said == "") || !strings.Contains(said, c.said) || (lacks == "") != (c.lacks == "") || !strings.Contains(lacks, c.lacks) {
				t.Errorf("%q\n%q", said, lacks)
			}
		})
	}
}

// TestMoreLanesThanThereAreProcessesForAreRefused runs tare in a group that may not
// have as many processes as the lanes are said to need; those that they do need it may.
func TestMoreLanesThanThereAreProcessesForAreRefused(t *testing.T) {
	needRoot(t)
	hs, err := cgroup.Hierarchies()
	must.OK(t, err)
	h, ok := machine.Cgroups(hs).Find("pids")
	if !ok {
		t.Skip("no pids controller is mounted here")
	}
	dir := place(t)
	group := filepath.Join(h.Mount, fmt.Sprintf("tare-test-%d", os.Getpid()))
	must.OK(t, os.Mkdir(group, 0o755))
	defer func() {
		await(t, "the group's end", func() bool { return unix.Rmdir(group) == nil })
	}()
	if err := os.WriteFile(filepath.Join(group, "pids.max"), []byte("145"), 0); err != nil {
		t.Skipf("the machine's root group hands down no pids: %v", err)
	}
	within := func(args ...string) (int, string) {
		cmd := exec.Command("sh", append([]string{"-c", `echo $$ >"$0/cgroup.procs" && exec "$@"`, group, program(t, dir)}, args...)...)
		out, _ := cmd.CombinedOutput() // the code says it
		return cmd.ProcessState.ExitCode(), string(out)
	}
	code, out := within("lifecycle", "host", "-n", "50", "--rounds", "1", "-o", "r.jsonl")
	if code != ExitUsage || !strings.Contains(out, "50 lanes at once: host may need 150 processes") || !strings.Contains(out, group+"/pids.max") || !strings.Contains(out, "--force") {
		t.Errorf("exit %d\n%s", code, out)
	}
	if _, err := os.Stat("r.jsonl"); err == nil {
		t.Error("a record was begun")
	}
	code, out = within("lifecycle", "host", "-n", "50", "--rounds", "1", "--force", "-o", "r.jsonl")
	rec, err := record.Load("r.jsonl")
	if code != ExitDone || err != nil || !slices.ContainsFunc(rec.Findings, func(f record.Finding) bool { return f.Code == finding.NoRoom }) {
		t.Errorf("with --force: exit %d, %v\n%s", code, err, out)
	}
}
