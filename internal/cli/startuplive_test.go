package cli

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/instrument/startup"
	"github.com/tare-bench/tare/internal/instrument/startup/trace"
	"github.com/tare-bench/tare/internal/testing/engines"
	"github.com/tare-bench/tare/record"
)

// Another pod's start stands in the same log, before the run.
func TestTheLogOfARealRunStandsBelowItsDaemonAndItsShim(t *testing.T) {
	d := engines.Containerd(t, engines.V2)
	out := filepath.Join(t.TempDir(), "r.jsonl")
	args := []string{"startup", "cri+containerd/runc", "--cri", d.Address, "--rounds", "1", "--warmup", "1", "-q", "-o", out, "--log", filepath.Join(d.Dir, "log")}
	ends(t, ExitDone, "", args...)
	rec, err := record.Load(out)
	if err != nil || len(rec.Problems) > 0 || rec.Logs == nil {
		t.Fatalf("%v: %v, logs %+v", err, rec.Problems, rec.Logs)
	}
	if n := len(rec.Starts); n != 2 || rec.Starts[1].Method != record.MethodLogs || !slices.Contains(rec.Starts[0].Containers, rec.Starts[1].Sandbox) {
		t.Fatalf("%d starts: %+v", n, rec.Starts)
	}
	j, err := startup.Judge(rec)
	if err != nil || len(j.Targets) != 1 || j.Targets[0].Starts != 1 {
		t.Fatalf("%v: %+v", err, j)
	}
	at := map[string]trace.Row{}
	var above []string
	for _, r := range j.Targets[0].Drawn.Rows {
		at[r.Name] = r
		above = append(above[:r.Depth], r.Name)
		way := strings.Join(above, "/")
		for span, want := range map[string]string{
			"RunPodSandbox": "containerd/RunPodSandbox", "StartContainer called → StartContainer returned": "containerd/StartContainer called → StartContainer returned",
			"shim started → RunPodSandbox returned": "containerd/shim start/containerd-shim-runc-v2/shim started → RunPodSandbox returned",
		} {
			if r.Name == span && way != want {
				t.Errorf("%s stands at %s", span, way)
			}
		}
	}
	// runc is called for the container while the engine says that it starts it.
	if started, run := at["StartContainer"], at["runc start"]; started.Ended == 0 || run.Began < started.Began || run.Ended > started.Ended {
		t.Errorf("StartContainer from %d to %d, runc start from %d to %d", started.Began, started.Ended, run.Began, run.Ended)
	}
}
