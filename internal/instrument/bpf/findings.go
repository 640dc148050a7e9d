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
	maxLines = 1000 // different lines that are told apart
)

// The codes of findings about BPF programs, besides those that other runs have too.
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

// full is the share of its CPUs from which on somebody has no more to give.
const full = 0.95

// ImportedFindings begin the codes of what was found while a client's own results were
// read.
const ImportedFindings = "import-"

func (j *judging) findings() []record.Finding {
	var out finding.List
	add := adding(out.Add)
	out.TakeOver(j.rec, ImportedFindings)
	out.Whole(j.rec)
	j.ended(add)
	j.failures(add)
	j.problems(add)
	if j.b.Imported == nil { // which has no programs
		j.seen(add)
	}
	j.misbooked(add)
	j.limits(add)
	j.sent(add)
	j.programCautions(add)
	j.quotaCautions(add)
	j.costs(add)
	if j.b.Imported == nil { // and nobody can add rounds
		j.few(add)
	}
	out.Node(j.rec)
	return out
}

type adding func(record.Finding)

// list adds a finding about what is named, where something is.
func (add adding) list(code, level, message string, named []string, advice string) {
	if len(named) > 0 {
		add(record.Finding{Code: code, Level: level, Message: message + fewOf(named), Advice: advice})
	}
}

// rowsThat are words about rows, of those of which there are some.
func (j *judging) rowsThat(words func(r *Row, where string) string) (all []string) {
	for i := range j.b.Rows {
		r := &j.b.Rows[i]
		if text := words(r, j.b.where(&r.Asked)); text != "" {
			all = append(all, text)
		}
	}
	return all
}

// when are words where something is so, else "".
func when(is bool, format string, of ...any) string {
	if !is {
		return ""
	}
	return fmt.Sprintf(format, of...)
}

// ended tells of a run that came to no point, and why.
func (j *judging) ended(add adding) {
	if end := j.rec.End; len(j.rec.Points) == 0 && end != nil && end.Status == "failed" {
		add(record.Finding{Code: foundRunFailed, Level: finding.Error, Message: "the run failed before anything was measured: " + end.Why,
			Advice: "what it says is in the way; run it again without that"})
	}
}

// where names a point in a sentence.
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

// fewOf names the first few of a list.
func fewOf(all []string) string {
	if n := len(all) - maxNamed; n > 0 {
		all = append(slices.Clone(all[:maxNamed]), fmt.Sprintf("and %d more", n))
	}
	return strings.Join(all, "; ")
}

func (j *judging) failures(add adding) {
	type cause struct{ kind, detail string }
	var causes []cause
	first, at := map[cause]*record.Failure{}, map[cause][]string{}
	for _, asked := range j.asked {
		for _, m := range j.measured[asked] {
			f := m.failure()
			if f == nil {
				continue
			}
			c := cause{f.Kind, f.Detail}
			if first[c] == nil {
				first[c] = f
				causes = append(causes, c)
			}
			at[c] = append(at[c], fmt.Sprintf("%s in round %d", j.b.where(&asked), m.round+1))
		}
	}
	for _, c := range causes {
		f := first[c]
		message := fmt.Sprintf("%d of %d points failed (%s): %s: %s", len(at[c]), j.b.Total, fewOf(at[c]), f.Kind, f.Detail)
		if strings.TrimSpace(f.Output) != "" {
			message += ": " + finding.LastLine(f.Output)
		}
		add(record.Finding{Code: finding.Failed, Level: finding.Error, Message: message, Advice: "they are in no figure; the record has what came back", Tried: f.Command})
	}
}

