package bpf

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/stat"
	"github.com/tare-bench/tare/record"
)

// quotaPeriod is the kernel's period of a quota where nobody sets another one
// (kernel/sched/fair.c, default_cfs_period), ns.
const quotaPeriod = 100e6

// quotaFacts are what one weight of the programs gave, in one round or as medians
// over several. CPU times are shares of one core, NaN where they are not known.
type quotaFacts struct {
	heavy             int64
	round             int // -1 of medians
	usage, ticks, bpf float64
	own               float64 // of bpf, that can only have run in the clients' own calls; NaN of programs that run for others, too
	throttled         float64 // share of the periods
	qps               float64
	rate              float64 // requests that were begun, per second
	each              float64 // charge of a request, CPU seconds; of medians the most of the rounds
	client            float64 // of the control, which may have no group
	node              float64 // share of the node that was busy
	edge              float64 // parts of the limit that a window can hold beyond it
}

// values are all that medians are made of.
func (f *quotaFacts) values() []*float64 {
	return []*float64{&f.usage, &f.ticks, &f.bpf, &f.own, &f.throttled, &f.qps, &f.rate, &f.each, &f.client, &f.node, &f.edge}
}

// charged is what the cgroup was charged: the larger of what is known, since cpuacct
// books long times in the kernel to others now and then.
func (f *quotaFacts) charged() float64 { return most(f.usage, f.ticks) }

// taken is what workload and programs took together, as far as that was in the
// clients' own calls.
func (f *quotaFacts) taken() float64 { return most(f.own, f.charged()) }

// most is the largest of the values that are known, NaN of none.
func most(values ...float64) float64 {
	out := math.NaN()
	for _, v := range values {
		if !(v <= out) && !math.IsNaN(v) {
			out = v
		}
	}
	return out
}

// quotaStep is a weight of the programs, in the order of the rounds.
type quotaStep struct {
	heavy int64
	facts []quotaFacts
}

// quota answers whose limit pays.
func (j *judging) quota() *Quota {
	q := &Quota{Limit: j.b.Plan.CPUs}
	steps, control := j.quotaSteps()
	medians := make([]quotaFacts, len(steps))
	for i, s := range steps {
		medians[i] = s.median()
		q.Shared = q.Shared || math.IsNaN(medians[i].own) && stat.Finite(medians[i].bpf)
		q.Steps = append(q.Steps, s.figures(q.Limit))
	}
	var free *quotaFacts
	if control != nil {
		f := control.median()
		free = &f
	}
	asked := quotaQuestion{limit: q.Limit, loop: j.b.Plan.Datapath != ""}
	q.Verdict, q.Because = asked.verdict(medians, free)
	if len(steps) == 0 {
		return q
	}
	last := math.MinInt
	for _, f := range steps[len(steps)-1].facts {
		round := f.round
		if round == last {
			continue
		}
		last = round
		var of []quotaFacts
		for _, s := range steps {
			if one := s.of(round); one != nil {
				of = append(of, one.median())
			}
		}
		without := free
		if control != nil {
			if one := control.of(round); one != nil {
				f := one.median()
				without = &f
			}
		}
		q.Rounds++
		if v, _ := asked.verdict(of, without); v == q.Verdict {
			q.Agree++
		}
	}
	return q
}

// quotaSteps are the weights under the limit, the lightest first, and the heaviest
// without one, nil where that was not measured.
func (j *judging) quotaSteps() (steps []*quotaStep, control *quotaStep) {
	limited, free, kinds := map[int64]*quotaStep{}, map[int64]*quotaStep{}, j.kinds()
	reference := j.b.Plan.Datapath != ""
	for _, asked := range j.asked {
		to := limited
		switch {
		case asked.CPUs == 0:
			to = free
		case math.Abs(asked.CPUs-j.b.Plan.CPUs) > 1e-9:
			continue
		}
		for _, m := range j.measured[asked] {
			p := m.loaded()
			if p == nil || !m.statistics || asked.CPUs != 0 && p.Group == nil {
				continue
			}
			if to[asked.Heavy] == nil {
				to[asked.Heavy] = &quotaStep{heavy: asked.Heavy}
			}
			f := factsOf(m)
			if reference || forClients(m, kinds) {
				f.own = inCalls(m, kinds)
			}
			to[asked.Heavy].facts = append(to[asked.Heavy].facts, f)
		}
	}
	for _, heavy := range slices.Sorted(maps.Keys(limited)) {
		limited[heavy].sort()
		steps = append(steps, limited[heavy])
	}
	if len(steps) > 0 {
		if control = free[steps[len(steps)-1].heavy]; control != nil {
			control.sort()
		}
	}
	return steps, control
}

