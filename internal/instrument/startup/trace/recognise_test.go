package trace

import (
	"strings"
	"testing"
	"time"

	"github.com/tare-bench/tare/record"
)

func gap(took time.Duration, cpu int64, after, before string) *record.Gap {
	return &record.Gap{Began: 1e9, Ended: 1e9 + int64(took), CPU: cpu, After: after, Before: before}
}

func TestAWaitIsNamedByWhatItsEventsSpeakOf(t *testing.T) {
	for name, c := range map[string]struct {
		gap  *record.Gap
		want string
	}{
		// The first four are of a published report.
		"a client of the agent that connects after 1.0018 s waited for gRPC": {
			gap(1001846000, -1, "New client", "sending request"), "gRPC dial, first back-off (1 s)"},
		"and after 1.0012 s": {
			gap(1001177000, -1, "New client", "sending request"), "gRPC dial, first back-off (1 s)"},
		"and when the proxy is the one who tells, after 1.0009 s": {
			gap(1000883342, -1, "New client", "proxy opens stream"), "gRPC dial, first back-off (1 s)"},
		"an agent that serves for 0.58 s before the stream waited for the rest": {
			gap(579932088, -1, "agent grpc server serves", "proxy opens stream"), "gRPC dial, rest of the first back-off (1 s)"},
		"an agent that serves for 0.99 s before the stream, for all of it": {
			gap(993709382, -1, "agent grpc server serves", "proxy opens stream"), "gRPC dial, first back-off (1 s)"},
		"reseeding is a matter of entropy": {
			gap(348*time.Millisecond, -1, "reseed guest random number generator", "proxy started"), "entropy: random numbers were waited for"},
		"so is what ends with the generator's readiness": {
			gap(2*time.Second, -1, "mounted", "random: crng init done"), "entropy: random numbers were waited for"},

		"the least jitter of the first":  {gap(800*time.Millisecond, 0, "dialing", "connected"), "gRPC dial, first back-off (1 s)"},
		"the most jitter of the first":   {gap(1200*time.Millisecond, 0, "dialing", "connected"), "gRPC dial, first back-off (1 s)"},
		"the second":                     {gap(1600*time.Millisecond, 0, "connecting", "connected"), "gRPC dial, second back-off (1.6 s)"},
		"the third":                      {gap(2560*time.Millisecond, 0, "connecting", "connected"), "gRPC dial, third back-off (2.56 s)"},
		"the sixth, where attempts fail": {gap(10500*time.Millisecond, 0, "connection refused", "connected"), "gRPC dial, sixth back-off (10.5 s)"},
		"a late one":                     {gap(121*time.Second, 0, "dial failed", "connected"), "gRPC dial, eleventh back-off (110 s)"},
		"no later one where a guest wrote": {
			&record.Gap{Began: 0, Ended: 16e8, CPU: -1, Others: 40, After: "New client", Before: "Agent started in the sandbox"}, ""},
		"no fifth one after a mere client": {gap(7400*time.Millisecond, -1, "New client", "Agent started in the sandbox"), ""},

		// With its jitter a back-off may be any length around a second.
		"what comes after an answer waits for something else": {
			gap(903*time.Millisecond, -1, "agent connected", "start container"), ""},
		"and if it takes a second, for a second": {
			gap(1003*time.Millisecond, -1, "New client connected", "sending request"), "1 s timer"},
		"what does not end with an answer either": {gap(903*time.Millisecond, -1, "New client", "start container"), ""},
		"nor what speaks of a network":            {gap(1100*time.Millisecond, -1, "connect TCFilter to VM network", "connected"), ""},
		"an attempt after one that failed is the back-off itself": {
			gap(1*time.Second, -1, "dial failed: connection refused", "dialing again"), "gRPC dial, first back-off (1 s)"},
		"a client of a published report that is told to be connected": {
			gap(1001359*time.Microsecond, -1, "New client", "New client connected"), "gRPC dial, first back-off (1 s)"},
		"its proxy": {
			gap(994556*time.Microsecond, -1, "proxy accepts", "proxy opens stream"), "gRPC dial, first back-off (1 s)"},

		"a query without an answer": {gap(5004*time.Millisecond, 1e6, "lookup registry", "pulled"), "DNS, no answer (5 s)"},
		"5 s of nothing special":    {gap(5004*time.Millisecond, 1e6, "a", "b"), "5 s timer"},
		"the grace of a stop":       {gap(10020*time.Millisecond, 1e6, "runc kill ended", "sh ended"), "stop grace (10 s)"},
		"10 s of nothing special":   {gap(10020*time.Millisecond, 1e6, "a", "b"), "10 s timer"},
		"a pod's grace":             {gap(30020*time.Millisecond, 1e6, "StopContainer", "b"), "stop grace (30 s)"},
		"the poll of a delete":      {gap(101*time.Millisecond, 1e5, "runc kill executed", "b"), "poll for a killed process (100 ms)"},
		"a poll":                    {gap(101*time.Millisecond, 1e5, "a", "b"), "100 ms poll"},
		"a quarter":                 {gap(255*time.Millisecond, 1e5, "a", "b"), "250 ms timer"},
		"half a second":             {gap(501*time.Millisecond, 1e5, "a", "b"), "500 ms timer"},
		"a second":                  {gap(1003*time.Millisecond, 1e5, "runc create executed", "sleep ended"), "1 s timer"},
		"half a minute":             {gap(30003*time.Millisecond, 1e5, "a", "b"), "30 s time-out"},
		"a minute":                  {gap(60003*time.Millisecond, 1e5, "a", "b"), "60 s time-out"},

		"a timer never fires early":         {gap(990*time.Millisecond, 1e5, "a", "b"), ""},
		"nor that late":                     {gap(1060*time.Millisecond, 1e5, "a", "b"), ""},
		"0.7 s is no timer":                 {gap(700*time.Millisecond, 0, "a", "b"), ""},
		"4.2 s is no timer":                 {gap(4200*time.Millisecond, 0, "a", "b"), ""},
		"a second of work is no wait":       {gap(time.Second, 9e8, "New client", "connected"), ""},
		"nor is one of 5 % of work":         {gap(time.Second, 5e7, "New client", "connected"), ""},
		"one with a little less is":         {gap(time.Second, 49e6, "New client", "connected"), "gRPC dial, first back-off (1 s)"},
		"a gap that ends before it begins":  {gap(-time.Second, 0, "New client", "connected"), ""},
		"a gap that takes more than a life": {&record.Gap{Began: -1 << 62, Ended: 1 << 62}, ""},
		"a gap without length":              {gap(0, 0, "reseed", ""), ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if w := Recognise(c.gap); w != nil {
				got = w.Timer
			}
			if got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func TestTheEvidenceNamesTheEventsTheLengthAndTheNominal(t *testing.T) {
	for want, g := range map[string]*record.Gap{
		`1.002 s from "New client" to "sending request"; nominal 1 s, ±20 %, gRPC's connection-backoff.md; CPU time is not known`: gap(1001846000, -1, "New client", "sending request"),
		`501.0 ms from "a" to "b"; nominal 500 ms, a round number; CPU used meanwhile: 0.2 ms`:                                    gap(501*time.Millisecond, 2e5, "a", "b"),
	} {
		w := Recognise(g)
		if w == nil || w.Why != want {
			t.Errorf("%+v\nwant %s", w, want)
		}
	}
	long := Recognise(gap(time.Second, -1, strings.Repeat("é\x1b\n", 1e6), "b"))
	if long == nil || len(long.Why) > 1000 || strings.ContainsAny(long.Why, "\x1b\n") {
		t.Error("a long, dirty event makes long or dirty evidence")
	}
}

// Of lengths without any meaning few may be named, or a name would say nothing.
func TestFewLengthsAreCalledATimer(t *testing.T) {
	named, all := 0, 0
	for took := time.Duration(5e6); took < 2*time.Minute; took += took / 100 {
		all++
		if Recognise(gap(took, 0, "a", "b")) != nil {
			named++
		}
	}
	if named == 0 || named*5 > all {
		t.Errorf("%d of %d lengths are named", named, all)
	}
}
