package snapshot_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/node/cgroup"
	"github.com/tare-bench/tare/internal/node/snapshot"
	"github.com/tare-bench/tare/internal/probe"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/oci"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/internal/testing/need"
	"github.com/tare-bench/tare/record"
)

func TestWhatAContainerHoldsIsFound(t *testing.T) {
	need.Root(t)
	runtime, err := oci.New(t.Context(), "runc", "")
	must.OK(t, err)
	dir := t.TempDir()
	env := subject.Env{RunID: "snapshott1", Dir: filepath.Join(dir, "runc"), StateDir: filepath.Join(dir, "state"), Lanes: 1, Timeout: time.Minute}
	s, err := runtime.Open(t.Context(), env)
	must.OK(t, err)
	defer func() {
		err := s.Close(context.Background())
		hs, _ := cgroup.Hierarchies()
		if err := errors.Join(err, cgroup.Remove(hs, cgroup.Prefix+env.RunID)); err != nil {
			t.Error(err)
		}
	}()
	meter, err := snapshot.New()
	must.OK(t, err)
	defer meter.Close()
	b, err := s.Prepare(t.Context(), subject.Run, []int{0})
	must.OK(t, err)
	if _, samples, err := b.Start(t.Context()); err != nil || samples[0].Failure != nil {
		t.Fatal(err, samples[0].Failure)
	}
	const held = 256 << 20
	holding, end := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = s.(subject.Executor).Exec(holding, 0, probe.HoldArgs(held, time.Hour))
	}()
	defer func() { end(); <-done }()
	boxes, err := s.(subject.Sandboxed).Sandboxes(t.Context())
	must.OK(t, err)
	var x record.Reading
	var sum int64
	for deadline := time.Now().Add(time.Minute); sum < held && time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		x, sum = meter.Read(t.Context(), boxes, nil, true), 0
		for _, p := range x.Processes {
			if p.Role == record.RoleWorkload {
				sum += p.PSSAnon
			}
		}
	}
	if off := sum - held; off < 0 || off > 1<<20 {
		t.Errorf("the workload has %d bytes, which holds %d: %+v", sum, held, x.Processes)
	}
	var pod []int64
	for deadline := time.Now().Add(time.Minute); len(pod) == 0 && time.Now().Before(deadline); {
		stop := meter.Watch(&x, 50*time.Millisecond)
		time.Sleep(500 * time.Millisecond) // in which it may have no CPU
		pod = stop().Values[record.SeriesPodMemory]
	}
	if len(pod) == 0 || pod[len(pod)-1] < held {
		t.Errorf("its group was charged for %v", pod)
	}
}
