package record

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

func goodStart() Start {
	code := 137
	return Start{
		Type: TypeStart, Target: "docker/runc", Method: MethodBPF, Clock: ClockMonotonic, Began: 100, First: 900, Ended: 1000,
		Containers: []string{"c1"}, Events: 5,
		Processes: []StartProcess{{Pid: 7, Parent: 1, Kind: KindCall, Name: "runc create", Program: "runc", Born: 200, Exec: 210, Ended: 400, CPU: 50, Exit: &code}},
		Busy:      []BusyAt{{At: 100}, {At: 400, CPU: 60}},
		Spans:     []Span{{Name: "a", Kind: KindPhase, Began: 1, Ended: 2}},
		Gaps:      []Gap{{Began: 1, Ended: 5, After: "a", Before: "b", CPU: -1, Wait: &Wait{Timer: "t", Nominal: 4}}},
		Guests:    []GuestClock{{Name: "g", Offset: -5, Uncertainty: -1, Pairs: 2}},
		Missing:   []Missing{{What: "cut", Count: 1}},
		Claims:    []StartClaim{{Name: "sum", Value: 5}},
	}
}

func TestAStartIsReadAsItWasWritten(t *testing.T) {
	var file bytes.Buffer
	w := NewWriter(&file)
	want, logs := goodStart(), Logs{Type: TypeLogs, Files: []string{"a.log"}, Lines: 5, Forms: map[string]int64{"kata": 5}}
	for _, line := range []any{Header{RunID: "r", Experiment: "startup"}, want, &logs, End{Status: "done"}} {
		if err := w.Write(line); err != nil {
			t.Fatal(err)
		}
	}
	got, err := Read(&file)
	if err != nil || len(got.Problems) > 0 {
		t.Fatal(err, got.Problems)
	}
	if len(got.Starts) != 1 || !reflect.DeepEqual(got.Starts[0], want) || !reflect.DeepEqual(got.Logs, &logs) {
		t.Errorf("got %+v and %+v", got.Starts, got.Logs)
	}
}

func TestAStartThatCannotBeIsRefused(t *testing.T) {
	if s := goodStart(); s.Validate() != nil {
		t.Fatal(s.Validate())
	}
	minus := -2
	for claim, spoil := range map[string]func(*Start){
		"no target":                          func(s *Start) { s.Target = "" },
		"a method that there is none of":     func(s *Start) { s.Method = "guess" },
		"a clock that there is none of":      func(s *Start) { s.Clock = "sun" },
		"an end before the begin":            func(s *Start) { s.Ended = 99 },
		"an end more than a year later":      func(s *Start) { s.Ended = 100 + int64(longestSpan) + 1 },
		"a negative round":                   func(s *Start) { s.Round = -1 },
		"negative tracing":                   func(s *Start) { s.Tracing = -1 },
		"a failure of no kind":               func(s *Start) { s.Failure = &Failure{} },
		"a name as long as a book":           func(s *Start) { s.Name = strings.Repeat("x", maxLabel+1) },
		"a process without a name":           func(s *Start) { s.Processes[0].Name = "" },
		"a process with a negative pid":      func(s *Start) { s.Processes[0].Pid = -1 },
		"a process that ended before birth":  func(s *Start) { s.Processes[0].Ended = 199 },
		"a process that executed unborn":     func(s *Start) { s.Processes[0].Exec = 199 },
		"a process with less than no CPU":    func(s *Start) { s.Processes[0].CPU = -2 },
		"an exit code below -1":              func(s *Start) { s.Processes[0].Exit = &minus },
		"CPU time that goes back in time":    func(s *Start) { s.Busy[1].At = 99 },
		"negative CPU time":                  func(s *Start) { s.Busy[1].CPU = -1 },
		"a span without a kind":              func(s *Start) { s.Spans[0].Kind = "" },
		"a span that ends before it begins":  func(s *Start) { s.Spans[0].Ended = 0 },
		"a gap that ends before it begins":   func(s *Start) { s.Gaps[0].Ended = 0 },
		"a gap with fewer than no others":    func(s *Start) { s.Gaps[0].Others = -1 },
		"a wait of negative length":          func(s *Start) { s.Gaps[0].Wait.Nominal = -1 },
		"a guest seen by fewer than no pair": func(s *Start) { s.Guests[0].Pairs = -1 },
		"missing evidence without a name":    func(s *Start) { s.Missing[0].What = "" },
		"a negative claim":                   func(s *Start) { s.Claims[0].Value = -1 },
		"an id as long as a book":            func(s *Start) { s.Containers[0] = strings.Repeat("x", maxLabel+1) },
	} {
		s := goodStart()
		spoil(&s)
		if s.Validate() == nil {
			t.Errorf("%s was taken", claim)
		}
	}
	for claim, l := range map[string]Logs{
		"negative lines":        {Lines: -1},
		"less than no evidence": {Missing: []Missing{{What: "disorder", Count: -1}}},
		"evidence of nothing":   {Missing: []Missing{{Count: 1}}},
		"negative lines a form": {Forms: map[string]int64{"kata": -1}},
		"a book for a name":     {Files: []string{strings.Repeat("x", maxPath+1)}},
	} {
		if l.Validate() == nil {
			t.Errorf("%s was taken", claim)
		}
	}
}

func TestAStartWithMoreThanAnHonestOneHasIsRefused(t *testing.T) {
	s := goodStart()
	for range MaxStartProcesses {
		s.Processes = append(s.Processes, s.Processes[0])
	}
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := decodeLine(text, TypeStart); err == nil || !strings.Contains(err.Error(), "more than 4096 processes") {
		t.Errorf("got %v", err)
	}
}
