package proof

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/cli"
	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/instrument/app"
	"github.com/tare-bench/tare/internal/instrument/density"
	"github.com/tare-bench/tare/internal/instrument/overhead"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/engines"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/internal/testing/need"
	"github.com/tare-bench/tare/record"
)

// worked is the server's CPU time per request, in ms.
const worked = 2.0

// A server uses 2 ms of CPU time per request on every target. The time must appear in the
// role of the workload, or with gVisor in that of the guest kernel. The number of counted
// requests must not exceed the number of the server's answers.
func TestServiceIsLoadedOnEveryTarget(t *testing.T) {
	targets := []string{"host", "floor", "runc", "crun", "runsc=" + engines.Runsc(), "docker/runc", "podman/crun", "containerd/runc", "cri+containerd/runc", "cri+cri-o/crun"}
	args := append([]string{"app", "--rounds", "1", "-t", "300ms", "--warm", "0", "-c", "1", "--answer-timeout", "20s", "--command", "/probe serve 8080 work=2000"}, fleetFlags(t, targets...)...)
	recs, judged, _ := tare(folders(t), app.Judge, append(args, targets...)...)
	failed, total, _ := judged[0].Result()
	check.That(t, failed == 0 && total == len(targets), "%d of %d windows failed, of %d targets", failed, total, len(targets))
	for _, w := range record.All[app.Window](recs[0]) {
		if w.Sent == nil {
			t.Errorf("%s: %+v", w.Target, w.Failure)
			continue
		}
		answers := float64(w.Sent.Requests - w.Sent.Errors)
		used := 0.0 // ms
		for _, c := range w.Seen.CPU {
			if c.Role == record.RoleWorkload || c.Role == record.RoleSentry {
				used += float64(c.NS) / 1e6
			}
		}
		// One more request may be in flight. The server's system calls may take 0.3 ms
		// per request. The clock of the process includes time stolen by the hypervisor.
		stolen := w.Seen.Steal * float64(w.Seen.Took) / 1e6
		least, most := answers*worked*0.99, (answers+1)*(worked+0.3)+stolen
		if w.Target == "runsc" { // gVisor has no suitable CPU clock, so the server counts pieces of work
			least, most = least/2, most*2
		}
		if used < least || used > most {
			t.Errorf("%s: used %.2f ms for %g answers", w.Target, used, answers)
		}
		t.Logf("%s: %.3f ms for each of %g answers", w.Target, used/answers, answers)
	}
}

// A user's image runs as a neighbour in its own sandbox. Its usage is not counted for the
// service, and its secrets do not appear anywhere.
func TestUserImageAsNeighbour(t *testing.T) {
	docker, archive := engines.Docker(t), shell(t)
	targets := []string{"host", "floor", "runc", "docker/runc"}
	recs, judged, text := tare(folders(t), app.Judge, append([]string{"app", "--rounds", "1", "-t", "300ms", "--warm", "0", "-c", "1", "--answer-timeout", "20s", "--command", "/probe serve 8080 work=2000",
		"--details", "--docker-host", docker.Host, "--neighbour", archive + " bash -c 'while :; do :; done'"}, targets...)...)
	failed, total, _ := judged[0].Result()
	check.That(t, failed == 0 && total == 2*len(targets)-1, "%d of %d windows failed", failed, total)
	if n := recs[0].Header.Neighbours; len(n) != 1 || n[0].Source != "the file app.tar" || len(n[0].Command) != 3 || n[0].User != "1234:5678" {
		t.Errorf("recorded neighbour %+v", n)
	}
	for _, want := range []string{"neighbour: the file app.tar", "an image does not run as a plain process"} {
		check.Contains(t, "report", strings.Join(strings.Fields(text), " "), want)
	}
	for _, w := range record.All[app.Window](recs[0]) {
		if w.Neighbour == "" || w.Sent == nil {
			continue
		}
		if w.Target == "host" || w.BesideCPU == nil || *w.BesideCPU <= 0 {
			t.Errorf("%s: CPU usage of the neighbour is unknown or zero", w.Target)
			continue
		}
		answers := float64(w.Sent.Requests - w.Sent.Errors)
		for _, c := range w.Seen.CPU {
			if most := (answers + 1) * (worked + 0.3) * 1e6; c.Role != record.RoleDaemon && float64(c.NS) > most {
				t.Errorf("%s: role %s used %d ns for %g answers, while the neighbour used %d", w.Target, c.Role, c.NS, answers, *w.BesideCPU)
			}
		}
	}
}

