package starts

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/instrument/startup/logs"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

// near finds a gap by its edges and its length in µs.
func gapOf(s *record.Start, after, before string, us int64) *record.Gap {
	for i := range s.Gaps {
		if g := &s.Gaps[i]; g.After == after && g.Before == before && (g.Ended-g.Began)/1000 == us {
			return g
		}
	}
	return nil
}

func whatIsMissing(s *record.Start) (what []string) {
	for _, m := range s.Missing {
		what = append(what, m.What)
	}
	return what
}

func TestWaitsOfThePublishedReport(t *testing.T) {
	starts, _ := readFiles(t, "../logs/testdata/published.txt")
	for _, want := range []struct {
		sandbox, after, before, in string
		us                         int64
	}{
		{"1b8b7c310182", "New client", "sending request", "kata_agent", 1001820},
		{"d1e992ba3948", "New client", "sending request", "kata_agent", 1001177},
		{"f82471d252fb", "New client", "New client connected", "kata_agent", 1001359},
		{"f82471d252fb", "proxy accepts", "proxy opens stream", "proxy", 994556},
		{"a2d28570fe04", "proxy accepts", "proxy opens stream", "proxy", 999192},
		{"a2d28570fe04", "agent grpc server serves", "proxy opens stream", "agent", 579932},
	} {
		i := slices.IndexFunc(starts, func(s record.Start) bool { return strings.HasPrefix(s.Sandbox, want.sandbox) })
		if i < 0 {
			t.Errorf("no start of %s", want.sandbox)
			continue
		}
		g := gapOf(&starts[i], want.after, want.before, want.us)
		if g == nil || g.In != want.in {
			t.Errorf("%s: no gap %q → %q of %d µs in %s: %+v", want.sandbox, want.after, want.before, want.us, want.in, starts[i].Gaps)
			continue
		}
		if got := whatIsMissing(&starts[i]); !slices.Contains(got, "no end") || starts[i].Ended != 0 {
			t.Errorf("%s: ended %d, missing %v", want.sandbox, starts[i].Ended, got)
		}
	}
	i := slices.IndexFunc(starts, func(s record.Start) bool { return strings.HasPrefix(s.Sandbox, "f82471d252fb") })
	if g := starts[i].Guests; len(g) != 1 || g[0].Offset != 26086814962 || g[0].Uncertainty != -1 || g[0].Pairs != 3 {
		t.Errorf("the guest whose clock is 26 s behind: %+v", g)
	}
}

// TestTwoLogsOfOneStartAreOneStart is of containerd's log, which repeats what the
// runtime's holds: neither a gap nor a span is doubled, and what either knows is
// there.
func TestTwoLogsOfOneStartAreOneStart(t *testing.T) {
	kata, _ := readFiles(t, "../logs/testdata/cripod.kata.log")
	containerd, _ := readFiles(t, "../logs/testdata/cripod.containerd.log")
	for _, order := range [][]string{{"cripod.kata.log", "cripod.containerd.log"}, {"cripod.containerd.log", "cripod.kata.log"}} {
		both, _ := readFiles(t, "../logs/testdata/"+order[0], "../logs/testdata/"+order[1])
		if len(both) != 1 {
			t.Fatalf("%v: %d starts", order, len(both))
		}
		s := both[0]
		if s.Began != min(kata[0].Began, containerd[0].Began) || s.Ended != max(kata[0].Ended, containerd[0].Ended) || s.Name != "default/p1" || s.Target != "containerd/kata" {
			t.Errorf("%v: %d to %d, %q, %s", order, s.Began, s.Ended, s.Name, s.Target)
		}
		spans := func(s *record.Start) (all []record.Span) {
			for _, x := range s.Spans {
				x.Source = ""
				all = append(all, x)
			}
			return all
		}
		if got, want := spans(&s), spans(&containerd[0]); !slices.Equal(got, want) {
			t.Errorf("%v: spans %+v\nwant %+v", order, got, want)
		}
		if g := s.Gaps[0]; g.After != "New client" || g.Before != "Agent started in the sandbox" || g.Ended-g.Began != 7366045591 || g.In != "kata_agent" {
			t.Errorf("%v: the top gap is %+v", order, g)
		}
		if s.Events < containerd[0].Events || s.Events > containerd[0].Events+kata[0].Events/10 {
			t.Errorf("%v: %d events, containerd's log alone has %d", order, s.Events, containerd[0].Events)
		}
		seen := map[string]bool{}
		for _, g := range s.Gaps {
			key := fmt.Sprint(g.Began, g.Ended)
			if seen[key] {
				t.Errorf("%v: the gap %+v is there twice", order, g)
			}
			seen[key] = true
		}
	}
}

