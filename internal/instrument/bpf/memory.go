package bpf

import (
	"maps"
	"slices"

	"github.com/tare-bench/tare/record"
)

// growth returns the memory of programs and maps for each number of services, in plan
// order.
func (j *judging) growth() (rows []MemoryRow) {
	of := map[int]*memoryValues{}
	for _, asked := range j.asked {
		for _, m := range j.measured[asked] {
			if of[asked.Services] == nil {
				of[asked.Services] = &memoryValues{}
			}
			of[asked.Services].add(m)
		}
	}
	for _, n := range slices.SortedFunc(maps.Keys(of), func(a, b int) int { return planned(j.b.Plan.Services, a, b) }) {
		if f := of[n]; f.each != nil {
			rows = append(rows, MemoryRow{Services: n, Programs: largest(f.programs), Maps: largest(f.maps), Each: f.each, UnderLoad: largest(f.loaded)})
		}
	}
	return rows
}

// memoryValues holds the memory of each round, in bytes.
type memoryValues struct {
	programs, maps, loaded []int64
	each                   []record.ProgramMem // of the first round
}

func (f *memoryValues) add(m *measured) {
	if p := m.idle; p != nil && p.Failure == nil && len(p.Memory) > 0 {
		programs, maps := occupied(p.Memory)
		f.programs, f.maps = append(f.programs, programs), append(f.maps, maps)
		if f.each == nil {
			f.each = p.Memory
		}
	}
	if p := m.load; p != nil && p.Failure == nil && len(p.Memory) > 0 {
		programs, maps := occupied(p.Memory)
		f.loaded = append(f.loaded, plus(programs, maps))
	}
}

// occupied returns the total memory of programs and of maps, counting each once.
func occupied(all []record.ProgramMem) (programs, maps int64) {
	seen := map[record.ProgramMem]bool{}
	for _, m := range all {
		k := record.ProgramMem{Map: m.Map, ID: m.ID}
		switch {
		case seen[k]:
		case m.Map:
			maps = plus(maps, m.Memory)
		default:
			programs = plus(programs, m.Memory)
		}
		seen[k] = true
	}
	return programs, maps
}

// largest returns the maximum over rounds, or -1 if a round is unknown or there are
// none.
func largest(all []int64) int64 {
	if len(all) == 0 || slices.Contains(all, -1) {
		return -1
	}
	return slices.Max(all)
}
