package cri

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	api "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/tare-bench/tare/internal/engines"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/batch"
	"github.com/tare-bench/tare/record"
)

// lying is an OCI runtime that does what runc does, but for starting what is
// no pod's own process.
func lying(t *testing.T) engines.Option {
	t.Helper()
	runc, err := exec.LookPath("runc")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "lying")
	// The containers' arguments have the token, the pods' have not.
	script := fmt.Sprintf(`#!/bin/sh
for id; do :; done
root=
last=
for a; do [ "$last" = --root ] && root=$a; last=$a; done
case " $* " in *' start '*)
	bundle=$(%[1]s --root "$root" state "$id" | sed -n 's/.*"bundle": "\(.*\)",/\1/p')
	grep -q '"tare-' "$bundle/config.json" && exit 0;;
esac
exec %[1]s "$@"
`, runc)
	if err := os.WriteFile(path, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return engines.Runtime("lying", path)
}

func TestASuccessWithoutAContainerIsAFailure(t *testing.T) {
	u := onContainerd(t, engines.V1, lying(t))
	s, _ := opened(t, u, "lying", 2)
	s.env.Timeout = 5 * time.Second
	succeed(t, s, subject.RunPod, 2)
	succeed(t, s, subject.Create, 2)
	for _, sample := range do(t, s, subject.Start, 2) {
		if f := sample.Failure; f == nil || f.Kind != record.FailWorkload || !strings.Contains(f.Detail, "first line is not in the container's log") {
			t.Errorf("%+v", f)
		}
	}
	if err := s.Discard(t.Context(), upTo(2)); err != nil {
		t.Fatal(err)
	}
	shut(t, u, s)
}

func TestANameThatExistsFailsItsLaneOnly(t *testing.T) {
	onAll(t, func(t *testing.T, u engineUnderTest) {
		s, _ := opened(t, u, "runc", 2)
		b, err := s.Prepare(t.Context(), subject.RunPod, upTo(2))
		if err != nil {
			t.Fatal(err)
		}
		taken, err := s.conn.runtime.RunPodSandbox(t.Context(), &api.RunPodSandboxRequest{Config: s.held[0].config})
		if err != nil {
			t.Fatal(err)
		}
		_, samples, err := b.Start(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		// CRI-O knows that it is the same and gives it back: no error, no second one.
		if f := samples[0].Failure; f == nil && s.held[0].pod != taken.PodSandboxId ||
			f != nil && (f.Kind != record.FailError || !strings.Contains(f.Command, s.held[0].name)) {
			t.Errorf("lane 0: %+v", f)
		}
		if f := samples[1].Failure; f != nil {
			t.Errorf("lane 1: %+v", f)
		}
		if err := s.Discard(t.Context(), upTo(2)); err != nil {
			t.Fatal(err)
		}
		shut(t, u, s)
	})
}

func TestTwoTargetsOfARunDoNotTakeEachOthersImages(t *testing.T) {
	onAll(t, func(t *testing.T, u engineUnderTest) {
		a, id := opened(t, u, "runc", 1)
		b := openedFor(t, u, "crun", 1, id)
		if err := a.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		succeed(t, b, subject.Run, 1)
		shut(t, u, b)
	})
}

func TestSweepRemovesOneRunOnly(t *testing.T) {
	onAll(t, func(t *testing.T, u engineUnderTest) {
		killed, id := opened(t, u, "runc", 2)
		other, _ := opened(t, u, "runc", 1)
		succeed(t, killed, subject.Run, 2)
		succeed(t, other, subject.Run, 1)
		want := []string{
			"container " + killed.held[0].token, "container " + killed.held[1].token,
			"pod " + killed.held[0].name, "pod " + killed.held[1].name,
		}
		for _, dryRun := range []bool{true, true, false} {
			left, err := killed.Clean(t.Context(), id, dryRun)
			slices.Sort(left)
			if !slices.Equal(left, want) {
				t.Fatalf("%q, %v, not %q", left, err, want)
			}
			// The image that holds pods is still in use.
			if dryRun && err != nil || !dryRun && (err == nil || !strings.Contains(err.Error(), u.pause)) {
				t.Fatalf("dry run %v: %v", dryRun, err)
			}
		}
		succeed(t, other, subject.Stop, 1)
		if err := other.Discard(t.Context(), upTo(1)); err != nil {
			t.Fatal(err)
		}
		left, err := killed.Clean(t.Context(), id, false)
		slices.Sort(left)
		if err != nil || len(left) != 2 || left[1] != "image "+u.pause || !strings.HasPrefix(left[0], "image localhost/tare-probe:") {
			t.Fatalf("%q, %v", left, err)
		}
		if err := killed.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		shut(t, u, other)
	})
}

func TestWhatSucceedsLateIsRemovedToo(t *testing.T) {
	onAll(t, func(t *testing.T, u engineUnderTest) {
		s, _ := opened(t, u, "runc", 4)
		s.env.Timeout = 8 * time.Millisecond // too short for a pod
		for _, sample := range do(t, s, subject.Run, 4) {
			if sample.Failure == nil || sample.Failure.Kind != record.FailTimeout {
				t.Errorf("%+v", sample.Failure)
			}
		}
		if err := s.Discard(t.Context(), upTo(4)); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		s.env.Timeout = 10 * time.Second
		b, err := s.Prepare(ctx, subject.Run, upTo(4))
		if err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(20*time.Millisecond, cancel)
		if _, _, err = b.Start(ctx); err != nil && ctx.Err() == nil {
			t.Fatal(err)
		}
		shut(t, u, s)
	})
}

func TestAnEngineThatDiesFailsItsLanes(t *testing.T) {
	runc, err := exec.LookPath("runc")
	if err != nil {
		t.Fatal(err)
	}
	u := onContainerd(t, engines.V2, engines.Runtime("victim-"+newID(), runc)) // one of its own
	s, _ := opened(t, u, "runc", 10)
	b, err := s.Prepare(t.Context(), subject.Run, upTo(10))
	if err != nil {
		t.Fatal(err)
	}
	calls := b.(*batch.Calls)
	warm := calls.Warm
	calls.Warm = func(ctx context.Context) error { // the last thing before the release
		err := warm(ctx)
		time.AfterFunc(50*time.Millisecond, func() { _ = syscall.Kill(u.pid, syscall.SIGKILL) })
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
	if err := s.Discard(t.Context(), upTo(10)); err == nil {
		t.Error("nothing could be removed, and no error says so")
	}
	if err := s.Close(t.Context()); err == nil || !strings.Contains(err.Error(), "cri+containerd/runc") {
		t.Errorf("%v", err)
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("it took %v", took)
	}
}

func TestAPodMayHaveTheNetworkOfCNI(t *testing.T) {
	onAll(t, func(t *testing.T, u engineUnderTest) {
		u.e.Network = subject.NetworkBridge
		// One at a time: a bridge without an address of its own takes that of its
		// ports, and CRI-O's check finds it changed where another pod comes meanwhile.
		s, _ := opened(t, u, "runc", 1)
		if network := s.Info().Config["network"]; network != "bridge" {
			t.Errorf("network %q", network)
		}
		for _, op := range life {
			succeed(t, s, op, 1)
		}
		shut(t, u, s)
	})
}
