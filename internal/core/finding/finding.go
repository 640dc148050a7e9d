// Package finding creates findings: caveats about a run, with advice. Findings are stored in
// the record and shown in every report.
package finding

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/stat"
	"github.com/tare-bench/tare/record"
)

// Codes of findings. A run writes the codes up to NoRoom, and reports copy them.
const (
	OpenFailed   = "target-not-opened"
	GivenUp      = "target-given-up"
	LeftBehind   = "left-behind"
	RuntimeLeft  = "runtime-left"
	NotPrecise   = "precision-not-reached"
	RootChanged  = "cgroup-root-changed"
	Budget       = "budget-spent"
	NotWeighed   = "target-not-weighed"
	NotReached   = "sandboxes-not-reached"
	PhaseSkipped = "phase-skipped"
	NotRetired   = "sandboxes-not-retired"
	EngineSilent = "engine-silent"
	NotDropped   = "caches-not-dropped"
	VolumeAbsent = "volume-absent"
	// StatisticsOn: another program had enabled the kernel's BPF statistics.
	StatisticsOn = "statistics-on"
	// Throttled: an API server throttled requests.
	Throttled = "api-throttled"
	// OwnLimit: tare's cgroup has a CPU limit below the machine's CPUs. OwnThrottled: it was
	// throttled by the limit during the run.
	OwnLimit     = "own-cpu-limit"
	OwnThrottled = "own-throttled"
	// StartsThrottled: a CPU limit of a target's cgroups throttled its starts.
	StartsThrottled = "starts-throttled"
	// Emulated: a target's VM runs without KVM.
	Emulated = "vm-emulated"
	// OwnClock: a target's workloads have another clock than the host.
	OwnClock = "own-clock"
	// NoRoom: the machine lacks resources for all lanes.
	NoRoom = "no-room"

	Failed     = "failed-operations"
	Drift      = "drift"
	FirstRound = "first-round"
	Bimodal    = "bimodal"
	FewRounds  = "too-few-rounds"
	Steal      = "steal"
	Pressure   = "pressure"
	Skew       = "release-skew"
	// ReturnedEarly: a start or run call returned before the workload ran.
	ReturnedEarly = "returned-early"
	OwnCost       = "own-cost"
	CutOff        = "cut-off"
	Damaged       = "damaged-record"
	Interrupted   = "interrupted"
	Ordinary      = "ordinary-lanes"

	// Levels.
	Note    = "note"
	Warning = "warning"
	Error   = "error"
)

// Disturbing lists the codes of findings that prevent a verdict in a comparison with another
// run: the machine may be the cause of the difference.
var Disturbing = []string{OwnThrottled, Steal, Pressure, Drift}

// FromRun lists the codes of findings that only a run can create.
var FromRun = []string{OpenFailed, GivenUp, LeftBehind, RuntimeLeft, NotPrecise, Budget, RootChanged, NotWeighed,
	NotReached, PhaseSkipped, NotRetired, EngineSilent, NotDropped, VolumeAbsent, StatisticsOn, NoRoom, Throttled, OwnLimit, OwnThrottled, Emulated, OwnClock}

// IsEmulated reports whether a target's VMs run without KVM, according to a finding of the run
// or the target's configuration.
func IsEmulated(rec *record.Record, t *record.Target) bool {
	return t.Config["emulated"] != "" ||
		slices.ContainsFunc(rec.Findings, func(f record.Finding) bool { return f.Code == Emulated && f.Target == t.Name })
}

