// Package disk reads the counters and limits of block devices and finds the device of a
// folder. Before a job it waits for idle devices and drops the page cache.
package disk

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/record"
)

// Stats are the counters of all block devices since boot, by name.
type Stats map[string]record.DeviceUse

// StatsLimit exceeds the size of any /proc/diskstats.
const StatsLimit = 4 << 20

// Read reads /proc/diskstats and skips malformed lines.
func Read(root machine.Root) (Stats, error) {
	text, err := root.Read("/proc/diskstats", StatsLimit)
	if err != nil {
		return nil, fmt.Errorf("read the counters of block devices: %w", err)
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

// sectorSize is the unit of /proc/diskstats for every disk.
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

// counters parses a line without its name. flying reports requests in flight. ok is false
// for a malformed line.
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

// Of returns the sum of the counters of the devices that exist, with their names joined by
// "+".
func (s Stats) Of(names ...string) record.DeviceUse {
	var sum record.DeviceUse
	var found []string
	for _, name := range names {
		u, ok := s[name]
		if !ok {
			continue
		}
		found = append(found, name)
		sum.ReadBytes, sum.WriteBytes = sum.ReadBytes+u.ReadBytes, sum.WriteBytes+u.WriteBytes
		sum.ReadIOs, sum.WriteIOs = sum.ReadIOs+u.ReadIOs, sum.WriteIOs+u.WriteIOs
		sum.Busy += u.Busy
	}
	sum.Name = strings.Join(found, "+")
	return sum
}

// Whole returns the sorted names of the machine's whole disks, see [Disks].
func (s Stats) Whole(disks Disks) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(s)), func(name string) bool { return !disks.names[name] })
}

// Between returns the differences between two readings of the same devices. It returns 0
// for counters that went back, as after a device was replaced.
func Between(then, now record.DeviceUse) record.DeviceUse {
	less := func(a, b int64) int64 { return max(b-a, 0) }
	return record.DeviceUse{
		Name:      now.Name,
		ReadBytes: less(then.ReadBytes, now.ReadBytes), WriteBytes: less(then.WriteBytes, now.WriteBytes),
		ReadIOs: less(then.ReadIOs, now.ReadIOs), WriteIOs: less(then.WriteIOs, now.WriteIOs),
		Busy: less(then.Busy, now.Busy),
	}
}
