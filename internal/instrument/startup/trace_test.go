package startup

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/instrument/startup/trace"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

// chromeRead is the part of a JSON trace that Perfetto needs.
type chromeRead struct {
	Events []struct {
		Name  string          `json:"name"`
		Phase string          `json:"ph"`
		At    *json.Number    `json:"ts"`
		Took  *json.Number    `json:"dur"`
		Pid   *int            `json:"pid"`
		Tid   *int            `json:"tid"`
		Scope string          `json:"s"`
		Args  json.RawMessage `json:"args"`
	} `json:"traceEvents"`
	Unit string `json:"displayTimeUnit"`
}

// nanos parses a number in µs with three decimals exactly.
func nanos(t *testing.T, n json.Number) int64 {
	t.Helper()
	whole, ok := regexp.MustCompile(`^(\d+)\.(\d{3})$`).FindStringSubmatch(n.String()), false
	if ok = whole != nil; !ok {
		t.Fatalf("%s is not a time in µs", n)
	}
	ns := must.Get(strconv.ParseInt(whole[1]+whole[2], 10, 64))(t)
	return ns
}

func TestChromeTraceIsValid(t *testing.T) {
	type lane struct{ pid, tid int }
	type slice struct{ began, ended int64 }
	for name, s := range everyStart() {
		var got chromeRead
		must.OK(t, json.Unmarshal([]byte(s.report(t, "chrome", page.Options{})), &got))
		if got.Events == nil || got.Unit != "ms" {
			t.Errorf("%s: no list of events, or %q", name, got.Unit)
		}
		lanes, threads, processes, slices := map[lane][]slice{}, map[lane]bool{}, map[int]bool{}, 0
		for _, e := range got.Events {
			if e.At == nil || e.Pid == nil || e.Tid == nil || e.Name == "" || *e.Pid <= 0 {
				t.Fatalf("%s: incomplete: %+v", name, e)
			}
			at := lane{*e.Pid, *e.Tid}
			switch e.Phase {
			case "M":
				threads[at] = threads[at] || e.Name == "thread_name"
				processes[at.pid] = processes[at.pid] || e.Name == "process_name"
			case "i":
				if e.Scope != "p" || nanos(t, *e.At) <= 0 {
					t.Errorf("%s: %+v", name, e)
				}
			case "X":
				slices++
				one := slice{began: nanos(t, *e.At)}
				one.ended = one.began + nanos(t, *e.Took)
				if one.ended < one.began {
					t.Errorf("%s: %+v ends before its begin", name, e)
				}
				for _, other := range lanes[at] {
					apart := other.ended <= one.began || one.ended <= other.began
					within := other.began <= one.began && one.ended <= other.ended || one.began <= other.began && other.ended <= one.ended
					if !apart && !within {
						t.Errorf("%s: %+v crosses %+v on lane %v", name, e, other, at)
					}
				}
				lanes[at] = append(lanes[at], one)
			default:
				t.Errorf("%s: phase %q", name, e.Phase)
			}
		}
		tids := map[int]int{}
		for at := range lanes {
			if tids[at.tid]++; tids[at.tid] > 1 {
				t.Errorf("%s: thread %d is in two processes", name, at.tid)
			}
			if !threads[at] || !processes[at.pid] {
				t.Errorf("%s: lane %v has no name", name, at)
			}
		}
		rows := 0
		for i := range s.v.Targets {
			if d := s.v.Targets[i].Drawn; d != nil {
				rows += 1 + len(d.Rows) + len(d.Parts) + len(d.Gaps)
			}
		}
		check.Equal(t, name, slices, rows)
	}
}

func TestOverlappingSlicesHaveSeparateLanes(t *testing.T) {
	at := func(pid int, kind string, began, ended int64) slice {
		return slice{Row: trace.Row{Part: trace.Part{Kind: kind, Began: began, Ended: ended}, Pid: pid}}
	}
	lanes, made := laid([]slice{at(0, "a", 0, 10), at(0, "a", 2, 6), at(0, "a", 4, 8), at(0, "a", 10, 12), at(0, "b", 1, 2), at(0, "a", 6, 7), at(3, "a", 0, 1)})
	if lanes[0] != lanes[1] || lanes[1] == lanes[2] || lanes[3] != lanes[0] || lanes[5] != lanes[0] || lanes[4] == lanes[0] || lanes[6] == lanes[0] || made != 4 {
		t.Errorf("got %v of %d", lanes, made)
	}
}

