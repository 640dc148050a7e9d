package proof

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/cli"
	"github.com/tare-bench/tare/internal/instrument/density"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

// briefly are the flags of a density that is over soon.
var briefly = []string{"density", "--rounds", "1", "--settle", "100ms", "--hold", "100ms", "--recover", "1s"}

// A density on engines counts every sandbox that it was asked for, in each step, and
// nothing of them stays.
func TestADensityCountsEverySandboxOfEnginesAndLeavesNone(t *testing.T) {
	count(t, "docker/runc", "cri+containerd/runc")
}

func count(t *testing.T, targets ...string) {
	t.Helper()
	args := append(slices.Clone(briefly), "--until", "4", "--step", "2")
	recs, judged, _ := tare(folders(t), density.Judge, slices.Concat(args, fleetFlags(t, targets...), targets)...)
	j := judged[0]
	if j.Failed > 0 || len(j.Targets) != len(targets) {
		t.Fatalf("%d of %d starts failed on %d targets", j.Failed, j.Total, len(j.Targets))
	}
	for i := range j.Targets {
		x := &j.Targets[i]
		if len(x.Ends) != 1 || x.Ends[0].Sandboxes != 4 || x.Ends[0].Why != record.EndAsked || x.Count.Value != 4 {
			t.Errorf("%s: it ended %+v with %v", x.Info.Name, x.Ends, x.Count.Value)
		}
		if len(x.Steps) != 2 || x.Steps[0].Sandboxes != 2 || x.Steps[1].Sandboxes != 4 {
			t.Errorf("%s: its steps are %+v", x.Info.Name, x.Steps)
		}
		for _, f := range x.Left {
			if f.Value != 0 {
				t.Errorf("%s: %v are left: %+v", x.Info.Name, f.Value, f)
			}
		}
	}
	starts := map[string]int{}
	for i := range recs[0].Batches {
		for _, s := range recs[0].Batches[i].Samples {
			if s.Failure == nil {
				starts[recs[0].Batches[i].Target]++
			}
		}
	}
	for _, target := range targets {
		if starts[target] != 3+4 { // of the trial, and of the round
			t.Errorf("%s: %d starts", target, starts[target])
		}
	}
}

// A start that fails is the end that was asked for, or else an error; either way it is
// told why, and all that were there are removed.
func TestADensityEndsByAProgramThatFails(t *testing.T) {
	for until, code := range map[string]int{"failure": cli.ExitDone, "8": cli.ExitFailed} {
		t.Run(until, func(t *testing.T) {
			p, out := folders(t), t.TempDir()
			must.OK(t, os.Chmod(out, 0o777))
			// Each leaves a file: three of the trial, three of the round, and one too many.
			script := `: >/out/$RANDOM$RANDOM$RANDOM; set -- /out/*; [ $# -le 6 ] || { echo "no room for $#" >&2; exit 3; }; trap 'exit 0' TERM; echo ready; while :; do sleep 0.05; done`
			name := filepath.Join(p.dir, "r.jsonl")
			args := append(slices.Clone(briefly), "--until", until, "-q", "-o", name, "--image", shell(t), "--mount", out+":/out", "--command", "bash -c '"+strings.ReplaceAll(script, "'", `'\''`)+"'", "--ready", "log:^ready$", "runc")
			if got, text, said := invoke(t, args...); got != code {
				t.Errorf("exit %d, want %d\n%s%s", got, code, text, said)
			}
			_, j := stored(p, name, density.Judge)
			if len(j.Targets) != 1 || len(j.Targets[0].Ends) != 1 {
				t.Fatalf("%+v", j)
			}
			end := j.Targets[0].Ends[0]
			if end.Sandboxes != 3 || end.Why != record.EndFailure || !strings.Contains(end.Failure.Output, "no room for 7") || end.Removed == 0 {
				t.Errorf("%+v: %+v", *end, end.Failure)
			}
		})
	}
}
