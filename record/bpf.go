package record

import (
	"fmt"
)

// Types of line in a record of "bpf" only.
const (
	TypeProgram Type = "program"
	TypeMap     Type = "map"
	TypePoint   Type = "point"
)

// Program is one loaded BPF program at its first observation.
type Program struct {
	Type     Type     `json:"type"`
	ID       uint32   `json:"id" is:"min=1"`
	Kind     string   `json:"kind" is:"needed,label,safe"`                       // the kernel's name of its type: "cgroup_sock_addr", "sock_ops"
	Name     string   `json:"name" is:"label,kind=program"`                      // the kernel's name, up to 15 bytes
	Full     string   `json:"full,omitempty" is:"path,kind=program"`             // the full name of the function, from the program's BTF
	Tag      string   `json:"tag,omitempty" is:"label,kind=id"`                  // of its instructions, 16 hex digits
	Owner    string   `json:"owner,omitempty" is:"label,safe"`                   // the software that owns it, if recognised: "tare", "kmesh", "cilium", "systemd"
	Attached []string `json:"attached" is:"max=1024,path,kind=path"`             // attach points: "cgroup connect4 /mnt/kmesh_cgroup2"
	Holders  []string `json:"holders,omitempty" is:"max=1024,path,kind=program"` // processes with a descriptor of it: "812 kmesh-daemon"
	Pins     []string `json:"pins,omitempty" is:"max=1024,path"`
	Memory   int64    `json:"memory" is:"bytes,unknown"` // bytes, without maps; -1: unknown
	// Instructions are those after the verifier. Jited is the size of the machine code in
	// bytes. 0 means unknown, or for Jited that there is none.
	Instructions int64        `json:"instructions,omitempty" is:"loads"`
	Jited        int64        `json:"jited,omitempty" is:"bytes"`
	Maps         []ProgramMap `json:"maps" is:"max=4096"`
}

// ProgramMap is a map that a program uses.
type ProgramMap struct {
	ID      uint32 `json:"id"`
	Kind    string `json:"kind" is:"label,safe"`
	Name    string `json:"name" is:"label,kind=program"`
	Entries int64  `json:"entries"`                   // capacity
	Memory  int64  `json:"memory" is:"bytes,unknown"` // bytes, from the kernel's fdinfo; -1: unknown
	Shared  int    `json:"shared"`                    // programs that use it
	Inner   int    `json:"inner,omitempty"`           // maps in it, for a map of maps
	// InnerMemory is the memory in bytes of the maps in it; -1: unknown. Each inner map
	// counts once, and not if a program uses it directly.
	InnerMemory int64 `json:"inner_memory,omitempty" is:"bytes,unknown"`
}

// Map is a map that exists although no loaded program uses it.
type Map struct {
	Type    Type       `json:"type"`
	Map     ProgramMap `json:"map"`
	Owner   string     `json:"owner,omitempty" is:"label"`                        // as for a program
	Holders []string   `json:"holders,omitempty" is:"max=1024,path,kind=program"` // processes with a descriptor of it
	Pins    []string   `json:"pins,omitempty" is:"max=1024,path"`
}

// Point is one phase of one point of a measurement: the load, and the usage of programs
// and processes.
type Point struct {
	Type     Type   `json:"type"`
	Round    int    `json:"round" is:"round"`                          // from 0
	Order    int    `json:"order"`                                     // the point's place in the round's random order
	Case     string `json:"case" is:"needed,one=load|quota|memory"`    // CaseLoad, CaseQuota, CaseMemory
	Datapath string `json:"datapath" is:"label"`                       // "reference", or the selection of programs: "kmesh", "name cgroup_*"
	Phase    string `json:"phase" is:"needed,one=idle|load|cool-down"` // PhaseIdle, PhaseLoad, PhaseCool
	Asked    Asked  `json:"asked"`
	Begun    int64  `json:"begun"` // ns of CLOCK_MONOTONIC
	Ended    int64  `json:"ended" is:"after=begun"`
	// Sent is the load as the client reports it; nil without a load.
	Sent *Sent `json:"sent,omitempty"`
	// CPU times are ns between Begun and Ended; -1: unknown.
	ClientCPU int64 `json:"client_cpu" is:"cpu,unknown"`
	ServerCPU int64 `json:"server_cpu" is:"cpu,unknown"`
	NodeCPU   int64 `json:"node_cpu" is:"cpu,unknown"` // busy time of all CPUs
	CPUs      int   `json:"cpus" is:"max=1048576"`     // of the node
	// Runs are the runs of each selected program; empty without statistics.
	Runs   []ProgramRun `json:"runs" is:"max=16384"`
	Group  *GroupCPU    `json:"group,omitempty"` // of the workload's cgroup, if it has a limit
	Memory []ProgramMem `json:"memory,omitempty" is:"max=65536"`
	// Own is the CPU time of tare itself, without the load's client and server.
	Own      int64    `json:"own"`
	Problems []string `json:"problems,omitempty" is:"max=1024,path,kind=text"` // programs that came or went, one line each
	Failure  *Failure `json:"failure,omitempty"`
	// Source is the file of an imported point. Such a point has only the client's report,
	// and Begun is 1.
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
	Statistics  bool    `json:"statistics"` // the kernel's BPF statistics are on
	CPUs        float64 `json:"cpu_limit,omitempty" is:"cpus"`
	Instances   int     `json:"instances,omitempty"` // clients that share the limit
	Heavy       int64   `json:"heavy,omitempty"`     // iterations of the loop in the reference datapath's programs
	Services    int     `json:"services,omitempty"`
}

