package proof

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/probe"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/internal/testing/need"
	"github.com/tare-bench/tare/record"
)

// wrappers creates the runtimes of a [stage]. Their paths are constant, because engines
// run until the last test has ended.
func wrappers(t *testing.T) string {
	t.Helper()
	runc := need.Tool(t, "runc")
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("tare-proof-%d", os.Getpid()))
	must.OK(t, os.MkdirAll(dir, 0o700))
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	// bash gets the time without running another program.
	script(t, filepath.Join(dir, "logged-runc"), must.Read(t, "testdata/logged-runc.sh"), runc, filepath.Join(dir, "calls"))
	script(t, filepath.Join(dir, "slow-runc"), must.Read(t, "testdata/slow-runc.sh"), runc)
	return dir
}

func script(t *testing.T, path, text string, args ...any) {
	t.Helper()
	must.OK(t, os.WriteFile(path, fmt.Appendf(nil, text, args...), 0o755))
}

func (s *stage) logged() string { return filepath.Join(s.dir, "logged-runc") }
func (s *stage) slow() string   { return filepath.Join(s.dir, "slow-runc") }

// call is a command of the runtime as logged by the runtime.
type call struct {
	pid          int
	verb, id     string
	began, ended int64 // ns, CLOCK_MONOTONIC, with microsecond resolution
}

// calls returns the calls of logged-runc for a container.
func (s *stage) calls(t *testing.T) (all []call) {
	t.Helper()
	text := must.Read(t, filepath.Join(s.dir, "calls"))
	ahead := time.Now().UnixNano() - machine.Now()
	at := func(seconds string) int64 {
		micros, err := strconv.ParseInt(strings.Replace(seconds, ".", "", 1), 10, 64)
		must.That(t, err == nil, "%q: %v", seconds, err)
		return micros*1000 - ahead
	}
	for line := range strings.Lines(text) {
		words := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		must.That(t, len(words) >= 4, "%q", line)
		pid, err := strconv.Atoi(words[0])
		must.That(t, err == nil, "%q: %v", line, err)
		c := call{pid: pid, began: at(words[1]), ended: at(words[2])}
		args := words[3:]
		i := slices.IndexFunc(args, func(word string) bool {
			return slices.Contains([]string{"create", "run", "start", "state", "kill", "delete"}, word)
		})
		if i < 0 { // --version, features
			continue
		}
		c.verb, c.id = args[i], args[len(args)-1]
		if c.verb == "kill" { // the signal is the last
			c.id = args[len(args)-2]
		}
		all = append(all, c)
	}
	return all
}

// near is the maximum median difference between the duration of a call in the kernel and
// the duration that the script logs. During the difference bash starts, writes a line and
// exits. Some calls may be longer while other processes use the CPU.
const near = 500 * time.Millisecond

// compareCalls lists differences between the observed calls of a start and those that
// the runtime logged.
func compareCalls(s *record.Start, written []call) (off []string, far []time.Duration) {
	for i := range s.Processes {
		p := &s.Processes[i]
		if p.Kind != record.KindCall {
			continue
		}
		at := slices.IndexFunc(written, func(c call) bool { return c.pid == p.Pid && c.began >= p.Born && c.began <= p.Ended })
		if at < 0 {
			off = append(off, fmt.Sprintf("%s %s, process %d, is not in the runtime's log", p.Name, p.Container, p.Pid))
			continue
		}
		c := written[at]
		// The two clocks were compared once, and the resolution is a microsecond.
		const slack = int64(200 * time.Microsecond)
		if c.verb != p.Verb || c.id != p.Container || c.began < p.Born-slack || c.ended > p.Ended+slack {
			off = append(off, fmt.Sprintf("logged %+v, observed %+v", c, p))
		}
		far = append(far, time.Duration(max(c.began-p.Born, p.Ended-c.ended)))
	}
	for _, c := range written {
		if c.began < s.Began || c.began > s.Ended {
			continue
		}
		if !slices.ContainsFunc(s.Processes, func(p record.StartProcess) bool {
			return p.Kind == record.KindCall && p.Pid == c.pid && c.began >= p.Born && c.began <= p.Ended
		}) {
			off = append(off, fmt.Sprintf("logged %+v, not observed", c))
		}
	}
	if len(far) == 0 {
		off = append(off, "no calls were observed")
	}
	return off, far
}

// The runtime's own log must match the observed calls: verb, container, process, begin
// and end.
func TestObservedCallsMatchTheRuntimesLog(t *testing.T) {
	s := play(t)
	image := s.image(t)
	root := filepath.Join(t.TempDir(), "root")
	must.OK(t, probe.Rootfs(root))
	ungrouped(t, "proof")
	for _, test := range []struct {
		name string
		args []string
		verb string // a required verb
	}{
		{"targets", append([]string{"--rounds", "1", "--warmup", "0"}, s.on("runc="+s.logged(), "docker/logged-runc", "podman/logged-runc",
			"cri+containerd/logged-runc", "cri+cri-o/logged-runc")...), "start"},
		{"docker run", []string{"--rounds", "1", "--warmup", "0", "--", s.docker.Command, "-H", s.docker.Host, "run", "--rm", "--runtime", "logged-runc",
			"--network", "none", image, probe.Name, "--exit", "x"}, "delete"},
		{"podman run", []string{"--rounds", "1", "--warmup", "0", "--", "podman", "--runtime", s.logged(), "run", "--rm", "--network", "none", image, probe.Name, "--exit", "x"}, "start"},
		{"ctr run", []string{"--rounds", "1", "--warmup", "0", "--", s.containerd.Ctr, "-a", s.containerd.Address, "run", "--rm",
			"--runc-binary", s.logged(), "--rootfs", root, "proof", probe.Name, "--exit", "x"}, "delete"},
	} {
		t.Run(test.name, func(t *testing.T) {
			rec, j := watch(t, test.args...)
			written := s.calls(t)
			var far []time.Duration
			verbs, unsure := map[string]bool{}, false
			for i := range rec.Starts {
				x := &rec.Starts[i]
				must.That(t, x.Failure == nil, "%s: %+v", x.Target, x.Failure)
				// A foreground docker run does not print its container's id, and another
				// docker may have started a container at the same time.
				if slices.ContainsFunc(x.Missing, func(m record.Missing) bool { return m.What == "ambiguous" }) {
					unsure = true
					check.That(t, len(x.Processes) <= 1, "%s: %d processes of a start with unknown container", x.Target, len(x.Processes))
					continue
				}
				checkSums(t, x, engineOf(t, j, x.Target))
				off, by := compareCalls(x, written)
				for _, o := range off {
					t.Errorf("%s: %s", x.Target, o)
				}
				far = append(far, by...)
				for _, p := range x.Processes {
					verbs[p.Verb] = true
				}
			}
			if unsure {
				return // with a message
			}
			slices.Sort(far)
			must.That(t, len(far) != 0 && far[len(far)/2] <= near && verbs[test.verb],
				"observed calls are longer than logged by %v; verbs %v", far, verbs)
		})
	}
}