// line is one of Kata's shim, ms after a moment.
func line(ms int, msg, more string) string {
	at := time.Date(2026, 1, 2, 3, 4, 5, 123456, time.UTC).Add(time.Duration(ms) * time.Millisecond)
	return fmt.Sprintf("time=%q level=debug msg=%q name=containerd-shim-v2 pid=77 source=virtcontainers %s\n", at.Format(time.RFC3339Nano), msg, more)
}

func engineLine(ms int, msg, more string) string {
	at := time.Date(2026, 1, 2, 3, 4, 5, 123456, time.UTC).Add(time.Duration(ms) * time.Millisecond)
	return fmt.Sprintf("time=%q level=info msg=%q %s\n", at.Format(time.RFC3339Nano), msg, more)
}

const whole = "sandbox=box1 container=box1"

// started is a whole start that takes 100 ms.
func startedAt(ms int) string {
	return line(ms, "Create() start", whole) + line(ms+10, "Starting VM", "sandbox=box1") + line(ms+20, "VM started", "sandbox=box1") +
		line(ms+80, "Create() end", whole) + line(ms+90, "Start() start", whole) + line(ms+100, "Start() end", whole)
}

func TestWhereAStartEnds(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		took []int // ms of each start; 0: no end
		what []string
	}{
		"with its only container":  {startedAt(0), []int{100}, nil},
		"whatever is logged later": {startedAt(0) + line(5000, "endpoints found after scan", "sandbox=box1"), []int{100}, nil},
		"with the last container before a kill": {
			startedAt(0) + line(200, "Create() start", "sandbox=box1 container=c2") + line(250, "Start() end", "sandbox=box1 container=c2") +
				line(300, "Kill() start", whole) + line(400, "Create() start", "sandbox=box1 container=c3") + line(450, "Start() end", "sandbox=box1 container=c3"),
			[]int{250}, []string{"open call"},
		},
		"before an exec, whose start is none":  {startedAt(0) + line(200, "Exec() start", whole) + line(300, "Start() end", whole), []int{100}, nil},
		"before a container of hours later":    {startedAt(0) + line(3600_000, "Create() start", "sandbox=box1 container=c2") + line(3600_100, "Start() end", "sandbox=box1 container=c2"), []int{100}, nil},
		"not at all when it is killed":         {line(0, "Create() start", whole) + line(10, "Starting VM", whole) + line(20, "Kill() start", whole), []int{0}, []string{"no end"}},
		"not at all when the log ends":         {line(0, "Create() start", whole) + line(10, "Starting VM", whole), []int{0}, []string{"no end"}},
		"once more where it is started again":  {startedAt(0) + line(200, "Delete() start", whole) + startedAt(1000), []int{100, 100}, nil},
		"once more without a word in between":  {startedAt(0) + startedAt(1000), []int{100, 100}, nil},
		"once more where the log repeats":      {startedAt(0) + line(2000, "Kill() start", whole) + startedAt(0) + line(2000, "Kill() start", whole), []int{100, 100}, nil},
		"once more after one without an end":   {line(0, "Create() start", whole) + line(10, "Starting VM", whole) + startedAt(1000), []int{0, 100}, []string{"no end"}},
		"without a begin":                      {line(0, "VM started", whole) + line(50, "Start() end", whole), []int{50}, []string{"no begin"}},
		"with calls of which one end is told":  {line(0, "Starting VM", whole) + line(1, "Create() end", whole) + line(2, "Start() end", whole), []int{2}, []string{"no begin"}},
		"info alone is enough":                 {line(0, "loaded configuration", whole) + line(5, "Starting VM", whole) + line(60, "Sandbox is started", "sandbox=box1"), []int{60}, nil},
		"nothing of a sandbox that only lives": {line(0, "State() start", whole) + line(5, "State() end", whole) + line(9, "Kill() start", whole), nil, nil},
		"nothing of one line":                  {line(0, "Starting VM", whole), nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			starts, _ := read(t, map[string]io.Reader{"a": strings.NewReader(test.text)}, "a")
			var took []int
			for i := range starts {
				ms := 0
				if starts[i].Ended != 0 {
					ms = int((starts[i].Ended - starts[i].Began) / 1e6)
				}
				took = append(took, ms)
			}
			if !slices.Equal(took, test.took) {
				t.Fatalf("starts of %v ms, want %v: %+v", took, test.took, starts)
			}
			if len(starts) > 0 {
				if got := whatIsMissing(&starts[0]); !slices.Equal(got, test.what) {
					t.Errorf("missing %v, want %v", got, test.what)
				}
			}
		})
	}
}

