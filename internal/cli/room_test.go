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
	"github.com/tare-bench/tare/internal/testing/golden"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

// A line of the golden file is lanes of targets, and what there is: PIDs, memory, and PIDs
// that the limit of tare's own group leaves; -1 is not known.
func TestLanesAreHeldAgainstWhatTheMachineHas(t *testing.T) {
	t.Parallel()
	config := func(via, runtime string) map[string]string { return map[string]string{"via": via, "runtime": runtime} }
	targets := map[string]record.Target{
		"host":            {Kind: "host"},
		"runc":            {Kind: "oci"},
		"mine":            {Kind: "oci"},
		"docker/runc":     {Kind: "docker", Config: config("api", "runc")},
		"docker+cli/runc": {Kind: "docker", Config: config("cli", "runc")},
		"containerd/kata": {Kind: "containerd", Config: config("api", "io.containerd.kata.v2")},
	}
	golden.Lines(t, filepath.Join(testdata, "room.txt"), func(t *testing.T, line string) (any, error) {
		r, names, lanes := room{ownFile: "/g/pids.max"}, "", 0
		_, err := fmt.Sscanf(line, "%d of %s with %d PIDs, %d MiB, own %d", &lanes, &names, &r.tasks, &r.memory, &r.own)
		must.OK(t, err)
		r.memory <<= 20
		var all []record.Target
		for name := range strings.SplitSeq(names, ",") {
			target := targets[name]
			target.Name = name
			all = append(all, target)
		}
		said, lacks := r.fits(all, lanes)
		return fmt.Sprintf("said %q, lacks %q", said, lacks), nil
	})
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
