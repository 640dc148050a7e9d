package overhead

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/option"
	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/golden"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

// grouped adds the cgroups that systemd-cgtop shows to a reading, including the parent of
// Kata's overhead group. It also adds counters of the node.
func grouped(r *record.Reading) {
	for i := range r.Groups {
		g := &r.Groups[i]
		g.Controllers = append(g.Controllers, "cpuacct", "blkio", "pids")
		g.Pids, g.ReadBytes, g.WriteBytes = 7, r.Time/1000, 2*(r.Time/1000)
	}
	r.Around = []record.Group{{Path: "/kata_overhead", Charge: record.ChargeShared, Lane: -1, Controllers: []string{"memory", "pids"}, Pids: 7,
		Memory: &record.GroupMemory{Usage: 65 * mi, Anon: mi / 4, File: 61 * mi, Kernel: 3 * mi}}}
	r.Host.OOMKills, r.Host.Tasks, r.Host.IOWait, r.Host.Load1 = new(int64(3)), 300, r.Time/2, 30.93
	switch r.Moment {
	case record.MomentAfter:
		*r.Host.OOMKills, r.Host.Tasks = 5, 302
		r.LeftBeside = &record.LeftBeside{Processes: []string{"containerd-shim-kata-v2 (4711)"}, Mounts: []string{}}
		r.Around[0].Memory.Usage = 1638 * mi
	case record.MomentBefore:
	default:
		r.Around[0].Memory.Usage = 175 * mi
	}
}

// TestRowsOfSystemdCgtopTopAndKubectl checks every row of every table in
// the report on Kata's overhead.
func TestRowsOfSystemdCgtopTopAndKubectl(t *testing.T) {
	t.Parallel()
	rec := oversee(func(o *oversight) {
		seed(true)(o)
		o.change = func(rec *record.Record) { rec.Targets[0].Config = map[string]string{"kata config": "/etc/kata.toml"} }
		o.plan.Limits.OverheadCPU, o.plan.Limits.OverheadMemory = 0.25, 160*mi
		o.plan.Allocatable = &PodFixed{CPU: 7800, Memory: 6500 * mi}
		reading := o.reading
		o.reading = func(r *record.Reading) {
			if reading != nil {
				reading(r)
			}
			grouped(r)
		}
	})
	j := weighed(t, rec)
	all := j.Figures()
	for _, c := range []struct {
		quantity string
		labels   []string
		want     float64
	}{
		{"node-iowait", []string{"target", "containerd/kata", "phase", "10G"}, 0.5},
		{"node-load", []string{"target", "containerd/kata", "phase", "10G"}, 30.93},
		{"cgroup-tasks", []string{"target", "containerd/kata", "phase", "idle", "cgroup", "pod"}, 7},
		{"cgroup-io", []string{"target", "containerd/kata", "phase", "idle", "cgroup", "pod", "of", "input"}, 1e6},
		{"cgroup-io", []string{"target", "containerd/kata", "phase", "idle", "cgroup", "pod", "of", "output"}, 2e6},
		{"cgroup-memory", []string{"target", "containerd/kata", "phase", "idle", "cgroup", "/kata_overhead"}, float64(175 * mi)},
		{"around-usage", []string{"target", "containerd/kata", "when", "before"}, float64(65 * mi)},
		{"around-usage", []string{"target", "containerd/kata", "when", "after"}, float64(1638 * mi)},
		{"around-usage-of-kind", []string{"target", "containerd/kata", "when", "before", "kind", "cache"}, float64(61 * mi)},
		{"around-usage-of-kind", []string{"target", "containerd/kata", "when", "before", "kind", "anon"}, float64(mi / 4)},
		{"around-usage-of-kind", []string{"target", "containerd/kata", "when", "before", "kind", "kernel"}, float64(3 * mi)},
		{"left", []string{"target", "containerd/kata", "of", "processes"}, 1},
		{"left", []string{"target", "containerd/kata", "of", "mounts"}, 0},
		{"left-on-node", []string{"target", "containerd/kata", "of", "tasks"}, 2},
		{"oom-kills", []string{"target", "containerd/kata"}, 2},
		{"restarts", []string{"target", "containerd/kata"}, 0},
		{"request", []string{"target", "every", "overhead", "limits", "resource", "cpu"}, 1.25},
		{"request", []string{"target", "every", "overhead", "limits", "resource", "memory"}, float64(1184 * mi)},
		{"request-share", []string{"target", "every", "overhead", "limits", "resource", "cpu"}, 1.25 / 7.8},
		{"request-share", []string{"target", "every", "overhead", "limits", "resource", "memory"}, 1184. / 6500},
	} {
		f := figure.Find(all, c.quantity, c.labels...)
		check.That(t, f.Known() && f.Value >= c.want*0.999999 && f.Value <= c.want*1.000001,
			"%s %v: %v, want %v", c.quantity, c.labels, f.Estimate, c.want)
	}
	idle := figure.Find(all, "memory-ratio", "target", "containerd/kata", "phase", "idle")
	kata, runc := figure.Find(all, "memory", "target", "containerd/kata", "phase", "idle"), figure.Find(all, "memory", "target", "containerd/runc", "phase", "idle")
	check.That(t, len(idle.Rounds) == 3 && idle.Value == kata.Value/runc.Value && idle.Labels.Get("base") == "containerd/runc",
		"kata ÷ runc: %+v", idle)
	var text bytes.Buffer
	must.OK(t, page.Write(&text, "text", []*page.Page{j.Page(page.Options{})}, page.Options{Width: 160, Verbose: true}))
	for _, want := range []string{"cgroups, as systemd-cgtop shows them", "input/s", "node load", "iowait %", "ratio to containerd/runc", "before the first sandbox and after the last",
		"requests, with overhead", "1250", "1184", "OOM kills", "restarts"} {
		check.Contains(t, "String", text.String(), want)
	}
}

