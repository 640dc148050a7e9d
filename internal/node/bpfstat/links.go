package bpfstat

import (
	"encoding/binary"
	"errors"
	"fmt"
	"unsafe"

	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// sockmapType is BPF_LINK_TYPE_SOCKMAP, which package link does not know.
const sockmapType = 14

// maxLinks is more than machines have.
const maxLinks = 100000

// links walks all links (Linux 5.8) and says in words where each holds its program.
func (m *Meter) links(at *attachments) (problems []string) {
	s := m.scratch
	for id, n := uint32(0), 0; n < maxLinks; n++ {
		next, err := s.nextID(unix.BPF_LINK_GET_NEXT_ID, id)
		if errors.Is(err, unix.ENOENT) {
			return problems
		}
		if err != nil {
			return append(problems, unsupported("list the links of BPF programs", "5.8", err).Error())
		}
		id = next
		fd, err := s.open(unix.BPF_LINK_GET_FD_BY_ID, id)
		if err != nil {
			continue // it went, or is not complete yet
		}
		s.link = linkInfo{}
		if err = info(s, fd, &s.link); err == nil && s.link.Program != 0 {
			at.add(s.link.Program, m.linkWords(fd, at))
		}
		unix.Close(fd)
	}
	return append(problems, fmt.Sprintf("only the first %d links were looked at", maxLinks))
}

// word is a number of the part of a link's info that depends on its type.
func (i *linkInfo) word(offset int) uint32 { return binary.NativeEndian.Uint32(i.union[offset:]) }

func (i *linkInfo) long(offset int) uint64 { return binary.NativeEndian.Uint64(i.union[offset:]) }

// linkWords says what the link is whose info the scratch holds.
func (m *Meter) linkWords(fd int, at *attachments) string {
	i := &m.scratch.link
	switch link.Type(i.Type) {
	case link.RawTracepointType:
		return "raw_tracepoint " + m.linkName(fd, 0, 8)
	case link.TracingType:
		return kindOf(attachKinds, i.word(0)) // of what, is a number of the kernel's BTF
	case link.CgroupType:
		return "cgroup " + kindOf(attachKinds, i.word(8)) + " " + at.cgroup(i.long(0))
	case link.IterType:
		return "iter " + m.linkName(fd, 0, 8)
	case link.NetNsType:
		return fmt.Sprintf("netns %s %d", kindOf(attachKinds, i.word(4)), i.word(0))
	case link.XDPType:
		return "xdp " + at.device(i.word(0), i.Program, at.xdp[int(i.word(0))])
	case link.TCXType:
		return "tcx " + kindOf(attachKinds, i.word(4)) + " " + m.device(at, i.word(0), i.word(4), i.Program)
	case link.NetkitType:
		return "netkit " + kindOf(attachKinds, i.word(4)) + " " + m.device(at, i.word(0), i.word(4), i.Program)
	case link.PerfEventType:
		return m.perfWords(fd)
	case link.KprobeMultiType:
		return fmt.Sprintf("kprobes of %d functions", i.word(8))
	case link.UprobeMultiType:
		return "uprobes"
	case link.StructOpsType:
		return fmt.Sprintf("struct_ops map %d", i.word(0))
	case link.NetfilterType:
		return fmt.Sprintf("netfilter family %d hook %d priority %d", i.word(0), i.word(4), int32(i.word(8)))
	case sockmapType:
		return fmt.Sprintf("%s map %d", kindOf(attachKinds, i.word(4)), i.word(0))
	}
	return fmt.Sprintf("link of type %d", i.Type)
}

// perfWords says what event the link of a perf event is at (Linux 6.6 tells).
func (m *Meter) perfWords(fd int) string {
	i := &m.scratch.link
	kinds := []string{"perf_event", "uprobe", "uretprobe", "kprobe", "kretprobe", "tracepoint", "perf_event"} // enum bpf_perf_event_type
	kind := i.word(0)
	if kind == 0 || int64(kind) >= int64(len(kinds)) {
		return "perf_event"
	}
	if kind == 6 {
		return fmt.Sprintf("perf_event type %d config %d", i.word(16), i.long(8))
	}
	name := m.linkName(fd, 8, 16)
	offset := i.word(20)
	switch {
	case kind == 5 || offset == 0:
		return kinds[kind] + " " + name
	default:
		return fmt.Sprintf("%s %s+0x%x", kinds[kind], name, offset)
	}
}

// linkName asks for the info again with room for a text: its address and its length
// go to these offsets. The scratch's info is then the second one.
func (m *Meter) linkName(fd, address, length int) string {
	s := m.scratch
	s.link = linkInfo{}
	s.names = [256]byte{}
	binary.NativeEndian.PutUint64(s.link.union[address:], uint64(uintptr(unsafe.Pointer(&s.names))))
	binary.NativeEndian.PutUint32(s.link.union[length:], uint32(len(s.names)))
	if err := info(s, fd, &s.link); err != nil && !errors.Is(err, unix.ENOSPC) { // of which the beginning is there
		return "?"
	}
	return unix.ByteSliceToString(s.names[:])
}

// device is the name of the interface that a link of tc's kind is at. The kernel
// tells its number, which is another interface in another network namespace: so
// this one's own is asked whether the program is at it.
func (m *Meter) device(at *attachments, index, attach, program uint32) string {
	return at.device(index, program, m.query(index, attach))
}

func (at *attachments) device(index, program uint32, here []uint32) string {
	for _, id := range here {
		if id != program {
			continue
		}
		if name, ok := at.interfaces[int(index)]; ok {
			return name
		}
	}
	if name, ok := at.elsewhere[program]; ok && here == nil {
		return name
	}
	return fmt.Sprintf("interface %d of another network namespace", index)
}

// query returns the programs that are attached to a cgroup or a map, by a descriptor, or
// to an interface, by its number (BPF_PROG_QUERY, Linux 4.15).
func (m *Meter) query(target, attach uint32) []uint32 {
	s := m.scratch
	s.query = queryAttr{target: target, attach: attach, ids: unsafe.Pointer(&s.maps), count: uint32(len(s.maps))}
	if _, err := call(unix.BPF_PROG_QUERY, &s.query); err != nil && !errors.Is(err, unix.ENOSPC) {
		return nil // an attach type that this kernel does not know
	}
	return s.maps[:min(int(s.query.count), len(s.maps))]
}
