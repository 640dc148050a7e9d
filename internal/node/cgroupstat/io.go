package cgroupstat

import (
	"bytes"
	"math"

	"github.com/tare-bench/tare/internal/node/disk"
)

// io1 adds up "8:0 Read 4096" and "8:0 Write 4096" of all devices that count.
// One that had no I/O is not listed; "Total" ends the file.
func io1(b []byte, counts func(device []byte) bool) (read, write int64, err error) {
	for len(b) > 0 {
		var device, value []byte
		device, value, b = line(b)
		var to *int64
		digits, ok := bytes.CutPrefix(value, []byte("Read "))
		if ok {
			to = &read
		} else if digits, ok = bytes.CutPrefix(value, []byte("Write ")); ok {
			to = &write
		} else {
			continue
		}
		if !counts(device) {
			continue
		}
		if err := add(to, digits); err != nil {
			return 0, 0, err
		}
	}
	return read, write, nil
}

// io2 adds up "8:0 rbytes=4096 wbytes=4096 rios=1 …".
func io2(b []byte, counts func(device []byte) bool) (read, write int64, err error) {
	for len(b) > 0 {
		var device, fields []byte
		device, fields, b = line(b)
		if !counts(device) {
			continue
		}
		for field := range bytes.SplitSeq(fields, []byte(" ")) {
			var to *int64
			digits, ok := bytes.CutPrefix(field, []byte("rbytes="))
			if ok {
				to = &read
			} else if digits, ok = bytes.CutPrefix(field, []byte("wbytes=")); ok {
				to = &write
			} else {
				continue
			}
			if err := add(to, digits); err != nil {
				return 0, 0, err
			}
		}
	}
	return read, write, nil
}

func add(to *int64, digits []byte) error {
	n, ok := number(digits)
	if !ok || n > math.MaxInt64-*to {
		return malformed("a number of bytes", digits)
	}
	*to += n
	return nil
}

// counts tells whether a device's I/O is added up: of what is stacked on disks,
// such as a logical volume, every byte is listed with the disk once more.
func (s *System) counts(device []byte) bool {
	whole, known := s.disks.Number(string(device))
	if !known {
		// New, or the first of all. Where they cannot be read every one counts.
		if disks, err := disk.ReadDisks(s.root); err == nil {
			s.disks = disks
			whole, known = s.disks.Number(string(device))
		}
	}
	return whole || !known
}