func TestErrorsInACallAreSaidUnlessWhatFollowsClearsIt(t *testing.T) {
	bad := strings.Replace(line(50, "cannot hotplug", `sandbox=box1 error="no slot"`), "level=debug", "level=error", 1)
	for name, test := range map[string]struct {
		text string
		what []string
	}{
		"a create whose container started": {
			line(0, "Create() start", whole) + bad + line(80, "Create() end", whole) + line(90, "Start() start", whole) + line(100, "Start() end", whole), nil,
		},
		"a start that may have failed": {
			line(0, "Create() start", whole) + line(20, "Create() end", whole) + line(30, "Start() start", whole) + bad + line(100, "Start() end", whole), []string{"outcome"},
		},
		"a create after which nothing came": {line(0, "Create() start", whole) + bad + line(80, "Create() end", whole), []string{"outcome", "no end"}},
	} {
		t.Run(name, func(t *testing.T) {
			if s := one(t, "a", test.text); !slices.Equal(whatIsMissing(&s), test.what) {
				t.Errorf("%+v, want missing %v", s, test.what)
			}
		})
	}
	if s := one(t, "a", line(0, "Create() start", whole)+bad+line(80, "Stopping VM", whole)); s.Failure == nil || s.Failure.Detail != "no slot" {
		t.Errorf("a sandbox that is taken down after an error: %+v", s)
	}
	pod := "RunPodSandbox for &PodSandboxMetadata{Name:p,Uid:u,Namespace:n,Attempt:0,}"
	never := one(t, "containerd.log", engineLine(0, pod, "")+strings.Replace(engineLine(700, pod+" failed, error", `error="no such runtime"`), "level=info", "level=error", 1))
	if never.Failure == nil || !strings.Contains(never.Failure.Detail, "no such runtime") || never.Name != "n/p" || never.Sandbox != "" {
		t.Errorf("a pod that never was: %+v", never)
	}
}

func TestWhatEndsAGap(t *testing.T) {
	const box = "sandbox=box1"
	for name, test := range map[string]struct {
		between string
		want    string // ms and edges of the longest gap
		others  int64
	}{
		"nothing":                          {"", "500 New client → Agent started in the sandbox", 0},
		"a line of the runtime":            {line(300, "hot-plugging", box), "300 New client → hot-plugging", 0},
		"a line that names nothing":        {line(300, "handshake", ""), "500 New client → Agent started in the sandbox", 1},
		"an answer to somebody else":       {line(300, "State() start", box) + line(301, "State() end", box), "500 New client → Agent started in the sandbox", 2},
		"a console":                        {line(300, "reading guest console", box+` vmconsole="[    0.1] Linux"`), "500 New client → Agent started in the sandbox", 1},
		"a line with the same breath":      {strings.Replace(line(0, "dialling", box), "05.000123456", "05.000323456", 1), "500 New client → Agent started in the sandbox", 0},
		"a line just before its end":       {strings.Replace(line(499, "connected", box), "05.499123456", "05.499923456", 1), "500 New client → Agent started in the sandbox", 0},
		"a shim that is gone":              {engineLine(300, "shim disconnected", ""), "300 New client → shim disconnected", 0},
		"the library that dials, with ids": {line(300, "dialing", box+" source=agent-client"), "300 New client → dialing", 0},
	} {
		t.Run(name, func(t *testing.T) {
			text := line(0, "New client", box) + test.between + line(500, "Agent started in the sandbox", box)
			g := one(t, "a", text).Gaps[0]
			if got := fmt.Sprintf("%d %s → %s", (g.Ended-g.Began)/1e6, g.After, g.Before); got != test.want || g.Others != test.others {
				t.Errorf("%s, others %d; want %s, %d", got, g.Others, test.want, test.others)
			}
		})
	}
}

