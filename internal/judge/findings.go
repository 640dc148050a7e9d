package judge

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/tare-bench/tare/internal/core/stat"
	"github.com/tare-bench/tare/record"
)

// The bounds above which the machine itself is named as a suspect.
const (
	stealBound  = 0.01 // of all CPUs' time taken by the hypervisor
	psiCPUBound = 0.25 // of the time, some task waited for a CPU, in rounds of one lane
	psiIOBound  = 0.10 // likewise for I/O
	psiMemBound = 0.01 // likewise for memory
	ownBound    = 0.05 // of the machine's CPU time in a batch used by tare itself
	skewBound   = 0.20 // of the makespan between the first lane's start and the last's
)

// Findings that the experiment writes itself, because only it knows. They are
// taken over from the record.
const (
	FoundOpenFailed   = "target-not-opened"
	FoundGivenUp      = "target-given-up"
	FoundLeftBehind   = "left-behind"
	FoundNotPrecise   = "precision-not-reached"
	FoundRootChanged  = "cgroup-root-changed"
	FoundBudget       = "budget-spent"
	FoundNotWeighed   = "target-not-weighed"
	FoundNotReached   = "sandboxes-not-reached"
	FoundPhaseSkipped = "phase-skipped"
	FoundNotRetired   = "sandboxes-not-retired"
	FoundLoadFailed   = "load-failed"
	FoundEngineSilent = "engine-silent"
	FoundNotDropped   = "caches-not-dropped"
	FoundVolumeAbsent = "volume-absent"
	// FoundWatchedOtherwise: starts were not watched by BPF, which only older records can say.
	FoundWatchedOtherwise = "watched-otherwise"
	// FoundStatisticsOn: somebody else had the kernel's statistics of BPF programs on.
	FoundStatisticsOn = "statistics-on"
	foundFailed       = "failed-operations"
	foundDrift        = "drift"
	foundBimodal      = "bimodal"
	foundFewRounds    = "too-few-rounds"
	foundSteal        = "steal"
	foundPressure     = "pressure"
	foundSkew         = "release-skew"
	foundOwnCost      = "own-cost"
	foundCutOff       = "cut-off"
	foundDamaged      = "damaged-record"
	foundInterrupted  = "interrupted"
	foundOrdinary     = "ordinary-lanes"
	levelNote         = "note"
	levelWarning      = "warning"
	levelError        = "error"
)

// FromExperiment are the codes of findings that cannot be made from samples.
var FromExperiment = []string{FoundOpenFailed, FoundGivenUp, FoundLeftBehind, FoundNotPrecise, FoundBudget, FoundRootChanged, FoundNotWeighed,
	FoundNotReached, FoundPhaseSkipped, FoundNotRetired, FoundLoadFailed, FoundEngineSilent, FoundNotDropped, FoundVolumeAbsent, FoundWatchedOtherwise, FoundStatisticsOn}

// found are findings, in the order in which they were made.
type found []record.Finding

func (o *found) add(f record.Finding) {
	f.Type = record.TypeFinding
	*o = append(*o, f)
}

// takeOver takes those over that only the experiment knows, and of others those whose
// code begins with one of more.
func (o *found) takeOver(rec *record.Record, more ...string) {
	for _, f := range rec.Findings {
		begins := func(prefix string) bool { return strings.HasPrefix(f.Code, prefix) }
		if slices.Contains(FromExperiment, f.Code) || slices.ContainsFunc(more, begins) {
			o.add(f)
		}
	}
}

func findings(l *Lifecycle, rec *record.Record) []record.Finding {
	var out found
	add := out.add
	out.takeOver(rec)
	wholeness(rec, add)
	failures(rec, add)
	for i := range l.Tables {
		fewRounds(&l.Tables[i], add)
		for _, row := range l.Tables[i].Rows {
			for j := range row.Cells {
				cellFindings(&l.Tables[i], row, &row.Cells[j], l.Targets[j].Kind, add)
			}
		}
	}
	nodeFindings(rec, add)
	return out
}

