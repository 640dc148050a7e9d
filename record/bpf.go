package record

import (
	"fmt"
)

// Types of line that only records of "bpf" have.
const (
	TypeProgram Type = "program"
	TypeMap     Type = "map"
	TypePoint   Type = "point"
)

// Program is a loaded BPF program when it was first seen.
type Program struct {
	Type     Type     `json:"type"`
	ID       uint32   `json:"id" is:"min=1"`
	Kind     string   `json:"kind" is:"needed,label,safe"`                       // kernel's name of the program type: "cgroup_sock_addr", "sock_ops"
	Name     string   `json:"name" is:"label,kind=program"`                      // kernel's name, at most 15 bytes
	Full     string   `json:"full,omitempty" is:"path,kind=program"`             // full function name, from the program's BTF
	Tag      string   `json:"tag,omitempty" is:"label,kind=id"`                  // hash of the instructions, 16 hex digits
	Owner    string   `json:"owner,omitempty" is:"label,safe"`                   // software that owns the program, if recognized: "tare", "kmesh", "cilium", "systemd"
	Attached []string `json:"attached" is:"max=1024,path,kind=path"`             // attach points: "cgroup connect4 /mnt/kmesh_cgroup2"
	Holders  []string `json:"holders,omitempty" is:"max=1024,path,kind=program"` // processes with a file descriptor for it: "812 kmesh-daemon"
	Pins     []string `json:"pins,omitempty" is:"max=1024,path"`
	Memory   int64    `json:"memory" is:"bytes,unknown"` // bytes without maps; -1: unknown
	// Instructions is the number of instructions after verification. Jited is the size of the
	// machine code in bytes. 0 means unknown; for Jited it can also mean none.
	Instructions int64        `json:"instructions,omitempty" is:"loads"`
	Jited        int64        `json:"jited,omitempty" is:"bytes"`
	Maps         []ProgramMap `json:"maps" is:"max=4096"`
}

// ProgramMap is a map that a program uses.
type ProgramMap struct {
	ID      uint32 `json:"id"`
	Kind    string `json:"kind" is:"label,safe"`
	Name    string `json:"name" is:"label,kind=program"`
	Entries int64  `json:"entries"`                   // maximum number of entries
	Memory  int64  `json:"memory" is:"bytes,unknown"` // bytes, from fdinfo; -1: unknown
	Shared  int    `json:"shared"`                    // number of programs that use it
	Inner   int    `json:"inner,omitempty"`           // number of inner maps, for a map of maps
	// InnerMemory is the memory of the inner maps in bytes; -1: unknown. Each inner map counts
	// once. Inner maps that a program uses directly do not count.
	InnerMemory int64 `json:"inner_memory,omitempty" is:"bytes,unknown"`
}

// Map is a map that no loaded program uses.
type Map struct {
	Type    Type       `json:"type"`
	Map     ProgramMap `json:"map"`
	Owner   string     `json:"owner,omitempty" is:"label"`                        // like Program.Owner
	Holders []string   `json:"holders,omitempty" is:"max=1024,path,kind=program"` // processes with a file descriptor for it
	Pins    []string   `json:"pins,omitempty" is:"max=1024,path"`
}

// Point is one phase at one measuring point: the load, and the resource usage of programs and
// processes.
type Point struct {
	Type     Type   `json:"type"`
	Round    int    `json:"round" is:"round"`                          // starting at 0
	Order    int    `json:"order"`                                     // position of the point in the round's random order
	Case     string `json:"case" is:"needed,one=load|quota|memory"`    // CaseLoad, CaseQuota, CaseMemory
	Datapath string `json:"datapath" is:"label"`                       // "reference", or the program selection: "kmesh", "name cgroup_*"
	Phase    string `json:"phase" is:"needed,one=idle|load|cool-down"` // PhaseIdle, PhaseLoad, PhaseCool
	Asked    Asked  `json:"asked"`
	Begun    int64  `json:"begun"` // ns of CLOCK_MONOTONIC
	Ended    int64  `json:"ended" is:"after=begun"`
	// Sent is the load reported by the client; nil without a load.
	Sent *Sent `json:"sent,omitempty"`
	// CPU times are ns between Begun and Ended; -1: unknown.
	ClientCPU int64 `json:"client_cpu" is:"cpu,unknown"`
	ServerCPU int64 `json:"server_cpu" is:"cpu,unknown"`
	NodeCPU   int64 `json:"node_cpu" is:"cpu,unknown"` // busy time of all CPUs
	CPUs      int   `json:"cpus" is:"max=1048576"`     // number of CPUs of the node
	// Runs has the runs of each selected program; empty if BPF statistics are off.
	Runs   []ProgramRun `json:"runs" is:"max=16384"`
	Group  *GroupCPU    `json:"group,omitempty"` // usage of the workload's cgroup, if it has a limit
	Memory []ProgramMem `json:"memory,omitempty" is:"max=65536"`
	// Own is the CPU time of tare itself, without the client and server of the load.
	Own      int64    `json:"own"`
	Problems []string `json:"problems,omitempty" is:"max=1024,path,kind=text"` // programs loaded or unloaded during the phase, one line each
	Failure  *Failure `json:"failure,omitempty"`
	// Source is the file of an imported point. Such a point has only the client's report, and
	// Begun is 1.
	Source string `json:"source,omitempty" is:"place"`
}

