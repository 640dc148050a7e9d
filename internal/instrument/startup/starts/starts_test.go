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
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

// gapOf returns the gap with the given edges and length in µs.
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

func TestWaitsInThePublishedReport(t *testing.T) {
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
		t.Errorf("guest with a clock 26 s behind: %+v", g)
	}
}

// TestTwoLogsOfOneStartAreOneStart uses containerd's log, which repeats the runtime's
// log. No gap or span is duplicated, and information from either log is kept.
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
				t.Errorf("%v: duplicate gap %+v", order, g)
			}
			seen[key] = true
		}
	}
}

func TestMissingEvidenceIsReported(t *testing.T) {
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
		{What: "suppressed", Count: 213, Detail: "messages dropped by the journal during the start"}, {What: "cut", Count: 1, Detail: "from a:4"},
		{What: record.MissingCall, Count: 1, Detail: "of kata create, which began at a:2 or before"},
	}
	if len(out) != 1 || !slices.Equal(out[0].Missing, want) {
		t.Errorf("%+v", out)
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
		t.Errorf("overflow: %+v", got)
	}
}

func TestHostileLinesAreHandled(t *testing.T) {
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
		"many pods that are never created": {10_000, func(i int) logs.Event {
			return logs.Event{Form: logs.Containerd, Time: at + int64(i), Message: fmt.Appendf(nil, "RunPodSandbox for name:\"p%d\"", i)}
		}},
		"decreasing times": {10_000, func(i int) logs.Event {
			return logs.Event{Form: logs.Kata, Time: at - int64(i)*1e6, Sandbox: []byte("box"), Message: []byte([]string{"Create() start", "Starting VM", "Start() end"}[i%3])}
		}},
		"jumping times": {10_000, func(i int) logs.Event {
			return logs.Event{Form: logs.Kata, Time: at + int64(i%7)*1e18/7, Sandbox: []byte("box"), Message: []byte([]string{"New client", "Starting VM", "Start() end"}[i%3])}
		}},
		"no times": {1000, func(i int) logs.Event {
			return logs.Event{Form: logs.Kata, Time: -int64(i), Sandbox: []byte("box"), Message: []byte("Starting VM")}
		}},
		"guest clock in another century": {1000, func(i int) logs.Event {
			return logs.Event{Form: logs.KataAgent, Guest: true, Time: 1 << 62, Arrived: at + int64(i), Sandbox: []byte("box"), Message: []byte("container started")}
		}},
		"unknown files": {1000, func(i int) logs.Event {
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
				check.Error(t, record.Validate(s), "")
				return nil
			})
			for i := range test.n {
				e := test.event(i)
				must.OK(t, b.Add(&e))
			}
			held := len(b.open) + len(b.done.m) + len(b.containers.m) + len(b.pids.m) + len(b.pods.m) + len(b.calls.m) + len(b.creates) + len(b.words)
			if most := 1024 + 64 + maxDone + maxContainers + maxPids + 4*maxPending + maxWords; held > most {
				t.Errorf("%d objects in memory, want at most %d", held, most)
			}
			for s := range b.newestFirst() {
				if len(s.points) > maxPoints || len(s.spans) > maxSpans || len(s.kept) > 32 || len(s.tail) > 32 || len(s.calls) > maxCalls || len(s.containers) > maxOfPod {
					t.Errorf("one start uses too much memory")
				}
			}
			if err := b.Close(); err != nil || len(b.open) != 0 {
				t.Errorf("%v, %d still open", err, len(b.open))
			}
			if name == "many sandboxes" && (given != 10_000 || b.Dropped != 10_000-1024) {
				t.Errorf("%d starts delivered, %d dropped", given, b.Dropped)
			}
		})
	}
}

func TestLateNetworkLineIsNotPartOfTheStart(t *testing.T) {
	var out []record.Start
	b := New([]string{"crio.log"}, func(s *record.Start, _ int) error { out = append(out, *s); return nil })
	line := func(after time.Duration, msg, more string) string {
		at := time.Date(2026, 1, 2, 3, 4, 5, 123456, time.UTC).Add(after)
		return fmt.Sprintf("time=%q level=info msg=%q%s\n", at.Format(time.RFC3339Nano), msg, more)
	}
	const request = " id=r1 name=/runtime.v1.RuntimeService/RunPodSandbox"
	const network = "Got pod network &{Name:p Namespace:n ID:f667548134d1 UID:u NetNS:/run/netns/x}"
	text := line(0, "Running pod sandbox: n/p/POD", request) + line(100*time.Millisecond, network, "") +
		line(500*time.Millisecond, "Ran pod sandbox f667548134d1 with infra container: n/p/POD", request) +
		line(settled+600*time.Millisecond, "Adding pod n_p to CNI network \"x\"", "") + line(settled+700*time.Millisecond, network, "")
	_, err := logs.Read(t.Context(), []logs.Source{{Name: "crio.log", Reader: strings.NewReader(text)}}, b.Add)
	must.OK(t, err)
	if len(out) != 1 || (out[0].Ended-out[0].Began)/1e6 != 500 || out[0].Events != 3 {
		t.Errorf("delivered before the end of the log: %+v", out)
	}
	must.OK(t, b.Close())
	if len(out) != 1 {
		t.Errorf("the line created another start: %+v", out)
	}
}

func TestReceiverErrorStopsReading(t *testing.T) {
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

func TestOrdinaryLinesDoNotAllocate(t *testing.T) {
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
		text := must.Get(os.ReadFile("../logs/testdata/" + name))(f)
		f.Add(text[:min(len(text), 6000)], name)
	}
	for _, group := range groups {
		for i, one := range strings.Split(must.Read(f, "testdata/cases/"+group+".txt"), "\n\n// ") {
			f.Add([]byte(one), []string{"kata.log", "dockerd.log", "crio.log", "containerd.log"}[i%4])
		}
	}
	f.Fuzz(func(t *testing.T, text []byte, name string) {
		starts, _ := readWith(t, func(b *Builder) { b.maxOpen, b.maxGaps = 4, 3 }, map[string]io.Reader{name: bytes.NewReader(text)}, name)
		for i := range starts {
			if s := &starts[i]; s.Ended != 0 && s.Ended < s.Began || len(s.Gaps) > 3 {
				t.Errorf("%+v", s)
			}
		}
	})
}

func TestContainerCreatedADayBeforeItsStart(t *testing.T) {
	var found []record.Start
	b := New([]string{"a"}, func(s *record.Start, _ int) error { found = append(found, *s); return nil })
	id := strings.Repeat("ab", 32)
	begin := int64(1e18)
	must.OK(t, b.Add(&logs.Event{Form: logs.Docker, Time: begin, Source: []byte("docker events"), Subsystem: []byte("create"), Container: []byte(id)}))
	begin += int64(25 * time.Hour)
	must.OK(t, b.Add(&logs.Event{Form: logs.Docker, Time: begin, Message: []byte("Calling POST /v1.41/containers/" + id + "/start")}))
	must.OK(t, b.Close())
	if n := len(found); n == 0 || found[n-1].Began != begin {
		t.Errorf("%+v", found)
	}
}