// wholeness is about the record itself.
func wholeness(rec *record.Record, add func(record.Finding)) {
	switch {
	case rec.End == nil:
		add(record.Finding{Code: foundCutOff, Level: levelWarning,
			Message: "the record has no end: the run was killed, is still under way, or its disk was full",
			Advice:  "what was measured up to then is shown; if the run is over, tare clean removes what it left on the machine"})
	case rec.End.Status == "interrupted":
		add(record.Finding{Code: foundInterrupted, Level: levelWarning,
			Message: "the run was interrupted", Advice: "what was measured up to then is shown"})
	}
	if p := rec.Header.Environment.Lanes; p != "" && p != "SCHED_FIFO" {
		add(record.Finding{Code: foundOrdinary, Level: levelNote,
			Message: "the lanes wait with priority " + p + ", not SCHED_FIFO: on a busy machine an end is noticed late, and lanes start further apart",
			Advice:  "give tare CAP_SYS_NICE, and compare with records made in the same way only"})
	}
	if rec.ProblemCount > 0 {
		add(record.Finding{Code: foundDamaged, Level: levelError,
			Message: fmt.Sprintf("lines of the record that could not be read: %d, the first: %s", rec.ProblemCount, rec.Problems[0]),
			Advice:  "their samples are missing here; was the file edited, or damaged in a copy?"})
	}
}

// failures sums up what went wrong, one finding for each target, operation and
// number of lanes, warm-up included, with the first cause.
func failures(rec *record.Record, add func(record.Finding)) {
	type key struct {
		target, op string
		lanes      int
	}
	type sum struct {
		failed, total int
		first         *record.Failure
	}
	sums := map[key]*sum{}
	var order []key
	for i := range rec.Batches {
		b := &rec.Batches[i]
		k := key{b.Target, b.Op, b.Lanes}
		if sums[k] == nil {
			sums[k] = &sum{}
			order = append(order, k)
		}
		for j := range b.Samples {
			f := b.Samples[j].Failure
			if f != nil && f.Kind == record.FailInterrupted {
				continue // no fault of the target
			}
			sums[k].total++
			if f != nil {
				sums[k].failed++
				if sums[k].first == nil {
					sums[k].first = f
				}
			}
		}
	}
	for _, k := range order {
		s := sums[k]
		if s.failed == 0 {
			continue
		}
		message := fmt.Sprintf("%d of %d failed, warm-up included; the first: %s", s.failed, s.total, s.first.Detail)
		if out := strings.TrimSpace(s.first.Output); out != "" {
			message += ": " + out
		}
		add(record.Finding{Code: foundFailed, Level: levelError, Target: k.target, Op: k.op, Lanes: k.lanes, Message: message, Advice: failureAdvice(s.first), Tried: s.first.Command})
	}
}

func failureAdvice(f *record.Failure) string {
	switch f.Kind {
	case record.FailTimeout:
		return "if it is only slow, raise --timeout"
	case record.FailExec:
		return "the program could not be executed: is it there, for this architecture, and on a file system that allows exec?"
	case record.FailState:
		return "the runtime's word and its deed differ; its times cannot be believed"
	case record.FailWorkload:
		return "the workload did not live as told: look for an OOM kill (dmesg) or a limit that is too low"
	}
	if f.Command == "" {
		return "the kernel or the engine refused it, or the engine does not answer: see its log; tare doctor says what this machine allows"
	}
	return "run it by hand, with the runtime's debug flag"
}

// fewRounds tells once for each number of rounds that is too small, and where
// if it is one place only.
func fewRounds(t *Table, add func(record.Finding)) {
	where := map[int][]record.Finding{}
	for _, row := range t.Rows {
		for _, c := range row.Cells {
			if n := c.Summary.N; n > 0 && !c.Summary.Known {
				where[n] = append(where[n], record.Finding{Target: c.Target, Op: string(row.Op)})
			}
		}
	}
	for n := range stat.MinRounds(Confidence) {
		if len(where[n]) == 0 {
			continue
		}
		f := record.Finding{}
		if len(where[n]) == 1 {
			f = where[n][0]
		}
		f.Code, f.Level, f.Lanes = foundFewRounds, levelNote, t.Lanes
		f.Message = fmt.Sprintf("%s no 95 %% interval", map[bool]string{true: "1 round gives", false: fmt.Sprintf("%d rounds give", n)}[n == 1])
		f.Advice = fmt.Sprintf("use --rounds %d or more", stat.MinRounds(Confidence))
		add(f)
	}
}

