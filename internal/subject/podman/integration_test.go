package podman

import (
	"slices"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/probe/image"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/engine"
	"github.com/tare-bench/tare/internal/subject/engine/cli"
	"github.com/tare-bench/tare/internal/subject/engine/enginetest"
	"github.com/tare-bench/tare/internal/testing/engines"
	"github.com/tare-bench/tare/internal/testing/must"
)

func TestMain(m *testing.M) { engines.Main(m) }

// at is how the podman of the tests is reached.
func at(p *engines.PodmanEngine) subject.Engine { return subject.Engine{Command: p.Command} }

func weigh(t *testing.T, e subject.Engine, runtime string) subject.Target {
	t.Helper()
	tg, err := New(t.Context(), "podman/"+runtime, runtime, "", e)
	must.OK(t, err)
	return tg
}

func open(t *testing.T, e subject.Engine, runtime string, lanes int) *engine.Session {
	t.Helper()
	return enginetest.Open(t, weigh(t, e, runtime), enginetest.Environment(t, lanes)).(*engine.Session)
}

func left(p *engines.PodmanEngine) func(t *testing.T) []string {
	return func(t *testing.T) []string { return slices.Concat(p.Containers(t), p.Images(t), p.Volumes(t)) }
}

func TestPodmanConforms(t *testing.T) {
	p := engines.Podman(t)
	var cases []enginetest.Case
	for _, runtime := range []string{"crun", "runc"} {
		cases = append(cases, enginetest.Case{
			Name: runtime, Target: func(t *testing.T) subject.Target { return weigh(t, at(p), runtime) },
			Left: left(p), Source: statsSource, GoesOn: true, Swept: 3, Known: runtime == "runc",
		})
	}
	enginetest.Conforms(t, cases...)
}

func TestPodmanTellsOfTheSameContainersAndOfTheirCgroup(t *testing.T) {
	p := engines.Podman(t)
	env := enginetest.Environment(t, 2)
	s := enginetest.Open(t, weigh(t, at(p), "crun"), env)
	for _, op := range subject.ContainerOps {
		enginetest.Must(t, s, op, 2)
	}
	if got := created(t, p, env.RunID); got != 2*2 {
		t.Errorf("podman's events tell of %d containers, tare made %d", got, 2*2)
	}
	all, err := s.(subject.Sandboxed).Sandboxes(t.Context())
	if err != nil || all[0].Group == "" {
		t.Errorf("podman names the cgroup, and it is not told: %+v, %v", all, err)
	}
}

func TestAPlaceIsOnTheCommandLine(t *testing.T) {
	place := engine.Place{Tmpfs: []string{"size=1", "exec"}, Device: "/dev/loop7"}
	i, err := image.Probe()
	must.OK(t, err)
	line := strings.Join((&Target{network: "none"}).commands(cli.Program{}, subject.Env{}, i).Line(subject.Run, "name", place), " ")
	if !strings.Contains(line, " --tmpfs /data:size=1,exec,notmpcopyup --device /dev/loop7:/dev/tare:rwm ") || len(place.Tmpfs) != 2 {
		t.Error(line)
	}
}

// created counts the containers of a run in podman's events.
func created(t *testing.T, p *engines.PodmanEngine, runID string) int {
	t.Helper()
	podman, err := program("podman", at(p))
	must.OK(t, err)
	out, err := podman.Run(t.Context(), "events", "--stream=false", "--since", "10m", "--filter", "event=create", "--format", "{{.Name}}")
	must.OK(t, err)
	n := 0
	for name := range strings.FieldsSeq(string(out)) {
		if strings.HasPrefix(name, "tare-"+runID+"-") {
			n++
		}
	}
	return n
}

func TestRuntimesAreTheDefaultFirstAndThoseThatAreThere(t *testing.T) {
	p := engines.Podman(t)
	got, err := Runtimes(t.Context(), at(p))
	must.OK(t, err)
	if len(got) < 2 || got[0] != "crun" || !slices.Contains(got, "runc") || slices.Contains(got, "krun") {
		t.Errorf("%q", got)
	}
}
