package trace

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tare-bench/tare/record"
)

// idle is the share of a gap that its processes may have been on a CPU, all of
// them together, while it still is a wait: who sleeps does next to nothing.
const idle = 0.05

// timer is a wait that programs are known for.
type timer struct {
	name    string
	nominal int64 // ns; 0: it has no length of its own
	least   int64 // ns, both included
	most    int64
	because string // where the figures come from, part of the evidence
}

// Recognise says which known timer a gap looks like, nil where none does.
//
// A timer is named only where the processes of the start used less than 5 % of
// the gap as CPU time, or where that is not known, which Why says. What the events
// at both ends speak of goes before plain numbers: a second from "New client" to
// "sending request" is gRPC's back-off, else it is a timer of 1 s.
func Recognise(g *record.Gap) *record.Wait {
	took := g.Ended - g.Began
	if g.Ended <= g.Began || took <= 0 || g.CPU >= 0 && float64(g.CPU) >= idle*float64(took) {
		return nil
	}
	for _, t := range candidates(g) {
		if t.least <= took && took <= t.most {
			return &record.Wait{Timer: t.name, Nominal: t.nominal, Why: why(g, t)}
		}
	}
	return nil
}

// candidates are the timers that a gap may be, the most to the point first.
func candidates(g *record.Gap) []timer {
	after, before := strings.ToLower(bounded(g.After, 4096)), strings.ToLower(bounded(g.Before, 4096))
	text := after + "\n" + before
	var out []timer
	if speaks(text, "crng", "reseed", "entropy", "getrandom", "random:", "urandom") {
		out = append(out, entropy)
	}
	if dials(after, before) {
		out = append(out, dialled(after, before, g.Others)...)
	}
	if speaks(text, "dns", "resolv", "lookup", "nameserver") {
		out = append(out, resolver...)
	}
	if speaks(text, "stop", "kill", "sigterm", "terminat") {
		out = append(out, stopping...)
	}
	return append(out, plain...)
}

func speaks(text string, words ...string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
}

// entropy: before Linux 5.6 a read of random numbers blocks until the generator
// has been seeded, and a VM without a source of entropy is slow to do that. A
// published report found 0.348 s in the reseeding of a guest. It takes as long as
// it takes; what is shorter than 20 ms is no wait.
var entropy = timer{
	name: "entropy: random numbers were waited for", least: 20 * int64(time.Millisecond), most: math.MaxInt64,
	because: "the events speak of the random number generator",
}

// The back-off of gRPC's dial: 1 s first, then times 1.6, with a jitter of 20 %,
// see connection-backoff.md of gRPC. grpc-go waits exactly 1 s before the second
// attempt, which a published report found between a Kata runtime and its proxy.
const (
	backoffFirst  = int64(time.Second)
	backoffFactor = 1.6
	backoffJitter = 0.2
	backoffMost   = 120 * int64(time.Second)
	// backoffSlack is for what lies between the events and the timer: the attempt
	// that failed before it and the one that succeeds after it.
	backoffSlack = 50 * int64(time.Millisecond)
)

var ordinals = [...]string{"first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth", "eleventh"}

// failing is what a dial that failed speaks of.
var failing = []string{"retry", "failed", "refused", "error", "attempt", "unavailable", "backoff", "back-off"}

// dials tells whether somebody dialled, or could be dialled, when a gap began, and
// whether it ended with an answer, or with another attempt after one that failed.
// Who is connected already waits for something else.
func dials(after, before string) bool {
	dialling := speaks(after, "dial", "dail", "new client", "connecting", "connect to", "connection to", "connection refused", "connect failed",
		"failed to connect", "listen", "accepts", "serves", "serving", "backoff", "back-off") && !answers(after)
	again := speaks(after, failing...) && speaks(before, "dial", "dail", "connecting", "connect to")
	return dialling && (answers(before) || again)
}

// answers tells whether an event says that the other side is there.
func answers(text string) bool {
	text = strings.ReplaceAll(strings.ReplaceAll(text, "disconnected", ""), "not connected", "")
	return speaks(text, "connected", "connection established", "opens stream", "sending request", "agent started", "agent answers")
}

