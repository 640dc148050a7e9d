package cli

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/node/cgroup"
	"github.com/tare-bench/tare/internal/node/procs"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/internal/testing/need"
	"github.com/tare-bench/tare/internal/workspace"
	"github.com/tare-bench/tare/record"
)

// TestTorture kills tare at random moments. It also uses misbehaving runtimes, invalid
// records and unresponsive daemons. make test only runs the first case of each.
func TestTorture(t *testing.T) {
	need.Long(t)
	needRunc(t)
	t.Run("runtimes", runtimesThatLie)
	t.Run("records", recordsThatAreNone)
	t.Run("daemons", daemonsThatDoNotAnswer)
	t.Run("bare", func(t *testing.T) { endings(t, bare(), nil) })
	if torturing {
		t.Run("engines", func(t *testing.T) {
			m := withEngines(t)
			endings(t, m.behind(), &m)
		})
	}
}

// ending is a run that ends at a random moment.
type ending struct {
	what    string
	args    []string
	longest time.Duration // maximum duration of the run
}

// storing are the flags of a run with many short jobs.
var storing = []string{"--volume", "bind,rootfs", "--cache", "buffered", "--jobs", "write,randread", "--bs", "64k", "--size", "8M", "--ceiling", "0", "--drop", "files", "--settle", "0s", "--rounds", "100"}

// instruments returns one run per instrument. Each run would take longer than the test
// lets it.
func instruments(what string, longest time.Duration, target ...string) (all []ending) {
	for _, args := range [][]string{
		append([]string{"lifecycle", "-n", "3", "--rounds", "1000", "--warmup", "0"}, target...),
		append([]string{"overhead", "--sandboxes", "1,3", "--hold", "200ms", "--settle", "0s", "--rounds", "100"}, target...),
		append(append([]string{"storage"}, storing...), target...),
		append([]string{"startup", "--rounds", "1000"}, target...),
	} {
		all = append(all, ending{args[0] + " of " + what, append(args, "-q", "-o", "r.jsonl"), longest})
	}
	return all
}

// bare returns runs without an engine.
func bare() []ending {
	all := instruments("runc", 3*time.Second, "host", "runc")
	all = append(all, ending{"bpf", []string{"bpf", "load", "--datapath", "reference", "-c", "10", "-t", "200ms", "--idle", "100ms", "--rounds", "100", "-q", "-o", "r.jsonl"}, 3 * time.Second})
	if _, err := exec.LookPath("crun"); err == nil && torturing {
		all = append(all, instruments("crun", 3*time.Second, "crun", "floor")...)
	}
	return all
}

// behind returns runs on every engine.
func (m everything) behind() (all []ending) {
	for _, target := range []string{"docker/runc", "podman/runc", "containerd/runc"} {
		all = append(all, instruments(target, 8*time.Second, target)...)
	}
	for name, socket := range map[string]string{"containerd": m.containerd.Address, "cri-o": m.crio.Socket} {
		all = append(all, instruments("cri+"+name, 8*time.Second, "cri+"+name+"/runc", "--cri", name+"=unix://"+socket)...)
	}
	slices.SortFunc(all, func(a, b ending) int { return strings.Compare(a.what, b.what) })
	return all
}

// endings stops every run with each signal at a random moment. It runs tare clean once and
// checks for leftovers.
func endings(t *testing.T, all []ending, m *everything) {
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("TARE_TORTURE_SEED"); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("repeat with TARE_TORTURE_SEED=%d", seed)
	moments := rand.New(rand.NewPCG(seed, 0))
	signals := []unix.Signal{unix.SIGKILL, unix.SIGTERM, unix.SIGKILL, unix.SIGHUP, unix.SIGKILL, unix.SIGINT}
	if !torturing {
		all, signals = append(all[:2:2], all[len(all)-1]), signals[:1]
	}
	for _, e := range all {
		for i, signal := range signals {
			after := time.Duration(moments.Int64N(int64(e.longest)))
			t.Run(fmt.Sprintf("%s, %s %d", e.what, unix.SignalName(signal), i+1), func(t *testing.T) { endAndClean(t, e, signal, after, m) })
		}
	}
}