func TestMissingEvidenceIsSaid(t *testing.T) {
	var out []record.Start
	b := New([]string{"a"}, func(s *record.Start, _ int) error { out = append(out, *s); return nil })
	at := time.Date(2026, 1, 1, 0, 0, 0, 1, time.UTC).UnixNano()
	for i, e := range []logs.Event{
		{Form: logs.Journal, Message: []byte("Suppressed 7 messages from before"), Suppressed: 7},
		{Form: logs.Kata, Message: []byte("Create() start"), Sandbox: []byte("b")},
		{Form: logs.Journal, Message: []byte("Suppressed 213 messages from kata.service"), Suppressed: 213},
		{Form: logs.Kata, Message: []byte("launch"), Sandbox: []byte("b"), Cut: true},
		{Form: logs.Kata, Message: []byte("Start() end"), Sandbox: []byte("b")},
		{Form: logs.Journal, Message: []byte("Suppressed 9 messages from later"), Suppressed: 9},
	} {
		e.Time, e.Line = at+int64(i)*1e6, int64(i+1)
		must.OK(t, b.Add(&e))
	}
	must.OK(t, b.Close())
	want := []record.Missing{
		{What: "suppressed", Count: 213, Detail: "messages that the journal dropped meanwhile"}, {What: "cut", Count: 1, Detail: "from a:4"},
		{What: record.MissingCall, Count: 1, Detail: "of kata create, which began at a:2 or before"},
	}
	if len(out) != 1 || !slices.Equal(out[0].Missing, want) {
		t.Errorf("%+v", out)
	}
	text := line(0, "Create() start", whole) + "2026-01-02T03:04:05.050000+00:00 host rsyslogd[1]: imjournal: 20 messages lost due to rate-limiting\n" +
		line(80, "Create() end", whole) + line(90, "Start() start", whole) + line(100, "Start() end", whole)
	if got := one(t, "log", text).Missing; len(got) != 1 || got[0].What != "suppressed" || got[0].Count != 20 {
		t.Errorf("what rsyslog lost: %+v", got)
	}
	out = nil
	b = New([]string{"a"}, func(s *record.Start, _ int) error { out = append(out, *s); return nil })
	for i, e := range []logs.Event{
		{Form: logs.Kata, Message: []byte("Create() start"), Sandbox: []byte("b")},
		{Form: logs.Journal, Suppressed: math.MaxInt64}, {Form: logs.Journal, Suppressed: math.MaxInt64},
		{Form: logs.Kata, Message: []byte("Start() end"), Sandbox: []byte("b")},
	} {
		e.Time, e.Line = at+int64(i)*1e6, int64(i+1)
		must.OK(t, b.Add(&e))
	}
	must.OK(t, b.Close())
	if got := out[0].Missing; len(got) == 0 || got[0].What != "suppressed" || got[0].Count != math.MaxInt64 {
		t.Errorf("more than can be counted: %+v", got)
	}
}

