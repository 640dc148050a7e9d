package nodestat

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"

	"github.com/tare-bench/tare/internal/node/machine"
)

// Disks tells the whole disks of a machine from all other block devices, of
// which the same bytes would be counted again or which have none: partitions,
// what is stacked on disks (device mapper, RAID), the hidden paths below an NVMe
// disk, loop devices, and those in memory.
type Disks struct {
	names   map[string]bool // as in /proc/diskstats
	numbers map[string]bool // "8:0"
}

// ReadDisks reads /sys/block, see Documentation/ABI/stable/sysfs-block: "slaves"
// are the devices that one is stacked on, "hidden" is 1 for a path of another.
func ReadDisks(root machine.Root) (Disks, error) {
	entries, err := os.ReadDir(string(root) + "/sys/block")
	if err != nil {
		return Disks{}, fmt.Errorf("find the disks: %w", err)
	}
	d := Disks{names: map[string]bool{}, numbers: map[string]bool{}}
	for _, e := range entries {
		dir := "/sys/block/" + e.Name()
		// A name may have a slash, which a folder can not: cciss!c0d0.
		name := strings.ReplaceAll(e.Name(), "!", "/")
		whole := isDisk(name)
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

func isDisk(name string) bool {
	for _, not := range []string{"loop", "ram", "zram", "fd"} {
		if digits, ok := strings.CutPrefix(name, not); ok && digits != "" && strings.Trim(digits, "0123456789") == "" {
			return false
		}
	}
	return true
}

// Number tells whether the device with a number, "8:0", is a whole disk; known
// is false for one that was not there.
func (d Disks) Number(number string) (whole, known bool) {
	whole, known = d.numbers[number]
	return whole, known
}

// Whole tells whether the device of a name, as in /proc/diskstats, is a whole
// disk.
func (d Disks) Whole(name string) bool { return d.names[name] }

// sectorSize is that of /proc/diskstats, whatever the disk's own is
// (Documentation/admin-guide/iostats.rst).
const sectorSize = 512

// sum adds up what all whole disks have read and written since boot, from
// /proc/diskstats: "254 0 vda READS MERGED SECTORS MS WRITES MERGED SECTORS …". A
// line that is not understood costs that line.
func (d *Disks) sum(stats []byte) (read, written int64) {
	for line := range bytes.Lines(stats) {
		name, rest := skip(line, 2)
		if !d.names[string(name)] {
			continue
		}
		r, rest := skip(rest, 2) // reads, merged
		w, _ := skip(rest, 3)    // ms, writes, merged
		rs, rok := sectors(r)
		ws, wok := sectors(w)
		if !rok || !wok || rs > math.MaxInt64-read || ws > math.MaxInt64-written {
			continue
		}
		read, written = read+rs, written+ws
	}
	return read, written
}

// skip passes over n fields and returns the next one, and what follows it.
func skip(b []byte, n int) (field, rest []byte) {
	for {
		b = bytes.TrimLeft(b, " ")
		end := bytes.IndexAny(b, " \n")
		if end < 0 {
			end = len(b)
		}
		field, b = b[:end], b[end:]
		if n == 0 || len(field) == 0 {
			return field, b
		}
		n--
	}
}

func sectors(digits []byte) (int64, bool) {
	n, ok := decimal(digits)
	return n * sectorSize, ok && n <= math.MaxInt64/sectorSize
}

// decimal is strconv.ParseInt without signs.
func decimal(b []byte) (int64, bool) {
	if len(b) == 0 || len(b) > 19 || b[0] < '0' || b[0] > '9' {
		return 0, false
	}
	n, err := strconv.ParseInt(string(b), 10, 64)
	return n, err == nil
}