// Old records have no value for readings added later.
func TestUnmeasuredIsNotZero(t *testing.T) {
	t.Parallel()
	all := weighed(t, oversee(nil)).Figures()
	for _, labels := range [][]string{{"of", "processes"}, {"of", "mounts"}} {
		f := figure.Find(all, "left", labels...)
		check.That(t, !f.Known(), "%v: %+v", labels, f)
	}
	for _, quantity := range []string{"oom-kills", "cgroup-tasks", "cgroup-io", "around-usage"} {
		check.That(t, !slices.ContainsFunc(all, func(f figure.Figure) bool { return f.Quantity == quantity }), "unexpected figure %s", quantity)
	}
}

// An event that must never occur is reported with its round.
func TestEventsAndLeaksAreTheMaximumOfAllRounds(t *testing.T) {
	t.Parallel()
	rec := oversee(func(o *oversight) {
		o.plan.Rounds = 5
		o.reading = func(r *record.Reading) {
			grouped(r)
			*r.Host.OOMKills = 3
			if r.Moment == record.MomentAfter {
				r.LeftBeside.Processes, r.LeftBeside.Mounts = nil, nil
				if r.Round == 4 {
					*r.Host.OOMKills, r.Host.Tasks, r.Left = 4, 399, []string{"/kata_overhead/a", "/kata_overhead/b"}
					r.LeftBeside.Processes = []string{"containerd-shim-kata-v2 (4711)"}
				}
			}
		}
	})
	all := weighed(t, rec).Figures()
	for _, c := range []struct {
		quantity, of string
		want         float64
	}{{"oom-kills", "", 1}, {"left", "cgroups", 2}, {"left", "processes", 1}, {"left-on-node", "tasks", 2}, {"restarts", "", 0}} {
		f := figure.Find(all, c.quantity, "of", c.of)
		check.That(t, f.Value == c.want && len(f.Rounds) == 5, "%s %s: %+v, want %v", c.quantity, c.of, f, c.want)
	}
	f := figure.Find(all, "left", "of", "mounts")
	check.That(t, !f.Known(), "unreadable mounts: %+v", f)
}

func TestParsePhases(t *testing.T) {
	t.Parallel()
	golden.Lines(t, "testdata/phases.txt", func(_ *testing.T, text string) (any, error) { return ParsePhase(text) })
}

func TestParsePodFixed(t *testing.T) {
	t.Parallel()
	golden.Lines(t, "testdata/overheads.txt", func(t *testing.T, text string) (any, error) {
		o, err := parsePodFixed(text)
		check.That(t, err == nil || strings.Contains(err.Error(), "such as 250m,160Mi"), "%q: no example: %v", text, err)
		return fmt.Sprintf("%dm and %d bytes", o.CPU, o.Memory), err
	})
}

// A parsed phase prints as text that parses to the same phase.
func FuzzParsePhase(f *testing.F) {
	for _, s := range []string{"idle", "10M", "16T", "hold 64MiB", "hold  7B", "spin 0.5cpu", "spin .5", "spin 1e9", "hold -1", "10MiB", "\x1b[2J"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p, err := ParsePhase(s)
		if err != nil {
			return
		}
		again, err := ParsePhase(p.Name)
		must.That(t, err == nil && again == p, "%+v is %+v, %v", p, again, err)
		switch {
		case p.Kind == PhaseIdle && (p.Bytes != 0 || p.CPUs != 0),
			p.Kind == PhaseFio && (p.Bytes < minFile || p.Bytes > maxFile),
			p.Kind == PhaseHold && (p.Bytes < minHold || p.Bytes > maxHold),
			p.Kind == PhaseSpin && !(p.CPUs >= minSpin && p.CPUs <= 1024):
			t.Fatalf("%+v", p)
		}
	})
}

func TestScaleShrinksFilesToWholeBlocks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		scale        float64
		phases, want string
	}{
		{0.1, "idle,10M,1G,10G", "idle,1M,102M,1G"},
		{0.001, "10M,hold 64MiB,spin 1,1G", "512K,hold 64MiB,spin 1,1M"},
		{0.00001, "10M,1G,10G", "512K"}, // phases with the same scaled size appear once
		{10, "10M,1G", "100M,10G"},
		{1000, "16T", "16T"},
	} {
		check.Equal(t, fmt.Sprintf("%g of %s", c.scale, c.phases), strings.Join(scaled(strings.Split(c.phases, ","), c.scale), ","), c.want)
	}
}

func TestPhaseListsAreValidated(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"idle,idle": "idle is there twice", "1G,1024M": "1024M is 1G once more", "spin 1,spin 1.0cpu": "spin 1.0cpu is spin 1 once more", "": "is not a phase",
		strings.Repeat("1G,", 99) + "1G": "101 are too many: at most 100",
	} {
		o := Defaults()
		o.Phases = strings.Split(text, ",")
		err := option.Check(&o)
		check.That(t, err != nil && strings.Contains(err.Error(), want), "%q: %v", text, err)
	}
	o := Defaults()
	o.Phases = []string{"spin 1"}
	phases := o.Resolved()
	want := []Phase{{Name: "idle", Kind: PhaseIdle}, {Name: "spin 1", Kind: PhaseSpin, CPUs: 1}}
	check.That(t, slices.Equal(phases, want), "idle is not first: %+v", phases)
}