// TooFew returns a finding if there are too few rounds for an interval or for the comparisons.
// An interval needs [stat.MinRounds]; comparisons may need more. few is false for enough rounds
// and for 0 rounds.
func TooFew(rounds, need, lanes int) (f record.Finding, few bool) {
	least := stat.MinRounds(figure.Confidence)
	switch {
	case rounds < 1, rounds >= max(least, need):
		return f, false
	case rounds >= least:
		return TooFewToCompare(rounds, need, lanes), true
	}
	give := map[bool]string{true: "1 round gives", false: fmt.Sprintf("%d rounds give", rounds)}[rounds == 1]
	return record.Finding{Code: FewRounds, Level: Note, Lanes: lanes, Message: give + " no 95 % interval",
		Advice: fmt.Sprintf("use --rounds %d or more", max(least, need))}, true
}

// TooFewToCompare returns the finding that comparisons need more rounds. lanes is 0 if the
// finding is not about a number of lanes.
func TooFewToCompare(rounds, need, lanes int) record.Finding {
	return record.Finding{Code: FewRounds, Level: Note, Lanes: lanes,
		Message: fmt.Sprintf("%s cannot show a difference, however large it is: the comparisons in the table need %d", map[bool]string{true: "1 round", false: fmt.Sprintf("%d rounds", rounds)}[rounds == 1], need),
		Advice:  fmt.Sprintf("use --rounds %d or more", need)}
}

// Retired returns the finding that an operation failed to remove some sandboxes.
func Retired(target, op string, failed, of int, first *record.Failure) record.Finding {
	return record.Finding{Code: NotRetired, Level: Warning, Target: target, Op: op,
		Message: fmt.Sprintf("%d of %d sandboxes could not be ended by %s: %s; tare removed them by force", failed, of, op, first.Detail),
		Advice:  "tare lifecycle " + target + " times the operation and shows why it fails", Tried: first.Command}
}

// Throttle sums up the throttling of several starts.
type Throttle struct {
	Starts           int
	record.Throttled // Group and CPUs of the first start, sums over all starts
}

// Add adds a start. If several cgroups were throttled, it counts only the one throttled longest.
func (t *Throttle) Add(held []record.Throttled) {
	if len(held) == 0 {
		return
	}
	h := slices.MaxFunc(held, func(a, b record.Throttled) int { return cmp.Compare(a.Held, b.Held) })
	if t.Starts++; t.Starts == 1 {
		t.Throttled = h
		return
	}
	t.Periods, t.Throttled.Throttled, t.Held = t.Periods+h.Periods, t.Throttled.Throttled+h.Throttled, t.Held+h.Held
}

// Of returns the finding for a target. starts is the total number of its starts.
func (t *Throttle) Of(target string, starts int) record.Finding {
	limit := "removed since"
	if t.CPUs > 0 {
		limit = fmt.Sprintf("%.3g CPUs", t.CPUs)
	}
	return record.Finding{Code: StartsThrottled, Level: Warning, Target: target,
		Message: fmt.Sprintf("the CPU limit of cgroup %s (%s) throttled %d of %d starts: in %d of %d periods, for %s in total",
			t.Group, limit, t.Starts, starts, t.Throttled.Throttled, t.Periods, Brief(float64(t.Held))),
		Advice: "the times reflect the limit, not the runtime: raise or remove it (cpu.max, cpu.cfs_quota_us), or report it with the figures"}
}

// List is a list of findings in order of creation.
type List []record.Finding

// Add appends a finding.
func (l *List) Add(f record.Finding) {
	f.Type = record.TypeFinding
	*l = append(*l, f)
}

// TakeOver copies the findings of a run whose code is in FromRun or starts with one of the
// prefixes in more.
func (l *List) TakeOver(rec *record.Record, more ...string) {
	throttled := ownThrottled(rec)
	if throttled != nil {
		l.Add(*throttled)
	}
	for _, f := range rec.Findings {
		if f.Code == OwnThrottled || f.Code == OwnLimit && throttled != nil { // already added
			continue
		}
		begins := func(prefix string) bool { return strings.HasPrefix(f.Code, prefix) }
		if slices.Contains(FromRun, f.Code) || slices.ContainsFunc(more, begins) {
			l.Add(f)
		}
	}
}

