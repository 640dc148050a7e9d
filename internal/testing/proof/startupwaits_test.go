package proof

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/instrument/startup"
	"github.com/tare-bench/tare/internal/instrument/startup/trace"
	"github.com/tare-bench/tare/internal/probe"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/engines"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

// blamed starts a sleeping program twice. It returns the first start and the gap caused by
// the sleep. The gap must be among the longest and at least as long as the sleep. If other
// processes use the CPUs, it may be longer and need not be detected as a timer.
func blamed(t *testing.T, slept time.Duration, timer, in string, args ...string) (*record.Start, record.Gap) {
	t.Helper()
	rec, j := watch(t, append([]string{"--rounds", "2", "--warmup", "0"}, args...)...)
	must.That(t, len(rec.Starts) == 2, "%d starts", len(rec.Starts))
	var gaps []record.Gap
	exact := true
	isIt := func(g record.Gap) bool { return g.In == in }
	for i := range rec.Starts {
		s := &rec.Starts[i]
		found := trace.Gaps(s, engineOf(t, j, s.Target), 3)
		must.That(t, s.Failure == nil && len(found) != 0, "%d gaps: %+v", len(found), s.Failure)
		checkSums(t, s, engineOf(t, j, s.Target))
		for _, g := range found {
			t.Logf("%v in %s, from %q to %q, CPU %v", time.Duration(g.Ended-g.Began), g.In, g.After, g.Before, time.Duration(g.CPU))
		}
		g := found[max(slices.IndexFunc(found, isIt), 0)]
		took := time.Duration(g.Ended - g.Began)
		check.That(t, took >= slept*95/100 && g.CPU >= 0 && time.Duration(g.CPU) <= slept/5 && g.In == in,
			"gap in %q of %v with a CPU time of %v", g.In, took, time.Duration(g.CPU))
		// The gaps of a timer have equal lengths and lie between the same events. If
		// other processes exit late, they may split a gap.
		same := i == 0 || g.After == gaps[0].After && g.Before == gaps[0].Before
		exact = exact && took < slept+slept/500+2*time.Millisecond && same
		gaps = append(gaps, g)
	}
	all := j.Targets[0].Gaps
	first := all[max(slices.IndexFunc(all, func(g startup.Gap) bool { return g.In == in }), 0)]
	check.That(t, first.In == in && (!exact || first.Wait != nil && first.Wait.Timer == timer), "judged as %+v, want a %s", first, timer)
	return &rec.Starts[0], gaps[0]
}

func TestSleepOfARuntimeIsAttributedToIt(t *testing.T) {
	s := play(t)
	blamed(t, time.Second, "1 s timer", "slow-runc create (sleep)",
		s.on("docker/slow-runc")...)
}

func TestSleepOfANetworkPluginIsAttributedToIt(t *testing.T) {
	plugin := filepath.Join(t.TempDir(), "slow-tuning")
	// Only for ADD; a pod is removed without delay.
	script(t, plugin, "#!/bin/sh\nif [ \"$CNI_COMMAND\" = ADD ]; then sleep 1; fi\nexec /usr/lib/cni/tuning\n")
	containerd := engines.Containerd(t, engines.V1, engines.Plugin("slow-tuning", plugin))
	s, _ := blamed(t, time.Second, "1 s timer", "slow-tuning (sleep)",
		"--network", "bridge", "--cri", "containerd=unix://"+containerd.Address, "cri+containerd/runc")
	for _, p := range s.Processes {
		check.That(t, p.Name != "slow-tuning" || p.Kind == record.KindCNI && p.Verb == "ADD" && p.Container == s.Sandbox, "%+v", p)
	}
	left := containerd.Sandboxes(t)
	check.That(t, len(left) == 0, "left behind: %v", left)
}

func TestSleepOfAnEngineIsNotAttributedToTheRuntime(t *testing.T) {
	dir := t.TempDir()
	engine := filepath.Join(dir, "engine")
	script(t, engine, must.Read(t, "testdata/engine.sh"), dir)
	bundle(t, dir)
	ungrouped(t, "proof-engine")
	s, g := blamed(t, time.Second, "1 s timer", "engine (sleep)", "--", engine)
	var verbs []string
	for _, p := range s.Processes {
		if p.Kind != record.KindCall {
			continue
		}
		verbs = append(verbs, p.Verb)
		check.That(t, (p.Verb != "create" || p.Ended <= g.Began) && (p.Verb != "start" || p.Born >= g.Ended),
			"%s is from %d to %d, the gap from %d to %d", p.Name, p.Born, p.Ended, g.Began, g.Ended)
	}
	check.Equal(t, "calls", strings.Join(verbs, " "), "create start delete")
}

