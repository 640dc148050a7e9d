package find

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/node/cgroup"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/setting"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/enginetest"
	"github.com/tare-bench/tare/internal/testing/fake"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/internal/testing/need"
	"github.com/tare-bench/tare/record"
)

// withEngines replaces the engines for a test: "ship" has two access methods and two
// runtimes, and "dead" is unavailable.
func withEngines(t *testing.T) {
	old := engines
	t.Cleanup(func() { engines = old })
	make := func(_ context.Context, name, runtime, way string, e subject.Engine) (subject.Target, error) {
		if runtime != "runc" && runtime != "crun" {
			return nil, &subject.Unavailable{Name: name, Reason: "no runtime " + runtime}
		}
		return &fake.Target{Name: fmt.Sprintf("%s by %s at %s", name, way, e.Address)}, nil
	}
	engines = []engine{
		{name: "ship", ways: []string{"api", "cli"}, new: make, runtimes: func(context.Context, subject.Engine) ([]string, error) { return []string{"runc", "crun"}, nil }},
		{name: "cri+ferry", ways: []string{"api", "cli"}, new: make, runtimes: func(context.Context, subject.Engine) ([]string, error) { return []string{"crun"}, nil }},
		{name: "cri+wreck", ways: []string{"api", "cli"}, new: make, runtimes: func(context.Context, subject.Engine) ([]string, error) { return nil, errors.New("no answer") }},
		{name: "cri+boat", new: make, runtimes: func(context.Context, subject.Engine) ([]string, error) { return []string{"runc"}, nil }},
		{name: "dead", new: func(_ context.Context, name, _, _ string, _ subject.Engine) (subject.Target, error) {
			return nil, &subject.Unavailable{Name: name, Reason: "no answer"}
		}, runtimes: func(context.Context, subject.Engine) ([]string, error) { return nil, errors.New("no answer") }},
	}
}

func named(t *testing.T, s Settings, names ...string) string {
	t.Helper()
	found, err := Named(t.Context(), names, s)
	if err != nil {
		return "error: " + err.Error()
	}
	var out []string
	for _, f := range found {
		if f.Target == nil {
			out = append(out, f.Name+" is not here: "+f.Why.Reason)
			continue
		}
		out = append(out, f.Target.Info().Name)
	}
	return strings.Join(out, "; ")
}

func TestEngineNamesAreComplete(t *testing.T) {
	var names []string
	for _, e := range engines {
		names = append(names, e.name)
	}
	check.Equal(t, "engines of the settings", names, setting.EngineNames)
}

func TestNamesOfTargetsBehindEngines(t *testing.T) {
	withEngines(t)
	s := Settings{Engine: func(name string) subject.Engine { return subject.Engine{Address: "A(" + name + ")"} }}
	both := s
	both.Via = []string{"api", "cli"}
	cli := s
	cli.Via = []string{"cli"}
	for _, c := range []struct {
		what     string
		settings Settings
		names    string
		want     string
	}{
		{"default access", s, "ship/crun", "ship/crun by api at A(ship/crun)"},
		{"other access by name", s, "ship+cli/crun", "ship+cli/crun by cli at A(ship+cli/crun)"},
		{"default access by name", s, "ship+api/crun", "ship+api/crun by api at A(ship+api/crun)"},
		{"the default runtime", s, "ship", "ship/runc by api at A(ship/runc)"},
		{"both kinds of access", both, "ship/crun", "ship/crun by api at A(ship/crun); ship+cli/crun by cli at A(ship+cli/crun)"},
		{"other access only", cli, "ship", "ship+cli/runc by cli at A(ship+cli/runc)"},
		{"explicit access is kept", cli, "ship+api/runc", "ship+api/runc by api at A(ship+api/runc)"},
		{"engine with one access", both, "cri+boat", "cri+boat/runc by  at A(cri+boat/runc)"},
		{"CRI endpoint by crictl", s, "cri+ferry+cli/runc", "cri+ferry+cli/runc by cli at A(cri+ferry+cli/runc)"},
		{"crictl on every CRI endpoint", s, "cri+cli/runc", "cri+ferry+cli/runc by cli at A(cri+ferry+cli/runc)"},
		{"crictl with default runtimes", s, "cri+cli", "cri+ferry+cli/crun by cli at A(cri+ferry+cli/crun)"},
		{"missing runtime", s, "ship/kata", "ship/kata is not here: no runtime kata"},
		{"missing engine", s, "dead/runc ship/runc", "dead/runc is not here: no answer; ship/runc by api at A(ship/runc)"},
		{"missing engine, default runtime", s, "dead", "dead is not here: no answer"},
	} {
		check.Equal(t, c.what, named(t, c.settings, strings.Fields(c.names)...), c.want)
	}
	for what, c := range map[string][2]string{
		"unknown engine":      {"boot/runc", `unknown engine "boot"`},
		"no runtime":          {"ship/", "no runtime after the slash"},
		"duplicate target":    {"ship ship/runc", "duplicate target"},
		"path with an engine": {"ship/runc=/usr/bin/runc", "a runtime behind an engine has no path"},
		"two slashes":         {"ship/a/b", "a name has 1 to 60"},
		"unknown access":      {"ship+grpc/runc", `unknown engine "ship+grpc"`},
	} {
		check.Contains(t, what, named(t, s, strings.Fields(c[0])...), c[1])
	}
}

