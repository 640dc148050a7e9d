package command

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/engines"
	"github.com/tare-bench/tare/judge"
	"github.com/tare-bench/tare/record"
)

// calibrated are the kinds of target for which what a probe holds and uses has
// to be found: the host, the floor, bare runtimes, and sandboxes of engines.
var calibrated = []string{"host", "floor", "runc", "crun", "runsc", "docker/runc", "podman/crun", "containerd/runc", "cri+containerd/runc", "cri+cri-o/crun"}

// What a probe was told to hold and to use is found in every target, and the
// node's change is explained.
func TestWhatAProbeHoldsAndUsesIsFound(t *testing.T) {
	needRunc(t)
	m := withEngines(t)
	if runsc := engines.Runsc(); runsc == "" {
		t.Fatal("there is no runsc: run make engines")
	} else {
		t.Setenv("PATH", os.Getenv("PATH")+":"+runsc[:strings.LastIndex(runsc, "/")])
	}
	place(t)
	args := append([]string{"overhead"}, calibrated...)
	code, out, stderr := tare(t, append(args,
		"--phases", "idle,hold 64MiB,hold 256MiB,hold 1024MiB,spin 0.25cpu", "--sandboxes", "1", "--rounds", "1", "--hold", "2s", "--settle", "1s",
		"--podman-host", m.podman.Host, "--cri", "containerd=unix://"+m.containerd.Address, "--cri", "cri-o=unix://"+m.crio.Socket,
		"-o", "r.jsonl", "--explain")...)
	t.Logf("%s", out)
	if code != ExitDone {
		t.Fatalf("exit %d\n%s", code, stderr)
	}
	rec, err := record.Load("r.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	o, err := judge.OverheadOf(rec)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for _, table := range o.Tables {
		for _, c := range table.Cells {
			if c.Rounds == 0 {
				t.Errorf("%s, %s: no figures: %+v", c.Target, table.Phase, c.Failure)
				continue
			}
			seen[c.Target]++
			checkCell(t, table.Phase, &c)
		}
	}
	for _, name := range calibrated {
		if seen[name] != 5 {
			t.Errorf("%s: %d phases of 5 were weighed", name, seen[name])
		}
	}
	m.nothingLeft(t)
}

const mib = 1 << 20

func checkCell(t *testing.T, phase string, c *judge.OverheadCell) {
	t.Helper()
	l := &c.Ledger
	if !l.Complete {
		t.Errorf("%s, %s: incomplete: %+v", c.Target, phase, l.Problems)
	}
	kind, _, _ := strings.Cut(phase, " ")
	switch off := c.Found - c.Told; kind {
	case "hold":
		if math.Abs(off) > 0.01*c.Told+mib {
			t.Errorf("%s, %s: found %.1f MiB", c.Target, phase, c.Found/mib)
		}
	case "spin":
		// Where others take the CPU the probe cannot use as much as it was told.
		if math.Abs(off) > 0.02*c.Told && !starved(l.NodeCPU) {
			t.Errorf("%s, %s: found %.4f", c.Target, phase, c.Found)
		}
	}
	// The machine of a test is not idle: what it wavered by comes on top.
	if bound := max(0.02*math.Abs(float64(l.Node)), 4*mib) + float64(l.Uncertainty); math.Abs(float64(l.Residual)) > bound {
		t.Errorf("%s, %s: residual %.2f MiB of %.2f, bound %.2f: %+v", c.Target, phase, float64(l.Residual)/mib, float64(l.Node)/mib, bound/mib, l.ResidualBy)
	}
}

// starved tells whether the node's CPUs were taken, so that a share of one was
// not to be had.
func starved(busy float64) bool { return busy > 1.5 }

func TestOverheadsRecordIsReportedInEveryFormat(t *testing.T) {
	needRunc(t)
	place(t)
	code, out, stderr := tare(t, "overhead", "host", "floor", "runc", "--phases", "idle,1M", "--sandboxes", "1,2,3", "--rounds", "2", "--hold", "300ms", "--settle", "300ms", "--interval", "20ms", "--check", "250m,160Mi", "-o", "r.jsonl")
	if code != ExitDone {
		t.Fatalf("exit %d\n%s\n%s", code, out, stderr)
	}
	for _, part := range []string{"runc", "workload", "residual", "kind: RuntimeClass", "one more sandbox", "1M"} {
		if !strings.Contains(out, part) {
			t.Errorf("the report does not say %q", part)
		}
	}
	code, again, stderr := tare(t, "report", "r.jsonl")
	if code != ExitDone || again != out {
		t.Errorf("exit %d; the stored record is reported otherwise\n%s\n%s", code, again, stderr)
	}
	code, text, _ := tare(t, "report", "r.jsonl", "--format", "json")
	if code != ExitDone || !json.Valid([]byte(text)) {
		t.Errorf("exit %d; JSON %.200s", code, text)
	}
	for _, format := range []string{"md", "csv"} {
		if code, text, _ := tare(t, "report", "r.jsonl", "--format", format); code != ExitDone || !strings.Contains(text, "runc") {
			t.Errorf("%s: exit %d\n%.200s", format, code, text)
		}
	}
	rec, err := record.Load("r.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	if n := len(rec.Series); n != 3*2*4 {
		t.Errorf("%d series", n)
	}
	if slices.ContainsFunc(rec.Findings, func(f record.Finding) bool { return f.Code == "cgroup-leaked" }) {
		t.Errorf("findings %+v", rec.Findings)
	}
}

func TestOverheadRefusesWhatItCannotDo(t *testing.T) {
	place(t)
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"an unknown phase":           {[]string{"--phases", "idle,jump"}, "--phases"},
		"counts that fall":           {[]string{"--sandboxes", "5,1"}, "--sandboxes"},
		"an overhead of no quantity": {[]string{"--check", "lots"}, "--check"},
		"a limit of no resource":     {[]string{"--limit", "disk=1"}, "--limit"},
		"a hold shorter than a tick": {[]string{"--hold", "10ms"}, "hold"},
		"a target that is not here":  {[]string{"nosuchruntime"}, "nosuchruntime"},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, stderr := tare(t, append([]string{"overhead", "host"}, test.args...)...)
			if code != ExitUsage || out != "" || !strings.Contains(stderr, test.want) {
				t.Errorf("exit %d, out %q, err %q", code, out, stderr)
			}
		})
	}
}
