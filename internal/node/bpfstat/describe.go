package bpfstat

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/node/procs"
)

// Describe adds the details that take longer to read: memory, attachments, holders,
// pins, full names, and the contents of maps of maps. Every walk is bounded. Details
// that could not be read are added to the listing's problems. Later listings reuse the
// details.
func (m *Meter) Describe(l *Listing) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := attachments{at: map[uint32][]string{}, cgroups: map[uint64]string{}, xdp: map[int][]uint32{}, elsewhere: map[uint32]string{}}
	l.Problems = append(l.Problems, at.walkInterfaces()...)
	l.Problems = append(l.Problems, at.walkNamespaces()...)
	l.Problems = append(l.Problems, m.walkCgroups(&at)...) // before links, which refer to cgroups by id
	l.Problems = append(l.Problems, m.links(&at)...)
	self, err := m.reader.Open(m.reader.Self())
	if err != nil {
		return err
	}
	defer self.Close()
	if err := m.weighMaps(&at, self); err != nil {
		return err
	}
	loose := m.looseMaps()
	held, problems := m.holders(len(loose) > 0)
	l.Problems = append(l.Problems, problems...)
	pins, problems := allPins()
	l.Problems = append(l.Problems, problems...)
	for _, p := range m.programs {
		m.fullName(p)
		p.Memory = memory(self, p.fd)
		p.Attached, p.Holders, p.Pins = append([]string{}, at.at[p.ID]...), nil, pinsOf(p, pins)
		for _, h := range held {
			if h.program == p.ID {
				p.hold(h)
			}
		}
		slices.Sort(p.Attached)
		of := p.Program
		of.Maps = m.usedBy(p)
		p.Owner = ownerOf(&of)
	}
	l.Loose = nil
	for i := range loose {
		if m.keep(&loose[i], held, pins); l.filter.means(&loose[i], held) {
			l.Loose = append(l.Loose, loose[i])
		}
	}
	counters := l.Counters // keep the counters of the listing
	m.fill(l)
	l.Counters = counters
	return nil
}

// hold records a process that has a descriptor of the program.
func (p *program) hold(h holder) {
	if h.attached != "" && !slices.Contains(p.Attached, h.attached) {
		p.Attached = append(p.Attached, h.attached)
	}
	h.isOf(&p.Holders)
}

// isOf adds the process to a list, unless it has ended or is already in it.
func (h *holder) isOf(to *[]string) {
	if h.who != "" && !slices.Contains(*to, h.who) {
		*to = append(*to, h.who)
	}
}

// memory returns the bytes that fdinfo reports for a program or map, or -1 if fdinfo
// reports none. For a program these are the pages of its instructions, without the JIT
// image.
func memory(self procs.Dir, fd int) int64 { return fdinfo(self, strconv.Itoa(fd), "memlock") }

// Limits on entries read from maps of maps and program arrays.
const (
	maxInner = 100000
	maxTails = 4096
)

// weighMaps reads the memory of all maps, and the maps and programs they refer to.
func (m *Meter) weighMaps(at *attachments, self procs.Dir) error {
	for _, a := range m.maps {
		fd, err := m.scratch.open(unix.BPF_MAP_GET_FD_BY_ID, a.ID)
		if errors.Is(err, unix.ENOENT) {
			continue
		}
		if err != nil {
			return opening("map", a.ID, err)
		}
		a.Memory = memory(self, fd)
		switch a.kind {
		case ebpf.ArrayOfMaps, ebpf.HashOfMaps:
			a.inner, a.partly = a.values(maxInner)
		case ebpf.ProgramArray:
			tails, _ := a.values(maxTails)
			for _, id := range tails {
				at.add(id, "tail call through map "+a.Name)
			}
		case ebpf.SockMap, ebpf.SockHash:
			for _, kind := range sockmapAttach { // Linux 5.18
				for _, id := range m.query(uint32(fd), kind) {
					at.add(id, fmt.Sprintf("%s map %d", kindOf(attachKinds, kind), a.ID))
				}
			}
		}
		closeFast(fd)
	}
	return nil
}

// values returns the distinct ids in a map of maps or program array. partly reports
// that there may be more.
func (a *aMap) values(most int) (ids []uint32, partly bool) {
	if a.key == 0 || a.key > 4096 || a.size != 4 {
		return nil, true
	}
	from, err := ebpf.NewMapFromID(ebpf.MapID(a.ID))
	if err != nil {
		return nil, true
	}
	defer from.Close()
	key, value := make([]byte, a.key), uint32(0)
	for after := any(nil); ; most-- {
		if err = from.NextKey(after, key); err != nil || most == 0 {
			break
		}
		if from.Lookup(key, &value) == nil {
			ids = append(ids, value)
		}
		after = key
	}
	slices.Sort(ids)
	return slices.Compact(ids), !errors.Is(err, ebpf.ErrKeyNotExist)
}
