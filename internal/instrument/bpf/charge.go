package bpf

import (
	"fmt"
	"math"
	"slices"

	"github.com/tare-bench/tare/record"
)

// Thresholds above which the charge of a cgroup proves that it includes the programs' time.
const (
	quotaMostly = 2.0  // minimum ratio of the charge to the clients' own work
	quotaHeld   = 0.10 // minimum share of periods with exhausted quota
	quotaNoise  = 0.01 // share of total run time below which a program is ignored
)

// quotaCharge splits the charge of a step's cgroup into clients and programs.
//
// The cost of a request to the clients is the charge per request of a lighter step, in
// its most expensive round. This overestimates, as it includes the lighter programs.
// Multiplied by the requests of this step it gives their own work; the rest belongs to
// the heavier programs, the only difference.
//
// If the quota was exhausted in more than twice the periods that their own work fills,
// the programs exhausted it and were throttled. This proof needs no CPU beyond the
// limit, which a small node lacks.
type quotaCharge struct {
	own float64 // estimated CPUs of the clients themselves; NaN: unknown
}

// chargeOf returns the charge of step i, with the lightest step as reference.
func chargeOf(steps []quotaFacts, i int) quotaCharge {
	f, light := &steps[i], &steps[0]
	if i == 0 || light.heavy >= f.heavy || !(light.each > 0) {
		return quotaCharge{own: math.NaN()}
	}
	return quotaCharge{own: light.each * f.rate}
}

// programs reports whether most of the charge comes from programs.
func (c quotaCharge) programs(f *quotaFacts) bool {
	return f.charged() >= quotaMostly*c.own && f.bpf >= f.charged()/quotaMostly
}

// holds reports whether the charge alone proves that programs count.
func (c quotaCharge) holds(limit float64, f *quotaFacts) bool {
	return c.programs(f) && f.throttled >= quotaHeld && f.throttled*limit >= quotaMostly*c.own
}

func (c quotaCharge) fact(limit float64, f *quotaFacts) string {
	return fmt.Sprintf("of it the clients' own work is about %s, by the most that a request takes with lighter programs; the rest can only be programs', and it used the quota up in %.0f %% of its periods, %s of %s",
		cpus(c.own), 100*f.throttled, cpus(f.throttled*limit), cpus(limit))
}

// inCalls returns the programs' run time in the clients' own calls, as a share of one
// core. A cgroup_sock_addr program always runs there. A sock_ops program may run once
// per connection in softirq, charged to any task: when the connection is established
// (tcp_input.c, tcp_finish_connect). Its other runs come from connect itself. Where
// other types run is unknown.
func inCalls(m *measured, kinds map[uint32]string) float64 {
	connects := int64(0)
	for i := range m.load.Runs {
		if r := &m.load.Runs[i]; kinds[r.ID] == kindSockAddr {
			connects += r.Count
		}
	}
	elsewhere := 0.0
	for i := range m.load.Runs {
		r := &m.load.Runs[i]
		elsewhere += float64(r.Time) * partElsewhere(r, kinds[r.ID], connects)
	}
	return max(m.bpfCore()-elsewhere/m.took(), 0)
}

// forClients reports whether the chosen programs ran only for the load's clients. All
// must be types called by connect, run once per connect, and not run while the node
// was idle. Programs below [quotaNoise] are ignored.
func forClients(m *measured, kinds map[uint32]string) bool {
	if m.load.Sent == nil || m.idle == nil {
		return false
	}
	total, took := int64(0), map[uint32]int64{}
	for _, r := range m.load.Runs {
		total, took[r.ID] = total+r.Time, max(took[r.ID], r.Time)
	}
	for _, r := range m.idle.Runs {
		took[r.ID] = max(took[r.ID], r.Time)
	}
	ran := func(r record.ProgramRun) bool {
		noise := float64(took[r.ID]) < quotaNoise*float64(total)
		return (r.Count > 0 || r.Time > 0) && !noise
	}
	exactly := func(r record.ProgramRun) bool {
		connects := m.load.Sent.Requests
		if m.load.Asked.KeepAlive {
			connects = m.load.Sent.Sockets
		}
		return !ran(r) || kinds[r.ID] == kindSockAddr && r.Count == connects
	}
	return m.ran() && !slices.ContainsFunc(m.idle.Runs, ran) && !slices.ContainsFunc(m.load.Runs, func(r record.ProgramRun) bool { return !exactly(r) })
}

// The kernel's names for the program types of the reference datapath.
const (
	kindSockAddr = "cgroup_sock_addr"
	kindSockOps  = "sock_ops"
)

func partElsewhere(r *record.ProgramRun, kind string, connects int64) float64 {
	switch {
	case kind == kindSockAddr:
		return 0
	case kind == kindSockOps && connects > 0 && r.Count > connects:
		return float64(connects) / float64(r.Count)
	}
	return 1
}

// kinds returns the types of the record's programs.
func (j *judging) kinds() map[uint32]string {
	all := map[uint32]string{}
	for i := range j.rec.Programs {
		all[j.rec.Programs[i].ID] = j.rec.Programs[i].Kind
	}
	return all
}
