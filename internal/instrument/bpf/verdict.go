package bpf

import (
	"fmt"
	"math"
	"strings"

	"github.com/tare-bench/tare/internal/core/stat"
)

// Thresholds of the verdict on a limit, as fractions of the limit or of each other.
// Comparisons with the limit also allow the quota of one period, since a window may
// start in the middle of a period.
const (
	quotaSlack  = 0.10 // workload and programs may exceed the limit by this and still count as within it
	quotaBeyond = 0.20 // beyond the limit if they exceed it by this
	quotaWorth  = 0.50 // minimum share of the limit that programs must use for a control to be meaningful
	quotaFree   = 1.3  // minimum ratio of the usage without a limit to the usage under it
	quotaCrowd  = 0.80 // busy share of the node from which programs wait for a CPU
	quotaClock  = 1.5  // maximum ratio of run time to charge that waiting explains
)

// quotaQuestion holds the inputs of the verdict besides the steps.
type quotaQuestion struct {
	limit float64 // CPUs
	loop  bool    // the programs are tare's own and can be made heavier
}

// verdict judges steps, lightest first. free is the heaviest step without a limit, or
// nil.
func (q quotaQuestion) verdict(steps []quotaFacts, free *quotaFacts) (QuotaVerdict, []string) {
	switch {
	case q.limit <= 0:
		return QuotaUndecided, []string{"the plan has no limit"}
	case len(steps) == 0:
		return QuotaUndecided, []string{"no point under the limit has figures: check why they failed, and run it again"}
	}
	for i := range steps {
		if because := q.beyond(&steps[i], chargeOf(steps, i)); because != nil {
			return QuotaBeside, because
		}
	}
	if because := q.untold(steps); because != nil {
		return QuotaUndecided, because
	}
	last := len(steps) - 1
	heaviest, charge := &steps[last], chargeOf(steps, last)
	facts := q.facts(heaviest)
	undecided := func(why string) (QuotaVerdict, []string) { return QuotaUndecided, append([]string{why}, facts...) }
	// A step with a sufficient charge is proof at any weight.
	for i := last - 1; i > 0 && !q.shows(heaviest, charge); i-- {
		if f, c := &steps[i], chargeOf(steps, i); q.shows(f, c) && !math.IsNaN(f.bpf) && heaviest.charged() <= q.limit*(1+quotaSlack+heaviest.edge) {
			heaviest, charge, facts, free = f, c, q.facts(f), nil
		}
	}
	if why := q.missing(heaviest, charge); why != "" {
		return undecided(why)
	}
	within := fmt.Sprintf("workload and programs together were charged %s, and the limit is %s: within %.0f %% and the %.1f %% that a period at the edges can add",
		cpus(heaviest.charged()), cpus(q.limit), 100*quotaSlack, 100*heaviest.edge)
	without, why := q.free(heaviest, free)
	switch {
	case charge.holds(q.limit, heaviest):
		because := append([]string{within, charge.fact(q.limit, heaviest)}, facts...)
		if why == "" {
			because = append(because, without)
		}
		return QuotaShared, because
	case stat.Finite(charge.own) && !charge.programs(heaviest):
		return undecided(fmt.Sprintf("of the %s that the cgroup was charged, %s can be the clients' own work, by what a request takes with lighter programs: heavier programs (--heavy) would decide it", cpus(heaviest.charged()), cpus(charge.own)))
	case why != "":
		return undecided(why)
	}
	return QuotaShared, append(append([]string{within}, facts...), without)
}

