package ledger

import (
	"cmp"
	"maps"
	"slices"

	"github.com/tare-bench/tare/record"
)

// Own reports whether a role belongs to a single sandbox: its processes or threads
// exist for one sandbox and exit with it.
func Own(role record.Role) bool {
	switch role {
	case record.RoleDaemon, record.RoleKernel, record.RoleKernelNode, record.RoleCache, record.RoleOthers:
		return false
	}
	return true
}

// engine compares the engine's reports with the ledger. The sum is unknown if a
// source does not report every sandbox.
func (b *books) engine() {
	truth := b.boxKernel + b.boxUnmapped
	for p := range Each(b.end.Processes) {
		if p.Lane < 0 || !Own(p.Role) || !p.Read {
			continue
		}
		truth += b.has(p).Sum()
		if old := b.was[idOf(p)]; old != nil {
			truth -= has(old).Sum()
		}
	}
	var cpu float64
	for _, role := range Order(b.rows) { // a fixed order gives the same rounding every time
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
		lanes, reported := map[int]bool{}, int64(0)
		for _, s := range b.end.Engine {
			if s.Source == source && s.Memory >= 0 && !lanes[s.Lane] {
				lanes[s.Lane] = true
				reported += s.Memory
			}
		}
		if len(lanes) > 0 && len(lanes) >= b.end.Sandboxes {
			put(&b.l.Engine, "engine-memory", float64(reported), "source", source, "of", "reported")
		}
		put(&b.l.Engine, "engine-memory", float64(truth), "source", source, "of", "observed")
		used := b.engineCPU(source)
		if used < 0 {
			used = b.engineRate(source)
		}
		if used >= 0 {
			put(&b.l.Engine, "engine-cpu", used, "source", source, "of", "reported")
		}
		put(&b.l.Engine, "engine-cpu", cpu, "source", source, "of", "observed")
	}
}

// engineCPU returns the CPUs that the engine reports for the sandboxes, from its two
// reports around the phase. It returns −1 if a report is missing at either end. The
// engine may sample each sandbox at a different time.
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

// engineRate returns the sum of the CPU rates that a source reported last, or −1 if
// it did not report every sandbox.
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
