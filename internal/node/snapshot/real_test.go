package snapshot_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/node/cgroup"
	"github.com/tare-bench/tare/internal/node/snapshot"
	"github.com/tare-bench/tare/internal/probe"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/oci"
	"github.com/tare-bench/tare/record"
)

func TestWhatAContainerHoldsIsFound(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Fatal("run the tests as root: containers need it")
	}
	runtime, err := oci.New(t.Context(), "runc", "")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	env := subject.Env{RunID: "snapshott1", Dir: filepath.Join(dir, "runc"), StateDir: filepath.Join(dir, "state"), Lanes: 1, Timeout: time.Minute}
	s, err := runtime.Open(t.Context(), env)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		err := s.Close(context.Background())
		hs, _ := cgroup.Hierarchies()
		if err := errors.Join(err, cgroup.Remove(hs, cgroup.Prefix+env.RunID)); err != nil {
			t.Error(err)
		}
	}()
	meter, err := snapshot.New()
	if err != nil {
		t.Fatal(err)
	}
	defer meter.Close()
	meter.Settle(t.Context(), 3*time.Second)
	before := meter.Read(t.Context(), nil, nil, true)
	b, err := s.Prepare(t.Context(), subject.Run, []int{0})
	if err != nil {
		t.Fatal(err)
	}
	if _, samples, err := b.Start(t.Context()); err != nil || samples[0].Failure != nil {
		t.Fatal(err, samples[0].Failure)
	}
	const held = 256 << 20
	done := make(chan error, 1)
	go func() {
		e, err := s.(subject.Executor).Exec(t.Context(), 0, probe.HoldArgs(held, 5*time.Second))
		if err == nil && e.Exit != 0 {
			err = fmt.Errorf("%+v", e)
		}
		done <- err
	}()
	time.Sleep(2 * time.Second)
	meter.Settle(t.Context(), 2*time.Second)
	boxes, err := s.(subject.Sandboxed).Sandboxes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	x := meter.Read(t.Context(), boxes, nil, true)
	stop := meter.Watch(&x, 50*time.Millisecond)
	time.Sleep(500 * time.Millisecond)
	series := stop()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	var sum int64
	for _, p := range x.Processes {
		t.Logf("%d %s %s (%s) anon %d shmem %d file %d pte %d", p.Pid, p.Name, p.Role, p.Rule, p.PSSAnon, p.PSSShmem, p.PSSFile, p.PageTables)
		if p.Role == record.RoleWorkload {
			sum += p.PSSAnon
		}
	}
	for _, g := range x.Groups {
		t.Logf("%+v %+v", g, g.Memory)
	}
	node := x.Host.Used() - before.Host.Used()
	t.Logf("node %d others %d workload %d; kernel %d; series %d ticks %v", node, x.Host.Others-before.Host.Others, sum, x.Host.Kernel()-before.Host.Kernel(), len(series.Times), series.Values[record.SeriesPodMemory])
	t.Logf("took %v, problems %+v", time.Duration(x.Took), x.Problems)
	if off := sum - held; off < 0 || off > 1<<20 {
		t.Errorf("the workload has %d bytes, which holds %d", sum, held)
	}
}
