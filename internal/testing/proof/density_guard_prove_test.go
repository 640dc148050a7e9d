//go:build prove

package proof

import (
	"bufio"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/instrument/density"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/engines"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

// Memory used by a sandbox, memory above the floor, and number of runs.
const (
	densityEach = 16 * mib
	densityRoom = 256 * mib
	densityRuns = 20
)

// meminfo is one reading of the node by an independent observer, in bytes.
type meminfo struct{ available, anonymous int64 }

func lookAtMemory() (m meminfo, err error) {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return m, err
	}
	for s := bufio.NewScanner(strings.NewReader(string(text))); s.Scan(); {
		for name, to := range map[string]*int64{"MemAvailable:": &m.available, "AnonPages:": &m.anonymous} {
			if rest, is := strings.CutPrefix(s.Text(), name); is {
				if _, err := fmt.Sscan(rest, to); err != nil {
					return m, err
				}
				*to *= 1024
			}
		}
	}
	if m.available == 0 || m.anonymous == 0 {
		err = errors.New("/proc/meminfo has no MemAvailable or AnonPages")
	}
	return m, err
}

// watchMemory reads the node a few thousand times per second until it is stopped.
func watchMemory(done <-chan struct{}) (all []meminfo, err error) {
	for {
		select {
		case <-done:
			return all, nil
		case <-time.After(200 * time.Microsecond):
		}
		m, err := lookAtMemory()
		if err != nil {
			return nil, err
		}
		all = append(all, m)
	}
}

// leastAbove returns the minimum of the available memory above the floor, which is
// negative below the floor. own is the minimum as if other processes had used no memory.
// At most the amount sandboxes of the new anonymous memory belongs to the sandboxes. The
// rest belongs to other processes.
func leastAbove(floor, sandboxes int64, before meminfo, looks []meminfo) (least, own int64) {
	least, own = math.MaxInt64, math.MaxInt64
	for _, m := range looks {
		above := m.available - floor
		least, own = min(least, above), min(own, above+max(m.anonymous-before.anonymous-sandboxes, 0))
	}
	return least, own
}

// The machine has 256 MiB above the floor, and each sandbox uses 16 MiB. The run must stop
// above the floor in 20 of 20 runs per target, not counting memory used by others.
func TestRealSandboxesStopBeforeTheFloor(t *testing.T) {
	p := folders(t)
	archive := shell(t)
	docker := engines.Docker(t)
	// The program exits when stopped. It allocates its memory after its first
	// instruction.
	command := fmt.Sprintf(`bash -c "printf -v x %%%d%s; trap 'exit 0' TERM; sleep 1000000 & wait"`, densityEach, "s")
	for target, engine := range map[string][]string{"floor": nil, "runc": nil, "docker/runc": {"--docker-host", docker.Host}} {
		t.Run(target, func(t *testing.T) {
			held := 0
			for n := range densityRuns {
				before := must.Get(lookAtMemory())(t)
				floor := before.available - densityRoom
				var looks []meminfo
				done, seen := make(chan struct{}), make(chan error, 1)
				go func() {
					var err error
					looks, err = watchMemory(done)
					seen <- err
				}()
				args := append([]string{"density", target, "--image", archive, "--command", command, "--keep-free", fmt.Sprint(floor),
					"--rounds", "1", "--hold", "200ms", "--settle", "500ms", "--recover", "1s", "--most", "40"}, engine...)
				_, judged, _ := tare(p, density.Judge, args...)
				close(done)
				must.OK(t, <-seen)
				end := judged[0].Targets[0].Ends[0]
				// Each sandbox uses its memory and a shell, and one more may be starting.
				// The remaining 64 MiB are tare's own.
				least, own := leastAbove(floor, int64(end.Sandboxes+1)*(densityEach+2*mib)+64*mib, before, looks)
				t.Logf("run %d: %d sandboxes, ended by %s; %d readings, minimum %d MiB above the floor, without other usage %d MiB", n+1, end.Sandboxes, end.Why, len(looks), least/mib, own/mib)
				if own >= 0 {
					held++
				} else {
					t.Errorf("run %d: %d MiB below the floor without other usage: %s", n+1, -own/mib, end.Detail)
				}
				check.That(t, end.Why != record.EndFailure && end.Sandboxes != 0, "run %d: %+v", n+1, end)
			}
			t.Logf("%s: %d of %d runs stayed above the floor", target, held, densityRuns)
		})
	}
}

// The same as TestDensityCountsAndRemovesEverySandbox for the other engines.
func TestDensityCountsEverySandboxOfOtherEngines(t *testing.T) {
	count(t, "podman/crun", "containerd/runc", "cri+cri-o/crun")
}
