package trace

import (
	"testing"

	"github.com/tare-bench/tare/record"
)

// random makes a start of any bytes: each six are a process or span.
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

func FuzzPartsCloseWithTheWallTime(f *testing.F) {
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

// closes checks that parts follow each other from the beginning to the end.
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
		t.Fatalf("parts end at %d, not at %d", at, s.Ended)
	}
	if s.Ended <= s.Began && len(parts) != 0 {
		t.Fatalf("a start without an end has %+v", parts)
	}
}
