package ledger

import (
	"cmp"
	"maps"
	"slices"

	"github.com/tare-bench/tare/record"
)

// Own says whether a role is of the sandboxes themselves: of processes or
// threads that are there for one sandbox and go with it.
func Own(role record.Role) bool {
	switch role {
	case record.RoleDaemon, record.RoleKernel, record.RoleKernelNode, record.RoleCache, record.RoleOthers:
		return false
	}
	return true
}

// engine sets what the engine reports beside the truth. A source that does not
// report every sandbox reports no sum.
func (b *books) engine() {
	truth := b.boxKernel + b.boxUnmapped
	for i := range b.end.Processes {
		p := &b.end.Processes[i]
		if p.Lane < 0 || !Own(p.Role) || !p.Read {
			continue
		}
		truth += b.has(p).Sum()
		if old := b.was[idOf(p)]; old != nil {
			truth -= has(old).Sum()
		}
	}
	var cpu float64
	for _, role := range order(b.rows) { // for the same last digit every time
		if Own(role) {
			cpu += b.rows[role].CPU
		}
	}
	var sources []string
	for _, s := range b.end.Engine {
		if !slices.Contains(sources, s.Source) {
			sources = append(sources, s.Source)
		}
	}
	for _, source := range sources {
		r := EngineRow{Source: source, Truth: truth, CPU: -1, CPUTruth: cpu}
		lanes := map[int]bool{}
		for _, s := range b.end.Engine {
			if s.Source == source && s.Memory >= 0 && !lanes[s.Lane] {
				lanes[s.Lane] = true
				r.Reported += s.Memory
			}
		}
		if len(lanes) == 0 || len(lanes) < b.end.Sandboxes {
			r.Reported = -1
		}
		if r.CPU = b.engineCPU(source); r.CPU < 0 {
			r.CPU = b.engineRate(source)
		}
		b.l.Engine = append(b.l.Engine, r)
	}
}

// engineCPU is what the engine says the sandboxes used between its two answers of each,
// which lie around the phase; −1 where it was not asked at both ends. It may look at each
// at another time.
func (b *books) engineCPU(source string) (sum float64) {
	if b.took() == 0 {
		return -1
	}
	type look struct{ cpu, time int64 }
	at := func(r *record.Reading) map[int]look {
		out := map[int]look{}
		for _, s := range r.Engine {
			if s.Source == source && s.CPU >= 0 {
				out[s.Lane] = look{s.CPU, cmp.Or(max(s.Time, 0), r.Time)}
			}
		}
		return out
	}
	from, to := at(b.begin), at(b.end)
	if len(to) == 0 || len(to) < b.end.Sandboxes {
		return -1
	}
	for _, lane := range slices.Sorted(maps.Keys(to)) {
		old, ok := from[lane]
		used, took := to[lane].cpu-old.cpu, to[lane].time-old.time
		if !ok || used < 0 || took <= 0 {
			return -1
		}
		sum += float64(used) / float64(took)
	}
	return sum
}

// engineRate is the sum of the averages that a source told last; −1 where it did not
// tell one of every sandbox.
func (b *books) engineRate(source string) (sum float64) {
	n := 0
	for _, s := range b.end.Engine {
		if s.Source == source && s.Rate != nil {
			n, sum = n+1, sum+*s.Rate
		}
	}
	if n == 0 || n < b.end.Sandboxes {
		return -1
	}
	return sum
}
