package trace

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/golden"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

const ms = int64(1e6)

// proc returns a process that is forked at from and ends at to, in ms of the start. It
// executes its program 0.5 ms after the fork. If to is 0, it is still running at the end.
func proc(pid, parent int, kind, name string, from, to int64) record.StartProcess {
	program, verb, _ := strings.Cut(name, " ")
	p := record.StartProcess{Pid: pid, Parent: parent, Kind: kind, Name: name, Program: program, Verb: verb, Born: from * ms, Exec: from*ms + ms/2, CPU: -1}
	if to != 0 {
		p.Ended = to * ms
	}
	return p
}

// start returns an observed start at time 0. Its processes used no CPU time.
func start(ended int64, all ...record.StartProcess) *record.Start {
	return &record.Start{Method: record.MethodBPF, Ended: ended * ms, Processes: all, Busy: []record.BusyAt{{At: 0}, {At: ended * ms}}}
}

// line formats parts as "docker 0-10, runc create 10-40".
func line(parts []Part) string {
	var words []string
	for _, p := range parts {
		words = append(words, fmt.Sprintf("%s %g-%g", p.Name, float64(p.Began)/1e6, float64(p.Ended)/1e6))
	}
	return strings.Join(words, ", ")
}

// play parses a start, one item per line. A process is "pid below parent, from-to, kind:
// name[, executed at ms]" and a span is "from-to kind: name". The stamps are "first
// instruction at ms" and "ended at ms". A first line such as "logs 0" has the method and
// the beginning.
func play(t *testing.T, text string) *record.Start {
	t.Helper()
	s := start(0)
	for line := range strings.Lines(text) {
		var pid, parent, from, to int64
		var word, kind string
		head, name, _ := strings.Cut(strings.TrimSpace(line), ": ")
		if n, _ := fmt.Sscanf(head, "%d below %d, %d-%d, %s", &pid, &parent, &from, &to, &kind); n == 5 {
			name, executed, moved := strings.Cut(name, ", executed at ")
			p := proc(int(pid), int(parent), kind, name, from, to)
			if moved {
				p.Exec, _ = strconv.ParseInt(executed, 10, 64)
				p.Exec *= ms
			}
			s.Processes = append(s.Processes, p)
		} else if n, _ := fmt.Sscanf(head, "%d-%d %s", &from, &to, &kind); n == 3 {
			s.Spans = append(s.Spans, record.Span{Name: name, Kind: kind, Began: from * ms, Ended: to * ms})
		} else if at, is := strings.CutPrefix(head, "first instruction at "); is {
			first := must.Get(strconv.ParseFloat(at, 64))(t)
			s.First = int64(first * float64(ms))
		} else if n, _ := fmt.Sscanf(head, "ended at %d", &to); n == 1 {
			s.Ended = to * ms
			s.Busy[1].At = s.Ended
		} else if n, _ := fmt.Sscanf(head, "%s %d", &word, &from); n == 2 {
			s.Method, s.Began, s.Busy = word, from*ms, make([]record.BusyAt, 2)
		} else {
			t.Fatalf("invalid line %q", line)
		}
	}
	return s
}

func TestStartIsDividedByCriticalPath(t *testing.T) {
	golden.Cases(t, "testdata/starts.txt", func(t *testing.T, text string) string {
		s := play(t, text)
		lines := []string{"parts: " + line(Parts(s, "docker")), "calls: " + line(Calls(s, "docker")), "rows:"}
		for _, r := range Rows(s) {
			row := fmt.Sprintf("%s %g-%g", r.Name, float64(r.Began)/1e6, float64(r.Ended)/1e6)
			if r.First != 0 {
				row += fmt.Sprintf(", first instruction at %g", float64(r.First)/1e6)
			}
			if r.Open {
				row += ", open"
			}
			lines = append(lines, strings.Repeat("  ", r.Depth+1)+row)
		}
		for _, g := range Gaps(s, "docker", 1) {
			took := float64(g.Ended-g.Began) / 1e6
			lines = append(lines, fmt.Sprintf("longest gap: %g ms in %s, after %s, before %s, CPU %d", took, g.In, g.After, g.Before, g.CPU))
		}
		return strings.Join(lines, "\n")
	})
}

func TestPartHasItsCPUTime(t *testing.T) {
	s := start(100, proc(1, 0, record.KindCall, "runc create", 20, 60))
	s.Busy = []record.BusyAt{{At: 10 * ms, CPU: 5}, {At: 20 * ms, CPU: 100}, {At: 60 * ms, CPU: 1100}, {At: 110 * ms, CPU: 1600}}
	var got []int64
	for _, p := range Parts(s, "docker") {
		got = append(got, p.CPU)
	}
	if want := []int64{95, 1000, 400}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	s.Busy = nil
	if p := Parts(s, "docker")[1]; p.CPU != -1 {
		t.Errorf("unexpected %d ns of CPU time", p.CPU)
	}
}

func TestLogGapsAreTheRecordedGaps(t *testing.T) {
	s := &record.Start{Method: record.MethodLogs, Ended: 9e9, Gaps: []record.Gap{
		{Began: 0, Ended: 1e6, In: "kata", CPU: -1}, {Began: 1e9, Ended: 2001846000, In: "kata_agent", CPU: -1, After: "New client", Before: "sending request"}}}
	got := Gaps(s, "kata", 1)
	if len(got) != 1 || got[0].In != "kata_agent" {
		t.Errorf("%+v", got)
	}
	for _, method := range []string{record.MethodNotes, record.MethodNone} {
		if got := Gaps(&record.Start{Method: method, Ended: 9e9}, "kata", 5); len(got) != 0 {
			t.Errorf("%s: %+v", method, got)
		}
	}
}

