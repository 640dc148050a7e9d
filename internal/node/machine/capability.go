package machine

import (
	"fmt"
	"strconv"
	"strings"
)

// capabilityBits are the capabilities that a measurement may need, in the order of
// reports. The numbers are those of linux/capability.h.
var capabilityBits = []struct {
	name string
	bit  int
}{
	{"CAP_SYS_ADMIN", 21},
	{"CAP_SYS_RESOURCE", 24},
	{"CAP_SYS_NICE", 23},
	{"CAP_NET_ADMIN", 12},
	{"CAP_BPF", 39},     // Linux 5.8; CAP_SYS_ADMIN before
	{"CAP_PERFMON", 38}, // Linux 5.8; CAP_SYS_ADMIN before
	{"CAP_SYS_PTRACE", 19},
	{"CAP_SYS_CHROOT", 18},
	{"CAP_KILL", 5},
	{"CAP_SETUID", 7},
	{"CAP_MKNOD", 27},
}

// Capabilities are those of the calling thread.
type Capabilities struct {
	Effective uint64 // CapEff
	Bounding  uint64 // CapBnd
	Last      int    // the highest capability that this kernel knows
}

const statusLimit = 64 << 10 // bytes; /proc/PID/status has about 60 lines

// Capabilities reads the capabilities of the calling thread.
func (r Root) Capabilities() (Capabilities, error) {
	status, err := r.ThreadFile("status", statusLimit)
	if err != nil {
		return Capabilities{}, err
	}
	c := Capabilities{Last: 63}
	if c.Effective, err = statusMask(string(status), "CapEff"); err != nil {
		return Capabilities{}, err
	}
	if c.Bounding, err = statusMask(string(status), "CapBnd"); err != nil {
		return Capabilities{}, err
	}
	if last, err := strconv.Atoi(r.Word("/proc/sys/kernel/cap_last_cap")); err == nil { // Linux 3.2
		c.Last = last
	}
	return c, nil
}

// Missing returns the names of capabilities that are not effective. A capability unknown
// to the kernel is not missing.
func (c Capabilities) Missing() []string {
	var names []string
	for _, known := range capabilityBits {
		if known.bit <= c.Last && c.Effective&(1<<known.bit) == 0 {
			names = append(names, known.name)
		}
	}
	return names
}

// Has reports whether a capability is effective. known is false if it is not in
// capabilityBits or this kernel lacks it.
func (c Capabilities) Has(name string) (has, known bool) {
	bit, known := c.bit(name)
	return known && c.Effective&(1<<bit) != 0, known
}

// Grantable reports whether a capability is in the bounding set, so that an executed
// program can get it.
func (c Capabilities) Grantable(name string) bool {
	bit, known := c.bit(name)
	return known && c.Bounding&(1<<bit) != 0
}

func (c Capabilities) bit(name string) (bit int, known bool) {
	for _, k := range capabilityBits {
		if k.name == name {
			return k.bit, k.bit <= c.Last
		}
	}
	return 0, false
}

// statusMask parses a field of /proc/PID/status with 64 bits in hexadecimal.
func statusMask(status, field string) (uint64, error) {
	value, err := statusField(status, field)
	if err != nil {
		return 0, err
	}
	mask, err := strconv.ParseUint(value, 16, 64)
	if err != nil {
		return 0, fmt.Errorf("parse %s in /proc/self/status: %w", field, err)
	}
	return mask, nil
}

// statusField returns a field of /proc/PID/status. The name of the program comes first and
// may hold any text, but the kernel escapes line ends in it.
func statusField(status, field string) (string, error) {
	for line := range strings.Lines(status) {
		if value, ok := strings.CutPrefix(line, field+":"); ok {
			return strings.TrimSpace(value), nil
		}
	}
	return "", fmt.Errorf("parse /proc/self/status: it has no %s; check whether something is mounted over it", field)
}
