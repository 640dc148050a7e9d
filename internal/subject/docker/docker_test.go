package docker

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/client"

	"github.com/tare-bench/tare/internal/engines"
	"github.com/tare-bench/tare/internal/lane"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/engine"
	"github.com/tare-bench/tare/record"
)

func TestMain(m *testing.M) { engines.Main(m) }

// weigh returns a target on a daemon.
func weigh(t *testing.T, e subject.Engine, runtime, via string) *Target {
	t.Helper()
	tg, err := New(t.Context(), "docker/"+runtime, runtime, via, e)
	if err != nil {
		t.Fatal(err)
	}
	return tg.(*Target)
}

// open returns a session on a target, which is closed with the test.
func open(t *testing.T, tg *Target, lanes int) *session {
	t.Helper()
	s, err := tg.Open(t.Context(), environ(t, lanes))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s.(*session)
}

func environ(t *testing.T, lanes int) subject.Env {
	return subject.Env{RunID: runID(t), Lanes: lanes, Timeout: 30 * time.Second, Limits: subject.DefaultLimits}
}

// runID is a run's id that no other test has.
func runID(t *testing.T) string {
	id := strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' {
			return c
		}
		return -1
	}, strings.ToLower(t.Name()))
	return id[max(0, len(id)-30):]
}

