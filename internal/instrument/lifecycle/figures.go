package lifecycle

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/stat"
	"github.com/tare-bench/tare/internal/subject/setting"
	"github.com/tare-bench/tare/record"
)

// measured returns the measured batches of one operation on one target.
func measured(rec *record.Record, lanes int, target, op string) (all []*record.Batch) {
	for i := range rec.Batches {
		if b := &rec.Batches[i]; b.Lanes == lanes && b.Phase == record.PhaseMeasure && b.Target == target && b.Op == op {
			all = append(all, b)
		}
	}
	return all
}

// figures returns the figures of one operation on one target, time first. With one
// lane the time is the operation's latency. With more lanes it is the makespan of the
// batch, one value per round without failures.
func figures(rec *record.Record, target *record.Target, op setting.Op, lanes int) (out figure.Set) {
	labels := figure.Of("target", target.Name, "op", string(op), "lanes", strconv.Itoa(lanes))
	put := func(quantity string, e figure.Estimate, more ...string) *figure.Figure {
		out = append(out, Quantities.New(quantity, e, slices.Concat(labels, figure.Of(more...))))
		return &out[len(out)-1]
	}
	batches := measured(rec, lanes, target.Name, string(op))
	lost, failed, total, t, of, values := 0, 0, 0, timesOf(target, string(op), batches), imported{}, sampled(batches)
	for _, b := range batches {
		lost += b.Lost
		if f, n := Outcomes(b); !b.Unproven {
			failed, total = failed+f, total+n
		}
		if b.Summary != nil {
			of.add(b.Round, b.Summary)
		}
	}
	done, quantity := t.done(), "latency"
	rounds := t.by[done]
	switch {
	case len(rounds) == 0 && of.rounds != nil:
		quantity, rounds = of.quantity, of.rounds
	case lanes > 1:
		quantity = "makespan"
	}
	time := put(quantity, figure.Median(rounds))
	time.Rounds, time.Failed, time.Total = figure.ByRound(rounds), failed, total
	if time.Known() {
		time.Until = string(done)
	}
	trimmed := middle(of.trimmed)
	if calls := t.by[t.called()]; !trimmed.Known() { // the published report timed calls
		if mean, ok := stat.Trimmed(figure.Ordered(calls)); ok {
			trimmed = figure.Exactly(mean)
			trimmed.N = len(calls)
		}
	}
	mean := put("trimmed-mean", trimmed)
	mean.Failed, mean.Total = failed, total

	t.stamps(batches, put)
	quantiles := func(quantity string, values []float64, names ...string) {
		for _, name := range names {
			if len(values) > 0 {
				e := figure.Exactly(stat.Quantiles(values, map[string]float64{"p50": 0.5, "p90": 0.9, "p99": 0.99, "max": 1}[name])[0])
				e.N = len(values)
				put(quantity, e, "quantile", name)
			}
		}
	}
	quantiles("ready-resolution", values["ready-resolution"], "p50", "max")
	if requests := values["first-request"]; requests != nil {
		put("first-request", middle(requests))
	}
	if latencies, skews, parallel, own := fared(batches, done, rec.Header.Environment.CPUs); len(latencies) > 0 {
		quantiles("lane-latency", latencies, laneQuantiles...)
		put("release-skew", middle(skews))
		put("parallelism", middle(parallel))
		put("own-cpu-share", middle(own))
		put("release-skew", figure.Exactly(slices.Max(skews)), "quantile", "max")
	}
	for _, own := range []string{"command-cpu", "user-cpu", "system-cpu", "max-rss"} {
		e := middle(values[own])
		if len(values[own]) > 0 && slices.Max(values[own]) == 0 { // API calls have no command
			e = figure.Estimate{}
		}
		put(own, e)
	}
	for _, role := range rolesOf(batches) {
		for i, e := range roleFigures(batches, role, lanes) {
			quantity, when, _ := strings.Cut(roleQuantities[i], " ")
			put(quantity, e, "role", string(role), "when", when)
		}
	}
	if lost > 0 {
		put("lanes-lost", figure.Exactly(float64(lost)))
	}
	return out
}

// sampled returns the values of the samples without a failure, by quantity.
func sampled(batches []*record.Batch) map[string][]float64 {
	values := map[string][]float64{}
	add := func(name string, v int64) { values[name] = append(values[name], float64(v)) }
	for _, b := range batches {
		for i := range b.Samples {
			s := &b.Samples[i]
			if s.Failure != nil {
				continue
			}
			add("command-cpu", s.UserCPU+s.SysCPU)
			add("user-cpu", s.UserCPU)
			add("system-cpu", s.SysCPU)
			add("max-rss", s.MaxRSS)
			if d, ok := s.Resolution(); ok {
				add("ready-resolution", int64(d))
			}
			if s.Ready > 0 && s.Request > 0 {
				add("first-request", s.Request)
			}
		}
	}
	return values
}

// stamps puts the time to each stamp.
func (t *times) stamps(batches []*record.Batch, put func(quantity string, e figure.Estimate, more ...string) *figure.Figure) {
	atMost, asked := polled(batches)
	for _, stamp := range record.Stamps {
		if rounds := t.by[stamp]; len(rounds) > 0 {
			f := put("time-to", figure.Median(rounds), "stamp", string(stamp))
			f.Rounds = figure.ByRound(rounds)
			if stamp == record.StampReady && atMost > asked/2 {
				f.AtMost, f.Verdict = true, figure.AtMost
			}
		}
	}
}

