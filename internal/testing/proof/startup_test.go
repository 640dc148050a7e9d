package proof

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/instrument/startup"
	"github.com/tare-bench/tare/internal/instrument/startup/trace"
	"github.com/tare-bench/tare/internal/probe"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/engines"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

// stage is the set of engines on which starts are observed. Each has two additional
// runtimes: logged-runc logs its calls, see [calls]; slow-runc sleeps for a second before
// it creates a container.
type stage struct {
	docker     *engines.Dockerd
	podman     *engines.PodmanEngine
	containerd *engines.ContainerdDaemon
	crio       *engines.CRIODaemon
	dir        string // folder of the two runtimes
}

// play starts the missing engines. At the end of the test it checks that nothing is left
// in them.
func play(t *testing.T) *stage {
	t.Helper()
	s := &stage{dir: wrappers(t)}
	more := []engines.Option{engines.Runtime("logged-runc", s.logged()), engines.Runtime("slow-runc", s.slow())}
	s.docker, s.podman = engines.Docker(t, more...), engines.Podman(t, more...)
	s.containerd, s.crio = engines.Containerd(t, engines.V1, more...), engines.CRIO(t, more...)
	onPath(t, map[string]string{"podman": s.podman.Command, "skopeo": s.crio.Skopeo})
	t.Cleanup(func() {
		for engine, left := range map[string][]string{
			"docker": s.docker.Containers(t), "podman": s.podman.Containers(t), "containerd": s.containerd.Sandboxes(t),
			"containerd's default namespace": s.containerd.Containers(t, "default"), "CRI-O": s.crio.Sandboxes(t),
		} {
			check.That(t, len(left) == 0, "%s: left behind: %v", engine, left)
		}
	})
	return s
}

// on returns targets with the flags for them.
func (s *stage) on(targets ...string) []string {
	args := []string{"--docker-host", s.docker.Host, "--containerd-address", s.containerd.Address}
	for name, address := range map[string]string{"containerd": s.containerd.Address, "cri-o": s.crio.Socket} {
		if slices.ContainsFunc(targets, func(target string) bool { return strings.HasPrefix(target, "cri+"+name) }) {
			args = append(args, "--network", "bridge", "--cri", name+"=unix://"+address)
		}
	}
	return append(args, targets...)
}

// image imports the probe's image into docker and podman.
func (s *stage) image(t *testing.T) string {
	t.Helper()
	const name = "localhost/tare-proof:1"
	dir := t.TempDir()
	root, archive := filepath.Join(dir, "root"), filepath.Join(dir, "root.tar")
	must.OK(t, probe.Rootfs(root))
	say(t, "tar", "-C", root, "-cf", archive, ".")
	say(t, s.docker.Command, "-H", s.docker.Host, "import", archive, name)
	say(t, s.podman.Command, "import", archive, name)
	t.Cleanup(func() {
		say(t, s.docker.Command, "-H", s.docker.Host, "rmi", name)
		say(t, s.podman.Command, "rmi", name)
	})
	return name
}

// say runs a command that must succeed and returns its output.
func say(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command(args[0], args[1:]...).CombinedOutput()
	must.That(t, err == nil, "%s: %v\n%s", strings.Join(args, " "), err, out)
	return strings.TrimSpace(string(out))
}

// watch runs tare startup and checks that nothing of it is left.
func watch(t *testing.T, args ...string) (*record.Record, *startup.Judgement) {
	t.Helper()
	p := folders(t)
	untraced(t)
	recs, judged, _ := tare(p, whole, append([]string{"startup"}, args...)...)
	return recs[0], judged[0]
}

// whole judges a record, which must have starts and no problems.
func whole(rec *record.Record) (*startup.Judgement, error) {
	if len(rec.Problems) > 0 || len(rec.Starts) == 0 {
		return nil, fmt.Errorf("%d starts, problems %v", len(rec.Starts), rec.Problems)
	}
	return startup.Judge(rec)
}

// engineOf returns the owner of the time between the runtime's calls.
func engineOf(t *testing.T, j *startup.Judgement, target string) string {
	t.Helper()
	i := slices.IndexFunc(j.Targets, func(x startup.Target) bool { return x.Target == target })
	must.That(t, i >= 0, "%s is not judged", target)
	return j.Targets[i].Engine
}

// checkSums checks that the parts of a start add up to its wall time, without holes and
// overlaps.
func checkSums(t *testing.T, s *record.Start, engine string) {
	t.Helper()
	check.That(t, s.First > s.Began && s.Ended > s.Began,
		"%s: first instruction %d ns, end %d ns after the begin", s.Target, s.First-s.Began, s.Ended-s.Began)
	for what, parts := range map[string][]trace.Part{"calls": trace.Calls(s, engine), "parts": trace.Parts(s, engine)} {
		sum, at := int64(0), s.Began
		for _, p := range parts {
			check.That(t, p.Began == at && p.Ended > p.Began,
				"%s: of its %s, %q is from %d to %d, but the previous one ends at %d", s.Target, what, p.Name, p.Began, p.Ended, at)
			sum, at = sum+p.Ended-p.Began, p.Ended
		}
		check.That(t, sum == s.Ended-s.Began && at == s.Ended && len(parts) >= 3,
			"%s: its %d %s add up to %d ns, want %d", s.Target, len(parts), what, sum, s.Ended-s.Began)
	}
}

