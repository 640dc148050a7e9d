package bpfstat

import (
	"bytes"
	"encoding/binary"
	"errors"
	"unsafe"

	"golang.org/x/sys/unix"
)

// largestBTF is the most of a program's type information that is read.
const largestBTF = 16 << 20

var errBTF = errors.New("malformed BTF")

// fullName fills the whole name of a program's first function where its short one
// is as long as the kernel keeps names, and the program was loaded with BTF.
func (m *Meter) fullName(p *program) {
	if p.named {
		return
	}
	p.named = true
	if len(p.Name) < shortName {
		return
	}
	s := m.scratch
	s.program = programInfo{}
	if info(s, p.fd, &s.program) != nil || s.program.BTF == 0 || s.program.FuncCount == 0 || s.program.FuncSize < 8 || s.program.FuncSize > 256 {
		return
	}
	object, size := s.program.BTF, s.program.FuncSize
	funcs := make([]byte, size)
	s.program = programInfo{FuncCount: 1, FuncSize: size, Funcs: unsafe.Pointer(unsafe.SliceData(funcs))}
	if info(s, p.fd, &s.program) != nil {
		return
	}
	fd, err := s.open(unix.BPF_BTF_GET_FD_BY_ID, object)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	of := &btfInfo{}
	if info(s, fd, of) != nil || of.Size == 0 || of.Size > largestBTF {
		return
	}
	data := make([]byte, of.Size)
	*of = btfInfo{Data: unsafe.Pointer(unsafe.SliceData(data)), Size: of.Size}
	if info(s, fd, of) != nil {
		return
	}
	// struct bpf_func_info: the offset of the first instruction, the function's type.
	if name, err := functionName(data, binary.NativeEndian.Uint32(funcs[4:])); err == nil && len(name) > len(p.Name) && name[:len(p.Name)] == p.Name {
		p.Full = name
	}
}

// functionName finds the name of a type in BTF, see Documentation/bpf/btf.rst: a
// header, then types, each of 12 bytes and what its kind adds, then strings.
func functionName(data []byte, id uint32) (string, error) {
	if len(data) < 24 || binary.NativeEndian.Uint16(data) != 0xeb9f {
		return "", errBTF
	}
	word := func(at int) int { return int(binary.NativeEndian.Uint32(data[at:])) }
	header, types, typesLen, texts, textsLen := word(4), word(8), word(12), word(16), word(20)
	if header > len(data) || types+typesLen > len(data)-header || texts+textsLen > len(data)-header {
		return "", errBTF
	}
	names := data[header+texts : header+texts+textsLen]
	rest := data[header+types : header+types+typesLen]
	for n := uint32(1); len(rest) >= 12; n++ { // type 0 is void, and not there
		if n == id {
			at := int(binary.NativeEndian.Uint32(rest))
			if at >= len(names) {
				return "", errBTF
			}
			name, _, ended := bytes.Cut(names[at:], []byte{0})
			if !ended || len(name) > 512 { // KSYM_NAME_LEN
				return "", errBTF
			}
			return string(name), nil
		}
		extra, ok := extraOf(binary.NativeEndian.Uint32(rest[4:]))
		if !ok || 12+extra > len(rest) {
			return "", errBTF
		}
		rest = rest[12+extra:]
	}
	return "", errBTF
}

// extraOf is how many bytes follow a type whose info this is: the number of members
// in bits 0 to 15, the kind in 24 to 28.
func extraOf(info uint32) (int, bool) {
	members := int(info & 0xffff)
	switch kind := info >> 24 & 0x1f; kind {
	case 1, 14, 17: // int, var, decl_tag
		return 4, true
	case 2, 7, 8, 9, 10, 11, 12, 16, 18: // ptr, fwd, typedef, volatile, const, restrict, func, float, type_tag
		return 0, true
	case 3: // array
		return 12, true
	case 4, 5, 15, 19: // struct, union, datasec, enum64
		return 12 * members, true
	case 6, 13: // enum, func_proto
		return 8 * members, true
	}
	return 0, false
}
