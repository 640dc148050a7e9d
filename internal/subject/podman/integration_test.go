package podman

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/engines"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/record"
)

func TestMain(m *testing.M) { engines.Main(m) }

// at is how the podman of the tests is reached.
func at(p *engines.PodmanEngine) subject.Engine {
	return subject.Engine{Command: p.Command, Address: p.Host}
}

func environment(t *testing.T, runID string, lanes int) subject.Env {
	t.Helper()
	dir := t.TempDir()
	env := subject.Env{
		RunID: runID, Dir: filepath.Join(dir, "disk"), StateDir: filepath.Join(dir, "run"),
		Lanes: lanes, Timeout: time.Minute, Limits: subject.DefaultLimits,
	}
	for _, d := range []string{env.Dir, env.StateDir} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return env
}

// do performs an operation on lanes 0 to n-1.
func do(t *testing.T, s subject.Session, op subject.Op, n int) []record.Sample {
	t.Helper()
	lanes := make([]int, n)
	for i := range lanes {
		lanes[i] = i
	}
	b, err := s.Prepare(t.Context(), op, lanes)
	if err != nil {
		t.Fatal(err)
	}
	released, samples, err := b.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(samples) != n {
		t.Fatalf("%s: %d samples of %d lanes", op, len(samples), n)
	}
	for _, sample := range samples {
		if sample.Start < released {
			t.Errorf("%s: lane %d began before the release", op, sample.Lane)
		}
	}
	return samples
}

func must(t *testing.T, s subject.Session, op subject.Op, n int) []record.Sample {
	t.Helper()
	samples := do(t, s, op, n)
	for _, sample := range samples {
		if f := sample.Failure; f != nil {
			t.Fatalf("%s, lane %d: %+v", op, sample.Lane, *f)
		}
	}
	return samples
}

func nothingIsLeft(t *testing.T, p *engines.PodmanEngine) {
	t.Helper()
	if left := append(p.Containers(t), p.Images(t)...); len(left) > 0 {
		t.Errorf("left on podman: %q", left)
	}
}

// created counts the containers of a run in podman's events.
func created(t *testing.T, p *engines.PodmanEngine, runID string) int {
	t.Helper()
	podman, err := program("podman", at(p))
	if err != nil {
		t.Fatal(err)
	}
	out, err := podman.Run(t.Context(), "events", "--stream=false", "--since", "10m", "--filter", "event=create", "--format", "{{.Name}}")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, name := range strings.Fields(string(out)) {
		if strings.HasPrefix(name, "tare-"+runID+"-") {
			n++
		}
	}
	return n
}

// runtimesOf are those of the tests' podman that a way can use.
func runtimesOf(p *engines.PodmanEngine, via string) []string {
	if via == ViaAPI {
		return []string{"crun"} // the service's own; older versions take no other
	}
	return p.Runtimes
}

func TestContainersGoThroughTheirWholeLifeAndNothingStays(t *testing.T) {
	p := engines.Podman(t)
	for _, via := range []string{ViaCLI, ViaAPI} {
		for _, runtime := range runtimesOf(p, via) {
			for _, lanes := range []int{1, 20} {
				t.Run(fmt.Sprintf("%s/%s/%d", via, runtime, lanes), func(t *testing.T) {
					wholeLife(t, p, via, runtime, lanes)
				})
			}
		}
	}
}

func wholeLife(t *testing.T, p *engines.PodmanEngine, via, runtime string, lanes int) {
	tg, err := New(t.Context(), "podman/"+runtime, runtime, via, at(p))
	if err != nil {
		t.Fatal(err)
	}
	runID := fmt.Sprintf("life%s%s%d", via, runtime, lanes)
	s, err := tg.Open(t.Context(), environment(t, runID, lanes))
	if err != nil {
		t.Fatal(err)
	}
	for _, op := range subject.ContainerOps {
		began := time.Now()
		samples := must(t, s, op, lanes)
		var longest time.Duration
		for _, sample := range samples {
			d, ok := sample.Latency(record.StampReturned)
			if !ok {
				t.Errorf("%s: no latency: %+v", op, sample)
			}
			longest = max(longest, d)
			if op == subject.Start || op == subject.Run {
				guest := tg.Info().Clock == "guest"
				if guest && sample.Guest == 0 || !guest && sample.First == 0 {
					t.Errorf("%s: no stamp of the workload: %+v", op, sample)
				}
			}
		}
		t.Logf("%-6s %8v, with confirmation %8v", op, longest.Round(time.Millisecond), time.Since(began).Round(time.Millisecond))
		if op == subject.Start {
			staff := s.(subject.HelperProcesses).Processes(t.Context())
			monitors := 0
			for _, p := range staff {
				if p.Role == record.RoleMonitor {
					monitors++
				}
			}
			if monitors != lanes {
				t.Errorf("%d monitors of %d containers", monitors, lanes)
			}
		}
	}
	all := make([]int, lanes)
	for i := range all {
		all[i] = i
	}
	if err := s.Discard(t.Context(), all); err != nil {
		t.Error(err)
	}
	if left := p.Containers(t); len(left) > 0 {
		t.Errorf("after Discard: %q", left)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
	nothingIsLeft(t, p)
	if got := created(t, p, runID); got != 2*lanes {
		t.Errorf("podman's events tell of %d containers, tare made %d", got, 2*lanes)
	}
}

func TestRuntimesAreTheDefaultFirstAndThoseThatAreThere(t *testing.T) {
	p := engines.Podman(t)
	got, err := Runtimes(t.Context(), at(p))
	if err != nil {
		t.Fatal(err)
	}
	if len(got) < 2 || got[0] != "crun" || !slices.Contains(got, "runc") || slices.Contains(got, "krun") {
		t.Errorf("%q", got)
	}
}

func TestAnImageThatIsCleanedUpBetweenTwoBatchesIsImportedAgain(t *testing.T) {
	p := engines.Podman(t)
	for _, via := range []string{ViaCLI, ViaAPI} {
		s := open(t, at(p), "crun", via, environment(t, "lives"+via, 2))
		tg, err := New(t.Context(), "podman/crun", "crun", via, at(p))
		if err != nil {
			t.Fatal(err)
		}
		for _, op := range []subject.Op{subject.Run, subject.Create} {
			found, err := tg.(subject.Cleaner).Clean(t.Context(), "dead", false)
			if left := p.Images(t); err != nil || len(found) != 1 || len(left) != 0 {
				t.Fatalf("%s: %q, %v; left %q", via, found, err, left)
			}
			must(t, s, op, 2)
			if err := s.Discard(t.Context(), []int{0, 1}); err != nil {
				t.Error(err)
			}
		}
		closed(t, p, s)
	}
}
