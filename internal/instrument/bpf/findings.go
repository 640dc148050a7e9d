package bpf

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/core/finding"
	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/record"
)

const (
	maxNamed = 5    // points in one finding
	maxLines = 1000 // distinct problems collected
)

// Codes of findings that only bpf runs have.
const (
	foundProgramsMoved  = "programs-came-or-went"
	foundOthersCounted  = "others-counted"
	foundStatisticsShow = "statistics-show"
	foundClientBound    = "client-bound"
	foundNodeFull       = "node-saturated"
	foundLoadErrors     = "load-errors"
	foundRateMissed     = "rate-not-reached"
	foundUnsent         = "requests-not-sent"
	foundConnections    = "connections-not-used"
	foundRunFailed      = "run-failed"
	foundClosedLoop     = "closed-loop"
	foundRecursion      = "recursion-misses"
	foundTailCalls      = "tail-calls"
	foundDiffer         = "cpu-times-differ"
	foundOthersRuns     = "others-run-them-too"
	foundSoftirq        = "softirq-programs"
	foundNoPrograms     = "no-programs-seen"
	foundNoRuns         = "programs-did-not-run"
	foundMemoryUnknown  = "memory-not-known"
)

// full is the share of its CPUs from which a client or the node counts as saturated.
const full = 0.95

// ImportedFindings is the prefix of finding codes from reading imported results.
const ImportedFindings = "import-"

func (j *judging) findings() []record.Finding {
	var out finding.List
	add := adding(out.Add)
	out.TakeOver(j.rec, ImportedFindings)
	out.Whole(j.rec)
	j.ended(add)
	j.failures(add)
	j.problems(add)
	if j.b.Imported == nil { // imported results have no programs
		j.seen(add)
	}
	j.misbooked(add)
	j.limits(add)
	j.sent(add)
	j.programCautions(add)
	j.quotaCautions(add)
	j.costs(add)
	if j.b.Imported == nil { // rounds cannot be added to imported results
		j.few(add)
	}
	out.Node(j.rec)
	return out
}

type adding func(record.Finding)

// list adds a finding that lists items. It adds nothing if there are none.
func (add adding) list(code, level, message string, named []string, advice string) {
	if len(named) > 0 {
		add(record.Finding{Code: code, Level: level, Message: message + fewOf(named), Advice: advice})
	}
}

// rowsThat returns the non-empty texts that words yields for the rows.
func (j *judging) rowsThat(words func(r *Row, where string) string) (all []string) {
	for i := range j.b.Rows {
		r := &j.b.Rows[i]
		if text := words(r, j.b.where(&r.Asked)); text != "" {
			all = append(all, text)
		}
	}
	return all
}

// when returns the formatted text if the condition holds, else "".
func when(is bool, format string, of ...any) string {
	if !is {
		return ""
	}
	return fmt.Sprintf(format, of...)
}

// ended reports a run that failed before its first point.
func (j *judging) ended(add adding) {
	if end := j.rec.End; len(j.rec.Points) == 0 && end != nil && end.Status == "failed" {
		add(record.Finding{Code: foundRunFailed, Level: finding.Error, Message: "the run failed before anything was measured: " + end.Why,
			Advice: "fix the reported cause and run it again"})
	}
}

// where describes a point, for use in a sentence.
func (j *Judgement) where(a *record.Asked) string {
	parts := []string{page.Amount(a.Connections, "connection")}
	if len(j.Plan.Heavy) > 1 || a.Heavy > 0 {
		parts = append(parts, page.Amount(a.Heavy, "round")+" of the loop")
	}
	if len(j.Plan.Services) > 1 {
		parts = append(parts, page.Amount(a.Services, "service"))
	}
	if j.Plan.CPUs > 0 && a.CPUs == 0 {
		parts = append(parts, "no limit")
	}
	return strings.Join(parts, ", ")
}

// fewOf joins the first few items of a list.
func fewOf(all []string) string {
	if n := len(all) - maxNamed; n > 0 {
		all = append(slices.Clone(all[:maxNamed]), fmt.Sprintf("and %d more", n))
	}
	return strings.Join(all, "; ")
}

func (j *judging) failures(add adding) {
	type cause struct {
		*record.Failure
		at []string
	}
	var causes []cause
	for _, asked := range j.asked {
		for _, m := range j.measured[asked] {
			f := m.failure()
			if f == nil {
				continue
			}
			i := slices.IndexFunc(causes, func(c cause) bool { return c.Kind == f.Kind && c.Detail == f.Detail })
			if i < 0 {
				i, causes = len(causes), append(causes, cause{Failure: f})
			}
			causes[i].at = append(causes[i].at, fmt.Sprintf("%s in round %d", j.b.where(&asked), m.round+1))
		}
	}
	for _, c := range causes {
		message := fmt.Sprintf("%d of %d points failed (%s): %s: %s", len(c.at), j.b.Total, fewOf(c.at), c.Kind, c.Detail)
		if strings.TrimSpace(c.Output) != "" {
			message += ": " + finding.LastLine(c.Output)
		}
		add(record.Finding{Code: finding.Failed, Level: finding.Error, Message: message, Advice: "they are not in any figure; the record has their output", Tried: c.Command})
	}
}

