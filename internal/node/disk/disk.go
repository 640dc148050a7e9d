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
	fieldName     = 2
	fieldInFlight = 11
	fieldCount    = 13
)

// sectorSize is the unit of bytes in /proc/diskstats for every disk.
const sectorSize = 512

// counter is a counter of a device, its field in a line and its unit there.
type counter struct {
	value *int64
	field int
	unit  int64
}

func countersOf(u *record.DeviceUse) [5]counter {
	return [...]counter{{&u.ReadIOs, 3, 1}, {&u.ReadBytes, 5, sectorSize}, {&u.WriteIOs, 7, 1}, {&u.WriteBytes, 9, sectorSize}, {&u.Busy, 12, 1_000_000}}
}

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
	var n [fieldCount]int64
	_, rest := machine.Field(line, fieldName)
	for i := fieldName + 1; i < len(n); i++ {
		var digits []byte
		digits, rest = machine.Field(rest, 0)
		if n[i], ok = machine.Number(digits); !ok {
			return u, false, false
		}
	}
	for _, c := range countersOf(&u) {
		if n[c.field] > math.MaxInt64/c.unit {
			return u, false, false
		}
		*c.value = n[c.field] * c.unit
	}
	return u, n[fieldInFlight] != 0, true
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
		for i, c := range countersOf(&sum) {
			*c.value += *countersOf(&u)[i].value
		}
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
	for i, c := range countersOf(&now) {
		*c.value = max(*c.value-*countersOf(&then)[i].value, 0)
	}
	return now
}
