package bpfstat

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/record"
)

// listMaps finds new and removed maps. A map used by a program exists at least as long
// as that program.
func (m *Meter) listMaps(l *Listing) error {
	m.count()
	old := m.maps
	m.maps = make([]*aMap, 0, len(old)+8)
	last := uint32(0)
	if m.listings%everyWalk != 0 {
		for _, a := range old {
			last = a.ID
			if m.users[a.ID] > 0 || m.there(a.ID) {
				m.maps = append(m.maps, a)
			}
		}
		old = nil
	}
	return m.walk(unix.BPF_MAP_GET_NEXT_ID, last, "list the BPF maps of this machine", func(id uint32) error {
		for len(old) > 0 && old[0].ID < id {
			old = old[1:]
		}
		if len(old) > 0 && old[0].ID == id {
			m.maps = append(m.maps, old[0])
			return nil
		}
		return m.meetMap(id, l)
	})
}

// there reports whether the map still exists in the kernel.
func (m *Meter) there(id uint32) bool {
	next, err := m.scratch.nextID(unix.BPF_MAP_GET_NEXT_ID, id-1)
	return err == nil && next == id
}

// meetMap records a new map.
func (m *Meter) meetMap(id uint32, l *Listing) error {
	fd, err := m.scratch.open(unix.BPF_MAP_GET_FD_BY_ID, id)
	if errors.Is(err, unix.ENOENT) {
		l.Gone++
		return nil
	}
	if err != nil {
		return opening("map", id, err)
	}
	i := &m.scratch.a
	*i = mapInfo{}
	err = info(m.scratch, fd, i)
	closeFast(fd)
	if err != nil {
		return fmt.Errorf("ask what BPF map %d is: %w", id, err)
	}
	m.maps = append(m.maps, &aMap{
		ProgramMap: record.ProgramMap{ID: id, Kind: kindOf(mapKinds, i.Type), Name: unix.ByteSliceToString(i.Name[:]), Entries: int64(i.MaxEntries), Memory: -1},
		kind:       ebpf.MapType(i.Type), key: i.KeySize, size: i.ValueSize,
	})
	return nil
}

// count counts the programs that use each map.
func (m *Meter) count() {
	clear(m.users)
	for _, p := range m.programs {
		for _, id := range p.maps {
			m.users[id]++
		}
	}
}

// find returns the map with an id, or nil.
func (m *Meter) find(id uint32) *aMap {
	at, ok := slices.BinarySearchFunc(m.maps, id, func(a *aMap, id uint32) int { return cmp.Compare(a.ID, id) })
	if !ok {
		return nil
	}
	return m.maps[at]
}

// fill sets the listed programs, counters and maps.
func (m *Meter) fill(l *Listing) {
	used := map[uint32]bool{}
	for _, p := range l.chosen {
		for _, id := range p.maps {
			used[id] = true
		}
	}
	listed := maps.Clone(used)
	for _, a := range l.Loose {
		listed[a.Map.ID] = true
	}
	m.weighInner(listed)
	l.Programs, l.Counters, l.Maps = make([]record.Program, len(l.chosen)), make([]Counters, len(l.chosen)), nil
	for i, p := range l.chosen {
		out := &l.Programs[i]
		*out, l.Counters[i] = p.Program, p.counters
		if out.Maps = m.usedBy(p); out.Owner == "" {
			p.Owner = ownerOf(out)
			out.Owner = p.Owner
		}
	}
	for i := range l.Loose {
		if a := m.find(l.Loose[i].Map.ID); a != nil {
			l.Loose[i].Map = a.ProgramMap
		}
	}
	for _, a := range m.maps {
		if used[a.ID] {
			l.Maps = append(l.Maps, a.ProgramMap)
		}
	}
}

// usedBy returns the maps of a program.
func (m *Meter) usedBy(p *program) []record.ProgramMap {
	all := make([]record.ProgramMap, 0, len(p.maps))
	for _, id := range p.maps {
		if a := m.find(id); a != nil {
			all = append(all, a.ProgramMap)
		}
	}
	return all
}

// weighInner sets the memory of inner maps. An inner map counts once, at the first of
// the used maps that contains it. Inner maps that are used themselves do not count.
func (m *Meter) weighInner(used map[uint32]bool) {
	counted := maps.Clone(used)
	for _, a := range m.maps {
		a.Shared, a.Inner, a.InnerMemory = m.users[a.ID], len(a.inner), 0
		if !used[a.ID] {
			continue
		}
		unknown := a.partly
		for _, id := range a.inner {
			if counted[id] {
				continue
			}
			counted[id] = true
			one := m.find(id)
			if one == nil || one.Memory < 0 {
				unknown = true
				continue
			}
			a.InnerMemory += one.Memory
		}
		if unknown {
			a.InnerMemory = -1
		}
	}
}