// Sent is the load as its client reports it. Times are ns.
type Sent struct {
	Requests int64   `json:"requests" is:"loads"`
	Errors   int64   `json:"errors" is:"loads"` // requests without an answer of status 2xx
	QPS      float64 `json:"qps" is:"rate"`     // achieved
	// OpenLoop: requests were due at fixed times, and their latency counts from then. It
	// includes stalls of the server in full.
	OpenLoop bool  `json:"open_loop,omitempty"`
	Mean     int64 `json:"mean" is:"span"`
	P50      int64 `json:"p50" is:"span"`
	P90      int64 `json:"p90" is:"span"`
	P99      int64 `json:"p99" is:"span"`
	P999     int64 `json:"p999" is:"span"`
	Max      int64 `json:"max" is:"span"`
	Sockets  int64 `json:"sockets" is:"loads"` // connections made
	// Unsent are due requests of an open loop that were not sent before the time-out after
	// the end, for lack of a free connection. In mean, quantiles and Max they count with
	// their waiting time, as do requests that timed out: a lower bound of their latency.
	Unsent int64 `json:"unsent,omitempty" is:"loads"`
	// Lag is the delay of the client in sending due requests of an open loop, 99th
	// percentile in ns. The latencies include it.
	Lag int64 `json:"lag,omitempty"`
	// Client is the program that sent the load, with its version: "fortio v1.75.3".
	Client string `json:"client,omitempty" is:"label,safe"`
	// Failures are the errors by reason: "status 503".
	Failures map[string]int64 `json:"failures,omitempty" is:"max=64,keys=label,loads"`
}

// ProgramRun is the runs of a program in a phase.
type ProgramRun struct {
	ID     uint32 `json:"id"`
	Name   string `json:"name" is:"path,kind=program"`
	Count  int64  `json:"count" is:"loads"`
	Time   int64  `json:"time" is:"cpu"` // ns, of all CPUs
	Misses int64  `json:"misses,omitempty"`
}

// GroupCPU is the CPU usage of the workload's cgroup in a phase, ns.
type GroupCPU struct {
	Version   int     `json:"version" is:"min=1,max=2"` // of cgroup
	Limit     float64 `json:"limit" is:"cpus"`          // CPUs
	Usage     int64   `json:"usage" is:"cpu"`           // cpuacct.usage or cpu.stat usage_usec
	Ticks     int64   `json:"ticks" is:"cpu,unknown"`   // user and system time by the tick (cpuacct.stat, or /proc/PID/stat of its processes); -1
	Periods   int64   `json:"periods"`                  // of the quota
	Throttled int64   `json:"throttled"`                // periods in which it was throttled
	Held      int64   `json:"held" is:"cpu"`            // throttled time, ns
}

// ProgramMem is the memory of a program or a map.
type ProgramMem struct {
	ID     uint32 `json:"id"`
	Map    bool   `json:"map,omitempty"` // of a map; else of a program
	Name   string `json:"name" is:"path,kind=program"`
	Memory int64  `json:"memory" is:"bytes,unknown"` // bytes
	Used   int64  `json:"used,omitempty"`            // entries in it, if they can be counted
}

// Check implements Checker.
func (s *Sent) Check() error {
	if s.Errors > s.Requests {
		return fmt.Errorf("%d errors of %d requests", s.Errors, s.Requests)
	}
	l := Latency{P50: s.P50, P95: s.P90, P99: s.P99, P999: s.P999} // P90 in place of P95
	return l.Check()
}

// Check implements Checker.
func (g *GroupCPU) Check() error {
	if g.Throttled > g.Periods {
		return fmt.Errorf("%d of %d periods were throttled", g.Throttled, g.Periods)
	}
	return nil
}
