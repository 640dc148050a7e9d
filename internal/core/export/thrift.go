package export

import (
	"encoding/binary"
	"maps"
	"slices"
)

// fields is a struct of Thrift by the numbers of its fields.
type fields map[int]any

// compact writes a struct in Thrift's compact protocol, as Parquet's metadata is kept.
func compact(of fields) []byte { return appendThrift(nil, of) }

// thriftType is the number of a value's type in the protocol.
func thriftType(value any) byte {
	switch value.(type) {
	case bool:
		return 1 // true; of false there is none here
	case int32:
		return 5
	case int64:
		return 6
	case string:
		return 8
	case []any:
		return 9
	default:
		return 12
	}
}

func appendThrift(out []byte, value any) []byte {
	switch v := value.(type) {
	case int32:
		return binary.AppendVarint(out, int64(v)) // zigzag, as the protocol's
	case int64:
		return binary.AppendVarint(out, v)
	case string:
		return append(binary.AppendUvarint(out, uint64(len(v))), v...)
	case []any:
		kind := byte(12)
		if len(v) > 0 {
			kind = thriftType(v[0])
		}
		if len(v) < 15 {
			out = append(out, byte(len(v))<<4|kind)
		} else {
			out = binary.AppendUvarint(append(out, 0xf0|kind), uint64(len(v)))
		}
		for _, one := range v {
			out = appendThrift(out, one)
		}
	case fields:
		before := 0
		for _, number := range slices.Sorted(maps.Keys(v)) {
			out = append(out, byte(number-before)<<4|thriftType(v[number]))
			out = appendThrift(out, v[number])
			before = number
		}
		return append(out, 0)
	}
	return out
}