func endAndClean(t *testing.T, e ending, signal unix.Signal, after time.Duration, m *everything) {
	dir := place(t)
	before := m.stock(t)
	cmd, stdout, stderr := started(t, dir, e.args...)
	time.Sleep(after) // the random delay is part of the test
	ended := time.Now()
	if err := cmd.Process.Signal(signal); err != nil {
		t.Fatalf("the run ended before the signal: %v\n%s%s", err, stdout, stderr)
	}
	_ = cmd.Wait() // ended by the signal
	wrong := signal != unix.SIGKILL && cmd.ProcessState.ExitCode() != ExitInterrupted && cmd.ProcessState.Exited()
	if took := time.Since(ended); wrong || took > 2*time.Minute {
		t.Errorf("%v after %v: exit %d after %v\n%s%s", signal, after, cmd.ProcessState.ExitCode(), took, stdout, stderr)
	}
	ids := idsBelow(dir)
	code, out, said := tare(t, "clean")
	if code != ExitDone {
		t.Errorf("%v after %v: clean: exit %d\n%s%s", signal, after, code, out, said)
	}
	left := slices.Concat(namesOf(ids), beyond(before, m.stock(t)))
	if found, _, err := workspace.Leftovers(workspace.DefaultRoots()); err != nil || len(found) > 0 {
		left = append(left, fmt.Sprintf("leftovers %+v, %v", found, err))
	}
	if len(left) > 0 {
		t.Errorf("%v after %v: left behind after one clean:\n  %s\nclean said:\n%s", signal, after, strings.Join(left, "\n  "), out)
	}
	if _, err := record.Load("r.jsonl"); err != nil && !errors.Is(err, os.ErrNotExist) && after > time.Second {
		t.Errorf("the record is unreadable: %v", err)
	}
}

// idsBelow returns the IDs of the runs with a folder in dir.
func idsBelow(dir string) (ids []string) {
	folders, _ := filepath.Glob(filepath.Join(dir, "*", "????????"))
	for _, f := range folders {
		ids = append(ids, filepath.Base(f))
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// namesOf returns the processes and cgroups with one of the IDs in their name.
func namesOf(ids []string) (found []string) {
	for _, id := range ids {
		for _, pid := range procs.All() {
			if line := strings.Join(procs.ArgsOf(pid), " "); pid != os.Getpid() && strings.Contains(line, id) {
				found = append(found, fmt.Sprintf("process %d: %s", pid, line))
			}
		}
	}
	hs, _ := cgroup.Hierarchies()
	for _, h := range hs {
		_ = filepath.WalkDir(h.Mount, func(path string, e os.DirEntry, err error) error {
			if err == nil && e.IsDir() && slices.ContainsFunc(ids, func(id string) bool { return strings.Contains(path, id) }) {
				found = append(found, "cgroup "+path)
			}
			return nil
		})
	}
	return found
}

// stock lists all objects of the engines, as reported by the engines and by the machine.
func (m *everything) stock(t *testing.T) []string {
	t.Helper()
	if m == nil {
		return nil
	}
	all := m.left(t)
	for _, id := range m.crio.Containers(t) {
		all = append(all, "cri-o container "+id)
	}
	for _, ns := range m.containerd.Namespaces(t) {
		out := must.Get(exec.Command(m.containerd.Ctr, "-a", m.containerd.Address, "-n", ns, "leases", "ls", "-q").Output())(t)
		for lease := range strings.FieldsSeq(string(out)) {
			all = append(all, "containerd "+ns+" lease "+lease)
		}
	}
	for root, daemon := range map[string]int{m.docker.Root: m.docker.Pid, m.podman.Root: m.podman.Pid, m.containerd.Dir: m.containerd.Pid, m.crio.Dir: m.crio.Pid} {
		for _, pid := range procs.All() {
			args := procs.ArgsOf(pid)
			if len(args) > 0 && isShim(args[0]) && strings.Contains(strings.Join(args, " "), root) {
				all = append(all, fmt.Sprintf("process %d: %s", pid, strings.Join(args, " ")))
			}
		}
		text := must.Read(t, fmt.Sprintf("/proc/%d/mountinfo", daemon))
		for line := range strings.Lines(text) {
			// Podman mounts its storage folder while it is in use.
			if f := strings.Fields(line); len(f) > 4 && f[4] != root+"/root/overlay" && (strings.Contains(f[4], "netns") || strings.Contains(line, root)) {
				all = append(all, "mount "+f[4])
			}
		}
		names, _ := os.ReadDir(fmt.Sprintf("/proc/%d/root/run/netns", daemon))
		for _, n := range names {
			all = append(all, fmt.Sprintf("netns %s of %s", n.Name(), root))
		}
	}
	return all
}

// isShim reports whether a program is a shim, monitor or runtime rather than a daemon.
func isShim(program string) bool {
	name := filepath.Base(program)
	return strings.HasPrefix(name, "containerd-shim") || name == "conmon" || name == "runc" || name == "crun"
}

// beyond returns the elements of after that are missing in before.
func beyond(before, after []string) []string {
	return slices.DeleteFunc(after, func(s string) bool { return slices.Contains(before, s) })
}