// cast lists the required processes of a start. Processes that exist once per container
// are in the order of the containers.
type cast struct {
	calls    string // verbs in order of birth
	plugins  string // network plugins and their verbs, unordered
	beside   string // another required kind of process
	ids      int    // containers, plus the pod if it has its own id
	workload int    // containers with a process
}

var casts = map[string]cast{
	"runc":                {calls: "run", ids: 1, workload: 1},
	"crun":                {calls: "run", ids: 1, workload: 1},
	"docker/runc":         {calls: "create start", beside: record.KindShim, ids: 1, workload: 1},
	"docker/crun":         {calls: "create start", beside: record.KindShim, ids: 1, workload: 1},
	"podman/runc":         {calls: "create start", beside: record.KindMonitor, ids: 1, workload: 1},
	"podman/crun":         {calls: "create start", beside: record.KindMonitor, ids: 1, workload: 1},
	"containerd/runc":     {calls: "create start", beside: record.KindShim, ids: 1, workload: 1},
	"cri+containerd/runc": {calls: "create start create start", plugins: "bridge ADD, host-local ADD, loopback ADD", beside: record.KindShim, ids: 2, workload: 2},
	// CRI-O has no sandbox process.
	"cri+cri-o/runc": {calls: "create state start state", plugins: "bridge ADD, bridge CHECK, host-local ADD, host-local CHECK", beside: record.KindMonitor, ids: 2, workload: 1},
}

// check reports missing and unexpected processes.
func (c cast) check(t *testing.T, s *record.Start) {
	t.Helper()
	var calls, plugins []string
	kinds, workloads, inits := map[string]bool{}, map[string]int{}, map[string]bool{}
	last := int64(0)
	for i := range s.Processes {
		p := &s.Processes[i]
		kinds[p.Kind] = true
		switch p.Kind {
		case record.KindCall:
			calls = append(calls, p.Verb)
			check.That(t, p.Exit != nil && *p.Exit == 0 && p.CPU > 0 && p.Ended > p.Exec && p.Exec >= p.Born, "%s: %+v", s.Target, p)
		case record.KindCNI:
			plugins = append(plugins, p.Name+" "+p.Verb)
		case record.KindInit:
			inits[p.Container] = true
		case record.KindWorkload:
			workloads[p.Container]++
			last = max(last, p.Exec)
		}
		check.That(t, p.Container == "" || slices.Contains(s.Containers, p.Container),
			"%s: %s is about %s, the containers are %v", s.Target, p.Name, p.Container, s.Containers)
	}
	slices.Sort(plugins)
	check.Equal(t, fmt.Sprintf("%s: calls", s.Target), strings.Join(calls, " "), c.calls)
	check.Equal(t, fmt.Sprintf("%s: network plugins", s.Target), strings.Join(plugins, ", "), c.plugins)
	check.That(t, (c.beside == "" || kinds[c.beside]) && len(s.Containers) == c.ids && len(workloads) == c.workload && len(inits) == c.workload,
		"%s: %v; containers %v; inits of %v, workloads of %v", s.Target, kinds, s.Containers, inits, workloads)
	for id, n := range workloads {
		check.That(t, n == 1, "%s: %d workloads in %s", s.Target, n, id)
	}
	// The probe's own stamp or the exec.
	by := s.First - last
	check.That(t, by >= 0 && by <= 1e9, "%s: its first instruction is %d ns after the workload's exec", s.Target, by) // a process may wait for a CPU
	check.That(t, len(s.Missing) == 0 && s.Lost == 0, "%s: missing %+v, lost %d", s.Target, s.Missing, s.Lost)
}

// checkApart checks that starts share only daemons.
func checkApart(t *testing.T, starts []record.Start) {
	t.Helper()
	type one struct {
		pid  int
		born int64
	}
	whose := map[any]int{}
	for i := range starts {
		s := &starts[i]
		for _, id := range s.Containers {
			if strings.HasPrefix(id, "tare-") {
				continue // bare runtimes have separate roots
			}
			other, ok := whose[id]
			check.That(t, !ok || other == i, "%s is in starts %d and %d", id, other, i)
			whose[id] = i
		}
		for _, p := range s.Processes {
			if p.Kind == record.KindDaemon {
				continue
			}
			key := one{p.Pid, p.Born}
			other, ok := whose[key]
			check.That(t, !ok || other == i, "%s, process %d, is in starts %d and %d", p.Name, p.Pid, other, i)
			whose[key] = i
		}
	}
}

// On every target, the parts of a start add up to it. All processes involved are present,
// and no others.
func TestStartHasAllItsPartsAndProcesses(t *testing.T) {
	s := play(t)
	var all []record.Start
	for _, targets := range [][]string{
		{"runc", "crun", "docker/runc", "docker/crun", "podman/runc", "podman/crun", "containerd/runc"},
		{"cri+containerd/runc", "cri+cri-o/runc"}, // with a network
	} {
		rec, j := watch(t, append([]string{"--rounds", "2", "--warmup", "0"}, s.on(targets...)...)...)
		for i := range rec.Starts {
			x := &rec.Starts[i]
			if x.Failure != nil {
				t.Errorf("%s: %+v", x.Target, x.Failure)
				continue
			}
			checkSums(t, x, engineOf(t, j, x.Target))
			casts[x.Target].check(t, x)
		}
		check.That(t, len(rec.Starts) == 2*len(targets), "%d starts of %d targets", len(rec.Starts), len(targets))
		all = append(all, rec.Starts...)
	}
	checkApart(t, all)
}