func factsOf(m *measured) quotaFacts {
	p, f := m.load, quotaFacts{heavy: m.load.Asked.Heavy, round: m.round}
	for _, v := range f.values() {
		*v = math.NaN()
	}
	took := float64(p.Ended - p.Begun)
	f.edge = quotaPeriod / took
	f.bpf, f.client = m.bpfCore(), part(p.ClientCPU, took)
	f.node = min(part(p.NodeCPU, took*float64(p.CPUs)), 1) // by ticks: up to one of each CPU too many
	if p.Sent != nil {
		f.qps, f.rate = p.Sent.QPS, float64(p.Sent.Requests)/took*1e9
	}
	if g := p.Group; g != nil {
		f.usage, f.ticks = float64(g.Usage)/took, part(g.Ticks, took)
		if g.Periods > 0 {
			f.throttled = float64(g.Throttled) / float64(g.Periods)
		}
	}
	if f.rate > 0 {
		f.each = f.charged() / f.rate
	}
	return f
}

// sort puts points of several numbers of connections or services into the order of
// the rounds.
func (s *quotaStep) sort() {
	slices.SortStableFunc(s.facts, func(a, b quotaFacts) int { return cmp.Compare(a.round, b.round) })
}

// of is the step in one round, nil where it has no figures.
func (s *quotaStep) of(round int) *quotaStep {
	facts := slices.DeleteFunc(slices.Clone(s.facts), func(f quotaFacts) bool { return f.round != round })
	if len(facts) == 0 {
		return nil
	}
	return &quotaStep{s.heavy, facts}
}

func (s *quotaStep) over(of func(*quotaFacts) float64) stat.Rounds {
	values := stat.Rounds{}
	for i := range s.facts {
		if v := of(&s.facts[i]); stat.Finite(v) {
			values[i] = v
		}
	}
	return values
}

func (s *quotaStep) median() quotaFacts {
	out := quotaFacts{heavy: s.heavy, round: -1}
	for i, to := range out.values() {
		*to = math.NaN()
		if e := figure.Median(s.over(func(f *quotaFacts) float64 { return *f.values()[i] })); e.Known() {
			*to = e.Value
		}
	}
	out.each = math.NaN()
	for i := range s.facts {
		out.each = most(out.each, s.facts[i].each)
		if f := &s.facts[i]; stat.Finite(f.bpf) && !stat.Finite(f.own) {
			out.own = math.NaN() // one round in which others ran them is enough
		}
	}
	return out
}

func (s *quotaStep) figures(limit float64) QuotaStep {
	labels := labelsOf(&record.Asked{Heavy: s.heavy, CPUs: limit})
	if s.heavy == 0 {
		labels = labels.With("heavy", "0")
	}
	of := func(quantity string, unit figure.Unit, better figure.Direction, value func(*quotaFacts) float64) figure.Figure {
		f := about(quantity, unit, better, labels, s.over(value))
		f.Rounds = nil
		for i := range s.facts {
			if v := value(&s.facts[i]); stat.Finite(v) && (len(f.Rounds) == 0 || f.Rounds[len(f.Rounds)-1].Round < s.facts[i].round) {
				f.Rounds = append(f.Rounds, figure.Round{Round: s.facts[i].round, Value: v})
			}
		}
		return f
	}
	return QuotaStep{
		Heavy: s.heavy,
		Usage: of("quota-usage", figure.CPUs, "", func(f *quotaFacts) float64 { return f.usage }),
		Ticks: of("quota-usage-by-tick", figure.CPUs, "", func(f *quotaFacts) float64 { return f.ticks }),
		BPF:   of("quota-bpf", figure.CPUs, figure.Less, func(f *quotaFacts) float64 { return f.bpf }),
		Workload: of("quota-workload", figure.CPUs, "", func(f *quotaFacts) float64 {
			if f.usage < f.bpf || math.IsNaN(f.own) {
				return math.NaN() // misbooked, or spent for others: there is no telling
			}
			return f.usage - f.bpf
		}),
		Throttled: of("quota-throttled", figure.Ratio, figure.Less, func(f *quotaFacts) float64 { return f.throttled }),
		QPS:       of("quota-requests", figure.PerSecond, figure.More, func(f *quotaFacts) float64 { return f.qps }),
	}
}

// misbooked says what of a step cannot be: less CPU time of the cgroup than its
// programs ran, or another one by the clock than by the tick.
func (s *quotaStep) misbooked(limit float64) (f *quotaFacts, below bool) {
	for i := range s.facts {
		if f := &s.facts[i]; f.own > (1+quotaSlack)*f.usage && f.own > quotaSlack*limit {
			return f, true
		}
	}
	for i := range s.facts {
		if f := &s.facts[i]; math.Abs(f.ticks-f.usage) > quotaSlack*max(f.usage, f.ticks, limit) {
			return f, false
		}
	}
	return nil, false
}