// middle returns a median without an interval.
func middle(values []float64) figure.Estimate {
	if len(values) == 0 {
		return figure.Estimate{}
	}
	return figure.Estimate{N: len(values), Value: stat.Summarize(values, figure.Confidence).Median}
}

// imported collects a tool's figures for several operations together.
type imported struct {
	quantity string
	rounds   stat.Rounds
	trimmed  []float64
}

// add adds a mean if there is one. The time of a whole run is a different quantity,
// because the parallelism is unknown.
func (t *imported) add(round int, s *record.Summary) {
	quantity, value := "mean-latency", float64(s.Mean)
	if s.Mean == 0 {
		quantity, value = "time-per-operation", s.Seconds*1e9/float64(s.Count)
	}
	if t.rounds == nil {
		t.quantity, t.rounds = quantity, stat.Rounds{}
	}
	if t.quantity == quantity {
		t.rounds[round] = value
	}
	if s.Trimmed > 0 {
		t.trimmed = append(t.trimmed, float64(s.Trimmed))
	}
}

// polled counts the workloads whose readiness was polled, and those ready at the first
// poll. The times of the latter are upper bounds.
func polled(batches []*record.Batch) (atMost, asked int) {
	for _, b := range batches {
		for i := range b.Samples {
			if s := &b.Samples[i]; s.Failure == nil && s.Polls > 0 && s.Ready > 0 {
				asked++
				if _, known := s.Resolution(); !known {
					atMost++
				}
			}
		}
	}
	return atMost, asked
}

// fared returns the latency of each lane from its own start. For each batch it returns
// the release skew, the parallelism, and tare's share of the CPU time.
func fared(batches []*record.Batch, done record.Stamp, cpus int) (latencies, skews, parallel, own []float64) {
	for _, b := range batches {
		var first, last int64
		n := len(latencies)
		for i := range b.Samples {
			s := &b.Samples[i]
			if s.Start != 0 && (first == 0 || s.Start < first) {
				first = s.Start
			}
			last = max(last, s.Start)
			if d, ok := s.Latency(done); ok {
				latencies = append(latencies, float64(d))
			}
		}
		if b.Summary == nil {
			skews = append(skews, float64(last-first))
		}
		if makespan, ok := span(b, done); whole(b) && ok && makespan > 0 {
			parallel = append(parallel, stat.Parallelism(latencies[n:], makespan))
			own = append(own, float64(b.OwnCPU)/(makespan*float64(max(cpus, 1))))
		}
	}
	return latencies, skews, parallel, own
}

// roleQuantities names the values of [quantities] and when they were read. Memory is
// PSS.
var roleQuantities = []string{"role-processes before", "role-processes after", "role-cpu",
	"role-memory before", "role-memory peak", "role-memory after", "role-memory-growth", "role-memory-each"}

// roleFigures returns the medians of the [roleQuantities] of a role.
func roleFigures(batches []*record.Batch, role record.Role, lanes int) []figure.Estimate {
	used, _ := usage(batches, role)
	out := make([]figure.Estimate, len(roleQuantities))
	for i, name := range roleQuantities {
		var values []float64
		for _, u := range used {
			if v := quantities(u, lanes)[i]; !math.IsNaN(v) {
				values = append(values, v)
			}
		}
		out[i] = middle(values)
		if len(used) > 0 && values == nil && name != "role-cpu" { // nothing to divide by
			out[i] = figure.Exactly(0)
		}
	}
	return out
}

// quantities returns the usage of a role in a batch, with NaN for unknown values.
func quantities(u *record.Usage, lanes int) []float64 {
	cpu, each := float64(u.CPU)/float64(lanes), math.NaN()
	if max(u.Ended, u.Before-u.After) > 0 { // older records lack Ended
		cpu = math.NaN()
	}
	switch {
	case u.After > 0:
		each = float64(u.PSSAfter) / float64(u.After)
	case u.Before > 0:
		each = float64(u.PSSBefore) / float64(u.Before)
	}
	return []float64{float64(u.Before), float64(u.After), cpu,
		float64(u.PSSBefore), float64(u.PSSPeak), float64(u.PSSAfter), float64(u.PSSAfter-u.PSSBefore) / float64(lanes), each}
}

// usage returns the usage of a role in each batch without failures and with all
// processes readable. unread is the number of unreadable processes.
func usage(batches []*record.Batch, role record.Role) (all []*record.Usage, unread int) {
	for _, b := range batches {
		for i := range b.Roles {
			if u := &b.Roles[i]; u.Role == role && whole(b) {
				if unread += u.Unread; u.Unread == 0 {
					all = append(all, u)
				}
			}
		}
	}
	return all, unread
}

// Roles are the roles that a run meters, in their order in tables. Other roles follow by name.
var Roles = []record.Role{record.RoleDaemon, record.RoleShim, record.RoleMonitor, record.RoleVMM, record.RoleVirtiofs}

func rolesOf(batches []*record.Batch) (all []record.Role) {
	for _, b := range batches {
		for _, u := range b.Roles {
			if whole(b) && !slices.Contains(all, u.Role) {
				all = append(all, u.Role)
			}
		}
	}
	rank := func(r record.Role) uint { return uint(slices.Index(Roles, r)) } // for other roles -1 becomes the maximum
	slices.SortFunc(all, func(a, b record.Role) int { return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b)) })
	return all
}
