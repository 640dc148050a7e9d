package podman

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/probe/image"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/engine"
	"github.com/tare-bench/tare/internal/subject/engine/cli"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/engines"
	"github.com/tare-bench/tare/internal/testing/enginetest"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/internal/testing/need"
	"github.com/tare-bench/tare/record"
)

func TestExistingNameFailsItsLaneOnly(t *testing.T) {
	p := engines.Podman(t)
	s := open(t, at(p), "crun", 2)
	enginetest.Must(t, s, subject.Create, 1)
	var run string
	var n int
	must.Get(fmt.Sscanf(strings.ReplaceAll(s.Held()[0].Name, "-", " "), "tare %s 0 %d", &run, &n))(t)
	podman := must.Get(program("podman", at(p)))(t)
	must.Get(podman.Run(t.Context(), "create", "--pull", "never", "--network", "none", "--name", engine.Name(run, 0, n+1), p.Images(t)[0], "x"))(t)
	samples := enginetest.Do(t, s, subject.Create, 2)
	f := samples[0].Failure
	check.That(t, f != nil && strings.Contains(f.Detail+f.Output, "already in use") && f.Command != "", "%+v", f)
	if f := samples[1].Failure; f != nil {
		t.Errorf("the other lane failed: %+v", *f)
	}
	err := s.Close(t.Context())
	check.That(t, err == nil && len(left(p)(t)) == 0, "%v, left %q", err, left(p)(t)) // the container has a name of the run, so it is removed as well
}

func TestFalseStartIsAFailure(t *testing.T) {
	p := engines.Podman(t)
	runc := need.Tool(t, "runc")
	// The runtime starts the container, kills it immediately, and reports success.
	liar := filepath.Join(t.TempDir(), "liar")
	script := fmt.Sprintf("#!/bin/sh\n%s \"$@\" || exit\ncase \" $* \" in *' start '*) for id; do :; done; %s kill \"$id\" KILL; sleep 0.3;; esac\nexit 0\n", runc, runc)
	must.OK(t, os.WriteFile(liar, []byte(script), 0o755))
	s := open(t, at(p), liar, 2)
	enginetest.Must(t, s, subject.Create, 2)
	for _, sample := range enginetest.Do(t, s, subject.Start, 2) {
		f := sample.Failure
		must.That(t, f != nil && (f.Kind == record.FailState || f.Kind == record.FailExit), "%+v", f)
		t.Logf("%+v", *f)
	}
}

func TestCrunIsMeasuredOnHybridCgroups(t *testing.T) {
	p := engines.Podman(t)
	// The storage is shared, but not the mount namespace of the setup. tare has to create a
	// mount namespace.
	e := subject.Engine{Command: p.Program, Args: p.Args, Env: map[string]string{}}
	for _, v := range p.Env {
		name, value, _ := strings.Cut(v, "=")
		e.Env[name] = value
	}
	delete(e.Env, "CONTAINERS_REGISTRIES_CONF")
	before := mountsOf(t, p.Root)
	s := open(t, e, "crun", 2)
	for _, op := range subject.ContainerOps {
		enginetest.Must(t, s, op, 2)
	}
	check.Equal(t, "the machine's mounts", mountsOf(t, p.Root), before)
}

// mountsOf returns the cgroup mounts and the mounts below a folder. Other mounts may
// change concurrently.
func mountsOf(t *testing.T, dir string) string {
	t.Helper()
	b := must.Get(os.ReadFile("/proc/self/mountinfo"))(t)
	var out []string
	for line := range strings.Lines(string(b)) {
		at := strings.Fields(line)[4]
		if strings.HasPrefix(at, "/sys/fs/cgroup") || strings.HasPrefix(at, dir+"/") && strings.HasSuffix(at, "/merged") {
			out = append(out, line)
		}
	}
	return strings.Join(out, "")
}

func TestUnavailableHasReasonAndAdvice(t *testing.T) {
	p := engines.Podman(t)
	for _, c := range []struct {
		name, runtime  string
		e              subject.Engine
		reason, advice string
	}{
		{"no program", "", subject.Engine{Command: "/nothing/podman"}, "no /nothing/podman on PATH", "apt-get install podman"},
		{"missing runtime", "nosuch", at(p), "(available: crun, runc", "containers.conf"},
		{"missing path of a runtime", "/nothing/runc", at(p), "(available: crun, runc", "containers.conf"},
		{"client of a service", "", subject.Engine{Command: p.Command, Env: map[string]string{"CONTAINER_HOST": p.Host}}, "client of a service", "unset CONTAINER_HOST"},
		{"address", "", subject.Engine{Command: p.Command, Address: p.Host}, "without an address", "as docker: --docker-host " + p.Host},
	} {
		_, err := New(t.Context(), "podman/x", c.runtime, "", c.e)
		u, ok := errors.AsType[*subject.Unavailable](err)
		check.That(t, ok && strings.Contains(u.Reason, c.reason) && strings.Contains(u.Advice, c.advice), "%s: %v", c.name, err)
	}
}