// A command in the sandbox is its load. It sends 128 requests to a server that keeps 256
// KiB of each, so the server grows by 32 MiB.
func TestCommandInTheSandboxIsItsLoad(t *testing.T) {
	script := filepath.Join(t.TempDir(), "ask")
	must.Write(t, script, must.Read(t, "testdata/ask.sh"))
	must.OK(t, os.Chmod(filepath.Dir(script), 0o755))
	recs, judged, _ := tare(folders(t), overhead.Judge, "overhead", "floor", "runc", "--rounds", "1", "--sandboxes", "1", "--hold", "300ms", "--settle", "1s",
		"--image", shell(t), "--command", "/probe serve 8080 leak=262144", "--mount", script+":/ask:ro", "--ready", "tcp:8080", "--load", "exec:/usr/bin/bash /ask")
	for _, target := range []string{"floor", "runc"} {
		f := figure.Find(judged[0].Figures(), "memory-above-idle", "target", target)
		check.That(t, f.Known() && math.Abs(f.Value-32*mib) <= 0.01*32*mib, "%s: %.2f MiB above idle", target, f.Value/mib)
	}
	loads := 0
	for i := range recs[0].Readings {
		if x := &recs[0].Readings[i]; x.Work != nil {
			if loads++; x.Phase != string(overhead.PhaseLoad) || x.Work.Command != "/usr/bin/bash /ask" || x.Failure != nil {
				t.Errorf("%s did %+v, %+v", x.Phase, x.Work, x.Failure)
			}
		}
	}
	check.Equal(t, "loads", loads, 2)
}

// briefly has the flags of a short density run.
var briefly = []string{"density", "--rounds", "1", "--settle", "100ms", "--hold", "100ms", "--recover", "1s"}

// A density run on engines counts every requested sandbox in each step and leaves none
// behind.
func TestDensityCountsAndRemovesEverySandbox(t *testing.T) {
	count(t, "docker/runc", "cri+containerd/runc")
}

func count(t *testing.T, targets ...string) {
	t.Helper()
	args := append(slices.Clone(briefly), "--until", "4", "--step", "2")
	recs, judged, _ := tare(folders(t), density.Judge, slices.Concat(args, fleetFlags(t, targets...), targets)...)
	j := judged[0]
	must.That(t, j.Failed == 0 && len(j.Targets) == len(targets), "%d of %d starts failed on %d targets", j.Failed, j.Total, len(j.Targets))
	for i := range j.Targets {
		x := &j.Targets[i]
		check.That(t, len(x.Ends) == 1 && x.Ends[0].Sandboxes == 4 && x.Ends[0].Why == record.EndAsked && x.All.Of("reached").Value == 4,
			"%s: end %+v, findings %v", x.Info.Name, x.Ends, x.All.Of("reached").Value)
		check.That(t, len(x.Steps) == 2 && x.Steps[0].Sandboxes == 2 && x.Steps[1].Sandboxes == 4, "%s: steps %+v", x.Info.Name, x.Steps)
		for _, f := range x.All {
			check.That(t, f.Quantity != "left" || f.Value == 0, "%s: left behind %v: %+v", x.Info.Name, f.Value, f)
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
		check.That(t, starts[target] == 3+4, "%s: %d starts", target, starts[target]) // of the trial and the round
	}
}

// A failed start ends the run, as requested or with an error. Either way the reason is
// reported and all sandboxes are removed.
func TestDensityEndsWithAFailedStart(t *testing.T) {
	need.Long(t)
	for until, code := range map[string]int{"failure": cli.ExitDone, "8": cli.ExitFailed} {
		t.Run(until, func(t *testing.T) {
			p, out := folders(t), t.TempDir()
			must.OK(t, os.Chmod(out, 0o777))
			// Each start creates a file: three of the trial, three of the round, and one
			// too many.
			script := `: >/out/$RANDOM$RANDOM$RANDOM; set -- /out/*; [ $# -le 6 ] || { echo "no room for $#" >&2; exit 3; }; trap 'exit 0' TERM; echo ready; while :; do sleep 0.05; done`
			name := filepath.Join(p.dir, "r.jsonl")
			args := append(slices.Clone(briefly), "--until", until, "-q", "-o", name, "--image", shell(t), "--mount", out+":/out", "--command", "bash -c '"+strings.ReplaceAll(script, "'", `'\''`)+"'", "--ready", "log:^ready$", "runc")
			got, text, said := invoke(t, args...)
			check.That(t, got == code, "exit %d, want %d\n%s%s", got, code, text, said)
			_, j := stored(p, name, density.Judge)
			must.That(t, len(j.Targets) == 1 && len(j.Targets[0].Ends) == 1, "%+v", j)
			end := j.Targets[0].Ends[0]
			check.That(t, end.Sandboxes == 3 && end.Why == record.EndFailure && strings.Contains(end.Failure.Output, "no room for 7") && end.Removed != 0,
				"%+v: %+v", *end, end.Failure)
		})
	}
}