// ownThrottled returns the record's OwnThrottled finding, or nil.
func ownThrottled(rec *record.Record) *record.Finding {
	if i := slices.IndexFunc(rec.Findings, func(f record.Finding) bool { return f.Code == OwnThrottled }); i >= 0 {
		return &rec.Findings[i]
	}
	return nil
}

// Whole adds findings about the record itself: cut off, interrupted or damaged.
func (l *List) Whole(rec *record.Record) {
	switch {
	case rec.End == nil:
		l.Add(record.Finding{Code: CutOff, Level: Warning,
			Message: "the record has no end: the run was killed, is still under way, or its disk was full",
			Advice:  "what was measured up to then is shown; if the run is over, tare clean removes what it left on the machine"})
	case rec.End.Status == "interrupted":
		l.Add(record.Finding{Code: Interrupted, Level: Warning,
			Message: "the run was interrupted", Advice: "what was measured up to then is shown"})
	}
	if p := rec.Header.Environment.Lanes; p != "" && p != "SCHED_FIFO" {
		l.Add(record.Finding{Code: Ordinary, Level: Note,
			Message: "the lanes wait with priority " + p + ", not SCHED_FIFO: on a busy machine, ends are detected late and lanes start further apart",
			Advice:  "give tare CAP_SYS_NICE, and compare only with records made in the same way"})
	}
	if missing := Missing(rec); missing != "" {
		l.Add(record.Finding{Code: Damaged, Level: Error, Message: missing,
			Advice: "their samples are missing here; was the file edited, or damaged in a copy?"})
	}
}

// Missing describes the unreadable lines of a record, whose samples no figure includes. It
// returns "" if there are none.
func Missing(rec *record.Record) string {
	if rec.ProblemCount == 0 {
		return ""
	}
	return fmt.Sprintf("lines of the record that could not be read: %d, the first: %s", rec.ProblemCount, rec.Problems[0])
}

// Advice returns the advice for a failed operation.
func Advice(f *record.Failure) string {
	if f.Advice != "" {
		return f.Advice
	}
	switch f.Kind {
	case record.FailTimeout:
		return "if it is only slow, raise --timeout"
	case record.FailExec:
		return "the program could not be executed: check that it exists, is built for this architecture, and is not on a noexec file system"
	case record.FailState:
		return "the state reported by the runtime differs from the actual state; do not trust its times"
	case record.FailWorkload:
		if (f.Exit == 126 || f.Exit == 127) && strings.Contains(f.Output, "tare-probe: cannot run ") {
			return "the sandbox lacks the program, or it is not executable: check its path (--command) and the content of the image (--image)"
		}
		return "the workload did not run as requested: look for an OOM kill (dmesg) or a limit that is too low"
	}
	if f.Command == "" {
		return "the kernel or the engine rejected it, or the engine does not respond: see its log; tare doctor shows what this machine supports"
	}
	return "run it by hand, with the runtime's debug flag"
}

// Brief formats nanoseconds as a duration, rounded for display.
func Brief(ns float64) string {
	if math.IsNaN(ns) {
		return "?"
	}
	d := time.Duration(ns)
	switch {
	case d >= time.Second:
		return d.Round(10 * time.Millisecond).String()
	case d >= time.Millisecond:
		return d.Round(10 * time.Microsecond).String()
	}
	return d.Round(100 * time.Nanosecond).String()
}

// Bytes formats an amount of memory with a binary unit.
func Bytes[N int | int64 | float64](n N) string {
	b := float64(n)
	switch a := math.Abs(b); {
	case a >= 1<<30:
		return fmt.Sprintf("%.2f GiB", b/(1<<30))
	case a >= 1<<20:
		return fmt.Sprintf("%.1f MiB", b/(1<<20))
	}
	return fmt.Sprintf("%.0f KiB", b/(1<<10))
}

// LastLine returns the last line of a text. Programs usually print their error there.
func LastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}
