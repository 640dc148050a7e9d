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

func limitsIn(root machine.Root, dir, group string, version int) (all []record.IOLimit) {
	if version == 2 {
		text, _ := root.Read(dir+"/io.max", maxLimitFile)
		for line := range strings.Lines(string(text)) {
			number, words, _ := strings.Cut(strings.TrimSpace(line), " ")
			for _, f := range limitFiles {
				for word := range strings.FieldsSeq(words) {
					if value, ok := strings.CutPrefix(word, f.word); ok {
						all = appendLimit(all, record.IOLimit{Group: group, Write: f.write, IOs: f.ios}, number, value)
					}
				}
			}
		}
		return all
	}
	for _, f := range limitFiles {
		text, _ := root.Read(dir+"/"+f.file, maxLimitFile)
		for line := range strings.Lines(string(text)) {
			number, value, _ := strings.Cut(strings.TrimSpace(line), " ")
			all = appendLimit(all, record.IOLimit{Group: group, Write: f.write, IOs: f.ios}, number, value)
		}
	}
	return all
}

// appendLimit appends a limit. It ignores "max" and unknown devices.
func appendLimit(all []record.IOLimit, l record.IOLimit, number, value string) []record.IOLimit {
	major, minor, _ := strings.Cut(number, ":")
	x, wrong := strconv.Atoi(major)
	y, also := strconv.Atoi(minor)
	n, err := strconv.ParseInt(value, 10, 64)
	if wrong != nil || also != nil || err != nil || n <= 0 {
		return all
	}
	if l.Device, l.Value = Name(x, y), n; l.Device == "" {
		return all
	}
	return append(all, l)
}