func TestInfoIsComplete(t *testing.T) {
	p := engines.Podman(t)
	info := weigh(t, at(p), "crun").Info()
	for _, key := range []string{"runtime", "runtime path", "runtime version", "storage driver", "cgroup driver", "cgroup version", "network", "via", "log driver"} {
		check.That(t, info.Config[key] != "", "no %s", key)
	}
	check.That(t, info.Version == p.Version && info.Kind == "podman" && info.Name == "podman/crun", "%+v", info)
	for _, op := range subject.Ops {
		o := info.Operations[string(op)]
		isPod := slices.Contains(subject.PodOps, op)
		check.That(t, isPod == (o.Absent != "") && isPod == (o.Command == ""), "%s: %+v", op, o)
	}
}

func TestUnprefixedRemovesTheIDs(t *testing.T) {
	got := unprefixed("298aa3194672 tare-probe/1 a 1\n9e9ba052b17c tare-probe/1 b 2\n", true)
	check.That(t, got == "tare-probe/1 a 1\ntare-probe/1 b 2\n", "%q", got)
}

func TestIncompleteInfoIsRefused(t *testing.T) {
	for _, text := range []string{"", "{}", "[]", `{"version":{"Version":"4.3.1"}}`, "panic: x"} {
		_, err := parseInfo([]byte(text))
		check.That(t, err != nil, "%q was accepted", text)
	}
	i, err := parseInfo([]byte(`{"host":{"ociRuntime":{"name":"crun","version":"crun version 1.8.1\ncommit: x"}},"version":{"Version":"2.2.1"}}`))
	check.That(t, err == nil && i.isCrun() && i.runtimeBanner() == "crun version 1.8.1", "%+v, %v", i, err)
	check.Error(t, i.check("podman/crun"), "too old")
	if i.Host.LogDriver = "none"; i.logDriver() != "k8s-file" {
		t.Error("the log driver none was not replaced")
	}
}

func TestMain(m *testing.M) { engines.Main(m) }

// at returns the settings for the podman of the tests.
func at(p *engines.PodmanEngine) subject.Engine { return subject.Engine{Command: p.Command} }

func weigh(t *testing.T, e subject.Engine, runtime string) subject.Target {
	t.Helper()
	return must.Get(New(t.Context(), "podman/"+runtime, runtime, "", e))(t)
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

func TestPodmanEventsMatchTheContainers(t *testing.T) {
	p := engines.Podman(t)
	env := enginetest.Environment(t, 2)
	s := enginetest.Open(t, weigh(t, at(p), "crun"), env)
	for _, op := range subject.ContainerOps {
		enginetest.Must(t, s, op, 2)
	}
	check.Equal(t, "containers in podman's events", created(t, p, env.RunID), 2*2)
	all, err := s.(subject.Sandboxed).Sandboxes(t.Context())
	check.That(t, err == nil && all[0].Group != "", "no cgroup: %+v, %v", all, err)
}

func TestPlaceIsOnTheCommandLine(t *testing.T) {
	place := engine.Place{Tmpfs: []string{"size=1", "exec"}, Device: engine.Device{Node: "/dev/loop7"}}
	i := must.Get(image.Probe())(t)
	line := strings.Join((&Target{network: "none"}).commands(cli.Program{}, subject.Env{}, i).Line(subject.Run, "name", place), " ")
	check.That(t, strings.Contains(line, " --tmpfs /data:size=1,exec,notmpcopyup --device /dev/loop7:/dev/tare:rwm ") && len(place.Tmpfs) == 2,
		"%v", line)
}

// created counts the containers of a run in the events of podman.
func created(t *testing.T, p *engines.PodmanEngine, runID string) int {
	t.Helper()
	podman := must.Get(program("podman", at(p)))(t)
	out := must.Get(podman.Run(t.Context(), "events", "--stream=false", "--since", "10m", "--filter", "event=create", "--format", "{{.Name}}"))(t)
	n := 0
	for name := range strings.FieldsSeq(string(out)) {
		if strings.HasPrefix(name, "tare-"+runID+"-") {
			n++
		}
	}
	return n
}

func TestRuntimesListsTheDefaultFirstAndOnlyExistingOnes(t *testing.T) {
	p := engines.Podman(t)
	got := must.Get(Runtimes(t.Context(), at(p)))(t)
	check.That(t, len(got) >= 2 && got[0] == "crun" && slices.Contains(got, "runc") && !slices.Contains(got, "krun"), "%q", got)
}
