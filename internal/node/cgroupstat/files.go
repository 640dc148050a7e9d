package cgroupstat

// slot is one of the files that are read of a group.
type slot int

const (
	memoryUsage slot = iota
	memoryStat
	cpuUsage // of version 2 throttled time too
	hot      // those before it are read at every tick, and kept open

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

// controllers1 are the controllers of version 1 that have something to read.
var controllers1 = []string{"memory", "cpuacct", "cpu", "blkio", "pids"}

// names are a file's name in each version, "" where that has none; where older
// kernels have it under another name, that follows.
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
	// The second is of the group alone, without those below it.
	ioBytes:     {"blkio", []string{"blkio.throttle.io_service_bytes_recursive", "blkio.throttle.io_service_bytes"}, "io", []string{"io.stat"}},
	pidsCurrent: {"pids", []string{"pids.current"}, "pids", []string{"pids.current"}},
}

// in returns a file's names in a hierarchy, nil where it is not there, and the
// controller it is of.
func (t *tree) in(s slot) (files []string, controller string) {
	n := &names[s]
	switch {
	case t.Version == 1 && t.Has(n.controller1):
		return n.v1, n.controller1
	// CPU time is counted without the controller, and is in the hierarchy of
	// processes even where the controller is in another.
	case t.Version == 2 && (s == cpuUsage || t.Has(n.controller2)):
		return n.v2, n.controller2
	}
	return nil, ""
}
