package tracer

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unsafe"
)

func littleEndian() bool {
	one := uint16(1)
	return *(*byte)(unsafe.Pointer(&one)) == 1
}

// format is what an event's file "format" says.
type format struct {
	name   string
	id     uint16
	fields map[string]field
}

type field struct {
	offset, size int
	elsewhere    bool // it holds where the value is: __data_loc
}

var (
	formatName  = regexp.MustCompile(`(?m)^name: (\w+)$`)
	formatID    = regexp.MustCompile(`(?m)^ID: (\d+)$`)
	formatField = regexp.MustCompile(`(?m)^\tfield:\s*([^;]*?)(\w+)(\[[^;\]]*\])?;\s*offset:(\d+);\s*size:(\d+);`)
)

var errFormat = errors.New("unknown form")

func parseFormat(text string) (*format, error) {
	name, id := formatName.FindStringSubmatch(text), formatID.FindStringSubmatch(text)
	if name == nil || id == nil {
		return nil, errFormat
	}
	n, err := strconv.ParseUint(id[1], 10, 16)
	if err != nil {
		return nil, errFormat
	}
	f := &format{name: name[1], id: uint16(n), fields: map[string]field{}}
	for _, m := range formatField.FindAllStringSubmatch(text, -1) {
		offset, err1 := strconv.ParseUint(m[4], 10, 16)
		size, err2 := strconv.ParseUint(m[5], 10, 16)
		if err1 != nil || err2 != nil {
			return nil, errFormat
		}
		f.fields[m[2]] = field{int(offset), int(size), strings.Contains(m[1], "__data_loc")}
	}
	return f, nil
}

// number reads a field of 1, 2, 4 or 8 bytes.
func (f *format) number(payload []byte, name string) (uint64, bool) {
	at, ok := f.fields[name]
	if !ok || at.offset+at.size > len(payload) {
		return 0, false
	}
	b := payload[at.offset:]
	switch at.size {
	case 1:
		return uint64(b[0]), true
	case 2:
		return uint64(native.Uint16(b)), true
	case 4:
		return uint64(native.Uint32(b)), true
	case 8:
		return native.Uint64(b), true
	}
	return 0, false
}

// text reads a field of characters.
func (f *format) text(payload []byte, name string) (string, bool) {
	at, ok := f.fields[name]
	if !ok || at.offset+at.size > len(payload) {
		return "", false
	}
	if !at.elsewhere {
		return cString(payload[at.offset : at.offset+at.size]), true
	}
	where, ok := f.number(payload, name)
	offset, size := int(where&0xffff), int(where>>16&0xffff)
	if !ok || offset+size > len(payload) {
		return "", false
	}
	return cString(payload[offset : offset+size]), true
}

var headerData = regexp.MustCompile(`field:\s*char data;\s*offset:(\d+);\s*size:(\d+);`)

// pageSize is what one read of a CPU's buffer gives at most.
func pageSize(headerPage string) (int, error) {
	m := headerData.FindStringSubmatch(headerPage)
	if m == nil {
		return 0, fmt.Errorf("events/header_page: %w", errFormat)
	}
	offset, err1 := strconv.Atoi(m[1])
	size, err2 := strconv.Atoi(m[2])
	if err1 != nil || err2 != nil || offset != pageHeader || size < 1 || size > 1<<20 {
		return 0, fmt.Errorf("events/header_page: %w", errFormat)
	}
	return offset + size, nil
}

// The form of a page of the ring buffer and of its events: linux/ring_buffer.h
// and kernel/trace/ring_buffer.c. These are fixed parts of the kernel's
// interface; its tools read them too.
const (
	pageHeader   = 16 // u64 time of the first event, u64 bytes that follow and flags
	commitMask   = 1<<27 - 1
	commitMissed = 1 << 31 // events are missing before this page
	commitStored = 1 << 30 // how many follows the events
	typePadding  = 29
	typeExtend   = 30
	typeStamp    = 31
)

// pages calls f for every event of one page, with its time (ns). It returns how
// many are missing before it.
func pages(page []byte, f func(time int64, payload []byte)) (lost int64, err error) {
	if len(page) < pageHeader {
		return 0, errFormat
	}
	begin, commit := native.Uint64(page), native.Uint64(page[8:])
	size := int(commit & commitMask)
	data := page[pageHeader:]
	if size > len(data) {
		return 0, errFormat
	}
	if commit&commitMissed != 0 {
		lost = 1
		if commit&commitStored != 0 && size+8 <= len(data) {
			lost = int64(native.Uint64(data[size:]) & (1<<62 - 1))
		}
	}
	t := begin
	for rest := data[:size]; len(rest) >= 4; {
		head := native.Uint32(rest)
		kind, delta := head&31, uint64(head>>5)
		second := uint64(0)
		if kind == 0 || kind >= typePadding {
			if len(rest) >= 8 {
				second = uint64(native.Uint32(rest[4:]))
			} else if kind != typePadding || delta != 0 {
				return lost, errFormat
			}
		}
		var payload []byte
		length := 8
		switch kind {
		case typePadding:
			if delta == 0 {
				return lost, nil // the rest of the page is empty
			}
			t += delta
			length = 4 + int(second)
		case typeExtend:
			t += second<<27 + delta
		case typeStamp:
			t = second<<27 + delta + begin&^(1<<59-1)
		case 0:
			t += delta
			length = 4 + int(second)
			if second < 4 || length > len(rest) {
				return lost, errFormat
			}
			payload = rest[8:length]
		default:
			t += delta
			length = 4 + int(kind)*4
			if length > len(rest) {
				return lost, errFormat
			}
			payload = rest[4:length]
		}
		if length > len(rest) || length < 4 {
			return lost, errFormat
		}
		if payload != nil {
			f(int64(t), payload)
		}
		rest = rest[min((length+3)&^3, len(rest)):]
	}
	return lost, nil
}
