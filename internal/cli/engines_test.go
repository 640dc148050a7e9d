package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/engines"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/internal/testing/untouched"
	"github.com/tare-bench/tare/record"
)

// everything is a machine with every engine that the tests support.
type everything struct {
	docker     *engines.Dockerd
	podman     *engines.PodmanEngine
	containerd *engines.ContainerdDaemon
	crio       *engines.CRIODaemon
}

// withEngines starts the engines. tare finds them through PATH and the environment
// variables of the engines.
func withEngines(t *testing.T) everything {
	t.Helper()
	m := everything{engines.Docker(t), engines.Podman(t), engines.Containerd(t, engines.V1), engines.CRIO(t)}
	bin := t.TempDir()
	for name, path := range map[string]string{"docker": m.docker.Command, "podman": m.podman.Command, "skopeo": m.crio.Skopeo} {
		must.OK(t, os.Symlink(path, filepath.Join(bin, name)))
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	t.Setenv("DOCKER_HOST", m.docker.Host)
	t.Setenv("CONTAINER_HOST", "") // restored at the end; even an empty value makes podman a client
	must.OK(t, os.Unsetenv("CONTAINER_HOST"))
	t.Setenv("CONTAINERD_ADDRESS", m.containerd.Address)
	return m
}

// left lists the objects on the engines that tare could have created.
func (m everything) left(t *testing.T) []string {
	t.Helper()
	var out []string
	add := func(what string, names []string) {
		for _, name := range names {
			out = append(out, what+" "+name)
		}
	}
	add("docker container", m.docker.Containers(t))
	add("docker image", m.docker.Images(t))
	add("podman container", m.podman.Containers(t))
	add("podman image", m.podman.Images(t))
	for _, ns := range m.containerd.Namespaces(t) {
		add("containerd "+ns+" container", m.containerd.Containers(t, ns))
		add("containerd "+ns+" image", m.containerd.Images(t, ns))
		add("containerd "+ns+" snapshot", m.containerd.Snapshots(t, ns))
	}
	add("cri-o pod", m.crio.Sandboxes(t))
	add("cri-o image", m.crio.Images(t))
	return out
}

func (m everything) nothingLeft(t *testing.T) {
	t.Helper()
	if left := m.left(t); len(left) > 0 {
		t.Errorf("left behind on the engines:\n  %s", strings.Join(left, "\n  "))
	}
}

// everywhere returns targets on all engines. The CRI endpoints are passed by flags.
func (m everything) everywhere() []string {
	return []string{"lifecycle", "runc", "docker/runc", "docker+cli/runc", "podman/runc", "containerd/runc",
		"cri+containerd/runc", "cri+cri-o/runc", "--cri", "containerd=unix://" + m.containerd.Address, "--cri", "cri-o=unix://" + m.crio.Socket}
}

func TestEveryEngineIsMeasuredInOneRun(t *testing.T) {
	needRunc(t)
	m := withEngines(t)
	place(t)
	ends(t, ExitDone, "", append(m.everywhere(), "-n", "1,2", "--rounds", "1", "--warmup", "0", "-o", "r.jsonl")...)
	rec := loaded(t)
	for _, target := range rec.Targets {
		n, failures := times(t, "r.jsonl", target.Name)
		ops := 0
		for _, op := range target.Operations {
			if op.Absent == "" {
				ops++
			}
		}
		if want := (1 + 2) * ops; n != want || len(failures) > 0 {
			t.Errorf("%s: %d times, want %d; failures %v", target.Name, n, want, failures)
		}
		pods := target.Operations["runp"].Absent == "" && target.Operations["runp"].Command != ""
		check.Equal(t, fmt.Sprintf("%s: pods", target.Name), strings.HasPrefix(target.Name, "cri+"), pods)
	}
	daemons, beside := map[string]int64{}, map[string]int{}
	for _, b := range rec.Batches {
		for _, u := range b.Roles {
			if u.Role == record.RoleShim || u.Role == record.RoleMonitor {
				beside[b.Target+" "+b.Op] = max(beside[b.Target+" "+b.Op], u.After)
			}
			if u.Role == record.RoleDaemon {
				daemons[b.Target] = max(daemons[b.Target], u.PSSPeak)
			}
		}
	}
	for _, name := range []string{"docker/runc", "docker+cli/runc", "containerd/runc", "cri+containerd/runc", "cri+cri-o/runc"} {
		// A daemon uses a few times 10 MiB of memory. A command uses 2 MiB.
		if mib := daemons[name] >> 20; mib < 8 || mib > 1000 {
			t.Errorf("%s: its daemon's memory is %d MiB", name, mib)
		}
	}
	// Each container has one shim or monitor.
	for _, name := range []string{"docker/runc", "docker+cli/runc", "podman/runc", "containerd/runc", "cri+containerd/runc", "cri+cri-o/runc"} {
		for _, op := range []string{"start", "run"} {
			check.Equal(t, fmt.Sprintf("%s %s", name, op), beside[name+" "+op], 2)
		}
	}
	m.nothingLeft(t)
}

func TestOnlyLeftoversOfKilledRunAreFoundOnEngines(t *testing.T) {
	needRunc(t)
	untouched.Alone(t)
	m := withEngines(t)
	dir := place(t)
	cmd, _, _ := started(t, dir, append(m.everywhere(), "-n", "3", "--rounds", "1000", "--warmup", "0", "-q", "-o", "r.jsonl")...)
	// Kill the run once most engines have a container. Do not query podman before: it cannot
	// list images while another podman process builds one.
	await(t, "images and containers", func() bool {
		return len(m.docker.Images(t)) > 0 && len(m.docker.Containers(t)) > 0 && len(m.crio.Images(t)) > 0 || len(m.crio.Sandboxes(t)) > 0
	})
	must.OK(t, cmd.Process.Kill())
	_ = cmd.Wait()
	// A container of another owner has a name like those of tare.
	onDocker := func(args ...string) {
		if out, err := exec.Command(m.docker.Command, append([]string{"-H", m.docker.Host}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	images := m.docker.Images(t)
	if len(images) == 0 {
		t.Fatal("no image was created")
	}
	onDocker("create", "--name", "tare-mine-0-0", "--label", "dev.tare.run=mine", images[0])
	ends(t, ExitDone, "would remove|image", "clean", "--dry-run")
	out, stderr := ends(t, ExitUsage, "cannot be removed completely yet", "clean")
	if left := m.docker.Containers(t); len(left) != 1 || !strings.Contains(stderr, "is using its referenced image") {
		t.Errorf("another owner's container: %v\n%s%s", left, out, stderr)
	}
	onDocker("rm", "tare-mine-0-0")
	out, _ = ends(t, ExitDone, "removed", "clean")
	if left := m.left(t); len(left) > 0 {
		t.Errorf("left behind on the engines:\n  %s\nclean said:\n%s", strings.Join(left, "\n  "), out)
	}
}

func TestDeadDaemonFailsOnlyItsTarget(t *testing.T) {
	needRunc(t)
	untouched.Alone(t) // the test searches the dead daemon for leftovers
	dir := place(t)
	// Use a separate daemon, because the test kills it.
	d := engines.Docker(t, engines.Runtime("victim", "/usr/sbin/runc"))
	cmd, out, stderr := started(t, dir, "lifecycle", "runc", "docker/runc", "--docker-host", d.Host, "--rounds", "8", "--timeout", "20s", "-q", "-o", "r.jsonl")
	await(t, "a round of docker", func() bool {
		b, _ := os.ReadFile("r.jsonl")
		return strings.Count(string(b), `"target":"docker/runc"`) >= 8
	})
	must.OK(t, syscall.Kill(d.Pid, syscall.SIGKILL))
	err := cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != ExitFailed {
		t.Errorf("exit %d, %v\n%s%s", code, err, out, stderr)
	}
	if n, failures := times(t, "r.jsonl", "runc"); n < 8*5 || len(failures) > 0 {
		t.Errorf("runc: %d times, failures %v", n, failures)
	}
	if _, failures := times(t, "r.jsonl", "docker/runc"); len(failures) == 0 {
		t.Error("the end of docker is not a failure")
	}
	if said := out.String() + stderr.String(); !strings.Contains(said, "docker/runc") || !strings.Contains(said, "given up") {
		t.Errorf("the report does not mention it:\n%s", said)
	}
	// Leftovers on the daemon stay listed until it answers again.
	for range 2 {
		ends(t, ExitUsage, "docker/runc|which is unavailable", "clean")
	}
	ends(t, ExitUsage, "moved.sock", "clean", "--docker-host", "unix:///moved.sock") // the daemon's new address
	ends(t, ExitDone, "forgotten", "clean", "--forget")
	ends(t, ExitDone, "nothing was left", "clean")
}

func TestMissingEngineIsSkippedOrNamed(t *testing.T) {
	needRunc(t)
	dir := place(t)
	commands(t, "engines", nil, "SOCKET", "unix://"+filepath.Join(dir, "none.sock"))
}

func TestSettingsForUnknownEngineAreRefused(t *testing.T) {
	place(t)
	text := "version: 1\nmeasure:\n  - lifecycle: {targets: [host], engines: {dokcer: {address: /run/x.sock}}}\n"
	must.Write(t, "typo.yaml", text)
	refuses(t, []string{"run", "typo.yaml"}, `"dokcer"`)
}

func TestMeasureWithoutEnginesDoesNotStopOthers(t *testing.T) {
	needRunc(t)
	dir := place(t)
	away := []string{"--docker-host", "unix://" + filepath.Join(dir, "none.sock"), "--format", "json"}
	nothing := "  - lifecycle: {targets: [docker/runc], missing: %s, rounds: 1}\n"
	host := "  - lifecycle: {targets: [host], rounds: 1}\n"
	for name, c := range map[string]struct {
		measures string
		code     int
		runs     int
	}{
		"an optional target is missing": {fmt.Sprintf(nothing, "skip") + host + host, ExitDone, 2},
		"the operation is unsupported":  {"  - lifecycle: {targets: [host, docker/runc], ops: [create], missing: skip, rounds: 1}\n" + host + host, ExitDone, 2},
		"a required target is missing":  {fmt.Sprintf(nothing, "fail") + host + host, ExitUsage, 2},
		"no target is available":        {strings.Repeat(fmt.Sprintf(nothing, "skip"), 2), ExitUsage, 0},
	} {
		t.Run(name, func(t *testing.T) {
			must.Write(t, "several.yaml", "version: 1\nmeasure:\n"+c.measures)
			out, _ := ends(t, c.code, "measure 1 of |none.sock", append([]string{"run", "several.yaml", "-o", filepath.Join(t.TempDir(), "r.jsonl")}, away...)...)
			// All reports form one document.
			var runs []struct{ Experiment string }
			if err := json.Unmarshal([]byte(out), &runs); (err != nil || len(runs) != c.runs) && (c.runs > 0 || out != "") {
				t.Errorf("%v: %d runs\n%s", err, len(runs), out)
			}
		})
	}
}

// A recorded run is repeated with its own options, unless flags override them.
func TestRecordIsRunAgain(t *testing.T) {
	place(t)
	ends(t, ExitDone, "", words("lifecycle host --rounds 2 --ops start,stop --warmup 0 --seed 7 -q -o first.jsonl.zst")...)
	ends(t, ExitDone, "seed 7", words("run first.jsonl.zst --rounds 1 -q -o r.jsonl --details")...)
	if n, _ := times(t, "r.jsonl", "host"); n != 2 {
		t.Errorf("%d times, wanted of one round of start and stop", n)
	}
}

func TestBusyEngineIsRetried(t *testing.T) {
	for _, c := range []struct {
		errs  []error
		tries int
	}{
		{[]error{errors.New("rpc error: code = DeadlineExceeded desc = x"), &subject.Unavailable{Reason: "context deadline exceeded"}, nil}, 3},
		{[]error{errors.New("connection refused")}, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			tries := 0
			found, err := insist(func() ([]string, error) {
				tries++
				return []string{"pod a", fmt.Sprint("pod ", tries)}, c.errs[tries-1]
			})
			if tries != c.tries || !errors.Is(err, c.errs[len(c.errs)-1]) || len(found) != 1+c.tries {
				t.Errorf("after %d attempts: %q, %v", tries, found, err)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		if _, err := insist(func() ([]string, error) { return nil, context.DeadlineExceeded }); err == nil || time.Since(began) > 2*busy {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	})
}