// untold returns why the steps cannot show anything, or nil. The run time may be
// unknown or shared with other processes. Or it exceeds the limit while the clients'
// own usage is unknown.
func (q quotaQuestion) untold(steps []quotaFacts) []string {
	lightest, heaviest := &steps[0], &steps[len(steps)-1]
	switch {
	case math.IsNaN(heaviest.bpf):
		return []string{"the programs' CPU time is unknown: statistics must be on, and the programs must run"}
	case math.IsNaN(heaviest.own):
		return append([]string{"programs also ran for other processes, or not once per connect of the clients: their part of the clients' limit is unknown",
			"the reference datapath's programs run only for the clients: tare bpf quota without selecting programs would decide it for this kernel"}, q.facts(heaviest)...)
	case !q.unexplained(lightest):
		return nil
	}
	lighter := "a lower --cpus or a quieter node"
	if q.loop {
		lighter = "a step with lighter programs before it (--heavy 0,…)"
	}
	return append([]string{fmt.Sprintf("the programs ran for %s in the clients' own calls, and the clients' own work is unknown, so exceeding the limit is not shown: %s would decide it", cpus(lightest.own), lighter)}, q.facts(lightest)...)
}

// shows reports whether the charge of a step is sufficient proof.
func (q quotaQuestion) shows(f *quotaFacts, charge quotaCharge) bool {
	return charge.holds(q.limit, f) && q.missing(f, charge) == ""
}

// beyond returns the facts of a step in which programs ran beyond the limit, or nil. It
// needs the clients' own usage, which could otherwise explain the excess. Run time
// alone proves it only for programs that run just for the clients. Most of that run
// time must also be missing from the charge, because the run-time clock continues while
// a task is throttled.
func (q quotaQuestion) beyond(f *quotaFacts, charge quotaCharge) []string {
	bound := q.limit * (1 + quotaBeyond + f.edge)
	switch {
	case !stat.Finite(charge.own) || !stat.Finite(f.own):
	case f.own > bound && !f.waited(bound) && !charge.programs(f):
		return append([]string{fmt.Sprintf("%sthe programs alone ran for %s in the clients' own calls, %.0f %% of the limit of %s", q.with(f), cpus(f.own), 100*f.own/q.limit, cpus(q.limit))}, q.facts(f)...)
	case f.charged() > bound && f.own >= quotaWorth*q.limit:
		return append([]string{fmt.Sprintf("%sthe cgroup took %s, most of it in programs; the limit is %s", q.with(f), cpus(f.charged()), cpus(q.limit))}, q.facts(f)...)
	}
	return nil
}

// unexplained reports whether the run time of programs alone exceeds the limit.
func (q quotaQuestion) unexplained(f *quotaFacts) bool {
	bound := q.limit * (1 + quotaBeyond + f.edge)
	return f.own > bound && f.charged() <= bound && !f.waited(bound)
}

// waited reports whether run time may include waiting. The clock continues while a
// program is preempted, and waiting is not charged.
func (f *quotaFacts) waited(bound float64) bool {
	return f.node >= quotaCrowd && f.charged() <= bound
}

// missing returns why a step proves nothing and what would help, or "".
func (q quotaQuestion) missing(f *quotaFacts, charge quotaCharge) string {
	bound := q.limit * (1 + quotaSlack + f.edge)
	switch {
	case f.charged() > q.limit*(1+quotaBeyond+f.edge):
		return fmt.Sprintf("the limit was not enforced: the cgroup used %s of %s, and the programs %s of that: check what else sets this cgroup's quota", cpus(f.charged()), cpus(q.limit), cpus(f.bpf))
	case f.bpf < quotaWorth*q.limit && !charge.holds(q.limit, f):
		return fmt.Sprintf("the programs took only %.0f %% of the limit, which fits either way: %s would decide it", 100*f.bpf/q.limit, q.heavier())
	case f.charged() > bound:
		return fmt.Sprintf("%s of %s is too much to be within the limit and too little to be beyond it: a longer --time would decide it", cpus(f.charged()), cpus(q.limit))
	case f.own > bound && charge.holds(q.limit, f) && f.waited(bound) && f.own <= quotaClock*f.charged():
		return ""
	case f.own > bound && (f.waited(bound) || charge.programs(f)):
		return fmt.Sprintf("by their own clock the programs ran for %s of %s, and the cgroup was charged %s, on a node with CPU usage %s: the clock continues while a program waits for a CPU. A quiet node would decide it",
			cpus(f.own), cpus(q.limit), cpus(f.charged()), busy(f.node))
	case f.own > bound:
		return fmt.Sprintf("%s of %s is too much to be within the limit and too little to be beyond it: a longer --time would decide it", cpus(f.own), cpus(q.limit))
	case !(f.throttled > 0):
		return "the quota never throttled the cgroup: the limit was not reached. More connections (-c), or a lower --cpus, would decide it"
	}
	return ""
}