// dialled are gRPC's back-offs. With their jitter they leave hardly a length
// out. So the later ones are named only where nobody wrote anything meanwhile,
// as the other side does when it is not up yet; and from the fifth on only where
// the events speak of an attempt that failed.
func dialled(after, before string, others int64) []timer {
	many := 1
	switch {
	case speaks(after, failing...), speaks(before, failing...):
		many = len(ordinals)
	case others == 0:
		many = 4
	}
	out := make([]timer, 0, many+1)
	for i := range many {
		nominal := int64(math.Min(float64(backoffMost), float64(backoffFirst)*math.Pow(backoffFactor, float64(i))))
		out = append(out, timer{
			name:    fmt.Sprintf("gRPC dial, %s back-off (%s)", ordinals[i], short(nominal)),
			nominal: nominal,
			least:   int64(float64(nominal) * (1 - backoffJitter)),
			most:    int64(float64(nominal)*(1+backoffJitter)) + backoffSlack,
			because: "±20 %, gRPC's connection-backoff.md",
		})
	}
	// Where the server had come up in the middle of the back-off, the gap is what
	// was left of it.
	if speaks(after, "serves", "listen", "accepts", "serving") {
		out = append(out, timer{
			name: "gRPC dial, rest of the first back-off (1 s)", nominal: backoffFirst,
			least: 300 * int64(time.Millisecond), most: 8 * backoffFirst / 10,
			because: "the server was there, and who dials does not try again before the back-off has passed",
		})
	}
	return out
}

// resolver are the waits of resolv.conf(5): 5 s for an answer, and two attempts.
var resolver = []timer{
	exactly("DNS, no answer (5 s)", 5*time.Second, "resolv.conf(5), timeout"),
	exactly("DNS, two queries without an answer (2 × 5 s)", 10*time.Second, "resolv.conf(5), timeout and attempts"),
}

// stopping are the times that a workload is given between SIGTERM and SIGKILL,
// and runc's wait for a killed one.
var stopping = []timer{
	exactly("stop grace (10 s)", 10*time.Second, "what docker, podman and iSulad give a container"),
	exactly("stop grace (30 s)", 30*time.Second, "what Kubernetes gives a pod"),
	exactly("poll for a killed process (100 ms)", 100*time.Millisecond, "runc's delete"),
}

// plain are the round numbers that people write into programs.
var plain = []timer{
	exactly("100 ms poll", 100*time.Millisecond, "a round number"),
	exactly("250 ms timer", 250*time.Millisecond, "a round number"),
	exactly("500 ms timer", 500*time.Millisecond, "a round number"),
	exactly("1 s timer", time.Second, "a round number"),
	exactly("2 s timer", 2*time.Second, "a round number"),
	exactly("5 s timer", 5*time.Second, "a round number"),
	exactly("10 s timer", 10*time.Second, "a round number"),
	exactly("30 s time-out", 30*time.Second, "a round number"),
	exactly("60 s time-out", time.Minute, "a round number"),
}

// exactly is a timer without jitter. The gap around it is never shorter, but for
// times that were cut to milliseconds, and longer by what was done before the
// timer began and after it fired, which takes 4 % and 10 ms here, no more
// than half a second.
func exactly(name string, nominal time.Duration, because string) timer {
	late := min(nominal/25+10*time.Millisecond, 500*time.Millisecond)
	return timer{
		name: name, nominal: int64(nominal), because: because,
		least: int64(nominal - time.Millisecond), most: int64(nominal + late),
	}
}

// why is the evidence, on one line: the length, the two events around it, the
// nominal length and the CPU time.
func why(g *record.Gap, t timer) string {
	nominal := ""
	if t.nominal > 0 {
		nominal = "nominal " + short(t.nominal) + ", "
	}
	cpu := "CPU time is not known"
	if g.CPU >= 0 {
		cpu = "CPU used meanwhile: " + length(g.CPU)
	}
	return fmt.Sprintf("%s from %q to %q; %s%s; %s", length(g.Ended-g.Began), bounded(g.After, 100), bounded(g.Before, 100), nominal, t.because, cpu)
}

// length is a measured time.
func length(ns int64) string { return inUnit(ns, "%.1f ms", "%.4g s") }

// short is a nominal time.
func short(ns int64) string { return inUnit(ns, "%g ms", "%.3g s") }

func inUnit(ns int64, millis, seconds string) string {
	if ns < int64(time.Second) {
		return fmt.Sprintf(millis, float64(ns)/1e6)
	}
	return fmt.Sprintf(seconds, float64(ns)/1e9)
}

// bounded cuts s to at most n bytes, between characters.
func bounded(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}
