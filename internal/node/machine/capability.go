package machine

import (
	"fmt"
	"strconv"
	"strings"
)

// capabilityBits are the capabilities whose lack changes what can be weighed
// or how, in the order reports name them; numbers from linux/capability.h.
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

// Capabilities are what the calling thread may do, and could be given.
type Capabilities struct {
	Effective uint64 // CapEff: in force
	Bounding  uint64 // CapBnd: what executing a program can still bring
	Last      int    // the highest capability that this kernel knows
}

// statusLimit is far above any /proc/PID/status, which has about 60 lines.
const statusLimit = 64 << 10

// Capabilities reads the capabilities of the calling thread.
func (r Root) Capabilities() (Capabilities, error) {
	status, err := r.own("status", statusLimit)
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
	if last, err := strconv.Atoi(r.word("/proc/sys/kernel/cap_last_cap")); err == nil { // Linux 3.2
		c.Last = last
	}
	return c, nil
}

// Missing names the capabilities that are not in force, of those that matter.
// One that the kernel is too old to know is not missing.
func (c Capabilities) Missing() []string {
	var names []string
	for _, known := range capabilityBits {
		if known.bit <= c.Last && c.Effective&(1<<known.bit) == 0 {
			names = append(names, known.name)
		}
	}
	return names
}

// Has tells whether a capability that matters is in force, known false when
// it is none of them or this kernel doesn't have it.
func (c Capabilities) Has(name string) (has, known bool) {
	bit, known := c.bit(name)
	return known && c.Effective&(1<<bit) != 0, known
}

// Grantable tells whether a capability is in the bounding set: outside it,
// nothing that this process executes can get it.
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

// statusMask reads a field of /proc/PID/status that is 64 bits in hexadecimal.
func statusMask(status, field string) (uint64, error) {
	value, ok := statusField(status, field)
	if !ok {
		return 0, fmt.Errorf("parse /proc/self/status: it has no %s; look whether something is mounted over it", field)
	}
	mask, err := strconv.ParseUint(value, 16, 64)
	if err != nil {
		return 0, fmt.Errorf("parse %s in /proc/self/status: %w", field, err)
	}
	return mask, nil
}

// statusField returns a field of /proc/PID/status. The name of the program,
// which anyone can choose, comes first there; the kernel escapes line ends in
// it, so it can't pass for another field.
func statusField(status, field string) (string, bool) {
	for line := range strings.Lines(status) {
		if value, ok := strings.CutPrefix(line, field+":"); ok {
			return strings.TrimSpace(value), true
		}
	}
	return "", false
}