// Cases and phases of a point.
const (
	CaseLoad   = "load"
	CaseQuota  = "quota"
	CaseMemory = "memory"

	PhaseIdle = "idle" // before the load
	PhaseLoad = "load"
	PhaseCool = "cool-down"
)

// Asked is the requested configuration of a point.
type Asked struct {
	URL         string  `json:"url,omitempty" is:"path,kind=address"`
	Connections int     `json:"connections"`
	QPS         float64 `json:"qps,omitempty" is:"rate"` // 0: unlimited
	KeepAlive   bool    `json:"keep_alive,omitempty"`
	Seconds     float64 `json:"seconds" is:"seconds"`
	Statistics  bool    `json:"statistics"` // BPF statistics of the kernel are enabled
	CPUs        float64 `json:"cpu_limit,omitempty" is:"cpus"`
	Instances   int     `json:"instances,omitempty"` // number of clients that share the limit
	Heavy       int64   `json:"heavy,omitempty"`     // loop iterations in the programs of the reference datapath
	Services    int     `json:"services,omitempty"`
}

// Sent is the load reported by its client. Times are in ns.
type Sent struct {
	Requests int64   `json:"requests" is:"loads"`
	Errors   int64   `json:"errors" is:"loads"` // requests without a 2xx response
	QPS      float64 `json:"qps" is:"rate"`     // achieved requests per second
	// OpenLoop means that requests were scheduled at fixed times and latencies count from the
	// scheduled time. They include all stalls of the server.
	OpenLoop bool  `json:"open_loop,omitempty"`
	Mean     int64 `json:"mean" is:"span"`
	P50      int64 `json:"p50" is:"span"`
	P90      int64 `json:"p90" is:"span"`
	P99      int64 `json:"p99" is:"span"`
	P999     int64 `json:"p999" is:"span"`
	Max      int64 `json:"max" is:"span"`
	Sockets  int64 `json:"sockets" is:"loads"` // number of connections opened
	// Unsent is the number of scheduled requests of an open loop that were never sent, because
	// no connection was free until the timeout after the end. Mean, quantiles and Max include
	// their waiting time, as for requests that timed out: a lower bound of their latency.
	Unsent int64 `json:"unsent,omitempty" is:"loads"`
	// Lag is the client's delay in sending scheduled requests of an open loop, 99th percentile in
	// ns. The latencies include it.
	Lag int64 `json:"lag,omitempty"`
	// Client is the name and version of the load generator: "fortio v1.75.3".
	Client string `json:"client,omitempty" is:"label,safe"`
	// Failures is the number of errors by reason: "status 503".
	Failures map[string]int64 `json:"failures,omitempty" is:"max=64,keys=label,loads"`
}

// ProgramRun contains the number and the duration of a program's runs in a phase.
type ProgramRun struct {
	ID     uint32 `json:"id"`
	Name   string `json:"name" is:"path,kind=program"`
	Count  int64  `json:"count" is:"loads"`
	Time   int64  `json:"time" is:"cpu"` // ns, sum over all CPUs
	Misses int64  `json:"misses,omitempty"`
}

// GroupCPU is the CPU usage of the workload's cgroup in a phase, in ns.
type GroupCPU struct {
	Version   int     `json:"version" is:"min=1,max=2"` // cgroup version
	Limit     float64 `json:"limit" is:"cpus"`          // limit in CPUs
	Usage     int64   `json:"usage" is:"cpu"`           // cpuacct.usage or cpu.stat usage_usec
	Ticks     int64   `json:"ticks" is:"cpu,unknown"`   // user and system time by the tick (cpuacct.stat, or /proc/PID/stat of its processes); -1: unknown
	Periods   int64   `json:"periods"`                  // number of quota periods
	Throttled int64   `json:"throttled"`                // number of periods in which it was throttled
	Held      int64   `json:"held" is:"cpu"`            // throttled time, ns
}

// ProgramMem is the memory of a program or of a map.
type ProgramMem struct {
	ID     uint32 `json:"id"`
	Map    bool   `json:"map,omitempty"` // true for a map, false for a program
	Name   string `json:"name" is:"path,kind=program"`
	Memory int64  `json:"memory" is:"bytes,unknown"` // bytes
	Used   int64  `json:"used,omitempty"`            // number of entries in use, if known
}

// Check implements Checker.
func (s *Sent) Check() error {
	if s.Errors > s.Requests {
		return fmt.Errorf("%d errors of %d requests", s.Errors, s.Requests)
	}
	l := Latency{P50: s.P50, P95: s.P90, P99: s.P99, P999: s.P999} // P90 replaces P95
	return l.Check()
}

// Check implements Checker.
func (g *GroupCPU) Check() error {
	if g.Throttled > g.Periods {
		return fmt.Errorf("%d of %d periods were throttled", g.Throttled, g.Periods)
	}
	return nil
}
