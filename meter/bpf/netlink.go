package bpf

import (
	"encoding/binary"
	"iter"
)

func nativeUint32(b []byte) uint32 { return binary.NativeEndian.Uint32(b) }

// attributesOf walks attributes of netlink: two bytes of length, two of type, the
// value, and up to three bytes more. It ends at what is cut off.
func attributesOf(b []byte) iter.Seq2[uint16, []byte] {
	return func(yield func(uint16, []byte) bool) {
		for len(b) >= 4 {
			n := int(binary.NativeEndian.Uint16(b))
			if n < 4 || n > len(b) || !yield(binary.NativeEndian.Uint16(b[2:])&attributeMask, b[4:n]) {
				return
			}
			b = b[min((n+3)&^3, len(b)):]
		}
	}
}
