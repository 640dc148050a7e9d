package docker

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/moby/moby/client"

	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/engine"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/engines"
	"github.com/tare-bench/tare/internal/testing/enginetest"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

func TestMain(m *testing.M) { engines.Main(m) }

// weigh returns a target on the daemon of an engine.
func weigh(t *testing.T, e subject.Engine, runtime, via string) *Target {
	t.Helper()
	tg := must.Get(New(t.Context(), "docker/"+runtime, runtime, via, e))(t)
	return tg.(*Target)
}

// open opens a session on a target and closes it at the end of the test.
func open(t *testing.T, tg *Target, lanes int) *session {
	t.Helper()
	return enginetest.Open(t, tg, enginetest.Environment(t, lanes)).(*session)
}

// first returns the name of the container on the first lane.
func (s *session) first() string { return s.Held()[0].Name }

func left(d *engines.Dockerd) func(t *testing.T) []string {
	return func(t *testing.T) []string { return slices.Concat(d.Containers(t), d.Images(t), d.Volumes(t)) }
}

func TestDockerConforms(t *testing.T) {
	d := engines.Docker(t)
	e := subject.Engine{Address: d.Host}
	seen := containers(t, weigh(t, e, "", viaAPI))
	var cases []enginetest.Case
	for _, c := range []struct{ via, runtime string }{{viaAPI, "crun"}, {viaCLI, "runc"}, {viaAPI, "runsc"}} {
		cases = append(cases, enginetest.Case{
			Name: c.via + " " + c.runtime, Target: func(t *testing.T) subject.Target { return weigh(t, e, c.runtime, c.via) },
			Left: left(d), Source: "docker stats", GoesOn: true, Swept: 3, Known: c.runtime == "runsc",
		})
	}
	enginetest.Conforms(t, cases...)
	made, kept := seen()
	check.That(t, made >= 2*2*enginetest.Lanes && len(kept) == 0, "%d containers in the events, %q without an end", made, kept)
}

// containers counts the containers of tare in the daemon's events from now on. stop
// returns the count and the IDs of containers without an end event. An end event may be
// missing, because the daemon drops events for a reader that is 100 ms late.
func containers(t *testing.T, tg *Target) (stop func() (made int, kept []string)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	events := tg.Events(ctx, client.EventsListOptions{Filters: client.Filters{}.Add("type", "container").Add("label", engine.RunLabel)})
	made, there, done := 0, map[string]bool{}, make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case m := <-events.Messages:
				switch m.Action {
				case "create":
					made++
					there[m.Actor.ID] = true
				case "destroy":
					delete(there, m.Actor.ID)
				}
			case <-events.Err:
				return
			}
		}
	}()
	return func() (int, []string) {
		cancel()
		<-done
		var kept []string
		deadline := time.Now().Add(time.Minute) // an end event may be late
		for id := range there {
			for gone := false; !gone; time.Sleep(50 * time.Millisecond) {
				_, err := tg.ContainerInspect(t.Context(), id, client.ContainerInspectOptions{})
				if gone = cerrdefs.IsNotFound(err); !gone && time.Now().After(deadline) {
					kept = append(kept, id)
					break
				}
			}
		}
		return made, kept
	}
}