func TestHostileLinesAreSurvived(t *testing.T) {
	big := bytes.Repeat([]byte("a"), 1<<20)
	at := time.Date(2026, 1, 1, 0, 0, 0, 1, time.UTC).UnixNano()
	for name, test := range map[string]struct {
		n     int
		event func(i int) logs.Event
	}{
		"ids of 1 MB": {1000, func(i int) logs.Event {
			return logs.Event{Form: logs.Form(i % 10), Time: at + int64(i), Sandbox: big, Container: big, Request: big, Program: big, Source: big, Subsystem: big, Message: big, Error: big, Level: big}
		}},
		"many sandboxes": {20_000, func(i int) logs.Event {
			return logs.Event{Form: logs.Kata, Time: at + int64(i), Sandbox: fmt.Appendf(nil, "box%d", i/2), Message: []byte([]string{"Create() start", "Starting VM"}[i%2])}
		}},
		"many pids": {40_000, func(i int) logs.Event {
			return logs.Event{Form: logs.Kata, Time: at + int64(i), Sandbox: []byte("box"), Message: []byte("Create() start"), Pid: i}
		}},
		"many requests": {10_000, func(i int) logs.Event {
			return logs.Event{Form: logs.CRIO, Time: at + int64(i), Request: fmt.Appendf(nil, "r%d", i), Program: []byte("/runtime.v1.RuntimeService/RunPodSandbox"), Message: fmt.Appendf(nil, "Running pod sandbox: n/p%d/POD", i)}
		}},
		"many pods that never are": {10_000, func(i int) logs.Event {
			return logs.Event{Form: logs.Containerd, Time: at + int64(i), Message: fmt.Appendf(nil, "RunPodSandbox for name:\"p%d\"", i)}
		}},
		"time going back": {10_000, func(i int) logs.Event {
			return logs.Event{Form: logs.Kata, Time: at - int64(i)*1e6, Sandbox: []byte("box"), Message: []byte([]string{"Create() start", "Starting VM", "Start() end"}[i%3])}
		}},
		"time jumping about": {10_000, func(i int) logs.Event {
			return logs.Event{Form: logs.Kata, Time: at + int64(i%7)*1e18/7, Sandbox: []byte("box"), Message: []byte([]string{"New client", "Starting VM", "Start() end"}[i%3])}
		}},
		"no times": {1000, func(i int) logs.Event {
			return logs.Event{Form: logs.Kata, Time: -int64(i), Sandbox: []byte("box"), Message: []byte("Starting VM")}
		}},
		"a guest of another century": {1000, func(i int) logs.Event {
			return logs.Event{Form: logs.KataAgent, Guest: true, Time: 1 << 62, Arrived: at + int64(i), Sandbox: []byte("box"), Message: []byte("container started")}
		}},
		"files that are not there": {1000, func(i int) logs.Event {
			return logs.Event{Form: logs.Runsc, Time: at + int64(i), File: i - 500, Line: -1, Message: []byte("Args: [runsc create x]")}
		}},
		"one start without an end": {30_000, func(i int) logs.Event {
			return logs.Event{Form: logs.Kata, Time: at + int64(i)*2e6, Sandbox: []byte("box"), Container: fmt.Appendf(nil, "c%d", i), Message: []byte("Create() start")}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			given := 0
			b := New([]string{"a"}, func(s *record.Start, _ int) error {
				given++
				if err := record.Validate(s); err != nil {
					t.Errorf("%v", err)
				}
				return nil
			})
			for i := range test.n {
				e := test.event(i)
				must.OK(t, b.Add(&e))
			}
			held := len(b.open) + len(b.done.m) + len(b.containers.m) + len(b.pids.m) + len(b.pods.m) + len(b.pulls.m) + len(b.requests.m) + len(b.orphans.m) + len(b.words.m)
			if most := 1024 + 64 + maxDone + maxContainers + maxPids + 4*maxPending + maxWords; held > most {
				t.Errorf("%d things are held, at most %d may be", held, most)
			}
			for s := range b.newestFirst() {
				if len(s.points) > maxPoints || len(s.spans) > maxSpans || len(s.kept) > 32 || len(s.tail) > 32 || len(s.calls) > maxCalls || len(s.containers) > maxOfPod {
					t.Errorf("too much is kept of one start")
				}
			}
			if err := b.Close(); err != nil || len(b.open) != 0 {
				t.Errorf("%v, %d are open", err, len(b.open))
			}
			if name == "many sandboxes" && (given != 10_000 || b.Dropped != 10_000-1024) {
				t.Errorf("%d starts given, %d dropped", given, b.Dropped)
			}
		})
	}
}

