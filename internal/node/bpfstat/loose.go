package bpfstat

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tare-bench/tare/record"
)

// looseMaps returns the maps that no loaded program uses, without inner maps. A map can
// outlive its programs, or exist before them, while a process has a descriptor of it or
// it is pinned.
func (m *Meter) looseMaps() (out []record.Map) {
	within := map[uint32]bool{}
	for _, a := range m.maps {
		for _, id := range a.inner {
			within[id] = true
		}
	}
	for _, a := range m.maps {
		if m.users[a.ID] == 0 && !within[a.ID] {
			out = append(out, record.Map{Type: record.TypeMap, Map: a.ProgramMap})
		}
	}
	return out
}

// keep sets the holders, pins and owner of a map. The owner follows from the map's name or
// pins. Otherwise it is the owner of the programs that the map's holders also hold, if all
// of these have the same owner.
func (m *Meter) keep(a *record.Map, held []holder, pins []pin) {
	var by []holder
	for _, h := range held {
		if h.aMap == a.Map.ID {
			by = append(by, h)
			h.isOf(&a.Holders)
		}
	}
	a.Owner = ownerByMap(a.Map.Name)
	for _, one := range pins {
		if one.aMap == a.Map.ID {
			a.Pins = append(a.Pins, one.path)
			a.Owner = cmp.Or(a.Owner, ownerByPin(one.path))
		}
	}
	slices.Sort(a.Pins)
	if a.Owner != "" || len(by) == 0 {
		return
	}
	owners := map[string]bool{}
	for _, h := range by {
		holds := false
		for _, other := range held {
			if at, ok := slices.BinarySearchFunc(m.programs, other.program, byID); ok && other.pid == h.pid {
				owners[m.programs[at].Owner], holds = true, true
			}
		}
		owners[""] = owners[""] || !holds
	}
	for owner := range owners {
		if len(owners) == 1 {
			a.Owner = owner
		}
	}
}

// means reports whether the filter matches a map without a program. Such a map never
// matches by name, cgroup or id.
func (f *Filter) means(a *record.Map, held []holder) bool {
	below := func(pin string) bool {
		return slices.ContainsFunc(f.Pins, func(path string) bool {
			path, err := filepath.EvalSymlinks(path)
			return err == nil && (pin == path || strings.HasPrefix(pin, path+"/"))
		})
	}
	mine := func(owner string) bool {
		return a.Owner == owner || slices.ContainsFunc(held, func(h holder) bool { return h.aMap == a.Map.ID && h.is(owner) })
	}
	return len(f.Names)+len(f.Cgroups)+len(f.IDs) == 0 && (!f.Kmesh || a.Owner == "kmesh") &&
		(len(f.Pins) == 0 || slices.ContainsFunc(a.Pins, below)) && (len(f.Owners) == 0 || slices.ContainsFunc(f.Owners, mine))
}
