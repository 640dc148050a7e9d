package logfiles

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/instrument/startup"
	"github.com/tare-bench/tare/internal/instrument/startup/trace"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

// watched returns the observed start of the sandbox in one.kata.log. Kata's shim runs
// below containerd, and QEMU works alone from 0.4 s to 7.1 s.
func watched(t *testing.T) record.Start {
	t.Helper()
	day := must.Get(time.Parse(time.RFC3339Nano, "2026-11-21T02:45:27.84Z"))(t)
	const began = 5e12
	at := func(ms int64) int64 { return began + ms*1e6 }
	s := record.Start{Type: record.TypeStart, Target: "containerd/kata", Method: record.MethodBPF, Clock: record.ClockMonotonic,
		Began: began, Wall: day.UnixNano(), Ended: at(7860), Sandbox: "k28634", Containers: []string{"k28634"}}
	busy := func(all ...int64) (out []record.BusyAt) {
		for i := 0; i < len(all); i += 2 {
			out = append(out, record.BusyAt{At: at(all[i]), CPU: all[i+1] * 1e6})
		}
		return out
	}
	s.Processes = []record.StartProcess{
		{Pid: 10, Kind: record.KindDaemon, Name: "containerd", Program: "containerd", Born: began, CPU: 20e6},
		{Pid: 20, Parent: 10, Kind: record.KindShim, Name: "containerd-shim-kata-v2", Program: "containerd-shim-kata-v2", Container: "k28634", Born: at(30), Exec: at(31), CPU: 90e6},
		{Pid: 21, Parent: 20, Kind: record.KindVirtiofsd, Name: "virtiofsd", Program: "virtiofsd", Container: "k28634", Born: at(98), Exec: at(99), CPU: 100e6, Used: busy(98, 0, 7860, 100)},
		{Pid: 22, Parent: 20, Kind: record.KindVMM, Name: "qemu-system-x86_64", Program: "qemu-system-x86_64", Container: "k28634", Born: at(101), Exec: at(103), CPU: 7600e6, Used: busy(101, 0, 7860, 7600)},
	}
	s.Busy = busy(0, 0, 30, 10, 31, 11, 98, 60, 99, 61, 101, 62, 103, 64, 7860, 7850)
	return s
}

func judged(t *testing.T, lines ...record.Start) *startup.Target {
	t.Helper()
	rec := &record.Record{Header: record.Header{Experiment: startup.Name, Plan: json.RawMessage("{}")}, Starts: lines}
	j, err := startup.Judge(rec)
	if err != nil || len(j.Targets) != 1 {
		t.Fatalf("%v: %+v", err, j)
	}
	return &j.Targets[0]
}

func TestGuestBootIsVMMTimeWithoutLogs(t *testing.T) {
	got := judged(t, watched(t))
	if got.EngineTime.Known() && got.EngineTime.Value > 1e9 {
		t.Errorf("engine time %.3g ns", got.EngineTime.Value)
	}
	i := slices.IndexFunc(got.Phases, func(s startup.Step) bool { return s.Kind == record.KindVMM })
	if i < 0 || got.Phases[i].Name != "qemu-system-x86_64" || got.Phases[i].Took.Value < 7.7e9 {
		t.Errorf("%+v", got.Phases)
	}
	if g := got.Gaps[0]; g.In != "qemu-system-x86_64 (guest not seen)" {
		t.Errorf("the longest gap is in %s", g.In)
	}
}

// The log is written during the run. Earlier lines and lines of other sandboxes are not
// part of the run.
func TestLogEventsAreBelowTheirProcesses(t *testing.T) {
	dir := t.TempDir()
	before := strings.ReplaceAll(fixture(t, "one.containerd.log"), "k28634", "k11111")
	path := written(t, dir, "containerd.log", before)
	from := must.Get(Logs{Files: []string{path}}.Mark())(t)
	written(t, dir, "containerd.log", before+fixture(t, "one.containerd.log")+fixture(t, "cripod.containerd.log"))
	r := must.Get(Open(t.Context(), from))(t)
	defer r.Close()
	live := watched(t)
	found, read, err := r.Of(t.Context(), []record.Start{live}, func(string, time.Duration, time.Duration) {})
	if err != nil || len(found) != 1 || read.Lines < 500 {
		t.Fatalf("%v: %d starts of %+v", err, len(found), read)
	}
	text, err := json.Marshal(found)
	if err != nil || bytes.Contains(text, []byte("956bf030d0a0")) || bytes.Contains(text, []byte("k11111")) {
		t.Errorf("%v: %s has a line of another sandbox", err, text)
	}
	check.Equal(t, "it begins", fmt.Sprintf("containerd.log:%d", strings.Count(before, "\n")+15), found[0].Source)
	below(t, judged(t, live, found[0]))
}

