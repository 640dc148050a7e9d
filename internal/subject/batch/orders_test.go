package batch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/lane"
	"github.com/tare-bench/tare/internal/testing/must"
)

func TestAWorkloadThatDidNotEndAsToldIsBlamedByTheSignalThatItWasSent(t *testing.T) {
	for told, want := range map[unix.Signal]string{
		unix.SIGQUIT: "the workload was killed by signal 9 instead of ending on SIGQUIT",
		35:           "the workload was killed by signal 9 instead of ending on signal 35",
	} {
		killed := &lane.Result{WorkloadKnown: true, Workload: unix.WaitStatus(unix.SIGKILL)}
		if f := EndedAsTold(killed, told); f == nil || f.Detail != want {
			t.Errorf("%+v", f)
		}
	}
}

func TestOrdersThatWereArmedAreLetGoWithoutAnyBeingBegun(t *testing.T) {
	pool, err := lane.NewPool(lane.Options{Lanes: 3})
	must.OK(t, err)
	t.Cleanup(pool.Close)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, lanes := range []int{1, 3} {
		dir := t.TempDir()
		arm := func(seen func(*lane.Result)) *Batch {
			var tasks []Task
			for n := range lanes {
				tasks = append(tasks, Task{Lane: n, Seen: seen, Order: lane.Order{Kind: lane.Exec, Args: []string{"/bin/mkdir", filepath.Join(dir, fmt.Sprint(n))}, Timeout: time.Minute}})
			}
			b, err := PrepareOrders(pool, tasks)
			must.OK(t, err)
			return b
		}
		for range 5 { // what is let go is let go at once
			began := false
			b := arm(func(*lane.Result) { began = true })
			b.Hook(func() { began = true }, func() {})
			if _, samples, err := b.Start(ended); !errors.Is(err, context.Canceled) || samples != nil || began {
				t.Fatalf("%d lanes: %v, %v, begun: %v", lanes, samples, err, began)
			}
		}
		if made, err := os.ReadDir(dir); err != nil || len(made) > 0 {
			t.Errorf("%d lanes: they made %v, %v", lanes, made, err)
		}
		_, samples, err := arm(nil).Start(t.Context())
		if made, dirErr := os.ReadDir(dir); err != nil || dirErr != nil || len(made) != lanes || len(samples) != lanes {
			t.Errorf("%d lanes, released then: made %v, %+v, %v", lanes, made, samples, errors.Join(err, dirErr))
		}
	}
}
