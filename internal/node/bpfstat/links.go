package bpfstat

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// sockmapType is BPF_LINK_TYPE_SOCKMAP, which package link does not know.
const sockmapType = 14

// maxLinks exceeds the number of links on real machines.
const maxLinks = 100000

// links walks all links (Linux 5.8) and describes the attach point of each.
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
			continue // removed, or not complete yet
		}
		s.link = linkInfo{}
		if err = info(s, fd, &s.link); err == nil && s.link.Program != 0 {
			at.add(s.link.Program, m.linkWords(fd, at))
		}
		unix.Close(fd)
	}
	return append(problems, fmt.Sprintf("only the first %d links were read", maxLinks))
}

// word returns a number of the type-specific part of a link's info.
func (i *linkInfo) word(offset int) uint32 { return binary.NativeEndian.Uint32(i.union[offset:]) }

func (i *linkInfo) long(offset int) uint64 { return binary.NativeEndian.Uint64(i.union[offset:]) }

// linkWords describes a link by its info, which is in the scratch.
func (m *Meter) linkWords(fd int, at *attachments) string {
	i := &m.scratch.link
	switch link.Type(i.Type) {
	case link.RawTracepointType:
		return "raw_tracepoint " + m.linkName(fd, 0, 8)
	case link.TracingType:
		return kindOf(attachKinds, i.word(0)) // the target is only a BTF id
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

// perfWords describes the event of a perf link (Linux 6.6).
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
	if kind == 5 || offset == 0 {
		return kinds[kind] + " " + name
	}
	return fmt.Sprintf("%s %s+0x%x", kinds[kind], name, offset)
}

// linkName reads the info again with a buffer for a string. address and length are the
// offsets of the string's address and length in the info. It overwrites the info in the
// scratch.
func (m *Meter) linkName(fd, address, length int) string {
	s := m.scratch
	s.link = linkInfo{}
	s.names = [256]byte{}
	binary.NativeEndian.PutUint64(s.link.union[address:], uint64(uintptr(unsafe.Pointer(&s.names))))
	binary.NativeEndian.PutUint32(s.link.union[length:], uint32(len(s.names)))
	if err := info(s, fd, &s.link); err != nil && !errors.Is(err, unix.ENOSPC) { // the truncated name is valid
		return "?"
	}
	return unix.ByteSliceToString(s.names[:])
}

// device returns the name of the interface of a tc link. The kernel reports an index,
// which may belong to another network namespace. So device checks that the program is
// attached to this namespace's interface.
func (m *Meter) device(at *attachments, index, attach, program uint32) string {
	return at.device(index, program, m.query(index, attach))
}

func (at *attachments) device(index, program uint32, here []uint32) string {
	if name, ok := at.interfaces[int(index)]; ok && slices.Contains(here, program) {
		return name
	}
	if name, ok := at.elsewhere[program]; ok && here == nil {
		return name
	}
	return fmt.Sprintf("interface %d of another network namespace", index)
}

// query returns the programs attached to a cgroup or a map, by descriptor, or to an
// interface, by index (BPF_PROG_QUERY, Linux 4.15).
func (m *Meter) query(target, attach uint32) []uint32 {
	s := m.scratch
	s.query = queryAttr{target: target, attach: attach, ids: unsafe.Pointer(&s.maps), count: uint32(len(s.maps))}
	if _, err := call(unix.BPF_PROG_QUERY, &s.query); err != nil && !errors.Is(err, unix.ENOSPC) {
		return nil // attach type unknown to this kernel
	}
	return s.maps[:min(int(s.query.count), len(s.maps))]
}