// problems are what was seen besides figures: programs that came or went, and
// statistics that others had on.
func (j *judging) problems(add adding) {
	var lines []string
	phases, counted := 0, false
	for i := range j.rec.Points {
		p := &j.rec.Points[i]
		moved := false
		for _, line := range p.Problems {
			if othersStatistics(line) || strings.Contains(line, "requests were due") {
				continue // findings of their own
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
		"their runs are in the figures only as far as they were seen; keep the mesh's agent and deployments still meanwhile, and run it again")
	if counted {
		add(record.Finding{Code: foundOthersCounted, Level: finding.Warning, Message: "runs were counted in phases without statistics: somebody else had the kernel's statistics of BPF programs on",
			Advice: "what they cost cannot be told from those rounds, which are not in it; end bpftop and its like, or sysctl -w kernel.bpf_stats_enabled=0, and run it again"})
	}
}

// seen tells of rows that have a load and no programs.
func (j *judging) seen(add adding) {
	without := func(programs bool) []string {
		return j.rowsThat(func(r *Row, where string) string {
			return when(r.Rounds > 0 && !r.All.Of("cpu", "role", "bpf").Known() && len(r.Programs) > 0 == programs, "%s", where)
		})
	}
	add.list(foundNoPrograms, finding.Error, "no program was seen under load: ", without(false),
		"tare bpf list says what is loaded, and what the choice of programs leaves of it")
	add.list(foundNoRuns, finding.Warning, "of the programs none ran during the load, so what they cost is not shown: ", without(true),
		"they are attached where the load does not pass, or are called by others only; tare bpf list --interval 5s says which run: with --cgroup the clients stand in that cgroup, with --url the load goes to a server of theirs")
	if j.b.Memory < 0 && len(j.b.Programs) > 0 {
		add(record.Finding{Code: foundMemoryUnknown, Level: finding.Note, Message: "of some program or map the kernel does not say what it occupies: there is no sum",
			Advice: "it stands in fdinfo, for which tare needs CAP_BPF or root"})
	}
}

// misbooked tells where the cgroup's account cannot be.
func (j *judging) misbooked(add adding) {
	if j.b.Quota == nil {
		return
	}
	with := quotaQuestion{loop: j.b.Plan.Datapath != ""}.with
	var below, off []string
	for i := range j.b.Quota.Steps {
		switch f, less := j.b.Quota.Steps[i].misbooked(j.b.Plan.CPUs); {
		case f == nil:
		case less && j.b.Quota.Verdict == QuotaBeside: // they are not charged to it at all
		case less:
			below = append(below, fmt.Sprintf("%sthe programs ran for %s, and the cgroup was charged %s", with(f), cpus(f.own), cpus(f.usage)))
		default:
			off = append(off, fmt.Sprintf("%sthe cgroup was charged %s, and by the tick %s", with(f), cpus(f.usage), cpus(f.ticks)))
		}
	}
	add.list(foundDiffer, finding.Warning, "accounts of the same CPU time differ: ", slices.Concat(below, off),
		"the kernel books long times in it to the wrong task when others wake up, and a program's clock goes on while others have its CPU; what programs cost is taken from their own run time, and the verdict from the larger of the two. A quiet node brings them together")
}

// limits tell of points in which something else than the server was full.
func (j *judging) limits(add adding) {
	add.list(foundClientBound, finding.Warning, "the client used all of its CPUs: ", j.rowsThat(func(r *Row, where string) string {
		has := cmp.Or(r.Asked.CPUs, float64(j.b.CPUs))
		bound := r.All.Of("cpu", "role", "client").Known() && has > 0 && r.All.Of("cpu", "role", "client").Value >= full*has && j.b.Plan.Case != record.CaseQuota
		return when(bound, "%s (%s of %s)", where, cpus(r.All.Of("cpu", "role", "client").Value), cpus(has))
	}), "QPS is what the client can send, not what the server can answer; give it more CPUs, or ask for a rate (--qps)")
	add.list(foundNodeFull, finding.Note, "the node was full: ", j.rowsThat(func(r *Row, where string) string {
		return when(r.All.Of("node-busy").Known() && r.All.Of("node-busy").Value >= full, "%s (%s)", where, busy(r.All.Of("node-busy").Value))
	}), "client, server and programs share its CPUs there: latencies are those of the queue for a CPU")
}

// programCautions are about the programs themselves.
func (j *judging) programCautions(add adding) {
	var missed []string
	for i := range j.b.Rows {
		for _, p := range j.b.Rows[i].Programs {
			if p.Misses > 0 {
				missed = append(missed, fmt.Sprintf("%s %d times with %s", p.Name, p.Misses, j.b.where(&j.b.Rows[i].Asked)))
			}
		}
	}
	add.list(foundRecursion, finding.Warning, "programs were left out since they were running on that CPU already: ", missed,
		"those runs are in no count and no time: what the programs do is not done for them")
	for i := range j.b.Programs {
		p := &j.b.Programs[i]
		if slices.ContainsFunc(p.Maps, func(m record.ProgramMap) bool { return m.Kind == "prog_array" }) {
			add(record.Finding{Code: foundTailCalls, Level: finding.Note, Message: fmt.Sprintf("programs call others through a prog_array (%s): the kernel books all of their time, and one run, to the one that was entered first", p.Name),
				Advice: "read the sum; a program that is only called so shows no runs"})
			return
		}
	}
}

// softirq are the kinds of programs that run, at least partly, wherever a packet is
// worked on, at the cost of whatever task is there.
var softirq = []string{"xdp", "sched_cls", "sched_act", "cgroup_skb", "sock_ops", "sk_skb"}

// quotaCautions are what weakens a verdict.
func (j *judging) quotaCautions(add adding) {
	if j.b.Quota == nil {
		return
	}
	if j.b.Plan.Datapath == "" && j.b.Quota.Shared {
		add(record.Finding{Code: foundOthersRuns, Level: finding.Warning, Message: "the programs run for others than the workload, too, or not once for each of its connects: their run time is that for everyone, and what of it falls on the clients' limit cannot be told",
			Advice: "ask the same of the reference datapath, whose programs run for the clients only: tare bpf quota without a choice of programs"})
	}
	var kinds []string
	for i := range j.b.Programs {
		if k := j.b.Programs[i].Kind; slices.Contains(softirq, k) && !slices.Contains(kinds, k) {
			kinds = append(kinds, k)
		}
	}
	if kinds != nil {
		add(record.Finding{Code: foundSoftirq, Level: finding.Note, Message: fmt.Sprintf("programs of some kinds (%s) run in softirq, too, where the kernel charges whatever task is on that CPU", strings.Join(kinds, ", ")),
			Advice: "the verdict is about what runs in the workload's own calls"})
	}
}

// costs are what measuring takes itself.
func (j *judging) costs(add adding) {
	price := j.rowsThat(func(r *Row, where string) string {
		if !r.All.Of("requests-with-statistics-ratio").Versus.Different() {
			return ""
		}
		return fmt.Sprintf("%+.1f %% QPS with %s (%s)", 100*(r.All.Of("requests-with-statistics-ratio").Value-1), where, r.All.Of("requests-with-statistics-ratio").Versus.Why)
	})
	add.list(foundStatisticsShow, finding.Note, "the kernel's statistics themselves show: ", price,
		"QPS without them stands in the record; the programs' own times hold some 20 ns per run of it")
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

// few tells of too few rounds for intervals, and of a verdict that rounds disagree
// on.
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
		add(record.Finding{Code: "rounds-disagree", Level: finding.Warning, Message: fmt.Sprintf("only %d of %d rounds lead to the verdict (%s) by themselves", q.Agree, q.Rounds, q.Verdict),
			Advice: "ask for a longer --time or more --rounds, and for a quiet machine"})
	}
}
