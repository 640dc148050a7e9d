package containerd

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/engine/enginetest"
	"github.com/tare-bench/tare/internal/testing/engines"
	"github.com/tare-bench/tare/internal/testing/must"
)

func TestMain(m *testing.M) { engines.Main(m) }

// onBoth runs a test with both containerds.
func onBoth(t *testing.T, test func(t *testing.T, d *engines.ContainerdDaemon)) {
	for name, v := range map[string]engines.ContainerdVersion{"containerd 1.6": engines.V1, "containerd 2.4": engines.V2} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // they share nothing
			test(t, engines.Containerd(t, v))
		})
	}
}

func at(d *engines.ContainerdDaemon) subject.Engine { return subject.Engine{Address: d.Address} }

func weigh(t *testing.T, d *engines.ContainerdDaemon, runtime string) *Target {
	t.Helper()
	got, err := New(t.Context(), "containerd/"+filepath.Base(runtime), runtime, "", at(d))
	must.OK(t, err)
	return got.(*Target)
}

// open opens a runtime of an engine for a run of its own.
func open(t *testing.T, d *engines.ContainerdDaemon, runtime string, env subject.Env) *session {
	t.Helper()
	return enginetest.Open(t, weigh(t, d, runtime), env).(*session)
}

// left is what there is of tare's namespace: containerd lists none that has
// anything in it and is not there.
func left(d *engines.ContainerdDaemon) func(t *testing.T) []string {
	return func(t *testing.T) []string {
		if slices.Contains(d.Namespaces(t), ownNamespace) {
			return slices.Concat([]string{ownNamespace}, d.Containers(t, ownNamespace), d.Images(t, ownNamespace), d.Snapshots(t, ownNamespace))
		}
		return nil
	}
}

func nothing(t *testing.T, d *engines.ContainerdDaemon) {
	t.Helper()
	if left := left(d)(t); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

func TestContainerdConforms(t *testing.T) {
	onBoth(t, func(t *testing.T, d *engines.ContainerdDaemon) {
		of := func(runtime string) enginetest.Case {
			return enginetest.Case{
				Name: filepath.Base(runtime), Target: func(t *testing.T) subject.Target { return weigh(t, d, runtime) },
				Left: left(d), Source: "ctr task metrics", Swept: 4,
			}
		}
		if strings.HasPrefix(d.Version, "1.") {
			enginetest.Conforms(t, of("runc"))
			return
		}
		gvisor := of(engines.Runsc())
		gvisor.Known = true
		enginetest.Conforms(t, of("crun"), gvisor)
	})
}