// A request of CRI-O's and a call of containerd's have the same name, and nothing
// else in common.
func TestAFailedPodBesideAnotherEnginesIsSurvived(t *testing.T) {
	starts, b := read(t, map[string]io.Reader{
		"crio.log":       strings.NewReader(mixed[0]),
		"containerd.log": strings.NewReader(mixed[1]),
	}, "crio.log", "containerd.log")
	if len(starts) != 1 || starts[0].Sandbox != "abcdef123456" || starts[0].Failure != nil || b.Unplaced != 1 {
		t.Errorf("%d lines of no start, %+v", b.Unplaced, starts)
	}
}

var mixed = [2]string{
	crioLine(0, "info", "x", "r1", "RunPodSandbox") +
		strings.Replace(crioLine(10, "info", "y", "r1", "RunPodSandbox"), "\n", " sandboxID=abcdef123456\n", 1),
	strings.Replace(engineLine(20, "RunPodSandbox for &PodSandboxMetadata{Name:p,Uid:u,Namespace:n,Attempt:0,} failed, error", ""), "level=info", "level=error", 1),
}

func TestAPodsFailureIsItsOwn(t *testing.T) {
	call := func(ms int, pod string) string {
		return engineLine(ms, "RunPodSandbox for &PodSandboxMetadata{Name:"+pod+",Uid:u,Namespace:n,Attempt:0,}", "")
	}
	text := call(0, "p") + call(1, "q") +
		engineLine(5, `generated id for sandbox name "p_n_u_0"`, "podsandboxid=aaa1") + engineLine(6, `generated id for sandbox name "q_n_u_0"`, "podsandboxid=bbb1") +
		strings.Replace(engineLine(20, "RunPodSandbox for &PodSandboxMetadata{Name:p,Uid:u,Namespace:n,Attempt:0,} failed, error", "error=gone"), "level=info", "level=error", 1)
	starts, _ := read(t, map[string]io.Reader{"a": strings.NewReader(text)}, "a")
	if len(starts) != 2 || starts[0].Sandbox != "aaa1" || starts[0].Failure == nil || starts[1].Failure != nil {
		t.Errorf("%+v", starts)
	}
}

// callsOf are the runtime's calls of a start with their times in ms: "kata create 0-700".
func callsOf(s *record.Start) (all []string) {
	for _, x := range s.Spans {
		if x.Kind == record.KindCall {
			all = append(all, fmt.Sprintf("%s %d-%d", x.Name, (x.Began-s.Began)/1e6, (x.Ended-s.Began)/1e6))
		}
	}
	return all
}

// The first Create() begins before the shim knows where to log to.
func TestACallWhoseBeginIsNotToldReachesBack(t *testing.T) {
	calls := func(text string) ([]string, []record.Missing) {
		s := one(t, "a", text)
		return callsOf(&s), s.Missing
	}
	begin := line(0, "loaded configuration", whole) + line(10, "Starting VM", whole)
	for name, test := range map[string]struct {
		text string
		want []string
		what int64
	}{
		"to the runtime's first line":                {begin + line(700, "Create() end", whole), []string{"kata create 0-700"}, 1},
		"and no further than the call before it":     {begin + line(700, "Create() end", whole) + line(710, "Stats() start", whole) + line(720, "a", whole) + line(800, "Start() end", whole), []string{"kata create 0-700", "kata start 720-800"}, 2},
		"and never where nothing was said since":     {begin + line(700, "Create() end", whole) + line(800, "Start() end", whole), []string{"kata create 0-700"}, 1},
		"and never into a call that is under way":    {line(0, "Create() start", whole) + line(10, "Starting VM", whole) + line(800, "Start() end", whole), nil, 0},
		"not where it is told":                       {line(0, "loaded configuration", whole) + line(5, "Create() start", whole) + line(700, "Create() end", whole), []string{"kata create 5-700"}, 0},
		"not to what the engine's daemon said of it": {engineLine(0, "get image", "podsandboxid=box1") + begin[:0] + line(10, "Starting VM", whole) + line(700, "Create() end", whole), []string{"kata create 10-700"}, 1},
	} {
		got, missing := calls(test.text)
		count := int64(0)
		for _, m := range missing {
			if m.What == "no begin" {
				count = m.Count
			}
		}
		if !slices.Equal(got, test.want) || count != test.what {
			t.Errorf("%s: %q, missing %+v", name, got, missing)
		}
	}
}

