package bpfstat

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// Structures of bpf(2) as in include/uapi/linux/bpf.h of Linux 6.18. Kernel and caller
// may differ in version: the kernel fills the part of an info known to both sides, and
// any excess must be zero. The sizes below assume 64-bit pointers, so builds for 32-bit
// machines fail here.
const (
	_ = -(unsafe.Sizeof(programInfo{}) - 232)
	_ = -(unsafe.Sizeof(mapInfo{}) - 104)
	_ = -(unsafe.Sizeof(linkInfo{}) - 64)
)

// programInfo is struct bpf_prog_info.
type programInfo struct {
	Type, ID            uint32
	Tag                 [8]byte
	JitedLen, XlatedLen uint32
	Jited, Xlated       uint64
	LoadTime            uint64 // ns since boot
	UID, MapCount       uint32
	Maps                unsafe.Pointer // of MapCount uint32
	Name                [16]byte
	_                   [112]byte // from ifindex to prog_tags
	RunTime, RunCount   uint64    // ns; Linux 5.1
	Misses              uint64    // Linux 5.12
	_                   [16]byte
}

// mapInfo is struct bpf_map_info.
type mapInfo struct {
	Type, ID           uint32
	KeySize, ValueSize uint32
	MaxEntries, Flags  uint32
	Name               [16]byte
	_                  [64]byte
}

// linkInfo is struct bpf_link_info. The union depends on Type.
type linkInfo struct {
	Type, ID, Program uint32
	_                 uint32
	union             [48]byte
}

// infoAttr, idAttr, queryAttr and taskAttr are members of union bpf_attr.
type infoAttr struct {
	fd, size uint32
	info     unsafe.Pointer
}

type idAttr struct{ id, next, _ uint32 }

type queryAttr struct {
	target, attach, _, _ uint32 // query flags and attach flags
	ids                  unsafe.Pointer
	count, _             uint32
	_                    uint64 // attach flags per program
	_, _                 uint64 // links, and their flags
	_                    uint64 // revision
}

type taskAttr struct {
	pid, fd, _, size uint32 // flags after fd
	text             unsafe.Pointer
	program, kind    uint32
	_, _             uint64 // offset and address of a probe
}

// call calls bpf(2). It skips Go's scheduler, which would double the cost of these
// short commands.
func call[T any](command int, attr *T) (int, error) {
	n, _, errno := unix.RawSyscall(unix.SYS_BPF, uintptr(command), uintptr(unsafe.Pointer(attr)), unsafe.Sizeof(*attr))
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

// nextID returns the lowest existing id above id (BPF_PROG_GET_NEXT_ID and others), or
// ENOENT at the end. It needs CAP_SYS_ADMIN.
func (s *scratch) nextID(command int, id uint32) (uint32, error) {
	s.id = idAttr{id: id}
	_, err := call(command, &s.id)
	return s.id.next, err
}

// open opens the object with an id (BPF_PROG_GET_FD_BY_ID and others) and returns a
// close-on-exec descriptor. It needs CAP_SYS_ADMIN.
func (s *scratch) open(command int, id uint32) (int, error) {
	s.id = idAttr{id: id}
	return call(command, &s.id)
}

// info reads the info of a descriptor.
func info[T any](s *scratch, fd int, into *T) error {
	s.info = infoAttr{fd: uint32(fd), size: uint32(unsafe.Sizeof(*into)), info: unsafe.Pointer(into)}
	_, err := call(unix.BPF_OBJ_GET_INFO_BY_FD, &s.info)
	return err
}

// scratch holds reusable arguments and results of system calls, so that a walk over all
// programs does not allocate.
type scratch struct {
	id      idAttr
	info    infoAttr
	program programInfo
	a       mapInfo
	link    linkInfo
	query   queryAttr
	names   [256]byte
	maps    [64]uint32 // programs with more maps are read again; a cgroup has at most 64 programs
}
