package cgroupstat

import (
	"bytes"
	"errors"
	"math"

	"github.com/tare-bench/tare/internal/node/disk"
)

// errUncounted means that the hierarchy does not count I/O, so its zeros mean nothing.
var errUncounted = errors.New("I/O is not counted")

// counted reports whether the v1 hierarchy counts I/O. Newer kernels (seen on 6.18) count
// for no group until some disk gets a limit. Until then even the root lists no device.
func (g *Group) counted() bool {
	p := &g.places[g.files[ioBytes].place]
	files, _ := p.tree.in(ioBytes)
	b, err := g.system.root.Read(p.tree.Mount+"/"+files[g.files[ioBytes].alt], bufferSize)
	return err == nil && listsDevices(b)
}

// listsDevices reports whether a v1 file has more than a total.
func listsDevices(b []byte) bool { return bytes.Contains(b, []byte(":")) }

// transfers returns the bytes read and written, summed over the devices for which counts
// returns true. The v1 form is "8:0 Read 4096" and "8:0 Write 4096", without devices that
// had no I/O, and with "Total" at the end. The v2 form is "8:0 rbytes=4096 wbytes=4096
// rios=1 …".
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

// counts reports whether a device's I/O adds to the sum. Devices stacked on disks, such as
// logical volumes, do not: the disk lists the same bytes again.
func (s *System) counts(device []byte) bool {
	whole, known := s.disks.Number(string(device))
	if !known {
		// A new device. If the disks are unreadable, every device counts.
		if disks, err := disk.ReadDisks(s.root); err == nil {
			s.disks = disks
			whole, known = s.disks.Number(string(device))
		}
	}
	return whole || !known
}