// A VMM and a file server run from 1 s to 10 s, without forks or exits in between. The
// engine's daemon runs all the time.
func TestVMMTimeAloneBelongsToTheVMM(t *testing.T) {
	const s = int64(1e9)
	for name, c := range map[string]struct {
		vmm, files, all int64 // CPU time in the gap
		gap             int64
		want            bool
	}{
		"VMM only":                 {9 * s, 0, 9 * s, 9 * s, true},
		"VMM with its file server": {6 * s, 3 * s, 9 * s, 9 * s, true},
		"90 % of the CPU time":     {9 * s, 0, 10 * s, 9 * s, true},
		"80 % of the CPU time":     {8 * s, 0, 10 * s, 9 * s, false},
		"almost idle":              {s / 10, 0, s / 10, 9 * s, false},
		"gap too short":            {s / 20, 0, s / 20, s / 20, false},
		"unknown total CPU time":   {0, 0, -1, 9 * s, false},
	} {
		end := s + c.gap
		used := func(cpu int64) []record.BusyAt { return []record.BusyAt{{At: s}, {At: end, CPU: cpu}} }
		start := &record.Start{Method: record.MethodBPF, Began: 0, Ended: end, Processes: []record.StartProcess{
			{Pid: 1, Kind: record.KindDaemon, Name: "containerd"},
			{Pid: 2, Kind: record.KindVirtiofsd, Name: "virtiofsd", Born: s, Exec: s, Used: used(c.files)},
			{Pid: 3, Kind: record.KindVMM, Name: "qemu", Born: s, Exec: s, Used: used(c.vmm)},
		}}
		if c.all >= 0 {
			start.Busy = []record.BusyAt{{At: 0}, {At: s}, {At: end, CPU: c.all}}
		}
		var took int64
		for _, p := range Calls(start, "containerd") {
			if p.Kind == record.KindVMM {
				took += p.Ended - p.Began
			}
		}
		check.Equal(t, name, took, map[bool]int64{true: c.gap}[c.want])
	}
}

// random builds a start from bytes: each six are a process or a span.
func random(data []byte) *record.Start {
	kinds := []string{
		record.KindClient, record.KindDaemon, record.KindShim, record.KindCall, record.KindInit, record.KindCNI, record.KindHelper,
		record.KindVMM, record.KindWorkload, record.KindOther, record.KindEngine, record.KindPhase,
	}
	s := &record.Start{Method: record.MethodBPF}
	if len(data) < 3 {
		return s
	}
	s.Began, s.Ended, s.First = int64(data[0])*1e6, int64(data[1])*1e6+1, int64(data[2])*1e6
	for data = data[3:]; len(data) >= 6; data = data[6:] {
		p := record.StartProcess{
			Pid: int(data[0] % 8), Parent: int(data[0] / 8 % 8), Kind: kinds[int(data[1])%len(kinds)], Name: "x",
			Verb: []string{"create", "run", ""}[data[1]/86], Born: int64(data[2]) * 1e6, Exec: int64(data[3]) * 1e6, Ended: int64(data[4]) * 1e6,
		}
		s.Processes = append(s.Processes, p)
		s.Spans = append(s.Spans, record.Span{Name: "x", Kind: p.Kind, Began: p.Born, Ended: p.Ended})
		s.Busy = append(s.Busy, record.BusyAt{At: int64(len(s.Busy)) * 7e6, CPU: int64(len(s.Busy)) * int64(data[5])})
	}
	return s
}

func FuzzPartsAddUpToTheWallTime(f *testing.F) {
	f.Add([]byte("\x00\xff\x20" + "\x01\x03\x10\x11\x30\x01" + "\x0a\x04\x12\x13\x50\x01" + "\x0a\x08\x20\x20\x60\x01" + "\x02\x05\x70\x71\x00\x09"))
	f.Add([]byte("\x00\x80\x00" + "\x01\x03\x50\x11\x10\x01" + "\x01\x03\x50\x11\x60\x01" + "\x01\x03\x20\x11\x90\x01"))
	f.Fuzz(func(t *testing.T, data []byte) {
		live := random(data)
		logs := *live
		logs.Processes, logs.Method = nil, record.MethodLogs
		for _, s := range []*record.Start{live, &logs} {
			closes(t, s, Parts(s, "docker"))
			closes(t, s, Calls(s, "docker"))
			if rows := Rows(s); len(rows) != len(s.Processes)+len(s.Spans) {
				t.Errorf("%d rows of %d processes and %d spans", len(rows), len(s.Processes), len(s.Spans))
			} else {
				for i, r := range rows {
					if r.Ended < r.Began || r.Depth > i || i > 0 && r.Depth > rows[i-1].Depth+1 {
						t.Errorf("row %d: %+v", i, r)
					}
				}
			}
		}
		last := int64(1 << 62)
		for _, g := range Gaps(live, "docker", 10) {
			if g.Began < live.Began || g.Ended > live.Ended || g.Ended-g.Began > last || g.Ended-g.Began < shortest || g.In == "" || g.After == "" || g.Before == "" {
				t.Errorf("%+v", g)
			}
			last = g.Ended - g.Began
		}
	})
}

// closes checks that parts are contiguous from the beginning to the end.
func closes(t *testing.T, s *record.Start, parts []Part) {
	t.Helper()
	at := s.Began
	for _, p := range parts {
		if p.Began != at || p.Ended <= p.Began || p.Name == "" || p.Kind == "" || p.CPU < -1 {
			t.Fatalf("after %d: %+v", at, p)
		}
		at = p.Ended
	}
	if s.Ended > s.Began && at != s.Ended {
		t.Fatalf("parts end at %d, want %d", at, s.Ended)
	}
	if s.Ended <= s.Began && len(parts) != 0 {
		t.Fatalf("parts of a start without an end: %+v", parts)
	}
}
