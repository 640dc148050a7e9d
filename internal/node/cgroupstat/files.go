package cgroupstat

// slot is one of the files of a group that are read.
type slot int

const (
	memoryUsage slot = iota
	memoryStat
	cpuUsage // in v2 the file also has the throttled time
	hot      // slots below hot are kept open and read at every tick

	memoryPeak slot = iota - 1
	memoryLimit
	memoryKernel
	memorySock
	memorySwap
	cpuThrottled
	ioBytes
	pidsCurrent
	slots
)

// controllers1 are the controllers of v1 with files to read.
var controllers1 = []string{"memory", "cpuacct", "cpu", "blkio", "pids"}

// names lists the names of each file by cgroup version. A second name is that of older
// kernels.
var names = [slots]struct {
	controller1 string
	v1          []string
	controller2 string
	v2          []string
}{
	memoryUsage:  {"memory", []string{"memory.usage_in_bytes"}, "memory", []string{"memory.current"}},
	memoryStat:   {"memory", []string{"memory.stat"}, "memory", []string{"memory.stat"}},
	cpuUsage:     {"cpuacct", []string{"cpuacct.usage"}, "cpu", []string{"cpu.stat"}},
	memoryPeak:   {"memory", []string{"memory.max_usage_in_bytes"}, "memory", []string{"memory.peak"}}, // v2: since Linux 5.19
	memoryLimit:  {"memory", []string{"memory.limit_in_bytes"}, "memory", []string{"memory.max"}},
	memoryKernel: {"memory", []string{"memory.kmem.usage_in_bytes"}, "", nil},
	memorySock:   {"memory", []string{"memory.kmem.tcp.usage_in_bytes"}, "", nil},
	memorySwap:   {"", nil, "memory", []string{"memory.swap.current"}},
	cpuThrottled: {"cpu", []string{"cpu.stat"}, "", nil},
	// The second name of v1 does not count the group's descendants.
	ioBytes:     {"blkio", []string{"blkio.throttle.io_service_bytes_recursive", "blkio.throttle.io_service_bytes"}, "io", []string{"io.stat"}},
	pidsCurrent: {"pids", []string{"pids.current"}, "pids", []string{"pids.current"}},
}

// in returns the names of a file in a hierarchy, or nil, and the file's controller.
func (t *tree) in(s slot) (files []string, controller string) {
	n := &names[s]
	switch {
	case t.Version == 1 && t.Has(n.controller1):
		return n.v1, n.controller1
	// v2 counts CPU time without the controller, even if v1 has the controller.
	case t.Version == 2 && (s == cpuUsage || t.Has(n.controller2)):
		return n.v2, n.controller2
	}
	return nil, ""
}
