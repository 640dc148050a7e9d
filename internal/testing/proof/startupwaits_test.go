package proof

import (
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
	"github.com/tare-bench/tare/internal/testing/engines"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

// blamed starts something twice that sleeps, and returns the first start and the gap
// that is the sleep. Each has to have one among its longest, and at least as long; where
// others have the CPUs it may be longer, and then need not be known for the timer it was.
func blamed(t *testing.T, slept time.Duration, timer, in string, args ...string) (*record.Start, record.Gap) {
	t.Helper()
	rec, j := watch(t, append([]string{"--rounds", "2", "--warmup", "0"}, args...)...)
	if len(rec.Starts) != 2 {
		t.Fatalf("%d starts", len(rec.Starts))
	}
	var gaps []record.Gap
	exact := true
	isIt := func(g record.Gap) bool { return g.In == in }
	for i := range rec.Starts {
		s := &rec.Starts[i]
		found := trace.Gaps(s, engineOf(t, j, s.Target), 3)
		if s.Failure != nil || len(found) == 0 {
			t.Fatalf("%d gaps: %+v", len(found), s.Failure)
		}
		checkSums(t, s, engineOf(t, j, s.Target))
		for _, g := range found {
			t.Logf("%v in %s, from %q to %q, CPU %v", time.Duration(g.Ended-g.Began), g.In, g.After, g.Before, time.Duration(g.CPU))
		}
		g := found[max(slices.IndexFunc(found, isIt), 0)]
		took := time.Duration(g.Ended - g.Began)
		if took < slept*95/100 || g.CPU < 0 || time.Duration(g.CPU) > slept/5 || g.In != in {
			t.Errorf("blamed is %q, which took %v and CPU time of %v", g.In, took, time.Duration(g.CPU))
		}
		// As a timer is named: as long, and each time between the same events, which others
		// that end late may part.
		same := i == 0 || g.After == gaps[0].After && g.Before == gaps[0].Before
		exact = exact && took < slept+slept/500+2*time.Millisecond && same
		gaps = append(gaps, g)
	}
	all := j.Targets[0].Gaps
	first := all[max(slices.IndexFunc(all, func(g startup.Gap) bool { return g.In == in }), 0)]
	if first.In != in || exact && (first.Wait == nil || first.Wait.Timer != timer) {
		t.Errorf("judged is %+v, not a %s", first, timer)
	}
	return &rec.Starts[0], gaps[0]
}

func TestARuntimeThatSleepsIsBlamedForIt(t *testing.T) {
	s := play(t)
	blamed(t, time.Second, "1 s timer", "slow-runc create (sleep)",
		s.on("docker/slow-runc")...)
}

func TestANetworkPluginThatSleepsIsBlamedForIt(t *testing.T) {
	plugin := filepath.Join(t.TempDir(), "slow-tuning")
	// An ADD only: a pod is removed at full speed.
	script(t, plugin, "#!/bin/sh\nif [ \"$CNI_COMMAND\" = ADD ]; then sleep 1; fi\nexec /usr/lib/cni/tuning\n")
	containerd := engines.Containerd(t, engines.V1, engines.Plugin("slow-tuning", plugin))
	s, _ := blamed(t, time.Second, "1 s timer", "slow-tuning (sleep)",
		"--network", "bridge", "--cri", "containerd=unix://"+containerd.Address, "cri+containerd/runc")
	for _, p := range s.Processes {
		if p.Name == "slow-tuning" && (p.Kind != record.KindCNI || p.Verb != "ADD" || p.Container != s.Sandbox) {
			t.Errorf("%+v", p)
		}
	}
	if left := containerd.Sandboxes(t); len(left) > 0 {
		t.Errorf("left are %v", left)
	}
}

func TestAnEngineThatSleepsIsBlamedAndNotTheRuntime(t *testing.T) {
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
		if p.Verb == "create" && p.Ended > g.Began || p.Verb == "start" && p.Born < g.Ended {
			t.Errorf("%s is from %d to %d, the gap from %d to %d", p.Name, p.Born, p.Ended, g.Began, g.Ended)
		}
	}
	if got := strings.Join(verbs, " "); got != "create start delete" {
		t.Errorf("calls %q", got)
	}
}

// bundle is one with the probe, as runc spec has it.
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
