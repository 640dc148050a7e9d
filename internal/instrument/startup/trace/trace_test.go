package trace

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/testing/golden"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

const ms = int64(1e6)

// proc is a process from one ms of a start to another, executed half a ms after
// its birth; to is 0 where it was still there.
func proc(pid, parent int, kind, name string, from, to int64) record.StartProcess {
	program, verb, _ := strings.Cut(name, " ")
	p := record.StartProcess{Pid: pid, Parent: parent, Kind: kind, Name: name, Program: program, Verb: verb, Born: from * ms, Exec: from*ms + ms/2, CPU: -1}
	if to != 0 {
		p.Ended = to * ms
	}
	return p
}

// start is a live one that began at 0; its processes used no CPU time.
func start(ended int64, all ...record.StartProcess) *record.Start {
	return &record.Start{Method: record.MethodBPF, Ended: ended * ms, Processes: all, Busy: []record.BusyAt{{At: 0}, {At: ended * ms}}}
}

// line writes parts as "docker 0-10, runc create 10-40".
func line(parts []Part) string {
	var words []string
	for _, p := range parts {
		words = append(words, fmt.Sprintf("%s %g-%g", p.Name, float64(p.Began)/1e6, float64(p.Ended)/1e6))
	}
	return strings.Join(words, ", ")
}

// play reads a start: its processes, "pid below parent, from-to, kind: name[, executed at ms]", its
// spans, "from-to kind: name", and its stamps. A first line "logs 0" is a method and a begin.
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
			first, err := strconv.ParseFloat(at, 64)
			must.OK(t, err)
			s.First = int64(first * float64(ms))
		} else if n, _ := fmt.Sscanf(head, "ended at %d", &to); n == 1 {
			s.Ended = to * ms
			s.Busy[1].At = s.Ended
		} else if n, _ := fmt.Sscanf(head, "%s %d", &word, &from); n == 2 {
			s.Method, s.Began, s.Busy = word, from*ms, make([]record.BusyAt, 2)
		} else {
			t.Fatalf("a start says %q", line)
		}
	}
	return s
}

func TestTheTimeOfAStartIsDividedByWhatIsWaitedFor(t *testing.T) {
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

func TestAPartHasTheCPUTimeThatWasUsedMeanwhile(t *testing.T) {
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
		t.Errorf("%d ns of CPU from nowhere", p.CPU)
	}
}

func TestGapsOfLogsAreThoseThatWereRecorded(t *testing.T) {
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
