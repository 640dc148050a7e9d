package disk

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"strings"

	"github.com/tare-bench/tare/internal/node/machine"
)

// Disks identifies the whole disks of a machine. Other block devices would count bytes
// twice, or have none: partitions, device mapper, RAID, the hidden paths below an NVMe
// disk, loop devices, and devices in memory.
type Disks struct {
	names   map[string]bool // whole or not, by name as in /proc/diskstats
	numbers map[string]bool // whole or not, by number as in "8:0"
}

// ReadDisks reads /sys/block, see Documentation/ABI/stable/sysfs-block. "slaves" are the
// devices that a device is stacked on. "hidden" is 1 for a path of another device.
func ReadDisks(root machine.Root) (Disks, error) {
	entries, err := os.ReadDir(string(root) + "/sys/block")
	if err != nil {
		return Disks{}, fmt.Errorf("find the disks: %w", err)
	}
	d := Disks{names: map[string]bool{}, numbers: map[string]bool{}}
	for _, e := range entries {
		dir := "/sys/block/" + e.Name()
		// Sysfs writes "!" for a slash in a name: cciss!c0d0.
		name := strings.ReplaceAll(e.Name(), "!", "/")
		whole := !numbered(name, "loop", "ram", "zram", "fd")
		if whole {
			below, err := os.ReadDir(string(root) + dir + "/slaves")
			hidden, _ := root.FirstLine(dir+"/hidden", 16)
			whole = (err != nil || len(below) == 0) && hidden != "1"
		}
		d.names[name] = whole
		if number, err := root.FirstLine(dir+"/dev", 32); err == nil {
			d.numbers[number] = whole
		}
	}
	return d, nil
}

// Number reports whether the device with a number, such as "8:0", is a whole disk. known
// is false if ReadDisks did not see the device.
func (d Disks) Number(number string) (whole, known bool) {
	whole, known = d.numbers[number]
	return whole, known
}

// Sum returns the bytes that all whole disks have read and written since boot. It does not
// allocate.
func (d *Disks) Sum(stats []byte) (read, written int64) {
	for line := range bytes.Lines(stats) {
		if name, _ := machine.Field(line, fieldName); !d.names[string(name)] {
			continue
		}
		u, _, ok := counters(line)
		if ok && u.ReadBytes <= math.MaxInt64-read && u.WriteBytes <= math.MaxInt64-written {
			read, written = read+u.ReadBytes, written+u.WriteBytes
		}
	}
	return read, written
}

// Follow reads the disks again if stats has a new one.
func (d *Disks) Follow(root machine.Root, stats []byte) error {
	if d.unknown(stats) == nil {
		return nil
	}
	now, err := ReadDisks(root)
	if err != nil {
		return err
	}
	*d = now
	// Do not look up devices other than disks again.
	for name := d.unknown(stats); name != nil; name = d.unknown(stats) {
		d.names[string(name)] = false
	}
	return nil
}

// unknown returns the name of the first device that ReadDisks did not see, or nil.
// Partitions follow their disk and are not in /sys/block.
func (d *Disks) unknown(stats []byte) []byte {
	var disk []byte
	for line := range bytes.Lines(stats) {
		name, _ := machine.Field(line, fieldName)
		if _, known := d.names[string(name)]; known {
			disk = name
		} else if disk == nil || !isPartition(name, disk) {
			return name
		}
	}
	return nil
}

// isPartition reports whether name is the name of a partition of disk. That is the name of
// the disk and a number, with a "p" between them if the disk's name ends in a digit (sda1,
// nvme0n1p1).
func isPartition(name, disk []byte) bool {
	number, ok := bytes.CutPrefix(name, disk)
	_, digits := machine.Number(bytes.TrimPrefix(number, []byte("p")))
	return ok && digits
}