// Kata 1.x's runtime is a process for each command, and docker's time lies between
// them.
func TestTheRuntimesCommandsAreItsProcesses(t *testing.T) {
	once := func(ms, pid int, command, msg, of string) string {
		return strings.Replace(strings.Replace(line(ms, msg, of+" arch=amd64 command="+command), "pid=77", fmt.Sprint("pid=", pid), 1), "containerd-shim-v2", "kata-runtime", 1)
	}
	const of = "container=box1"
	text := once(0, 7, "create", "loaded configuration", "") + once(10, 7, "create", "Starting VM", of+" sandbox=box1") + once(1700, 7, "create", "VM started", of+" sandbox=box1") +
		once(2090, 8, "state", "loaded configuration", "") + once(2092, 8, "state", "fetch", of) + once(2099, 8, "state", "done", of) +
		once(2111, 9, "start", "loaded configuration", "") + once(2114, 9, "start", "Sandbox is started", of+" sandbox=box1") + once(2124, 9, "start", "done", of) +
		once(2134, 10, "state", "loaded configuration", "") + once(2138, 10, "state", "done", of)
	later := once(5000, 11, "state", "loaded configuration", "") + once(5004, 11, "state", "done", of) +
		once(9000, 12, "kill", "loaded configuration", "") + once(9002, 12, "kill", "a", of)
	want := []string{"kata-runtime create 0-1700", "kata-runtime state 2090-2099", "kata-runtime start 2111-2124", "kata-runtime state 2134-2138"}
	for name, text := range map[string]string{
		"of one start": text, "with what comes later": text + later,
		"where no line says that it has started": strings.Replace(text, "Sandbox is started", "a", 1),
	} {
		starts, b := read(t, map[string]io.Reader{"kata.log": strings.NewReader(text)}, "kata.log")
		if len(starts) != 1 {
			t.Fatalf("%s: %+v", name, starts)
		}
		s := starts[0]
		calls := callsOf(&s)
		if !slices.Equal(calls, want) || (s.Ended-s.Began)/1e6 != 2138 || len(s.Missing) != 0 || b.Unplaced > 1 {
			t.Errorf("%s: %q, %d not placed\n%s", name, calls, b.Unplaced, printed(&s))
		}
	}
}

// Shims of two nodes may have the same pid: what each says without its sandbox is
// of the sandbox that it names in its own file.
func TestProcessesOfTwoNodesAreTwo(t *testing.T) {
	node := func(ms int, box string) string {
		of := "sandbox=" + box + " container=" + box
		return line(ms, "Create() start", of) + line(ms+100, "Starting VM", "") + line(ms+900, "VM started", "") + line(ms+1000, "Start() end", of)
	}
	starts, _ := read(t, map[string]io.Reader{"a": strings.NewReader(node(0, "box1")), "b": strings.NewReader(node(50, "box2"))}, "a", "b")
	if len(starts) != 2 {
		t.Fatalf("%+v", starts)
	}
	for i := range starts {
		s := &starts[i]
		if s.Events != 4 || gapOf(s, "Starting VM", "VM started", 800_000) == nil {
			t.Errorf("%s: %s", s.Sandbox, printed(s))
		}
	}
}

// What stands in both files counts once, and the file in which it counts no more
// knows the process as well.
func TestACopiedLineTellsWhoAProcessIs(t *testing.T) {
	both := line(0, "Create() start", whole)
	other := line(10, "Create() start", "sandbox=box2 container=box2") // two are under way
	starts, _ := read(t, map[string]io.Reader{
		"a": strings.NewReader(both + strings.Replace(other, "pid=77", "pid=78", 1)),
		"b": strings.NewReader(both + line(20, "Starting VM", "") + line(500, "VM started", "")),
	}, "a", "b")
	i := slices.IndexFunc(starts, func(s record.Start) bool { return s.Sandbox == "box1" })
	if i < 0 || starts[i].Events != 3 {
		t.Errorf("%+v", starts)
	}
}

