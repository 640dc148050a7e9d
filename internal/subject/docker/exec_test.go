package docker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/moby/moby/api/types/container"

	"github.com/tare-bench/tare/internal/engines"
	"github.com/tare-bench/tare/internal/probe/image"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/engine/enginetest"
)

// laden opens a session whose containers have a shell and a volume, and no
// limits but the given ones.
func laden(t *testing.T, tg *Target, lanes int, limits subject.Limits) *session {
	t.Helper()
	env := environ(t, lanes)
	env.Limits = limits
	env.Workload = subject.Workload{Files: enginetest.Shell(t), Volume: filepath.Join(t.TempDir(), "volume")}
	opened, err := tg.Open(t.Context(), env)
	if err != nil {
		t.Fatal(err)
	}
	s := opened.(*session)
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Errorf("close: %v", err)
		}
		if left, _ := os.ReadDir(env.Workload.Volume); len(left) > 0 {
			t.Errorf("left in the volume: %v", left)
		}
	})
	return s
}

func TestACommandRunsInAContainerAsDockerExecDoes(t *testing.T) {
	d := engines.Docker(t)
	for _, c := range []struct{ via, runtime string }{{ViaAPI, "runc"}, {ViaAPI, "crun"}, {ViaCLI, "runc"}, {ViaAPI, "runsc"}} {
		t.Run(c.via+" "+c.runtime, func(t *testing.T) {
			s := laden(t, weigh(t, subject.Engine{Address: d.Host}, c.runtime, c.via), 2, subject.Limits{})
			do(t, s, subject.Run, 2)
			enginetest.Executes(t, s, s.env.Workload.Volume)
			if c.runtime != "runsc" {
				enginetest.IsEnded(t, s)
			} else {
				enginetest.SaysThatItGoesOn(t, s)
			}
		})
	}
	if left := append(d.Containers(t), d.Images(t)...); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

func TestSandboxesAndStatisticsAreThoseOfTheContainersCgroups(t *testing.T) {
	d := engines.Docker(t)
	for _, c := range []struct{ via, runtime string }{{ViaAPI, "runc"}, {ViaAPI, "crun"}, {ViaCLI, "runc"}, {ViaAPI, "runsc"}} {
		t.Run(c.via+" "+c.runtime, func(t *testing.T) {
			s := laden(t, weigh(t, subject.Engine{Address: d.Host}, c.runtime, c.via), 2, subject.Limits{})
			do(t, s, subject.Run, 2)
			enginetest.Sandboxes(t, s, []int{0, 1})
			enginetest.Statistics(t, s, "docker stats")
		})
	}
}

func TestWhatIsNotLimitedIsUnlimitedAndTheCPUQuotaIsInTheCgroup(t *testing.T) {
	d := engines.Docker(t)
	for _, via := range []string{ViaAPI, ViaCLI} {
		for _, limits := range []subject.Limits{{}, {CPU: 0.5}, {Memory: 64 << 20, Pids: 100, CPUShares: 512, CPU: 1.5}} {
			t.Run(fmt.Sprint(via, limits), func(t *testing.T) {
				s := laden(t, weigh(t, subject.Engine{Address: d.Host}, "crun", via), 1, limits)
				do(t, s, subject.Run, 1)
				enginetest.Limited(t, s, limits)
			})
		}
	}
}

func TestAnImageWithCarriedFilesIsFoundByCleanToo(t *testing.T) {
	d := engines.Docker(t)
	tg := weigh(t, subject.Engine{Address: d.Host}, "crun", ViaAPI)
	s := laden(t, tg, 1, subject.Limits{})
	plain, err := image.Probe()
	if err != nil || s.image.Ref == plain.Ref {
		t.Fatalf("the image with files is called %s as the one without: %v", s.image.Ref, err)
	}
	do(t, s, subject.Run, 1)
	for runID, want := range map[string][]string{
		"another":   nil, // the container uses it
		s.env.RunID: {"container " + s.holds[0].name, "image " + s.image.Ref},
	} {
		if found, err := tg.Clean(t.Context(), runID, true); err != nil || !slices.Equal(found, want) {
			t.Errorf("a dry run for %s: %q, %v", runID, found, err)
		}
	}
	if _, err := tg.Clean(t.Context(), s.env.RunID, false); err != nil {
		t.Error(err)
	}
	if left := append(d.Containers(t), d.Images(t)...); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

func TestAVolumeOnADaemonElsewhereIsRefused(t *testing.T) {
	e, _ := serve(t, map[string]string{"GET /containers/json": "[]"})
	env := environ(t, 1)
	env.Workload.Volume = filepath.Join(t.TempDir(), "volume")
	_, err := weigh(t, e, "", ViaAPI).Open(t.Context(), env)
	if !errors.Is(err, subject.ErrUnsupported) || !strings.Contains(err.Error(), "a volume on a daemon elsewhere") {
		t.Error(err)
	}
	if _, err := os.Stat(env.Workload.Volume); !os.IsNotExist(err) {
		t.Errorf("the folder was made: %v", err)
	}
}

func TestMemoryIsShownAsByDockerStats(t *testing.T) {
	for name, c := range map[string]struct {
		stats string
		want  int64
	}{
		"cgroup v1":                  {`{"usage":1000,"stats":{"total_inactive_file":300,"inactive_file":200}}`, 700},
		"cgroup v2":                  {`{"usage":1000,"stats":{"inactive_file":200}}`, 800},
		"more cache than usage":      {`{"usage":1000,"stats":{"total_inactive_file":3000,"inactive_file":2000}}`, 1000},
		"nothing but usage":          {`{"usage":1000}`, 1000},
		"none":                       {`{}`, -1},
		"a number that is no amount": {`{"usage":18446744073709551615}`, -1},
	} {
		var m container.MemoryStats
		if err := json.Unmarshal([]byte(c.stats), &m); err != nil {
			t.Fatal(err)
		}
		if got := shownMemory(m); got != c.want {
			t.Errorf("%s: %d, not %d", name, got, c.want)
		}
	}
}