func cellFindings(t *Table, row Row, c *Cell, kind string, add func(record.Finding)) {
	put := func(code, level, message, advice string) {
		add(record.Finding{Code: code, Level: level, Target: c.Target, Op: string(row.Op), Lanes: t.Lanes, Message: message, Advice: advice})
	}
	values := ordered(c.values)
	if d := stat.Drift(values); d.Drifted {
		put(foundDrift, levelWarning, fmt.Sprintf("the second half of the rounds is %+.0f %% off the first (p=%.3f)", 100*(d.Ratio-1), d.P),
			"something warmed up, filled up or throttled; raise --warmup, or look at what else the machine did. Comparisons hold: rounds are paired")
	}
	if m := stat.Bimodal(values); m.Bimodal {
		put(foundBimodal, levelWarning, fmt.Sprintf("two heaps: about %s in %d rounds and about %s in %d",
			short(m.Low), m.LowN, short(m.High), m.N-m.LowN),
			"the median sits in one of them or between; look for a cache, a lock or a timer that is hit in some rounds only")
	}
	if b := c.Batch; b != nil && c.Summary.N > 0 {
		if share := b.Skew / c.Summary.Median; share > skewBound {
			put(foundSkew, levelNote, fmt.Sprintf("from the first lane's start to the last's %s pass, %.0f %% of the makespan", short(b.Skew), 100*share),
				"the operation is hardly longer than releasing the lanes takes; read the lanes' own latencies instead of the makespan")
		}
		// Of host and floor the lane makes the operation itself; and one lane
		// leaves CPUs idle, on which tare does nobody harm.
		if b.OwnShare > ownBound && t.Lanes > 1 && kind != "host" && kind != "floor" {
			put(foundOwnCost, levelNote, fmt.Sprintf("tare itself used %.1f %% of the machine's CPU time in these batches", 100*b.OwnShare),
				"the times may be that much too long; use a machine with more CPUs, and fewer lanes at once")
		}
	}
}

// nodeFindings names a machine that was not quiet.
func nodeFindings(rec *record.Record, add func(record.Finding)) {
	var steal, cpu, io, mem []float64
	for _, n := range rec.Nodes {
		if !n.Known || n.Phase != record.PhaseMeasure {
			continue
		}
		steal = append(steal, n.Steal)
		if n.HavePSI && n.Lanes == 1 { // more lanes press by themselves
			cpu, io, mem = append(cpu, n.PSICPU), append(io, n.PSIIO), append(mem, n.PSIMemory)
		}
	}
	report := func(code string, values []float64, bound float64, what, advice string) {
		if len(values) == 0 {
			return
		}
		q := stat.Quantiles(values, 0.5, 1)
		if mid, most := q[0], q[1]; mid > bound || most > 4*bound {
			add(record.Finding{Code: code, Level: levelWarning,
				Message: fmt.Sprintf("%s: median round %.1f %%, worst %.1f %%; the bound is %.0f %%", what, 100*mid, 100*most, 100*bound), Advice: advice})
		}
	}
	report(foundSteal, steal, stealBound, "the hypervisor took CPU time away (steal)", "use a machine with CPUs of its own, or add rounds; long tails here are not the runtime's")
	report(foundPressure, cpu, psiCPUBound, "tasks waited for a CPU in rounds of one lane (PSI)", "something else runs on this machine: stop it, or pin it away")
	report(foundPressure, io, psiIOBound, "tasks waited for I/O (PSI)", "something else uses the disk, or the runtime's state is on a slow one")
	report(foundPressure, mem, psiMemBound, "tasks waited for memory (PSI)", "the machine is short of memory: free some before believing a figure")
}

// short prints nanoseconds with three digits.
func short(ns float64) string {
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