// bundle creates a bundle with the probe, based on runc spec.
func bundle(t *testing.T, dir string) {
	t.Helper()
	must.OK(t, probe.Rootfs(filepath.Join(dir, "rootfs")))
	c := exec.Command("runc", "spec")
	c.Dir = dir
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("runc spec: %v\n%s", err, out)
	}
	path := filepath.Join(dir, "config.json")
	text, err := os.ReadFile(path)
	must.OK(t, err)
	var spec map[string]any
	must.OK(t, json.Unmarshal(text, &spec))
	process := spec["process"].(map[string]any)
	process["terminal"], process["args"] = false, []string{probe.Name, "--exit", "x"}
	if text, err = json.Marshal(spec); err == nil {
		err = os.WriteFile(path, text, 0o600)
	}
	must.OK(t, err)
}

// beside runs two tare processes concurrently, as two users would.
func beside(t *testing.T, pair [2][]string) (recs [2]*record.Record, judged [2]*startup.Judgement) {
	t.Helper()
	untraced(t)
	var running [2]*exec.Cmd
	var stored [2]string
	var said [2]bytes.Buffer
	for i, args := range pair {
		dir := t.TempDir()
		stored[i] = filepath.Join(dir, "r.jsonl")
		c := exec.CommandContext(t.Context(), "/proc/self/exe", append([]string{"startup", "-q", "-o", stored[i]}, args...)...)
		c.Env = append(os.Environ(), tareEnv+"=1", "TARE_STATE_DIR="+filepath.Join(dir, "state"), "TARE_DATA_DIR="+filepath.Join(dir, "data"))
		c.Stdout, c.Stderr = &said[i], &said[i]
		must.OK(t, c.Start())
		running[i] = c
	}
	for i, c := range running {
		if err := c.Wait(); err != nil {
			t.Errorf("%v\n%s", err, &said[i])
		}
	}
	for i := range stored {
		var err error
		if recs[i], err = record.Load(stored[i]); err == nil {
			judged[i], err = whole(recs[i])
		}
		must.OK(t, err)
	}
	return recs, judged
}

// overlapping counts the starts of one record that overlap those of another.
func overlapping(a, b *record.Record) (n int) {
	for i := range a.Starts {
		x := &a.Starts[i]
		if slices.ContainsFunc(b.Starts, func(y record.Start) bool { return y.Began < x.Ended && x.Began < y.Ended }) {
			n++
		}
	}
	return n
}

// Containers that one daemon starts concurrently are distinguished by the engine's ids
// and by the id that a command prints.
func TestConcurrentStartsOfADaemonAreSeparate(t *testing.T) {
	s := play(t)
	image := s.image(t)
	detached := []string{"--rounds", "3", "--warmup", "0", "--", s.docker.Command, "-H", s.docker.Host,
		"run", "--detach", "--network", "none", image, probe.Name, "token"}
	target := append([]string{"--rounds", "3", "--warmup", "0"}, s.on("docker/runc")...)
	defer func() {
		for _, id := range s.docker.Containers(t) { // a command's containers are its user's
			say(t, s.docker.Command, "-H", s.docker.Host, "rm", "-f", id)
		}
	}()
	for name, pair := range map[string][2][]string{
		"targets": {target, target}, "commands": {detached, detached}, "target and command": {target, detached},
	} {
		t.Run(name, func(t *testing.T) {
			for range 5 { // a busy machine may run one after the other
				recs, judged := beside(t, pair)
				var all []record.Start
				for i, rec := range recs {
					for k := range rec.Starts {
						x := &rec.Starts[k]
						must.That(t, x.Failure == nil, "%s: %+v", x.Target, x.Failure)
						checkSums(t, x, engineOf(t, judged[i], x.Target))
						checkAlone(t, x)
					}
					all = append(all, rec.Starts...)
				}
				checkApart(t, all)
				if n := overlapping(recs[0], recs[1]); n > 0 {
					t.Logf("%d of %d starts overlapped", n, len(recs[0].Starts))
					return
				}
			}
			t.Skip("not decided: no starts overlapped in five attempts")
		})
	}
}

// checkAlone checks that a docker start has exactly one container and its processes.
func checkAlone(t *testing.T, s *record.Start) {
	t.Helper()
	var calls []string
	count := map[string]int{}
	for _, p := range s.Processes {
		count[p.Kind]++
		if p.Kind == record.KindCall {
			calls = append(calls, p.Verb)
		}
		check.That(t, p.Container == "" || p.Container == s.Containers[0],
			"%s is about %s, the container is %v", p.Name, p.Container, s.Containers)
	}
	check.That(t, len(s.Containers) == 1 && count[record.KindShim] == 1 && count[record.KindWorkload] == 1 && strings.Join(calls, " ") == "create start",
		"%s: containers %v, calls %v, %v", s.Target, s.Containers, calls, count)
	check.That(t, !slices.ContainsFunc(s.Missing, func(m record.Missing) bool { return m.What == "ambiguous" }),
		"%s: %+v", s.Target, s.Missing)
}
