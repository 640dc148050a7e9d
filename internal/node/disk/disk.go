// Package disk reads what block devices do, tells on which one a folder lies,
// and brings a device and the page cache into the state in which a job is to
// find them: at rest, and empty.
package disk

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/record"
)

// Stats are the counters of all block devices since boot, by name.
type Stats map[string]record.DeviceUse

// StatsLimit is more than any machine's /proc/diskstats has.
const StatsLimit = 4 << 20

// Read reads /proc/diskstats. A line that is not understood costs that line.
func Read(root machine.Root) (Stats, error) {
	text, err := root.Read("/proc/diskstats", StatsLimit)
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
		if u, _, ok := counters(line); ok {
			name, _ := machine.Field(line, fieldName)
			u.Name = string(name)
			all[u.Name] = u
		}
	}
	return all
}

// counters takes a line apart, without its name, and says whether requests are in
// flight; ok is false where it is not understood.
func counters(line []byte) (u record.DeviceUse, flying, ok bool) {
	var n [fieldBusy + 1]int64
	_, rest := machine.Field(line, fieldName)
	for i := fieldReads; i < len(n); i++ {
		var digits []byte
		digits, rest = machine.Field(rest, 0)
		if n[i], ok = machine.Number(digits); !ok {
			return u, false, false
		}
	}
	if max(n[fieldReadBytes], n[fieldWriteBytes]) > math.MaxInt64/sectorSize || n[fieldBusy] > math.MaxInt64/1_000_000 {
		return u, false, false
	}
	return record.DeviceUse{
		ReadIOs: n[fieldReads], ReadBytes: n[fieldReadBytes] * sectorSize,
		WriteIOs: n[fieldWrites], WriteBytes: n[fieldWriteBytes] * sectorSize, Busy: n[fieldBusy] * 1_000_000,
	}, n[fieldInFlight] != 0, true
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

// Whole are the names of the machine's whole disks, sorted, see [Disks].
func (s Stats) Whole(disks Disks) []string {
	var names []string
	for name := range s {
		if disks.whole(name) {
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