func TestAPIAndCommandCreateTheSameContainer(t *testing.T) {
	d := engines.Docker(t)
	link, node := enginetest.Loop(t, 1<<20)
	made := map[string]string{}
	for _, via := range []string{viaAPI, viaCLI} {
		env := enginetest.Environment(t, 1)
		env.Workload = subject.Workload{Tmpfs: 1 << 20, Device: link}
		s := enginetest.Open(t, weigh(t, subject.Engine{Address: d.Host, Network: subject.NetworkHost}, "crun", via), env).(*session)
		enginetest.Must(t, s, subject.Create, 1)
		found := must.Get(s.ContainerInspect(t.Context(), s.first(), client.ContainerInspectOptions{}))(t)
		c, h := found.Container.Config, found.Container.HostConfig
		h.ConsoleSize, h.RestartPolicy.Name = [2]uint{}, "" // terminal size of the caller; "no"
		made[via] = strings.ReplaceAll(compact(map[string]any{"image": c.Image, "labels": c.Labels, "cmd": c.Cmd, "entrypoint": c.Entrypoint,
			"env": c.Env, "host": h}), s.first(), "ID")
		made[via] = strings.ReplaceAll(made[via], s.env.RunID, "RUN")
		for _, want := range []string{`"Runtime":"crun"`, `"Memory":536870912`, `"NetworkMode":"host"`, `"Tmpfs":{"/data":"nosuid,nodev,mode=1777,size=1048576,exec"}`,
			`"Devices":[{"CgroupPermissions":"rwm","PathInContainer":"/dev/tare","PathOnHost":"` + node + `"}]`} {
			check.That(t, strings.Contains(made[via], want), "%s created %s, which lacks %s", via, made[via], want)
		}
	}
	check.Equal(t, "the container by the API and by the command", made[viaAPI], made[viaCLI])
}

func TestInfoIsComplete(t *testing.T) {
	d := engines.Docker(t)
	e := subject.Engine{Address: d.Host}
	info := weigh(t, e, "crun", viaCLI).Info()
	for name, want := range map[string]string{
		"runtime": "crun", "via": "cli", "storage driver": "overlay2", "log driver": "json-file", "network": "none",
		"cgroup driver": "cgroupfs", "daemon": "on this machine", "address": d.Host,
	} {
		check.Equal(t, name, info.Config[name], want)
	}
	check.That(t, info.Version == d.Version && info.Config["runtime version"] != "" && info.Config["command version"] != "",
		"versions: %q, %v", info.Version, info.Config)
	for _, op := range subject.Ops {
		o, known := info.Operations[string(op)]
		check.That(t, known && (o.Absent == "") != (o.Command == "") && (o.Command == "" || strings.Contains(o.Command, "ID")), "%s: %+v", op, o)
	}
	check.Equal(t, "clock of runsc", weigh(t, e, "runsc", viaAPI).Info().Clock, "guest")
	got := weigh(t, e, "", viaAPI).Info()
	check.That(t, got.Config["runtime"] == "runc" && got.Name == "docker/", "the default: %+v", got)
	check.Equal(t, "runtimes", strings.Join(must.Get(Runtimes(t.Context(), e))(t), " "), "runc crun runsc")
}

func TestDaemonProcessesAreFound(t *testing.T) {
	d := engines.Docker(t)
	s := open(t, weigh(t, subject.Engine{Address: d.Host}, "crun", viaAPI), 2)
	enginetest.Must(t, s, subject.Run, 2)
	found := map[int]record.Role{}
	shims := 0
	for _, p := range s.Processes(t.Context()) {
		found[p.Pid] = p.Role
		if p.Role == record.RoleShim {
			shims++
		}
	}
	check.That(t, found[d.Pid] == record.RoleDaemon && found[d.ContainerdPid] == record.RoleDaemon && shims == 2 && len(found) == 4,
		"dockerd is %d, containerd %d, found %v", d.Pid, d.ContainerdPid, found)
}

func TestPodmanServiceIsMeasuredAsDocker(t *testing.T) {
	p := engines.Podman(t)
	target := func(t *testing.T) subject.Target { return weigh(t, subject.Engine{Address: p.Host}, "", viaAPI) }
	info := target(t).Info()
	check.That(t, info.Config["runtime"] == "crun" && info.Config["daemon"] == "on this machine" && info.Clock == "host" && info.Version == p.Version &&
		slices.ContainsFunc(info.Notes, func(n string) bool { return strings.Contains(n, "Podman's service") }), "%+v", info)
	enginetest.Conforms(t, enginetest.Case{
		Name: "crun", Target: target, Source: "docker stats", GoesOn: true, Swept: 3,
		Left: func(t *testing.T) []string { return slices.Concat(p.Containers(t), p.Images(t), p.Volumes(t)) },
	})
}
