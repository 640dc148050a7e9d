package cri

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/containerd/containerd/v2/core/leases"
	api "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/containerd"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/engines"
	"github.com/tare-bench/tare/internal/testing/enginetest"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/internal/testing/need"
	"github.com/tare-bench/tare/record"
)

// lying writes an OCI runtime that only starts the pause processes of pods.
func lying(t *testing.T) engines.Option {
	t.Helper()
	runc := need.Tool(t, "runc")
	path := filepath.Join(t.TempDir(), "lying")
	// Only the arguments of containers contain the token.
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
	must.OK(t, os.WriteFile(path, []byte(script), 0o755))
	return engines.Runtime("lying", path)
}

// Both cases use one engine. The second case kills it.
func TestFalseSuccessAndKilledEngineAreFailures(t *testing.T) {
	u := onContainerd(t, engines.V2, lying(t))
	t.Run("start without effect", func(t *testing.T) {
		env := enginetest.Environment(t, 2)
		env.Timeout = 3 * time.Second
		s := opened(t, u, "lying", env)
		enginetest.Must(t, s, subject.RunPod, 2)
		enginetest.Must(t, s, subject.Create, 2)
		for _, sample := range enginetest.Do(t, s, subject.Start, 2) {
			if f := sample.Failure; f == nil || f.Kind != record.FailWorkload || !strings.Contains(f.Detail, "first line is not in the container's log") {
				t.Errorf("%+v", f)
			}
		}
	})
	t.Run("engine is killed", func(t *testing.T) {
		s := must.Get(weigh(t, u, "runc").Open(t.Context(), enginetest.Environment(t, 10)))(t)
		enginetest.Dies(t, s, u.pid, "cri+containerd/runc")
	})
}

func TestExistingNameFailsItsLaneOnly(t *testing.T) {
	onAll(t, func(t *testing.T, u engineUnderTest, handler string) {
		s := opened(t, u, handler, enginetest.Environment(t, 2))
		b := must.Get(s.Prepare(t.Context(), subject.RunPod, enginetest.UpTo(2)))(t)
		first := s.held[s.Held()[0].Name]
		taken, err := s.conn.runtime.RunPodSandbox(t.Context(), &api.RunPodSandboxRequest{Config: first.config, RuntimeHandler: handler})
		must.OK(t, err)
		_, samples, err := b.Start(t.Context())
		must.OK(t, err)
		// CRI-O returns the existing pod for the same request.
		if f := samples[0].Failure; f == nil && first.pod != taken.PodSandboxId ||
			f != nil && (f.Kind != record.FailError || !strings.Contains(f.Command, first.config.Metadata.Name)) {
			t.Errorf("lane 0: %+v", f)
		}
		if f := samples[1].Failure; f != nil {
			t.Errorf("lane 1: %+v", f)
		}
		must.OK(t, s.Discard(t.Context(), enginetest.UpTo(2)))
	})
}

func TestCleanLeavesOtherRuns(t *testing.T) {
	onAll(t, func(t *testing.T, u engineUnderTest, handler string) {
		env, second := enginetest.Environment(t, 2), enginetest.Environment(t, 1)
		second.RunID = env.RunID // two targets of a run
		killed, other := opened(t, u, "", env), opened(t, u, handler, enginetest.Environment(t, 1))
		must.OK(t, opened(t, u, "crun", second).Close(t.Context()))
		enginetest.Must(t, killed, subject.Run, 2)
		enginetest.Must(t, other, subject.Run, 1)
		want := fmt.Sprintf("[pod %s pod %s image %s]", killed.Held()[0].Name, killed.Held()[1].Name, killed.probe.Ref)
		for _, dryRun := range []bool{true, false} {
			left, err := killed.Clean(t.Context(), env.RunID, dryRun)
			if err != nil || fmt.Sprint(left) != want { // the other run needs the pause image
				t.Fatalf("%q, %v, not %s", left, err, want)
			}
		}
		enginetest.Must(t, other, subject.Stop, 1)
		must.OK(t, other.Close(t.Context()))
		if left := u.left(t); len(left) > 0 {
			t.Errorf("left: %q", left)
		}
	})
}

func TestCleanRemovesTheLeaseOfAnInterruptedImport(t *testing.T) {
	u := onContainerd(t, engines.V2)
	c := must.Get(containerd.Connect(t.Context(), u.e.Address, criNamespace))(t)
	defer func() { _ = c.Close() }()
	for _, run := range []string{"killed", "other"} {
		must.Get(c.LeasesService().Create(t.Context(), leases.WithID("tare-"+run+"-image-3")))(t)
	}
	for _, run := range []string{"killed", "other"} {
		for _, dry := range []bool{true, false} {
			check.Equal(t, "found", fmt.Sprint(must.Get(weigh(t, u, "").Clean(t.Context(), run, dry))(t)), "[lease tare-"+run+"-image-3]")
		}
	}
	if left, err := c.LeasesService().List(t.Context()); err != nil || len(left) > 0 {
		t.Errorf("%v, %v", left, err)
	}
}

func TestLateSuccessIsRemoved(t *testing.T) {
	onAll(t, func(t *testing.T, u engineUnderTest, handler string) {
		env := enginetest.Environment(t, 4)
		env.Timeout, env.Workload.Tmpfs = 8*time.Millisecond, 1<<20 // too short for a pod
		s := opened(t, u, handler, env)
		for _, sample := range enginetest.Do(t, s, subject.Run, 4) {
			if sample.Failure == nil || sample.Failure.Kind != record.FailTimeout {
				t.Errorf("%+v", sample.Failure)
			}
		}
		must.OK(t, s.Discard(t.Context(), enginetest.UpTo(4)))
		mounted(t, u, env.RunID, 0)
	})
}

func TestPodOnTheCNINetwork(t *testing.T) {
	onAll(t, func(t *testing.T, u engineUnderTest, handler string) {
		u.e.Network = subject.NetworkBridge
		// Start one pod at a time. A bridge without an address inherits that of its ports,
		// and CRI-O fails if another pod changes it concurrently.
		s := opened(t, u, handler, enginetest.Environment(t, 1))
		check.Equal(t, "network", s.Info().Config["network"], "bridge")
		for _, op := range subject.PodOps {
			enginetest.Must(t, s, op, 1)
		}
	})
}

func TestGVisorRefusesBlockDevices(t *testing.T) {
	for runtime, unsupported := range map[string]bool{"runsc": true, "io.containerd.runsc.v1": true, "crun": false} {
		target := &Target{handler: "x", facts: facts{handlers: map[string]handler{"x": {kind: runtime}}}, socket: "/nowhere"}
		env := enginetest.Environment(t, 1)
		env.Workload.Device = "/dev/x"
		if _, err := target.Open(t.Context(), env); err == nil || errors.Is(err, subject.ErrUnsupported) != unsupported {
			t.Errorf("%s: %v", runtime, err)
		}
	}
}
