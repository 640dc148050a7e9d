package bpf

import (
	"fmt"
	"math"
	"slices"

	"github.com/tare-bench/tare/record"
)

// What a charge has to be before it shows by itself that programs are in it.
const (
	quotaMostly = 2.0  // times the clients' own work that it has to be
	quotaHeld   = 0.10 // of the periods in which the quota was used up, at least
	quotaNoise  = 0.01 // of all chosen programs' run time, below which a program decides nothing
)

// quotaCharge tells whose time a step's cgroup was charged. What a request costs the
// clients themselves is the charge for each of a lighter step, in the round in which it
// was most, which is too much rather than too little, as it has the lighter programs in
// it. Times the requests of this step that is about their own work in it, and the rest
// can only be the heavier programs: nothing else differs. Where the quota was used up in more periods than
// their own work would fill twice over, it was programs that used it up, and it held
// them back. That needs no CPU beyond the limit, which a small node does not have.
type quotaCharge struct {
	own float64 // CPUs that the clients themselves take in the step, about; NaN: not known
}

// chargeOf is that of a step, by the lightest one.
func chargeOf(steps []quotaFacts, i int) quotaCharge {
	f, light := &steps[i], &steps[0]
	if i == 0 || light.heavy >= f.heavy || !(light.each > 0) {
		return quotaCharge{own: math.NaN()}
	}
	return quotaCharge{own: light.each * f.rate}
}

// programs tells whether most of the charge is programs'.
func (c quotaCharge) programs(f *quotaFacts) bool {
	return f.charged() >= quotaMostly*c.own && f.bpf >= f.charged()/quotaMostly
}

// holds tells whether the charge shows by itself that programs count.
func (c quotaCharge) holds(limit float64, f *quotaFacts) bool {
	return c.programs(f) && f.throttled >= quotaHeld && f.throttled*limit >= quotaMostly*c.own
}

func (c quotaCharge) fact(limit float64, f *quotaFacts) string {
	return fmt.Sprintf("of it the clients' own work is about %s, by the most that a request takes with lighter programs; the rest can only be programs', and it used the quota up in %.0f %% of its periods, %s of %s",
		cpus(c.own), 100*f.throttled, cpus(f.throttled*limit), cpus(limit))
}

// inCalls is the part of the programs' run time that can only have been spent in
// the clients' own calls, as a share of one core. A cgroup_sock_addr runs nowhere
// else. Of the calls of a sock_ops for one connection one may come in softirq, on
// whose account that may be: when the connection is established (tcp_input.c,
// tcp_finish_connect); the others are made by connect itself. Where other kinds run
// is not known.
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

// forClients tells whether chosen programs ran for the load's clients and for nobody
// else: all that ran are called by a connect, each was called once for every connect of
// the clients, and none while the node was idle. Programs below [quotaNoise] may be others'.
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

// The kernel's names of the kinds of programs that the reference datapath has.
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

// kinds are those of the record's programs.
func (j *judging) kinds() map[uint32]string {
	all := map[uint32]string{}
	for i := range j.rec.Programs {
		all[j.rec.Programs[i].ID] = j.rec.Programs[i].Kind
	}
	return all
}