func upTo(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// release performs one operation on lanes.
func release(t *testing.T, s *session, op subject.Op, lanes int) (int64, []record.Sample) {
	t.Helper()
	b, err := s.Prepare(t.Context(), op, upTo(lanes))
	if err != nil {
		t.Fatal(err)
	}
	released, samples, err := b.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return released, samples
}

// do performs one operation on lanes, all of which have to succeed. It returns
// the samples and how far apart the lanes started.
func do(t *testing.T, s *session, op subject.Op, lanes int) ([]record.Sample, time.Duration) {
	t.Helper()
	began := time.Now()
	released, samples := release(t, s, op, lanes)
	var makespan, skew time.Duration
	for _, x := range samples {
		if x.Failure != nil {
			t.Fatalf("%s on lane %d: %+v", op, x.Lane, *x.Failure)
		}
		if x.Start < released || x.Returned <= x.Start {
			t.Errorf("%s: released %d, started %d, returned %d", op, released, x.Start, x.Returned)
		}
		makespan = max(makespan, time.Duration(x.Returned-released))
		skew = max(skew, time.Duration(x.Start-released))
	}
	t.Logf("%-6s %3d lanes: makespan %v, skew %v, and all else %v", op, lanes, makespan, skew, time.Since(began)-makespan)
	return samples, skew
}

func TestALifeIsWeighedOnARealDaemon(t *testing.T) {
	d := engines.Docker(t)
	e := subject.Engine{Address: d.Host}
	seen := events(t, weigh(t, e, "", ViaAPI))
	made := serial.Load()
	life := []subject.Op{subject.Create, subject.Start, subject.Stop, subject.Remove}
	for _, c := range []struct {
		via, runtime string
		lanes        int
		ops          []subject.Op
	}{
		{ViaAPI, "runc", 1, subject.ContainerOps}, {ViaAPI, "runc", 20, life},
		{ViaAPI, "crun", 1, subject.ContainerOps}, {ViaAPI, "crun", 20, []subject.Op{subject.Run}},
		{ViaAPI, "runsc", 1, subject.ContainerOps}, {ViaAPI, "runsc", 20, []subject.Op{subject.Run}},
		{ViaCLI, "runc", 1, subject.ContainerOps}, {ViaCLI, "runc", 20, life},
		{ViaCLI, "crun", 1, subject.ContainerOps}, {ViaCLI, "runsc", 1, subject.ContainerOps},
	} {
		t.Run(fmt.Sprint(c.via, " ", c.runtime, " ", c.lanes), func(t *testing.T) {
			tg := weigh(t, e, c.runtime, c.via)
			s := open(t, tg, c.lanes)
			for _, op := range c.ops {
				samples, _ := do(t, s, op, c.lanes)
				check(t, tg, op, samples)
			}
			if err := s.Discard(t.Context(), upTo(c.lanes)); err != nil {
				t.Fatal(err)
			}
			if left := d.Containers(t); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
	if left := append(d.Containers(t), d.Images(t)...); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	n := int(serial.Load() - made)
	if got := seen(); got["create"] != n || got["destroy"] != n {
		t.Errorf("tare made %d containers, the daemon tells of %v", n, got)
	}
}

// check looks at the stamps that an operation has to have.
func check(t *testing.T, tg *Target, op subject.Op, samples []record.Sample) {
	t.Helper()
	for _, x := range samples {
		starts := op == subject.Start || op == subject.Run
		host := tg.Info().Clock == "host"
		if (x.First != 0) != (starts && host) || (x.Guest != 0) != (starts && !host) {
			t.Errorf("%s: first %d, guest %d", op, x.First, x.Guest)
		}
		if (x.Exited != 0) != (op == subject.Stop && tg.via == ViaAPI && tg.local) {
			t.Errorf("%s: exited %d", op, x.Exited)
		}
		if x.Exited != 0 && (x.Exited < x.Start || x.Exited > lane.Now()) {
			t.Errorf("%s: exited %d before it was told to", op, x.Exited)
		}
	}
}

// events counts what the daemon tells of tare's containers from now on.
func events(t *testing.T, tg *Target) (stop func() map[string]int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	told := tg.Events(ctx, client.EventsListOptions{Filters: client.Filters{}.Add("type", "container").Add("label", engine.RunLabel)})
	seen, done := map[string]int{}, make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case m := <-told.Messages:
				seen[string(m.Action)]++
			case <-told.Err:
				return
			}
		}
	}()
	return func() map[string]int {
		time.Sleep(200 * time.Millisecond) // for the last of them
		cancel()
		<-done
		return seen
	}
}

func TestAHundredRequestsStartTogether(t *testing.T) {
	s := open(t, weigh(t, subject.Engine{Address: engines.Docker(t).Host}, "crun", ViaAPI), 100)
	best := time.Hour
	for range 2 {
		for _, op := range []subject.Op{subject.Create, subject.Remove} {
			_, skew := do(t, s, op, 100)
			best = min(best, skew)
		}
	}
	if best > 10*time.Millisecond {
		t.Errorf("the last of a hundred starts %v after the release", best)
	}
	if n := len(s.owed); n != 0 {
		t.Errorf("%d containers are not known to be gone", n)
	}
}

func TestBothWaysMakeTheSameContainer(t *testing.T) {
	d := engines.Docker(t)
	made := map[string]string{}
	for _, via := range []string{ViaAPI, ViaCLI} {
		s := open(t, weigh(t, subject.Engine{Address: d.Host, Network: subject.NetworkHost}, "crun", via), 1)
		do(t, s, subject.Create, 1)
		found, err := s.ContainerInspect(t.Context(), s.holds[0].name, client.ContainerInspectOptions{})
		if err != nil {
			t.Fatal(err)
		}
		c, h := found.Container.Config, found.Container.HostConfig
		h.ConsoleSize, h.RestartPolicy.Name = [2]uint{}, "" // of the caller's terminal; "no"
		made[via] = strings.ReplaceAll(compact(map[string]any{"image": c.Image, "labels": c.Labels, "cmd": c.Cmd, "entrypoint": c.Entrypoint,
			"env": c.Env, "host": h}), s.holds[0].name, "ID")
		if !strings.Contains(made[via], `"Runtime":"crun"`) || !strings.Contains(made[via], `"Memory":536870912`) || !strings.Contains(made[via], `"NetworkMode":"host"`) {
			t.Errorf("%s made %s", via, made[via])
		}
	}
	if made[ViaAPI] != made[ViaCLI] {
		t.Errorf("the API made\n%s\nthe command\n%s", made[ViaAPI], made[ViaCLI])
	}
}

func TestATargetTellsWhatItIs(t *testing.T) {
	d := engines.Docker(t)
	e := subject.Engine{Address: d.Host}
	info := weigh(t, e, "crun", ViaCLI).Info()
	for name, want := range map[string]string{
		"runtime": "crun", "via": "cli", "storage driver": "overlay2", "log driver": "json-file", "network": "none",
		"cgroup driver": "cgroupfs", "daemon": "on this machine", "address": d.Host,
	} {
		if info.Config[name] != want {
			t.Errorf("%s is %q, not %q", name, info.Config[name], want)
		}
	}
	if info.Version != d.Version || info.Config["runtime version"] == "" || info.Config["command version"] == "" {
		t.Errorf("versions: %q, %v", info.Version, info.Config)
	}
	for _, op := range subject.Ops {
		o, known := info.Operations[string(op)]
		if !known || (o.Absent == "") == (o.Command == "") || o.Command != "" && !strings.Contains(o.Command, "ID") {
			t.Errorf("%s: %+v", op, o)
		}
	}
	if got := weigh(t, e, "runsc", ViaAPI).Info().Clock; got != "guest" {
		t.Errorf("the clock of runsc is said to be the %s's", got)
	}
	if got := weigh(t, e, "", ViaAPI).Info(); got.Config["runtime"] != "runc" || got.Name != "docker/" {
		t.Errorf("the default: %+v", got)
	}
	names, err := Runtimes(t.Context(), e)
	if err != nil || strings.Join(names, " ") != "runc crun runsc" {
		t.Errorf("runtimes %v, %v", names, err)
	}
}

func TestADaemonsOwnProcessesAreFound(t *testing.T) {
	d := engines.Docker(t)
	s := open(t, weigh(t, subject.Engine{Address: d.Host}, "crun", ViaAPI), 2)
	do(t, s, subject.Run, 2)
	found := map[int]record.Role{}
	shims := 0
	for _, p := range s.Processes(t.Context()) {
		found[p.Pid] = p.Role
		if p.Role == record.RoleShim {
			shims++
		}
	}
	if found[d.Pid] != record.RoleDaemon || found[d.ContainerdPid] != record.RoleDaemon || shims != 2 || len(found) != 4 {
		t.Errorf("dockerd is %d, containerd %d, found %v", d.Pid, d.ContainerdPid, found)
	}
}