// problems reports programs that appeared or disappeared, and statistics enabled by
// other processes.
func (j *judging) problems(add adding) {
	var lines []string
	phases, counted := 0, false
	for i := range j.rec.Points {
		p := &j.rec.Points[i]
		moved := false
		for _, line := range p.Problems {
			if othersStatistics(line) || strings.Contains(line, "requests were due") {
				continue // these have separate findings
			}
			moved = true
			if !slices.Contains(lines, line) && len(lines) < maxLines {
				lines = append(lines, line)
			}
		}
		if moved {
			phases++
		}
		counted = counted || countedFor(p)
	}
	add.list(foundProgramsMoved, finding.Warning, fmt.Sprintf("in %d of %d phases the programs changed: ", phases, len(j.rec.Points)), lines,
		"figures include only the runs that were observed; avoid changes to the mesh's agent and deployments during the run, and run it again")
	if counted {
		add(record.Finding{Code: foundOthersCounted, Level: finding.Warning, Message: "runs were counted in phases without statistics: another process had enabled the kernel's BPF statistics",
			Advice: "those rounds are excluded from the overhead of statistics; stop bpftop and similar tools, or run sysctl -w kernel.bpf_stats_enabled=0, and run it again"})
	}
}

// seen reports rows with a load but without programs.
func (j *judging) seen(add adding) {
	without := func(programs bool) []string {
		return j.rowsThat(func(r *Row, where string) string {
			return when(r.Rounds > 0 && !r.All.Of("cpu", "role", "bpf").Known() && len(r.Programs) > 0 == programs, "%s", where)
		})
	}
	add.list(foundNoPrograms, finding.Error, "no program was seen under load: ", without(false),
		"tare bpf list shows the loaded programs and those selected")
	add.list(foundNoRuns, finding.Warning, "no program ran during the load, so their cost is unknown: ", without(true),
		"they are attached where the load does not pass, or only called by other programs; tare bpf list --interval 5s shows which ones run: --cgroup places the clients in that cgroup, --url sends the load to a server behind them")
	if j.b.Memory < 0 && len(j.b.Programs) > 0 {
		add(record.Finding{Code: foundMemoryUnknown, Level: finding.Note, Message: "the memory of some program or map is unknown: there is no total",
			Advice: "reading it from fdinfo needs CAP_BPF or root"})
	}
}

// misbooked reports cgroup accounting that contradicts the programs' run time.
func (j *judging) misbooked(add adding) {
	if j.b.Quota == nil {
		return
	}
	with := quotaQuestion{loop: j.b.Plan.Datapath != ""}.with
	var below, off []string
	for i := range j.b.Quota.Steps {
		switch f, less := j.b.Quota.Steps[i].misbooked(j.b.Plan.CPUs); {
		case f == nil:
		case less && j.b.Quota.Verdict == QuotaBeside: // expected: the programs are not charged to the cgroup at all
		case less:
			below = append(below, fmt.Sprintf("%sthe programs ran for %s, and the cgroup was charged %s", with(f), cpus(f.own), cpus(f.usage)))
		default:
			off = append(off, fmt.Sprintf("%sthe cgroup was charged %s, and by the tick %s", with(f), cpus(f.usage), cpus(f.ticks)))
		}
	}
	add.list(foundDiffer, finding.Warning, "measurements of the same CPU time differ: ", slices.Concat(below, off),
		"the kernel may charge long kernel times to the wrong task, and a program's run-time clock continues while it is preempted; the cost of programs is their own run time, and the verdict uses the larger value. A quiet node reduces the difference")
}

// limits reports points where something other than the server was saturated.
func (j *judging) limits(add adding) {
	add.list(foundClientBound, finding.Warning, "the client used all of its CPUs: ", j.rowsThat(func(r *Row, where string) string {
		has := cmp.Or(r.Asked.CPUs, float64(j.b.CPUs))
		bound := r.All.Of("cpu", "role", "client").Known() && has > 0 && r.All.Of("cpu", "role", "client").Value >= full*has && j.b.Plan.Case != record.CaseQuota
		return when(bound, "%s (%s of %s)", where, cpus(r.All.Of("cpu", "role", "client").Value), cpus(has))
	}), "QPS is what the client can send, not what the server can answer; give it more CPUs, or set a rate (--qps)")
	add.list(foundNodeFull, finding.Note, "the node was full: ", j.rowsThat(func(r *Row, where string) string {
		return when(r.All.Of("node-busy").Known() && r.All.Of("node-busy").Value >= full, "%s (%s)", where, busy(r.All.Of("node-busy").Value))
	}), "client, server and programs share its CPUs: latencies include waiting for a CPU")
}

