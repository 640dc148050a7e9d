package startup

import (
	"strings"
	"testing"
	"time"

	"github.com/tare-bench/tare/record"
)

func TestATimerIsNamedWhereItRepeatsAndNobodyWorksMeanwhile(t *testing.T) {
	const ms = time.Millisecond
	gaps := func(cpu, others int64, after string, all ...time.Duration) (out []*record.Gap) {
		for _, took := range all {
			out = append(out, &record.Gap{Began: 1e9, Ended: 1e9 + int64(took), CPU: cpu, Others: others, After: after, Before: "b", In: "docker"})
		}
		return out
	}
	for name, c := range map[string]struct {
		gaps []*record.Gap
		want string
	}{
		"a poll that every start has":               {gaps(0, 0, "a", 100*ms, 101*ms, 100*ms), "100 ms poll"},
		"a second that two of a report have":        {gaps(-1, 0, "New client", 1001820*time.Microsecond, 1001177*time.Microsecond), "1 s timer"},
		"which is gRPC's where gRPC is spoken of":   {gaps(-1, 0, "grpc dial failed", 1001*ms, 1002*ms), "gRPC dial, first back-off (1 s)"},
		"a query without an answer":                 {gaps(-1, 0, "lookup registry", 5001*ms, 5004*ms), "DNS, no answer (5 s)"},
		"the grace of a stop":                       {gaps(0, 0, "runc kill ended", 10001*ms, 10004*ms), "stop grace (10 s)"},
		"one start in three goes another way":       {gaps(0, 0, "a", 500*ms, 501*ms, 740*ms), "500 ms timer"},
		"once is chance":                            {gaps(0, 0, "a", 500*ms), ""},
		"so is twice in five":                       {gaps(0, 0, "a", 500*ms, 501*ms, 510*ms, 530*ms, 570*ms), ""},
		"a length that is no timer's":               {gaps(0, 0, "a", 700*ms, 700*ms, 701*ms), ""},
		"a timer never fires early":                 {gaps(0, 0, "a", 498*ms, 497*ms), ""},
		"nor late each time":                        {gaps(0, 0, "a", 508*ms, 509*ms), ""},
		"5 % of work is no wait":                    {gaps(int64(50*ms), 0, "a", 1000*ms, 1001*ms), ""},
		"nor is what others write lines in":         {gaps(-1, 732, "New client", 1001*ms, 1001*ms), ""},
		"reseeding has no length of its own":        {gaps(-1, 0, "resume vm", 348*ms, 348*ms), ""},
		"a gap that takes more than a life is none": {[]*record.Gap{{Began: -1 << 62, Ended: 1 << 62}, {Began: -1 << 62, Ended: 1 << 62}}, ""},
	} {
		got := ""
		if w := waited(c.gaps); w != nil {
			got = w.Timer
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	workload := gaps(0, 0, "a", 500*ms, 500*ms)
	workload[0].In, workload[1].In = "workload sleep", "workload sleep"
	if w := waited(workload); w != nil {
		t.Errorf("a workload's: %+v", w)
	}
}

func TestTheEvidenceOfATimerIsItsLengthsItsEventsAndWhoWorked(t *testing.T) {
	all := []*record.Gap{{Ended: 501e6, CPU: 2e5, After: strings.Repeat("é\x1b\n", 1e6), Before: "b"}, {Ended: 502e6, CPU: 1e5, After: "a", Before: "b"}}
	w := waited(all)
	if w == nil || len(w.Why) > 1000 || strings.ContainsAny(w.Why, "\x1b\n") {
		t.Fatalf("%+v", w)
	}
	for _, want := range []string{"501.0 ms to 502.0 ms, 2 of 2 times", `to "b"; nominal 500ms, a round number; CPU used meanwhile: 0.2 ms`} {
		if !strings.Contains(w.Why, want) {
			t.Errorf("no %q in %s", want, w.Why)
		}
	}
}