// free describes the usage of the same load without a limit. That usage must clearly
// exceed the limit and the usage under it. Otherwise the limit may not be the cause,
// and why says so.
func (q quotaQuestion) free(f, free *quotaFacts) (fact, why string) {
	if free == nil {
		return "", "the same load without a limit was not measured, so the effect of the limit is not shown: let the run finish" + map[bool]string{true: ", or begin with a lighter --heavy"}[q.loop]
	}
	// Run time may include preemption.
	taken := most(free.charged(), free.client)
	if !stat.Finite(taken) || !(free.node >= quotaCrowd) {
		taken = most(taken, free.own)
	}
	under := f.taken()
	switch {
	case !stat.Finite(taken):
		return "", "the usage of the same load without a limit is unknown, so the effect of the limit is not shown"
	case taken <= q.limit*(1+quotaSlack+free.edge), taken < quotaFree*under:
		return "", fmt.Sprintf("without a limit the same load took %s, %.2f times as much, on a node with CPU usage %s: not clearly above the limit of %s. More connections (-c)%s or a quieter machine would decide it, or a lower --cpus, such as %.2g",
			cpus(taken), taken/under, busy(free.node), cpus(q.limit), map[bool]string{true: ", heavier programs (--heavy)"}[q.loop], q.limit/2)
	}
	return fmt.Sprintf("without a limit the same load took %s, %.2f times as much, clearly above the limit: it could have", cpus(taken), taken/under), ""
}

// heavier returns the advice that makes programs use more of the limit.
func (q quotaQuestion) heavier() string {
	if q.loop {
		return "heavier programs (--heavy)"
	}
	return "the reference datapath, whose programs can be made heavier (tare bpf quota without selecting programs),"
}

// facts returns the figures of a step as text.
func (q quotaQuestion) facts(f *quotaFacts) []string {
	var all []string
	if stat.Finite(f.bpf) {
		all = append(all, fmt.Sprintf("%sthe programs ran for %s, %.0f %% of the limit", q.with(f), cpus(f.bpf), 100*f.bpf/q.limit))
	}
	var charged []string
	if stat.Finite(f.usage) {
		charged = append(charged, cpus(f.usage)+" by its own account")
	}
	if stat.Finite(f.ticks) {
		charged = append(charged, cpus(f.ticks)+" by the tick")
	}
	if charged != nil {
		all = append(all, "the cgroup was charged "+strings.Join(charged, ", "))
	}
	if stat.Finite(f.throttled) {
		all = append(all, fmt.Sprintf("it was throttled in %.0f %% of the quota's periods", 100*f.throttled))
	}
	return all
}

// with returns the introduction to a step's figures, with its loop if there is one.
func (q quotaQuestion) with(f *quotaFacts) string {
	switch {
	case !q.loop:
		return ""
	case f.heavy == 0:
		return "without a loop "
	case f.heavy == 1:
		return "with 1 round of the loop "
	}
	return fmt.Sprintf("with %d rounds of the loop ", f.heavy)
}

// cpus formats a number of CPUs.
func cpus(v float64) string {
	if v == 1 {
		return "1 CPU"
	}
	return fmt.Sprintf("%.3g CPUs", v)
}

// busy formats the busy share of a node.
func busy(v float64) string {
	if !stat.Finite(v) {
		return "unknown"
	}
	return fmt.Sprintf("%.0f %%", 100*min(v, 1))
}