// programCautions reports skipped runs (recursion) and tail calls.
func (j *judging) programCautions(add adding) {
	var missed []string
	for i := range j.b.Rows {
		for _, p := range j.b.Rows[i].Programs {
			if p.Misses > 0 {
				missed = append(missed, fmt.Sprintf("%s %d times with %s", p.Name, p.Misses, j.b.where(&j.b.Rows[i].Asked)))
			}
		}
	}
	add.list(foundRecursion, finding.Warning, "runs were skipped because the program was already running on that CPU: ", missed,
		"those runs are not counted or timed, and the programs did no work in them")
	for i := range j.b.Programs {
		p := &j.b.Programs[i]
		if slices.ContainsFunc(p.Maps, func(m record.ProgramMap) bool { return m.Kind == "prog_array" }) {
			add(record.Finding{Code: foundTailCalls, Level: finding.Note, Message: fmt.Sprintf("programs call others through a prog_array (%s): the kernel attributes all of their time, and one run, to the program entered first", p.Name),
				Advice: "use the total; a program that is only tail-called shows no runs"})
			return
		}
	}
}

// softirq lists the program types that also run in softirq. There the kernel charges
// whichever task is on the CPU.
var softirq = []string{"xdp", "sched_cls", "sched_act", "cgroup_skb", "sock_ops", "sk_skb"}

// quotaCautions reports what weakens the verdict on a limit.
func (j *judging) quotaCautions(add adding) {
	if j.b.Quota == nil {
		return
	}
	if j.b.Plan.Datapath == "" && j.b.Quota.Shared {
		add(record.Finding{Code: foundOthersRuns, Level: finding.Warning, Message: "the programs also run for other processes, or not once per connect of the workload: their run time covers everyone, and the clients' part is unknown",
			Advice: "use the reference datapath, whose programs run only for the clients: tare bpf quota without selecting programs"})
	}
	var kinds []string
	for i := range j.b.Programs {
		if k := j.b.Programs[i].Kind; slices.Contains(softirq, k) && !slices.Contains(kinds, k) {
			kinds = append(kinds, k)
		}
	}
	if kinds != nil {
		add(record.Finding{Code: foundSoftirq, Level: finding.Note, Message: fmt.Sprintf("programs of some kinds (%s) also run in softirq, where the kernel charges whichever task is on that CPU", strings.Join(kinds, ", ")),
			Advice: "the verdict covers only runs in the workload's own calls"})
	}
}

// costs reports the overhead of the measurement itself.
func (j *judging) costs(add adding) {
	price := j.rowsThat(func(r *Row, where string) string {
		if !r.All.Of("requests-with-statistics-ratio").Versus.Different() {
			return ""
		}
		return fmt.Sprintf("%+.1f %% QPS with %s (%s)", 100*(r.All.Of("requests-with-statistics-ratio").Value-1), where, r.All.Of("requests-with-statistics-ratio").Versus.Why)
	})
	add.list(foundStatisticsShow, finding.Note, "the kernel's statistics have a measurable overhead: ", price,
		"the record has QPS without them; the programs' run times include about 20 ns per run of it")
	var own float64
	for i := range j.rec.Points {
		if p := &j.rec.Points[i]; p.Phase == record.PhaseLoad && p.Ended > p.Begun && j.b.CPUs > 0 {
			own = max(own, float64(p.Own)/float64(p.Ended-p.Begun)/float64(j.b.CPUs))
		}
	}
	if own > finding.OwnBound {
		add(record.Finding{Code: finding.OwnCost, Level: finding.Note, Message: fmt.Sprintf("tare itself used up to %.1f %% of the node's CPU time during a load", 100*own), Advice: "use a machine with more CPUs, or choose fewer programs"})
	}
}

// few reports too few rounds for intervals, and rounds that disagree on the verdict.
func (j *judging) few(add adding) {
	least := 0
	for i := range j.b.Rows {
		if n := j.b.Rows[i].Rounds; n > 0 && (least == 0 || n < least) {
			least = n
		}
	}
	if f, few := finding.TooFew(least, 0, 0); few {
		add(f)
	}
	if q := j.b.Quota; q != nil && q.Agree < q.Rounds {
		add(record.Finding{Code: "rounds-disagree", Level: finding.Warning, Message: fmt.Sprintf("only %d of %d rounds reach the verdict (%s) on their own", q.Agree, q.Rounds, q.Verdict),
			Advice: "use a longer --time or more --rounds, and a quiet machine"})
	}
}
