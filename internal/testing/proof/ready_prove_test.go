//go:build prove

package proof

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/ready"
	"github.com/tare-bench/tare/internal/subject/setting"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

// Every kind of readiness check must detect a program that prints a line and creates a
// file. The program runs from a user's image on every target. If it exits earlier, the
// failure is reported immediately with its exit code and last output.
func TestEveryReadinessCheckFindsReadyAndExitedPrograms(t *testing.T) {
	p, out := folders(t), t.TempDir()
	must.OK(t, os.Chmod(out, 0o777))
	mark := filepath.Join(out, "ready")
	archive := shell(t)
	bash := func(script string) setting.Workload {
		return setting.Workload{Image: archive, Command: []string{"bash", "-c", strings.ReplaceAll(script, "FILE", "/out/ready")}, Mounts: []setting.Mount{setting.Mount(out + ":/out")},
			HostCommand: []string{"bash", "-c", strings.ReplaceAll(script, "FILE", mark)}}
	}
	works := bash(`trap 'exit 0' TERM; sleep 0.3; echo "ready: 17"; : >FILE; while :; do sleep 0.05; done`)
	fails := bash(`sleep 0.5; echo "no such database" >&2; exit 3`)
	for _, f := range fleet(t) {
		path := "/out/ready"
		if f.Name == "host" {
			path = mark
		}
		t.Run(f.Name+" ready", func(t *testing.T) {
			within := stand(t, p, f.Target, works)
			for _, asked := range []setting.Ready{"log:^ready: [0-9]+$", setting.Ready("file:" + path), setting.Ready("exec:/usr/bin/cat " + path)} {
				_ = os.Remove(mark) // of the previous start
				s := must.Get(ready.Wrap(within, asked, 15*time.Second))(t)
				x := operate(t, s, subject.Run)
				if x.Failure != nil {
					t.Errorf("%s: %+v", asked, *x.Failure)
				}
				took := time.Duration(x.Ready - cmp.Or(x.First, x.Start))
				resolution, _ := x.Resolution()
				if took < sleeps {
					t.Errorf("%s: ready %v after its first instruction: %+v", asked, took, *x)
				}
				t.Logf("%s: ready %v after its first instruction, known to %v of %d polls", asked, took, resolution, x.Polls)
				must.OK(t, s.Discard(t.Context(), []int{0}))
			}
		})
		t.Run(f.Name+" ended", func(t *testing.T) {
			s := must.Get(ready.Wrap(stand(t, p, f.Target, fails), "log:^ready", time.Minute))(t)
			began := time.Now()
			x := operate(t, s, subject.Run)
			fail := x.Failure
			if fail == nil || fail.Kind != record.FailWorkload || !strings.Contains(fail.Output, "no such database") || fail.Exit != 3 && f.Name != "runsc" || time.Since(began) > 30*time.Second {
				t.Fatalf("after %v: %+v", time.Since(began), fail)
			}
			t.Log(fail.Detail)
		})
	}
}
