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

// timer is a known wait of programs.
type timer struct {
	name    string
	length  time.Duration
	words   []string // the event before the wait must contain one of these; nil: any event
	because string   // source of the length, shown as evidence
}

// timers are the known timers, the most specific first: the timeouts of
// resolv.conf(5), the grace times between SIGTERM and SIGKILL, and common round
// numbers. Waits without a fixed length, such as a wait for random numbers, are not
// included, since they would match any gap.
var timers = []timer{
	{"gRPC dial, first back-off (1 s)", time.Second, []string{"grpc"}, "gRPC's connection-backoff.md"},
	{"DNS, no answer (5 s)", 5 * time.Second, []string{"dns", "lookup", "nameserver"}, "resolv.conf(5), timeout"},
	{"DNS, two queries without an answer (2 × 5 s)", 10 * time.Second, []string{"dns", "lookup", "nameserver"}, "resolv.conf(5), timeout and attempts"},
	{"stop grace (10 s)", 10 * time.Second, []string{"stop", "kill", "sigterm", "terminat"}, "default of docker, podman and iSulad"},
	{"stop grace (30 s)", 30 * time.Second, []string{"stop", "kill", "sigterm", "terminat"}, "default of Kubernetes"},
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

// The tolerance for the length of a wait. A wait is never shorter than its timer,
// except for times truncated to milliseconds. It may be longer because of work before
// the timer began and after it fired.
const (
	early = time.Millisecond
	late  = 2 * time.Millisecond
	share = 0.002 // additional tolerance, as a fraction of the length
)

// busy is the maximum CPU time of all processes in a wait, as a fraction of its
// length. A process that sleeps uses almost none.
const busy = 0.05

// waited returns the timer that gaps between the same two events resemble, or nil. A
// single length close to a round number is chance. At least two gaps, and at least two
// thirds of all, must match the timer. No process may work during the gap, judged by
// CPU time or, in logs, by lines of other processes.
func waited(seen []*record.Gap) *record.Wait {
	for _, t := range timers {
		same := slices.DeleteFunc(slices.Clone(seen), func(g *record.Gap) bool { return !t.fits(g) })
		if len(same) >= 2 && 3*len(same) >= 2*len(seen) {
			return &record.Wait{Timer: t.name, Nominal: int64(t.length), Why: t.why(same, len(seen))}
		}
	}
	return nil
}

// fits reports whether a gap can be a wait for the timer.
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

// why returns the evidence on one line.
func (t *timer) why(same []*record.Gap, all int) string {
	shortest, longest, cpu := int64(1<<62), int64(0), int64(0)
	for _, g := range same {
		took := g.Ended - g.Began
		shortest, longest, cpu = min(shortest, took), max(longest, took), max(cpu, g.CPU)
	}
	used := "CPU used meanwhile: " + inMillis(cpu)
	if same[0].CPU < 0 {
		used = "CPU time unknown; no other lines logged meanwhile"
	}
	return fmt.Sprintf("%s to %s, %d of %d times, from %q to %q; nominal %v, %s; %s", inMillis(shortest), inMillis(longest), len(same), all,
		said(same[0].After), said(same[0].Before), t.length, t.because, used)
}

func inMillis(ns int64) string { return fmt.Sprintf("%.1f ms", float64(ns)/1e6) }

// said formats an event for a line of evidence.
func said(event string) string { return fmt.Sprintf("%.100s", term.Clean(event)) }