// below checks that a merged start has boot, agent, rootfs and first process in one
// waterfall, in this order, each below its process.
func below(t *testing.T, got *startup.Target) {
	t.Helper()
	var above []string
	at, last := map[string]int64{}, map[string]string{}
	for _, r := range got.Drawn.Rows {
		above = append(above[:r.Depth], r.Name)
		at[r.Name], last[r.Name] = r.Began, strings.Join(above, "/")
	}
	shim := "containerd/containerd-shim-kata-v2/"
	for name, want := range map[string]string{
		"kata create":  shim + "kata create",
		"guest kernel": shim + "qemu-system-x86_64/agent dialled → agent answers/guest kernel",
		"agent starts": shim + "qemu-system-x86_64/agent dialled → agent answers/agent starts",
		"agent rootfs": shim + "qemu-system-x86_64/agent create_container/agent rootfs",
	} {
		check.Equal(t, fmt.Sprintf("%s stands", name), last[name], want)
	}
	order := []string{"VMM launched → VMM answers", "guest kernel", "agent starts", "agent rootfs", "agent start_container"}
	for i, name := range order[1:] {
		if at[name] == 0 || at[name] <= at[order[i]] {
			t.Errorf("%s is at %d, %s at %d", name, at[name], order[i], at[order[i]])
		}
	}
	if got.Calls.Value < 7e9 || got.EngineTime.Value > 0.2e9 || len(got.Guests) != 1 {
		t.Errorf("calls %g, engine %g, %+v", got.Calls.Value, got.EngineTime.Value, got.Guests)
	}
	if g := got.Gaps[0]; !strings.Contains(g.In, "kata") || g.Source == "" {
		t.Errorf("the longest gap is %+v", g)
	}
	var sum float64
	for _, p := range got.Phases {
		sum += p.Took.Value
	}
	check.Equal(t, "sum of the phases", sum, got.Wall.Value)
}

func TestLogOfAnotherClockOrSandboxIsIgnored(t *testing.T) {
	live := watched(t)
	logged := record.Start{Method: record.MethodLogs, Clock: record.ClockWall, Began: live.Wall + 1e9, Ended: live.Wall + 2e9, Sandbox: "k28634"}
	for name, c := range map[string]struct {
		change func(s, l *record.Start)
		want   bool
	}{
		"same sandbox":               {func(*record.Start, *record.Start) {}, true},
		"container of the pod":       {func(s, l *record.Start) { s.Containers, l.Sandbox = []string{"x", "c"}, "c" }, true},
		"other sandbox":              {func(_, l *record.Start) { l.Sandbox = "k2863" }, false},
		"unknown sandbox":            {func(s, l *record.Start) { s.Sandbox, s.Containers, l.Sandbox = "", nil, "" }, false},
		"same sandbox an hour later": {func(_, l *record.Start) { l.Began += 3600e9; l.Ended += 3600e9 }, false},
		"clock was set":              {func(s, _ *record.Start) { s.Wall = 0 }, false},
	} {
		s, l := live, logged
		c.change(&s, &l)
		check.Equal(t, name, trace.Common(&s, &l) > 0, c.want)
	}
}

func TestEndlessLogIsNotReadDuringARun(t *testing.T) {
	for _, path := range []string{"-", "/dev/null", filepath.Join(t.TempDir(), "none.log")} {
		if _, err := (Logs{Files: []string{path}}).Mark(); err == nil {
			t.Errorf("%s was accepted", path)
		}
	}
}

// According to the bounds of its clock, the agent began to start the container 7.773 s
// after the call.
func TestGuestStartIsKnownIfItsBoundsAreClose(t *testing.T) {
	r := must.Get(Open(t.Context(), Logs{Files: []string{"../../logs/testdata/one.containerd.log"}}))(t)
	defer r.Close()
	live := watched(t)
	found, _, err := r.Of(t.Context(), []record.Start{live}, func(string, time.Duration, time.Duration) {})
	if err != nil || len(found) != 1 {
		t.Fatalf("%v: %d starts", err, len(found))
	}
	for name, c := range map[string]struct {
		by    int64 // ms
		known bool
		why   string
	}{
		"17 ms apart":  {7790, true, ""},
		"117 ms apart": {7890, false, "known to within"},
		"no bound":     {0, false, ""},
	} {
		live := live
		if c.by > 0 {
			live.FirstBy = live.Began + c.by*1e6
		}
		s := trace.Merge([]record.Start{live, found[0]})[0]
		i := slices.IndexFunc(s.Missing, func(m record.Missing) bool { return m.What == "first instruction" })
		if known := s.First != 0; known != c.known || (i >= 0) != (c.why != "") || i >= 0 && !strings.Contains(s.Missing[i].Detail, c.why) {
			t.Errorf("%s: first %d, %+v", name, s.First-s.Began, s.Missing)
		}
	}
}