func TestAnErrorOfTheReceiverEndsEverything(t *testing.T) {
	full := errors.New("the disk is full")
	b := New(nil, func(*record.Start, int) error { return full })
	b.maxOpen = 1
	var err error
	for i := 0; i < 100 && err == nil; i++ {
		e := logs.Event{Form: logs.Kata, Time: int64(1e18) + int64(i), Sandbox: fmt.Appendf(nil, "b%d", i/2), Message: []byte([]string{"Create() start", "Starting VM"}[i%2])}
		err = b.Add(&e)
	}
	if !errors.Is(err, full) || !errors.Is(b.Close(), full) {
		t.Errorf("%v", err)
	}
}

func TestNothingIsAllocatedForOrdinaryLines(t *testing.T) {
	b := New([]string{"a"}, func(*record.Start, int) error { return nil })
	at := int64(1e18)
	e := logs.Event{Form: logs.Kata, Sandbox: []byte("box"), Container: []byte("c"), Message: []byte("Create() start"), Program: []byte("containerd-shim-v2"), Source: []byte("virtcontainers"), Pid: 7}
	add := func() {
		at += 5e6
		e.Time = at
		must.OK(t, b.Add(&e))
		e.Message = []byte("ordinary")[:8:8]
	}
	for range 200 {
		add()
	}
	e.Message = []byte("ordinary")
	if n := testing.AllocsPerRun(1000, func() {
		at += 5e6
		e.Time = at
		must.OK(t, b.Add(&e))
	}); n > 0 {
		t.Errorf("%v allocations for a line", n)
	}
}

func FuzzStarts(f *testing.F) {
	for _, name := range []string{"cripod.kata.log", "cri-o-1.34-info.log", "containerd-2.4-info.log", "runsc-boot.txt", "published.txt"} {
		text, err := os.ReadFile("../logs/testdata/" + name)
		must.OK(f, err)
		f.Add(text[:min(len(text), 6000)], name)
	}
	f.Add([]byte(startedAt(0)+line(2000, "Kill() start", whole)+startedAt(0)), "kata.log")
	f.Add([]byte(podOfContainerd("")+`time="2026-01-02T03:04:05Z" level=debug msg="Calling POST /v1.41/containers/create" module=api`+"\n"+
		`time="2026-01-02T03:04:06Z" level=debug msg="Calling POST /v1.41/containers/c1/start"`+"\n"+`time="2026-01-02T03:04:07Z" level=debug msg="sandbox set key processing took 37.5ms for container c1"`+"\n"+
		`time="2026-01-02T03:04:08Z" level=debug msg=event topic=/tasks/start`+"\n"), "dockerd.log")
	f.Add([]byte(runscLog(0, "create --bundle /b pod1", "300 Exiting with status: 0")+runscLog(400, "create --bundle /c con1", "5 Creating new container, cid: con1, sandbox: pod1", "90 Exiting with status: 7")+
		`I0102 03:04:09.000001 1 kubelet.go:1] "SyncLoop ADD" source="api" pods=["a/b"]`+"\n"+`I0102 03:04:09.100001 1 kubelet.go:1] "SyncLoop (PLEG): event for pod" pod="a/b" event={"ID":"u","Type":"ContainerStarted","Data":"c"}`+"\n"), "runsc.log")
	f.Add([]byte(mixed[0]+mixed[1]), "crio.log")
	f.Add([]byte(mixed[1]+mixed[0]), "containerd.log")
	f.Fuzz(func(t *testing.T, text []byte, name string) {
		starts, _ := readWith(t, func(b *Builder) { b.maxOpen, b.maxGaps = 4, 3 }, map[string]io.Reader{name: bytes.NewReader(text)}, name)
		for i := range starts {
			if s := &starts[i]; s.Ended != 0 && s.Ended < s.Began || len(s.Gaps) > 3 {
				t.Errorf("%+v", s)
			}
		}
	})
}
