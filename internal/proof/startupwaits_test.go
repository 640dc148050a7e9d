package proof

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/engines"
	"github.com/tare-bench/tare/internal/instrument/startup"
	"github.com/tare-bench/tare/internal/instrument/startup/trace"
	"github.com/tare-bench/tare/internal/probe"
	"github.com/tare-bench/tare/record"
)

// longest is the longest gap of the only start of a record.
func longest(t *testing.T, rec *record.Record, j *startup.Judgement) (*record.Start, record.Gap) {
	t.Helper()
	s := &rec.Starts[0]
	if len(rec.Starts) != 1 || s.Failure != nil {
		t.Fatalf("%d starts: %+v", len(rec.Starts), s.Failure)
	}
	checkSums(t, s, engineOf(t, j, s.Target))
	gaps := trace.Gaps(s, engineOf(t, j, s.Target), 3)
	for _, g := range gaps {
		t.Logf("%v in %s, from %q to %q, CPU %v: %+v", time.Duration(g.Ended-g.Began), g.In, g.After, g.Before, time.Duration(g.CPU), g.Wait)
	}
	if len(gaps) == 0 {
		t.Fatal("no gaps")
	}
	// What the judgement ranks first is the same one.
	if first := j.Targets[0].Gaps[0]; first.Began != gaps[0].Began || first.In != gaps[0].In {
		t.Errorf("judged is %+v", first)
	}
	return s, gaps[0]
}

// heldAgainst says what is off about a gap that is a sleep. Where others have the
// CPUs it may be twice as long, and then need not be known for the timer it was.
func heldAgainst(g record.Gap, slept time.Duration, timer, in string) (off []string) {
	took := time.Duration(g.Ended - g.Began)
	if took < slept*95/100 || took > 2*slept {
		off = append(off, fmt.Sprintf("it took %v", took))
	}
	if g.CPU < 0 || time.Duration(g.CPU) > slept/5 {
		off = append(off, fmt.Sprintf("its CPU time is %v", time.Duration(g.CPU)))
	}
	if took < slept*105/100 && (g.Wait == nil || g.Wait.Timer != timer) {
		off = append(off, fmt.Sprintf("it is taken for %+v, not for a %s", g.Wait, timer))
	}
	if g.In != in {
		off = append(off, fmt.Sprintf("blamed is %q, not %q", g.In, in))
	}
	return off
}

// blamed starts something once that sleeps, and returns the start and its longest
// gap, which has to be the sleep.
func blamed(t *testing.T, slept time.Duration, timer, in string, args ...string) (*record.Start, record.Gap) {
	t.Helper()
	rec, j := watch(t, args...)
	s, g := longest(t, rec, j)
	for _, off := range heldAgainst(g, slept, timer, in) {
		t.Error(off)
	}
	return s, g
}

func TestARuntimeThatSleepsIsBlamedForIt(t *testing.T) {
	s := play(t)
	blamed(t, time.Second, "1 s timer", "slow-runc create (sleep)",
		append([]string{"--rounds", "1", "--warmup", "0"}, s.on("docker/slow-runc")...)...)
}

func TestANetworkPluginThatSleepsIsBlamedForIt(t *testing.T) {
	plugin := filepath.Join(t.TempDir(), "slow-tuning")
	// An ADD only: a pod is removed at full speed.
	script(t, plugin, "#!/bin/sh\nif [ \"$CNI_COMMAND\" = ADD ]; then sleep 1; fi\nexec /usr/lib/cni/tuning\n")
	containerd := engines.Containerd(t, engines.V1, engines.Plugin("slow-tuning", plugin))
	s, _ := blamed(t, time.Second, "1 s timer", "slow-tuning (sleep)",
		"--rounds", "1", "--network", "bridge", "--cri", "containerd=unix://"+containerd.Address, "cri+containerd/runc")
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
	script(t, engine, `#!/bin/sh
set -e
trap 'runc --root %[1]s/state delete -f proof-engine' EXIT
runc --root %[1]s/state create --bundle %[1]s proof-engine
sleep 1
runc --root %[1]s/state start proof-engine
`, dir)
	bundle(t, dir)
	ungrouped(t, "proof-engine")
	s, g := blamed(t, time.Second, "1 s timer", "engine (sleep)", "--rounds", "1", "--", engine)
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
	if err := probe.Rootfs(filepath.Join(dir, "rootfs")); err != nil {
		t.Fatal(err)
	}
	c := exec.Command("runc", "spec")
	c.Dir = dir
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("runc spec: %v\n%s", err, out)
	}
	path := filepath.Join(dir, "config.json")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var spec map[string]any
	if err := json.Unmarshal(text, &spec); err != nil {
		t.Fatal(err)
	}
	process := spec["process"].(map[string]any)
	process["terminal"], process["args"] = false, []string{probe.Name, "--exit", "x"}
	if text, err = json.Marshal(spec); err == nil {
		err = os.WriteFile(path, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}
