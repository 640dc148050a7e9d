package cgroupstat

import (
	"bytes"
	"errors"
	"math"

	"github.com/tare-bench/tare/internal/node/disk"
)

// errUncounted is of a hierarchy that does not count I/O, whose zeros say nothing.
var errUncounted = errors.New("I/O is not counted")

// counted tells whether the hierarchy of version 1 counts I/O: newer kernels (seen on
// 6.18) do so of no group before some disk has been given a limit, and then not even
// its root lists a device.
func (g *Group) counted() bool {
	p := &g.places[g.files[ioBytes].place]
	files, _ := p.tree.in(ioBytes)
	b, err := g.system.root.Read(p.tree.Mount+"/"+files[g.files[ioBytes].alt], bufferSize)
	return err == nil && listsDevices(b)
}

// listsDevices tells whether a file of version 1 has more than a total.
func listsDevices(b []byte) bool { return bytes.Contains(b, []byte(":")) }

// transfers adds up, for all devices that count, "8:0 Read 4096" and "8:0 Write
// 4096" of version 1, where one that had no I/O is not listed and "Total" ends the
// file; or "8:0 rbytes=4096 wbytes=4096 rios=1 …" of version 2.
func transfers(b []byte, version int, counts func(device []byte) bool) (read, write int64, err error) {
	reads, writes, separator := "Read ", "Write ", "\n"
	if version == 2 {
		reads, writes, separator = "rbytes=", "wbytes=", " "
	}
	for len(b) > 0 {
		var device, fields []byte
		device, fields, b = line(b)
		if !counts(device) {
			continue
		}
		for field := range bytes.SplitSeq(fields, []byte(separator)) {
			to := &read
			digits, ok := bytes.CutPrefix(field, []byte(reads))
			if !ok {
				to = &write
				digits, ok = bytes.CutPrefix(field, []byte(writes))
			}
			if !ok {
				continue
			}
			n, ok := number(digits)
			if !ok || n > math.MaxInt64-*to {
				return 0, 0, malformed("a number of bytes", digits)
			}
			*to += n
		}
	}
	return read, write, nil
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
