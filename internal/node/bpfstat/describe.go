package bpfstat

import (
	"errors"
	"fmt"
	"slices"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/node/procs"
	"github.com/tare-bench/tare/record"
)

// Describe fills in what takes longer to find out: memory, where programs are
// attached, who holds them, pins, whole names, and what is in maps of maps. What
// could not be seen is added to the listing's problems; every walk is bounded. What
// it finds is kept for the listings that follow.
func (m *Meter) Describe(l *Listing) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := attachments{at: map[uint32][]string{}, cgroups: map[uint64]string{}, xdp: map[int][]uint32{}}
	l.Problems = append(l.Problems, at.walkInterfaces()...)
	l.Problems = append(l.Problems, m.walkCgroups(&at)...) // links name cgroups by their ids
	l.Problems = append(l.Problems, m.links(&at)...)
	held, problems := m.holders()
	l.Problems = append(l.Problems, problems...)
	pins, problems := allPins()
	l.Problems = append(l.Problems, problems...)
	if err := m.weighMaps(&at); err != nil {
		return err
	}
	for _, p := range m.programs {
		m.fullName(p)
		p.Memory = memory(p.fd)
		p.Attached, p.Holders, p.Pins = []string{}, nil, nil
		p.Attached = append(p.Attached, at.at[p.ID]...)
		for _, h := range held {
			if h.program == p.ID {
				p.hold(h)
			}
		}
		for _, one := range pins {
			if one.program == p.ID {
				p.Pins = append(p.Pins, one.path)
			}
		}
		slices.Sort(p.Attached)
		slices.Sort(p.Pins)
		p.Owner = ""
	}
	m.refill(l)
	return nil
}

// hold takes down a process that has a descriptor of the program.
func (p *program) hold(h holder) {
	if h.attached != "" && !slices.Contains(p.Attached, h.attached) {
		p.Attached = append(p.Attached, h.attached)
	}
	s, err := procs.StatOf(h.pid)
	if err != nil {
		return // it ended
	}
	who := fmt.Sprintf("%d %s", h.pid, s.Comm)
	if !slices.Contains(p.Holders, who) {
		p.Holders = append(p.Holders, who)
	}
}

// refill makes a listing again, of the same programs and with the same counters.
func (m *Meter) refill(l *Listing) {
	wanted := map[uint32]bool{}
	for i := range l.Programs {
		wanted[l.Programs[i].ID] = true
	}
	counters, known := l.Counters, map[uint32]bool{}
	for i := range l.Maps {
		known[l.Maps[i].ID] = true
	}
	var chosen []*program
	for _, p := range m.programs {
		if wanted[p.ID] {
			chosen = append(chosen, p)
		}
	}
	m.fill(l, chosen, true)
	l.Maps = slices.DeleteFunc(l.Maps, func(a record.ProgramMap) bool { return !known[a.ID] })
	if len(chosen) == len(counters) {
		l.Counters = counters
	}
}

// memory is what a descriptor's fdinfo says that its program or map occupies: of a
// program the pages of its instructions, without what was made of them for the
// processor. -1: it does not say.
func memory(fd int) int64 {
	n, ok := fdinfo(fmt.Sprintf("/proc/self/fdinfo/%d", fd), "memlock")
	if !ok {
		return -1
	}
	return n
}

// The bounds of what is looked for in maps of maps and in arrays of programs.
const (
	maxInner = 100000
	maxTails = 4096
)

// weighMaps reads what all maps occupy, and which maps and programs they hold.
func (m *Meter) weighMaps(at *attachments) error {
	inner := map[uint32][]uint32{}
	for _, a := range m.maps {
		open, err := ebpf.NewMapFromID(ebpf.MapID(a.ID))
		if errors.Is(err, unix.ENOENT) {
			continue
		}
		if err != nil {
			return opening("map", a.ID, err)
		}
		a.Memory = memory(open.FD())
		switch a.kind {
		case mapArrayOfMaps, mapHashOfMaps:
			inner[a.ID] = a.values(open, maxInner)
		case mapProgramArray:
			for _, id := range a.values(open, maxTails) {
				at.add(id, "tail call through map "+a.Name)
			}
		}
		open.Close()
	}
	m.weighInner(inner)
	return nil
}

// weighInner adds the memory of maps to that of the first map that holds them. One
// that a program uses itself is left out: it stands on its own.
func (m *Meter) weighInner(inner map[uint32][]uint32) {
	counted := map[uint32]bool{}
	for _, p := range m.programs {
		for _, id := range p.maps {
			counted[id] = true
		}
	}
	for _, a := range m.maps {
		a.Inner, a.InnerMemory = len(inner[a.ID]), 0
		for _, id := range inner[a.ID] {
			if one := m.find(id); one != nil && !counted[id] {
				counted[id] = true
				a.InnerMemory += max(0, one.Memory)
			}
		}
	}
}

// values are the ids that a map of maps or of programs holds, each once.
func (a *aMap) values(from *ebpf.Map, most int) (ids []uint32) {
	if a.key == 0 || a.key > 4096 || a.size != 4 {
		return nil
	}
	key, value := make([]byte, a.key), uint32(0)
	for after := any(nil); most > 0 && from.NextKey(after, key) == nil; most-- {
		if from.Lookup(key, &value) == nil {
			ids = append(ids, value)
		}
		after = key
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}
