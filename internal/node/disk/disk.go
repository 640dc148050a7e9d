// Package disk reads what block devices do, tells on which one a folder lies,
// and brings a device and the page cache into the state in which a job is to
// find them: at rest, and empty.
package disk

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/node/nodestat"
	"github.com/tare-bench/tare/record"
)

// Stats are the counters of all block devices since boot, by name.
type Stats map[string]record.DeviceUse

// statsLimit is more than any machine's /proc/diskstats has.
const statsLimit = 4 << 20

// Read reads /proc/diskstats. A line that is not understood costs that line.
func Read(root machine.Root) (Stats, error) {
	text, err := root.Read("/proc/diskstats", statsLimit)
	if err != nil {
		return nil, fmt.Errorf("read what the disks did: %w", err)
	}
	return parse(text), nil
}

// The fields of a line, from 0 (Documentation/admin-guide/iostats.rst): major,
// minor, name, and then the first eleven counters.
const (
	fieldName       = 2
	fieldReads      = 3
	fieldReadBytes  = 5
	fieldWrites     = 7
	fieldWriteBytes = 9
	fieldInFlight   = 11
	fieldBusy       = 12
)

// sectorSize is that of /proc/diskstats, whatever the disk's own is.
const sectorSize = 512

func parse(text []byte) Stats {
	all := Stats{}
	for line := range bytes.Lines(text) {
		fields := strings.Fields(string(line))
		if len(fields) <= fieldBusy {
			continue
		}
		u := record.DeviceUse{Name: fields[fieldName]}
		ok := true
		for _, f := range []struct {
			to     *int64
			at     int
			factor int64
		}{
			{&u.ReadIOs, fieldReads, 1}, {&u.ReadBytes, fieldReadBytes, sectorSize},
			{&u.WriteIOs, fieldWrites, 1}, {&u.WriteBytes, fieldWriteBytes, sectorSize}, {&u.Busy, fieldBusy, 1_000_000},
		} {
			n, err := strconv.ParseUint(fields[f.at], 10, 63)
			ok = ok && err == nil && n <= uint64(math.MaxInt64/f.factor)
			*f.to = int64(n) * f.factor
		}
		if ok {
			all[u.Name] = u
		}
	}
	return all
}

// Of adds up the counters of some devices. The name tells which; those that are
// not there are left out.
func (s Stats) Of(names ...string) record.DeviceUse {
	var sum record.DeviceUse
	var there []string
	for _, name := range names {
		u, ok := s[name]
		if !ok {
			continue
		}
		there = append(there, name)
		sum.ReadBytes, sum.WriteBytes = sum.ReadBytes+u.ReadBytes, sum.WriteBytes+u.WriteBytes
		sum.ReadIOs, sum.WriteIOs = sum.ReadIOs+u.ReadIOs, sum.WriteIOs+u.WriteIOs
		sum.Busy += u.Busy
	}
	sum.Name = strings.Join(there, "+")
	return sum
}

// Whole are the names of the machine's whole disks, sorted, see [nodestat.Disks].
func (s Stats) Whole(disks nodestat.Disks) []string {
	var names []string
	for name := range s {
		if disks.Whole(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Between is what was done from one reading to a later one of the same devices.
// A counter that went back, as that of a device that was taken away and came
// again does, counts as nothing.
func Between(then, now record.DeviceUse) record.DeviceUse {
	less := func(a, b int64) int64 { return max(b-a, 0) }
	return record.DeviceUse{
		Name:      now.Name,
		ReadBytes: less(then.ReadBytes, now.ReadBytes), WriteBytes: less(then.WriteBytes, now.WriteBytes),
		ReadIOs: less(then.ReadIOs, now.ReadIOs), WriteIOs: less(then.WriteIOs, now.WriteIOs),
		Busy: less(then.Busy, now.Busy),
	}
}
