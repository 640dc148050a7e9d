package containerd

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/engines"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/batch"
	"github.com/tare-bench/tare/record"
)

// wrapper is an OCI runtime that does what runc does, but for some verbs.
func wrapper(t *testing.T, cases string) string {
	t.Helper()
	runc, err := exec.LookPath("runc")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "runtime")
	script := fmt.Sprintf("#!/bin/sh\nfor id; do :; done\ncase \" $* \" in\n%s\nesac\nexec %s \"$@\"\n", cases, runc)
	if err := os.WriteFile(path, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestASuccessWithoutAContainerIsAFailure(t *testing.T) {
	d := engines.Containerd(t, engines.V1)
	for _, c := range []struct {
		name, cases string
		op          subject.Op
		kind, says  string
	}{
		{"a start that starts nothing", `*' start '*) exit 0;;`, subject.Start, record.FailWorkload, "first line is not in the container's log"},
		{"a start that kills", `*' start '*) runc --root "$2" kill $id KILL; sleep 0.3; exit 0;;`, subject.Start, record.FailState, "its task is stopped"},
		{"a stop that kills", `*' kill '*) exec runc --root "$2" kill $(echo " $*" | sed 's/.* kill //; s/ [0-9]*$//') KILL;;`, subject.Stop, record.FailWorkload, "killed by signal 9"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, id := open(t, d, wrapper(t, c.cases), 1)
			s.env.Timeout = 3 * time.Second
			for _, op := range []subject.Op{subject.Create, subject.Start, subject.Stop} {
				if op != c.op {
					succeed(t, s, op, 1)
					continue
				}
				f := do(t, s, op, 1)[0].Failure
				if f == nil || f.Kind != c.kind || !strings.Contains(f.Detail, c.says) || !strings.Contains(f.Command, "tare-"+id+"-0-") {
					t.Fatalf("%s: %+v", op, f)
				}
				break
			}
			shut(t, d, s)
		})
	}
}

func TestANameThatExistsFailsItsLaneOnly(t *testing.T) {
	onBoth(t, func(t *testing.T, d *engines.ContainerdDaemon) {
		s, _ := open(t, d, "runc", 2)
		b, err := s.Prepare(t.Context(), subject.Create, upTo(2))
		if err != nil {
			t.Fatal(err)
		}
		taken := s.containers[0].id
		create := exec.Command(d.Ctr, "-a", d.Address, "-n", ownNamespace, "snapshots", "prepare", taken)
		if out, err := create.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		_, samples, err := b.Start(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if f := samples[0].Failure; f == nil || f.Kind != record.FailError || !strings.Contains(f.Detail, "already exists") || !strings.Contains(f.Command, taken) {
			t.Errorf("lane 0: %+v", f)
		}
		if f := samples[1].Failure; f != nil {
			t.Errorf("lane 1: %+v", f)
		}
		if err := s.Discard(t.Context(), upTo(2)); err != nil {
			t.Fatal(err)
		}
		shut(t, d, s)
	})
}

func TestTwoTargetsOfARunDoNotTakeEachOthersImage(t *testing.T) {
	onBoth(t, func(t *testing.T, d *engines.ContainerdDaemon) {
		a, id := open(t, d, "runc", 1)
		b := openFor(t, d, "crun", 1, id)
		if err := a.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		succeed(t, b, subject.Run, 1)
		shut(t, d, b)
	})
}

func TestSweepRemovesOneRunOnly(t *testing.T) {
	onBoth(t, func(t *testing.T, d *engines.ContainerdDaemon) {
		killed, id := open(t, d, "runc", 2)
		other, _ := open(t, d, "runc", 1)
		succeed(t, killed, subject.Run, 2)
		succeed(t, other, subject.Run, 1)
		// The image is in use, so it is not in the list.
		want := fmt.Sprintf("[container %s container %s lease %s namespace tare]", killed.containers[0].id, killed.containers[1].id, killed.image.lease.ID)
		for _, dryRun := range []bool{true, true, false} {
			left, err := killed.Clean(t.Context(), id, dryRun)
			if err != nil || fmt.Sprint(left) != want {
				t.Fatalf("%v, %v; not %s", left, err, want)
			}
		}
		if left := d.Containers(t, ownNamespace); len(left) != 1 || left[0] != other.containers[0].id {
			t.Fatalf("%q", left)
		}
		succeed(t, other, subject.Stop, 1)
		succeed(t, other, subject.Remove, 1)
		if left, err := killed.Clean(t.Context(), id, false); err != nil || len(left) != 2 || !strings.HasPrefix(left[0], "image localhost/tare-probe:") {
			t.Fatalf("%q, %v", left, err)
		}
		succeed(t, other, subject.Run, 1) // its image is held
		shut(t, d, other)
	})
}

func TestWhatSucceedsLateIsRemovedToo(t *testing.T) {
	onBoth(t, func(t *testing.T, d *engines.ContainerdDaemon) {
		s, _ := open(t, d, "runc", 4)
		s.env.Timeout = 15 * time.Millisecond // too short for a create
		for _, sample := range do(t, s, subject.Create, 4) {
			if sample.Failure == nil || sample.Failure.Kind != record.FailTimeout {
				t.Errorf("%+v", sample)
			}
		}
		if err := s.Discard(t.Context(), upTo(4)); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		s.env.Timeout = 10 * time.Second
		b, err := s.Prepare(ctx, subject.Create, upTo(4))
		if err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(15*time.Millisecond, cancel)
		_, samples, err := b.Start(ctx)
		if err != nil && ctx.Err() == nil {
			t.Fatal(err)
		}
		for _, sample := range samples {
			if sample.Failure == nil || sample.Failure.Kind != record.FailInterrupted {
				t.Errorf("%+v", sample.Failure)
			}
		}
		shut(t, d, s)
	})
}

func TestAnEngineThatDiesFailsItsLanes(t *testing.T) {
	runc, err := exec.LookPath("runc")
	if err != nil {
		t.Fatal(err)
	}
	d := engines.Containerd(t, engines.V1, engines.Runtime("victim-"+newID(), runc)) // one of its own
	s, _ := open(t, d, "runc", 10)
	b, err := s.Prepare(t.Context(), subject.Run, upTo(10))
	if err != nil {
		t.Fatal(err)
	}
	calls := b.(*batch.Calls)
	warm := calls.Warm
	calls.Warm = func(ctx context.Context) error { // the last thing before the release
		err := warm(ctx)
		time.AfterFunc(20*time.Millisecond, func() { _ = syscall.Kill(d.Pid, syscall.SIGKILL) })
		return err
	}
	began := time.Now()
	_, samples, err := b.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, sample := range samples {
		if f := sample.Failure; f == nil || f.Kind != record.FailError || f.Command == "" {
			t.Errorf("%+v", f)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := s.Discard(ctx, upTo(10)); err == nil {
		t.Error("nothing could be removed, and no error says so")
	}
	if err := s.Close(ctx); err == nil || !strings.Contains(err.Error(), "containerd/runc") {
		t.Errorf("%v", err)
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("it took %v", took)
	}
	_, err = New(t.Context(), "containerd/runc", "runc", "", at(d))
	t.Log(err)
}
