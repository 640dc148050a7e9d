package disk

import (
	"strconv"
	"strings"

	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/record"
)

// limitFiles lists each limit by its file in v1 and its word in io.max of v2. A line of v1
// is "8:0 1048576". A line of v2 is "8:0 rbps=1048576 wbps=max riops=max wiops=max". See
// Documentation/admin-guide/cgroup-v1/blkio-controller.rst and cgroup-v2.rst.
var limitFiles = []struct {
	file, word string
	write, ios bool
}{
	{"blkio.throttle.read_bps_device", "rbps=", false, false},
	{"blkio.throttle.write_bps_device", "wbps=", true, false},
	{"blkio.throttle.read_iops_device", "riops=", false, true},
	{"blkio.throttle.write_iops_device", "wiops=", true, true},
}

const (
	maxLimits    = 64       // in a record
	maxLimitFile = 64 << 10 // bytes
)

// Limits returns the I/O limits of some cgroups, given by the kernel's paths, and of their
// ancestors.
func Limits(root machine.Root, groups []string) (all []record.IOLimit) {
	hierarchies, err := root.Cgroups()
	if err != nil {
		return nil
	}
	seen := map[string]bool{}
	for _, group := range groups {
		for _, h := range hierarchies {
			for up, dir := range h.Upwards(group) {
				if (h.Has("blkio") || h.Has("io")) && !seen[dir] {
					seen[dir] = true
					all = append(all, limitsIn(root, dir, up, h.Version)...)
				}
			}
		}
	}
	return all[:min(len(all), maxLimits)]
}

// limitsIn returns the limits in the files of a cgroup. It ignores "max" and unknown devices.
func limitsIn(root machine.Root, dir, group string, version int) (all []record.IOLimit) {
	for _, f := range limitFiles {
		file := f.file
		if version == 2 {
			file = "io.max"
		}
		text, _ := root.Read(dir+"/"+file, maxLimitFile)
		for line := range strings.Lines(string(text)) {
			number, value, _ := strings.Cut(strings.TrimSpace(line), " ")
			if version == 2 {
				_, value, _ = strings.Cut(value, f.word)
				value, _, _ = strings.Cut(value, " ")
			}
			n, err := strconv.ParseInt(value, 10, 64)
			if device := nameOfNumber(number); err == nil && n > 0 && device != "" {
				all = append(all, record.IOLimit{Group: group, Device: device, Write: f.write, IOs: f.ios, Value: n})
			}
		}
	}
	return all
}
