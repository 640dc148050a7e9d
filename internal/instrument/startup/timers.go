package startup

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tare-bench/tare/internal/instrument/startup/trace"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/record"
)

// timer is a time that programs are known to wait for.
type timer struct {
	name    string
	length  time.Duration
	words   []string // one of which the event before the wait has to speak of; none: whatever it says
	because string   // where the length comes from, part of the evidence
}

// timers are those that are known, the most to the point first: the waits of
// resolv.conf(5), the times between SIGTERM and SIGKILL, and the round numbers that
// people write into programs. Waits without a length of their own, such as one for
// random numbers, are none: any gap would be one.
var timers = []timer{
	{"gRPC dial, first back-off (1 s)", time.Second, []string{"grpc"}, "gRPC's connection-backoff.md"},
	{"DNS, no answer (5 s)", 5 * time.Second, []string{"dns", "lookup", "nameserver"}, "resolv.conf(5), timeout"},
	{"DNS, two queries without an answer (2 × 5 s)", 10 * time.Second, []string{"dns", "lookup", "nameserver"}, "resolv.conf(5), timeout and attempts"},
	{"stop grace (10 s)", 10 * time.Second, []string{"stop", "kill", "sigterm", "terminat"}, "what docker, podman and iSulad give a container"},
	{"stop grace (30 s)", 30 * time.Second, []string{"stop", "kill", "sigterm", "terminat"}, "what Kubernetes gives a pod"},
	{"poll for a killed process (100 ms)", 100 * time.Millisecond, []string{"kill"}, "runc's delete"},
	{"100 ms poll", 100 * time.Millisecond, nil, "a round number"},
	{"250 ms timer", 250 * time.Millisecond, nil, "a round number"},
	{"500 ms timer", 500 * time.Millisecond, nil, "a round number"},
	{"1 s timer", time.Second, nil, "a round number"},
	{"2 s timer", 2 * time.Second, nil, "a round number"},
	{"5 s timer", 5 * time.Second, nil, "a round number"},
	{"10 s timer", 10 * time.Second, nil, "a round number"},
	{"30 s time-out", 30 * time.Second, nil, "a round number"},
	{"60 s time-out", time.Minute, nil, "a round number"},
}

// How far from its length a wait for a timer can be. It is never shorter, but for
// times that were cut to milliseconds, and later by what was done before the timer
// began and after it fired.
const (
	early = time.Millisecond
	late  = 2 * time.Millisecond
	share = 0.002 // of the length, late too
)

// busy is the share of a gap that its processes may have been on a CPU, all of them
// together, while it still is a wait: who sleeps does next to nothing.
const busy = 0.05

// waited says which timer a gap is that was seen some times, nil where none is
// shown. A length that is near a round number once is chance: of gaps between the
// same two events at least two, and two thirds of all, have to be as long as the timer,
// and nobody may have worked meanwhile, as far as CPU time or, in logs, the lines of
// others tell.
func waited(seen []*record.Gap) *record.Wait {
	for _, t := range timers {
		same := slices.DeleteFunc(slices.Clone(seen), func(g *record.Gap) bool { return !t.fits(g) })
		if len(same) >= 2 && 3*len(same) >= 2*len(seen) {
			return &record.Wait{Timer: t.name, Nominal: int64(t.length), Why: t.why(same, len(seen))}
		}
	}
	return nil
}

// fits says whether a gap can be a wait for the timer.
func (t *timer) fits(g *record.Gap) bool {
	took := since(g.Began, g.Ended)
	if off := time.Duration(took) - t.length; took <= 0 || off < -early || off > late+time.Duration(share*float64(t.length)) {
		return false
	}
	if g.CPU < 0 && g.Others > 0 || g.CPU >= 0 && float64(g.CPU) >= busy*float64(took) || strings.HasPrefix(g.In, trace.InWorkload) {
		return false
	}
	return t.words == nil || slices.ContainsFunc(t.words, func(w string) bool { return strings.Contains(strings.ToLower(g.After), w) })
}

// why is the evidence, on one line.
func (t *timer) why(same []*record.Gap, all int) string {
	shortest, longest, cpu := int64(1<<62), int64(0), int64(0)
	for _, g := range same {
		took := g.Ended - g.Began
		shortest, longest, cpu = min(shortest, took), max(longest, took), max(cpu, g.CPU)
	}
	used := "CPU used meanwhile: " + inMillis(cpu)
	if same[0].CPU < 0 {
		used = "CPU time is not known, and nobody else wrote a line meanwhile"
	}
	return fmt.Sprintf("%s to %s, %d of %d times, from %q to %q; nominal %v, %s; %s", inMillis(shortest), inMillis(longest), len(same), all,
		said(same[0].After), said(same[0].Before), t.length, t.because, used)
}

func inMillis(ns int64) string { return fmt.Sprintf("%.1f ms", float64(ns)/1e6) }

// said is the text of an event in a line of evidence.
func said(event string) string { return fmt.Sprintf("%.100s", term.Clean(event)) }
