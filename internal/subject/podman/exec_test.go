package podman

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/tare-bench/tare/internal/engines"
	"github.com/tare-bench/tare/internal/probe/image"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/engine"
	"github.com/tare-bench/tare/internal/subject/engine/enginetest"
)

// laden opens a session whose containers have a shell and a volume, and no
// limits but the given ones.
func laden(t *testing.T, p *engines.PodmanEngine, runtime, via, runID string, limits subject.Limits) (s subject.Session, volume string) {
	t.Helper()
	env := environment(t, runID, 2)
	env.Limits = limits
	env.Workload = subject.Workload{Files: enginetest.Shell(t), Volume: filepath.Join(t.TempDir(), "volume")}
	s = open(t, at(p), runtime, via, env)
	t.Cleanup(func() {
		closed(t, p, s)
		if left, _ := os.ReadDir(env.Workload.Volume); len(left) > 0 {
			t.Errorf("left in the volume: %v", left)
		}
	})
	return s, env.Workload.Volume
}

// everyWay calls f for every way and runtime that has one.
func everyWay(t *testing.T, p *engines.PodmanEngine, f func(t *testing.T, via, runtime string)) {
	for _, via := range []string{ViaCLI, ViaAPI} {
		for _, runtime := range runtimesOf(p, via) {
			t.Run(via+"/"+runtime, func(t *testing.T) { f(t, via, runtime) })
		}
	}
}

func TestACommandRunsInAContainerAsPodmanExecDoes(t *testing.T) {
	p := engines.Podman(t)
	everyWay(t, p, func(t *testing.T, via, runtime string) {
		s, volume := laden(t, p, runtime, via, "exec"+via+runtime, subject.Limits{})
		must(t, s, subject.Run, 2)
		enginetest.Executes(t, s, volume)
		if runtime != "runsc" {
			enginetest.IsEnded(t, s)
		} else {
			enginetest.SaysThatItGoesOn(t, s)
		}
	})
}

func TestSandboxesAndStatisticsAreThoseOfTheContainersCgroups(t *testing.T) {
	p := engines.Podman(t)
	everyWay(t, p, func(t *testing.T, via, runtime string) {
		s, _ := laden(t, p, runtime, via, "sand"+via+runtime, subject.Limits{})
		must(t, s, subject.Run, 2)
		enginetest.Sandboxes(t, s, []int{0, 1})
		enginetest.Statistics(t, s, statsSource)
		all, err := s.(subject.Sandboxed).Sandboxes(t.Context())
		if err != nil || all[0].Group == "" {
			t.Errorf("podman names the cgroup, and it is not told: %+v, %v", all, err)
		}
	})
}

func TestWhatIsNotLimitedIsUnlimitedAndTheCPUQuotaIsInTheCgroup(t *testing.T) {
	p := engines.Podman(t)
	for i, limits := range []subject.Limits{{}, {CPU: 0.5}, {Memory: 64 << 20, Pids: 100, CPUShares: 512, CPU: 1.5}} {
		everyWay(t, p, func(t *testing.T, via, runtime string) {
			s, _ := laden(t, p, runtime, via, fmt.Sprint("limit", via, runtime, i), limits)
			must(t, s, subject.Run, 1)
			enginetest.Limited(t, s, limits)
		})
	}
}

func TestAnImageWithCarriedFilesIsFoundByCleanToo(t *testing.T) {
	p := engines.Podman(t)
	for _, via := range []string{ViaCLI, ViaAPI} {
		s, _ := laden(t, p, "crun", via, "carry"+via, subject.Limits{})
		must(t, s, subject.Run, 1)
		tg, err := New(t.Context(), "podman/crun", "crun", via, at(p))
		if err != nil {
			t.Fatal(err)
		}
		refs := slices.DeleteFunc(p.Images(t), func(ref string) bool { return !engine.OwnImage(ref) })
		plain, err := image.Probe()
		if err != nil || len(refs) != 1 || refs[0] == plain.Ref {
			t.Fatalf("images %q, %v", refs, err)
		}
		for runID, want := range map[string]int{"another": 0, "carry" + via: 2} {
			if found, err := tg.(subject.Cleaner).Clean(t.Context(), runID, true); err != nil || len(found) != want || want > 0 && found[1] != "image "+refs[0] {
				t.Errorf("%s: a dry run for %s: %q, %v", via, runID, found, err)
			}
		}
		if _, err := tg.(subject.Cleaner).Clean(t.Context(), "carry"+via, false); err != nil {
			t.Error(err)
		}
		nothingIsLeft(t, p)
	}
}

func TestAVolumeOnAServiceElsewhereIsRefused(t *testing.T) {
	if why := elsewhere(os.Getpid()); why == "" {
		t.Error("this test is taken for podman")
	}
	if why := elsewhere(engines.Podman(t).Pid); why != "" {
		t.Errorf("podman's service: %s", why)
	}
	env := environment(t, "afar", 1)
	env.Workload.Volume = filepath.Join(t.TempDir(), "volume")
	_, err := (&Service{name: "podman", afar: "a tunnel"}).Open(t.Context(), env)
	if !errors.Is(err, subject.ErrUnsupported) {
		t.Error(err)
	}
}