func TestAllListsEveryRuntimeOfEveryEngine(t *testing.T) {
	withEngines(t)
	var got []string
	for _, f := range All(t.Context(), Settings{Via: []string{"cli"}}, false) {
		if IsEngine(f.Name) {
			got = append(got, f.Name)
		}
	}
	check.Equal(t, "found", strings.Join(got, " "), "ship+cli/runc ship+cli/crun cri+ferry+cli/crun cri+wreck cri+boat/runc dead")
}

// TestRuntimesOfTheMachine runs the real runtimes with one and with fifty lanes. It then
// checks for leftovers. youki and runsc belong to other tiers.
func TestRuntimesOfTheMachine(t *testing.T) {
	need.Root(t)
	for _, f := range All(context.Background(), Settings{}, false) {
		if IsEngine(f.Name) {
			continue // tests start their own engines
		}
		t.Run(f.Name, func(t *testing.T) {
			need.Runtime(t, f.Name)
			must.That(t, f.Target != nil, "%v", f.Why)
			for _, lanes := range []struct {
				name string
				n    int
			}{{"one lane", 1}, {"fifty lanes", 50}} {
				t.Run(lanes.name, func(t *testing.T) { lifecycle(t, f.Target, lanes.n) })
			}
		})
	}
}

func lifecycle(t *testing.T, tg subject.Target, lanes int) {
	ctx, info, all := t.Context(), tg.Info(), enginetest.UpTo(lanes)
	env, _ := enginetest.Workspace(t, info.Name, lanes)
	env.Limits = subject.DefaultLimits
	t.Cleanup(func() { leftOfTarget(t, env.RunID) })
	s := enginetest.Open(t, tg, env)
	for _, op := range subject.ContainerOps {
		if info.Operations[string(op)].Absent != "" {
			must.OK(t, s.Discard(ctx, all))
			continue
		}
		batch(t, s, info, op, lanes)
	}
	// A round with run ends with a discard of running containers.
	must.OK(t, s.Discard(ctx, all))
}

func batch(t *testing.T, s subject.Session, info record.Target, op subject.Op, lanes int) {
	t.Helper()
	samples := enginetest.Must(t, s, op, lanes)
	def := info.Operations[string(op)]
	for i := range samples {
		sm := &samples[i]
		d, ok := sm.Latency(def.Done)
		check.That(t, ok && d > 0, "%s on lane %d: %v, output %q", op, sm.Lane, d, def.Done)
		if op != subject.Start && op != subject.Run {
			continue
		}
		// The report of the workload proves that it ran. With the host clock the report
		// has a stamp, which is earlier than its arrival.
		check.That(t, sm.Seen != 0 && (info.Clock == "host") == (sm.First != 0) && sm.First <= sm.Seen,
			"%s on lane %d: first %d, seen %d, on a %s clock", op, sm.Lane, sm.First, sm.Seen, info.Clock)
	}
	alone := lanes == 1 && info.Kind == "oci" && op != subject.Remove
	check.That(t, alone == (samples[0].Running != 0), "%s: state was stamped %v with %d lanes", op, samples[0].Running != 0, lanes)
}

// leftOfTarget returns the cgroups of a target. The cgroup of the run still exists.
func leftOfTarget(t *testing.T, id string) {
	t.Helper()
	hs := must.Get(cgroup.Hierarchies())(t)
	for _, h := range hs {
		groups, _ := filepath.Glob(filepath.Join(h.Mount, cgroup.Prefix+id, "*"))
		for _, g := range groups {
			info, err := os.Stat(g)
			check.That(t, err != nil || !info.IsDir(), "leftovers: %s", g)
		}
	}
}