// otlpRead is the written part of opentelemetry/proto/trace/v1/trace.proto.
type otlpRead struct {
	Resources []struct {
		Resource struct {
			Attributes []otlpReadAttribute `json:"attributes"`
		} `json:"resource"`
		Scopes []struct {
			Scope struct {
				Name string `json:"name"`
			} `json:"scope"`
			Spans []struct {
				Trace      string              `json:"traceId"`
				Span       string              `json:"spanId"`
				Parent     string              `json:"parentSpanId"`
				Name       string              `json:"name"`
				Kind       int                 `json:"kind"`
				Began      string              `json:"startTimeUnixNano"`
				Ended      string              `json:"endTimeUnixNano"`
				Attributes []otlpReadAttribute `json:"attributes"`
				Events     []struct {
					At   string `json:"timeUnixNano"`
					Name string `json:"name"`
				} `json:"events"`
				Status struct {
					Code    int    `json:"code"`
					Message string `json:"message"`
				} `json:"status"`
			} `json:"spans"`
		} `json:"scopeSpans"`
	} `json:"resourceSpans"`
}

type otlpReadAttribute struct {
	Key   string                     `json:"key"`
	Value map[string]json.RawMessage `json:"value"`
}

// readOTLP reads an OTLP file with one request per line.
func readOTLP(t *testing.T, s *begun) (all otlpRead) {
	t.Helper()
	for line := range strings.Lines(s.report(t, "otlp", page.Options{})) {
		var one otlpRead
		if err := json.Unmarshal([]byte(line), &one); err != nil || len(one.Resources) != 1 {
			t.Fatalf("%v: %s", err, line)
		}
		all.Resources = append(all.Resources, one.Resources...)
	}
	return all
}

func TestOTLPFileIsAcceptedByCollectors(t *testing.T) {
	for name, s := range everyStart() {
		got := readOTLP(t, s)
		for _, r := range got.Resources {
			spans := r.Scopes[0].Spans
			known := map[string]bool{}
			for i, span := range spans {
				began := must.Get(strconv.ParseUint(span.Began, 10, 64))(t)
				ended, err := strconv.ParseUint(span.Ended, 10, 64)
				if err != nil || ended < began {
					t.Errorf("%s: %+v ends before its begin, %v", name, span, err)
				}
				switch {
				case !regexp.MustCompile(`^[0-9a-f]{32}$`).MatchString(span.Trace) || span.Trace != spans[0].Trace,
					!regexp.MustCompile(`^[0-9a-f]{16}$`).MatchString(span.Span) || known[span.Span],
					(span.Parent == "") != (i == 0) || i > 0 && !known[span.Parent],
					span.Kind != 1 || span.Name == "":
					t.Errorf("%s: span %d is %+v", name, i, span)
				}
				known[span.Span] = true
				for _, a := range span.Attributes {
					if a.Key == "" || len(a.Value) != 1 {
						t.Errorf("%s: attribute %+v", name, a)
					}
					if v, ok := a.Value["intValue"]; ok && v[0] != '"' {
						t.Errorf("%s: 64-bit number that is not a string: %s", name, v)
					}
				}
			}
		}
	}
}

func TestSpansUseWallClockTime(t *testing.T) {
	read := func(s *begun) otlpRead { return readOTLP(t, s) }
	said := func(all []otlpReadAttribute) string {
		for _, a := range all {
			if a.Key == "tare.times" {
				return string(a.Value["stringValue"])
			}
		}
		return ""
	}
	s := watched()
	live := read(s).Resources[0].Scopes[0].Spans
	if want := strconv.FormatInt(s.rec.Header.Started.UnixNano(), 10); live[0].Began != want || said(live[0].Attributes) != strconv.Quote(approximate) {
		t.Errorf("got %s, want %s; %s", live[0].Began, want, said(live[0].Attributes))
	}
	if want := strconv.FormatInt(s.rec.Header.Started.Add(201*time.Millisecond).UnixNano(), 10); live[0].Events[0].At != want {
		t.Errorf("first instruction at %s, want %s", live[0].Events[0].At, want)
	}
	failed := live[10]
	if failed.Name != "runc state" || failed.Status.Code != 2 || failed.Status.Message != "exit code 1" || failed.Parent != live[5].Span {
		t.Errorf("got %+v", failed)
	}
	logs := fromLogs()
	if root := read(logs).Resources[0].Scopes[0].Spans[0]; root.Began != strconv.FormatInt(logs.v.Targets[0].Drawn.Start.Began, 10) || said(root.Attributes) != "" {
		t.Errorf("got %+v", root)
	}
	other := watched()
	other.rec.Header.RunID = "another"
	if read(other).Resources[0].Scopes[0].Spans[0].Trace == live[0].Trace {
		t.Error("different runs have the same trace id")
	}
	check.Equal(t, "time out of range", (&spans{zero: 1<<63 - 1, s: &record.Start{}}).at(5), "9223372036854775807")
}
