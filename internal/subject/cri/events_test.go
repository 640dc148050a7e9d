package cri

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/engines"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/containerd"
)

// lanesCounted is how many lanes the counting tests use: each makes a pod and a
// container in it, and then both at once.
const lanesCounted = 3

func countedLife(t *testing.T, u engineUnderTest) {
	t.Helper()
	s, _ := opened(t, u, "runc", lanesCounted)
	for _, op := range append(slices.Clone(life), subject.Run) {
		succeed(t, s, op, lanesCounted)
	}
	shut(t, u, s)
}

// Containerd keeps the process that holds a pod as a container, too.
func TestContainerdCountsTheSamePodsAndContainers(t *testing.T) {
	for name, v := range map[string]engines.ContainerdVersion{"1.6": engines.V1, "2.4": engines.V2} {
		t.Run(name, func(t *testing.T) {
			u := onContainerd(t, v)
			c, err := containerd.Connect(t.Context(), engines.Containerd(t, v).Address, "k8s.io")
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = c.Close() }()
			events, errs := c.Subscribe(t.Context(), `topic=="/containers/create"`)
			time.Sleep(100 * time.Millisecond) // there is no reply to a subscription
			countedLife(t, u)
			const want = 2 * 2 * lanesCounted
			for n := 0; ; n++ {
				select {
				case <-events:
					continue
				case err := <-errs:
					t.Fatal(err)
				case <-time.After(2 * time.Second):
				}
				if n != want {
					t.Errorf("containerd tells of %d containers, tare made %d", n, want)
				}
				return
			}
		})
	}
}

// CRI-O tells of them in its log.
func TestCRIOCountsTheSamePodsAndContainers(t *testing.T) {
	u, log := onCRIO(t), filepath.Join(engines.CRIO(t).Dir, "log", "crio")
	count := func() (pods, containers int) {
		text, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Count(string(text), "msg=\"Ran pod sandbox "), strings.Count(string(text), "msg=\"Created container ")
	}
	podsBefore, containersBefore := count()
	countedLife(t, u)
	pods, containers := count()
	if pods -= podsBefore; pods != 2*lanesCounted {
		t.Errorf("CRI-O tells of %d pods, tare made %d", pods, 2*lanesCounted)
	}
	if containers -= containersBefore; containers != 2*lanesCounted {
		t.Errorf("CRI-O tells of %d containers, tare made %d", containers, 2*lanesCounted)
	}
}
