package judge

import (
	"fmt"
	"math"
	"strings"
)

// The bounds of the verdict on a limit, as parts of the limit or of each other. To
// all of them comes the quota of one period, which a window that does not begin
// with a period can hold beyond the limit.
const (
	quotaSlack  = 0.10 // that workload and programs may be above the limit and within it still
	quotaBeyond = 0.20 // from which on they are beyond it
	quotaWorth  = 0.50 // of the limit, that programs have to take before they show anything
	quotaFree   = 1.3  // times as much that they have to take without a limit
	quotaCrowd  = 0.80 // of the node busy, from which on programs wait for a CPU
)

// quotaQuestion is what is asked of the steps.
type quotaQuestion struct {
	limit     float64 // CPUs
	reference bool    // the programs are tare's own, and can be made heavier
}

// verdict weighs steps, the lightest first, and the heaviest one without a limit,
// which may be nil.
func (q quotaQuestion) verdict(steps []quotaFacts, free *quotaFacts) (QuotaVerdict, []string) {
	switch {
	case q.limit <= 0:
		return QuotaUndecided, []string{"the plan has no limit"}
	case len(steps) == 0:
		return QuotaUndecided, []string{"no point under the limit gave figures: see why they failed, and run it again"}
	}
	for i := range steps {
		if because := q.beyond(&steps[i]); because != nil {
			return QuotaBeside, because
		}
	}
	heaviest := &steps[len(steps)-1]
	if math.IsNaN(heaviest.bpf) {
		return QuotaUndecided, []string{"what the programs took is not known: their statistics have to be on, and the programs have to be seen"}
	}
	facts := q.facts(heaviest)
	if why := q.missing(heaviest); why != "" {
		return QuotaUndecided, append([]string{why}, facts...)
	}
	without, why := q.free(heaviest, free)
	if why != "" {
		return QuotaUndecided, append([]string{why}, facts...)
	}
	within := fmt.Sprintf("workload and programs together took %s, and the limit is %s: within %.0f %% and the %.1f %% that a period at the edges can add",
		cpus(heaviest.taken()), cpus(q.limit), 100*quotaSlack, 100*heaviest.edge)
	return QuotaShared, append(append([]string{within}, facts...), without)
}

// beyond are the facts of a step in which programs ran beyond the limit; nil where
// they did not.
func (q quotaQuestion) beyond(f *quotaFacts) []string {
	bound := q.limit * (1 + quotaBeyond + f.edge)
	switch {
	case f.bpf > bound && !f.waited(bound):
		return append([]string{fmt.Sprintf("%s the programs alone ran for %s, %.0f %% of the limit of %s", weight(f.heavy), cpus(f.bpf), 100*f.bpf/q.limit, cpus(q.limit))}, q.facts(f)[1:]...)
	case most(f.usage, f.ticks) > bound && f.bpf >= quotaWorth*q.limit:
		return append([]string{fmt.Sprintf("%s the cgroup took %s, most of it in programs, and the limit is %s", weight(f.heavy), cpus(most(f.usage, f.ticks)), cpus(q.limit))}, q.facts(f)...)
	}
	return nil
}

// waited tells whether programs may not have run all of their run time: a clock
// goes on while others have the CPU (a program of a cgroup can be preempted), and
// that is not charged to anybody twice.
func (f *quotaFacts) waited(bound float64) bool {
	return f.node >= quotaCrowd && most(f.usage, f.ticks) <= bound
}

// missing is why a step shows nothing, and what would; "" where it does.
func (q quotaQuestion) missing(f *quotaFacts) string {
	heavier := "more load, or programs that take longer, would decide it"
	if q.reference {
		heavier = "heavier programs (--heavy) would decide it"
	}
	switch taken := f.taken(); {
	case most(f.usage, f.ticks) > q.limit*(1+quotaBeyond+f.edge):
		return fmt.Sprintf("the limit itself was not kept: the cgroup took %s of %s, and the programs %s of that: look who else sets this cgroup's quota", cpus(taken), cpus(q.limit), cpus(f.bpf))
	case f.bpf < quotaWorth*q.limit:
		return fmt.Sprintf("the programs took only %.0f %% of the limit, with which they fit in it either way: %s", 100*f.bpf/q.limit, heavier)
	case f.bpf > q.limit*(1+quotaSlack+f.edge) && f.waited(q.limit*(1+quotaSlack+f.edge)):
		return fmt.Sprintf("by their own clock the programs ran for %s of %s, and the cgroup was charged %s, on a node that was %.0f %% busy: the clock goes on while others have the CPU. A quiet node would decide it",
			cpus(f.bpf), cpus(q.limit), cpus(most(f.usage, f.ticks)), 100*f.node)
	case taken > q.limit*(1+quotaSlack+f.edge):
		return fmt.Sprintf("%s of %s is too much to be within the limit and too little to be beyond it: a longer --duration would decide it", cpus(taken), cpus(q.limit))
	case !(f.throttled > 0):
		return "the quota never held the cgroup back: the limit was not reached. More connections, or a lower --cpus, would decide it"
	}
	return ""
}

// free says what the same load took without a limit; why is there where that was
// not more, so that the limit need not be what kept it down.
func (q quotaQuestion) free(f, free *quotaFacts) (fact, why string) {
	if free == nil {
		return "the same load without a limit was not measured", ""
	}
	taken := most(free.taken(), free.client)
	switch times := taken / f.taken(); {
	case math.IsNaN(times):
		return "what the same load takes without a limit is not known", ""
	case times < quotaFree:
		return "", fmt.Sprintf("without a limit the same load took %s, only %.2f times as much: this machine or this load has no more to give. A lower --cpus, such as %.2g, or more connections would decide it",
			cpus(taken), times, q.limit/2)
	default:
		return fmt.Sprintf("without a limit the same load took %s, %.2f times as much: it could have", cpus(taken), times), ""
	}
}

// facts are the figures of a step.
func (q quotaQuestion) facts(f *quotaFacts) []string {
	var all []string
	if finite(f.bpf) {
		all = append(all, fmt.Sprintf("%s the programs ran for %s, %.0f %% of the limit", weight(f.heavy), cpus(f.bpf), 100*f.bpf/q.limit))
	}
	var charged []string
	if finite(f.usage) {
		charged = append(charged, cpus(f.usage)+" by its own account")
	}
	if finite(f.ticks) {
		charged = append(charged, cpus(f.ticks)+" by the tick")
	}
	if charged != nil {
		all = append(all, "the cgroup was charged "+strings.Join(charged, ", "))
	}
	if finite(f.throttled) {
		all = append(all, fmt.Sprintf("it was held back in %.0f %% of the quota's periods", 100*f.throttled))
	}
	return all
}

func weight(heavy int64) string {
	switch heavy {
	case 0:
		return "without a loop"
	case 1:
		return "with 1 round of the loop"
	}
	return fmt.Sprintf("with %d rounds of the loop", heavy)
}

// cpus writes shares of one core as CPUs.
func cpus(v float64) string {
	if v == 1 {
		return "1 CPU"
	}
	return fmt.Sprintf("%.3g CPUs", v)
}
