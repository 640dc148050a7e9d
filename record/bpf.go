package record

import (
	"fmt"
)

// The types of line that a record of "bpf" holds besides those that all records
// have.
const (
	TypeProgram Type = "program"
	TypeMap     Type = "map"
	TypePoint   Type = "point"
)

// Program is one loaded BPF program, as it was seen first.
type Program struct {
	Type     Type     `json:"type"`
	ID       uint32   `json:"id" is:"min=1"`
	Kind     string   `json:"kind" is:"needed,label,safe"`                       // the kernel's own name of its type: "cgroup_sock_addr", "sock_ops"
	Name     string   `json:"name" is:"label,kind=program"`                      // up to 15 bytes, as the kernel keeps it
	Full     string   `json:"full,omitempty" is:"path,kind=program"`             // the function's whole name, from the program's BTF
	Tag      string   `json:"tag,omitempty" is:"label,kind=id"`                  // of its instructions, 16 hex digits
	Owner    string   `json:"owner,omitempty" is:"label,safe"`                   // whose it is, as far as it is recognised: "tare", "kmesh", "cilium", "systemd"
	Attached []string `json:"attached" is:"max=1024,path,kind=path"`             // where it is attached: "cgroup connect4 /mnt/kmesh_cgroup2"
	Holders  []string `json:"holders,omitempty" is:"max=1024,path,kind=program"` // processes that hold a descriptor of it: "812 kmesh-daemon"
	Pins     []string `json:"pins,omitempty" is:"max=1024,path"`
	Memory   int64    `json:"memory" is:"bytes,unknown"` // bytes, of the program itself; -1: not known
	// Instructions are those that the verifier left, and Jited the bytes of machine code
	// made of them; 0: not known, of machine code also that there is none.
	Instructions int64        `json:"instructions,omitempty" is:"loads"`
	Jited        int64        `json:"jited,omitempty" is:"bytes"`
	Maps         []ProgramMap `json:"maps" is:"max=4096"`
}

// ProgramMap is a map that a program uses.
type ProgramMap struct {
	ID      uint32 `json:"id"`
	Kind    string `json:"kind" is:"label,safe"`
	Name    string `json:"name" is:"label,kind=program"`
	Entries int64  `json:"entries"`                   // the most that it can hold
	Memory  int64  `json:"memory" is:"bytes,unknown"` // bytes, as the kernel's fdinfo has it; -1: not known
	Shared  int    `json:"shared"`                    // programs that use it
	Inner   int    `json:"inner,omitempty"`           // maps in it, of a map of maps
	// InnerMemory is that of the maps in it, bytes; each is counted at one map only, and
	// not where a program uses it itself. -1: not known.
	InnerMemory int64 `json:"inner_memory,omitempty" is:"bytes,unknown"`
}

// Map is a map that no loaded program uses, and that is there all the same.
type Map struct {
	Type    Type       `json:"type"`
	Map     ProgramMap `json:"map"`
	Owner   string     `json:"owner,omitempty" is:"label"`                        // as of a program
	Holders []string   `json:"holders,omitempty" is:"max=1024,path,kind=program"` // processes that hold a descriptor of it
	Pins    []string   `json:"pins,omitempty" is:"max=1024,path"`
}

// Point is one phase of one point of a measurement: what the load did, and what
// programs and processes used meanwhile.
type Point struct {
	Type     Type   `json:"type"`
	Round    int    `json:"round" is:"round"`                          // from 0
	Order    int    `json:"order"`                                     // the point's place in the round's random order
	Case     string `json:"case" is:"needed,one=load|quota|memory"`    // CaseLoad, CaseQuota, CaseMemory
	Datapath string `json:"datapath" is:"label"`                       // "reference", or what the programs were chosen by: "kmesh", "name cgroup_*"
	Phase    string `json:"phase" is:"needed,one=idle|load|cool-down"` // PhaseIdle, PhaseLoad, PhaseCool
	Asked    Asked  `json:"asked"`
	Begun    int64  `json:"begun"` // ns of CLOCK_MONOTONIC
	Ended    int64  `json:"ended" is:"after=begun"`
	// Sent is what the client says of its load; nil where there was none.
	Sent *Sent `json:"sent,omitempty"`
	// CPU times are ns between Begun and Ended; -1: not known.
	ClientCPU int64 `json:"client_cpu" is:"cpu,unknown"`
	ServerCPU int64 `json:"server_cpu" is:"cpu,unknown"`
	NodeCPU   int64 `json:"node_cpu" is:"cpu,unknown"` // of all CPUs that was not idle
	CPUs      int   `json:"cpus" is:"max=1048576"`     // of the node
	// Runs are those of each program that was chosen; empty where statistics were
	// off.
	Runs   []ProgramRun `json:"runs" is:"max=16384"`
	Group  *GroupCPU    `json:"group,omitempty"` // of the workload's cgroup, where it has a limit
	Memory []ProgramMem `json:"memory,omitempty" is:"max=65536"`
	// Own is the CPU time of tare itself, without the load's client and server.
	Own      int64    `json:"own"`
	Problems []string `json:"problems,omitempty" is:"max=1024,path,kind=text"` // programs that came or went, one line each
	Failure  *Failure `json:"failure,omitempty"`
	// Source is the file that an imported point comes from: it has what the client
	// says, and Begun is 1.
	Source string `json:"source,omitempty" is:"place"`
}

// The cases and phases of a point.
const (
	CaseLoad   = "load"
	CaseQuota  = "quota"
	CaseMemory = "memory"

	PhaseIdle = "idle" // before the load
	PhaseLoad = "load"
	PhaseCool = "cool-down"
)

// Asked is what a point asks for.
type Asked struct {
	URL         string  `json:"url,omitempty" is:"path,kind=address"`
	Connections int     `json:"connections"`
	QPS         float64 `json:"qps,omitempty" is:"rate"` // 0: as many as it can
	KeepAlive   bool    `json:"keep_alive,omitempty"`
	Seconds     float64 `json:"seconds" is:"seconds"`
	Statistics  bool    `json:"statistics"` // the kernel's statistics of BPF programs are on
	CPUs        float64 `json:"cpu_limit,omitempty" is:"cpus"`
	Instances   int     `json:"instances,omitempty"` // clients that share the limit
	Heavy       int64   `json:"heavy,omitempty"`     // rounds of the loop in the reference datapath's programs
	Services    int     `json:"services,omitempty"`
}

// Sent is what a load's client says. Times are ns.
type Sent struct {
	Requests int64   `json:"requests" is:"loads"`
	Errors   int64   `json:"errors" is:"loads"` // of those: no answer, or one that is no 2xx
	QPS      float64 `json:"qps" is:"rate"`     // achieved
	// OpenLoop says that requests were due at fixed times and that their latency is
	// counted from then: a server that stalls is seen in full.
	OpenLoop bool  `json:"open_loop,omitempty"`
	Mean     int64 `json:"mean" is:"span"`
	P50      int64 `json:"p50" is:"span"`
	P90      int64 `json:"p90" is:"span"`
	P99      int64 `json:"p99" is:"span"`
	P999     int64 `json:"p999" is:"span"`
	Max      int64 `json:"max" is:"span"`
	Sockets  int64 `json:"sockets" is:"loads"` // connections that were made
	// Unsent are requests of an open loop that were due and not sent before the
	// time-out after the end: there were never enough free connections. In mean,
	// quantiles and Max they are, like those that had no answer in time, with as
	// long as they were waited for, which is the least that they would have taken.
	Unsent int64 `json:"unsent,omitempty" is:"loads"`
	// Lag is by how much the client itself was late to send what was due, 99th
	// percentile in ns, of an open loop; it is part of the latencies.
	Lag int64 `json:"lag,omitempty"`
	// Client is what sent it, with its version: "fortio v1.75.3".
	Client string `json:"client,omitempty" is:"label,safe"`
	// Failures are the errors by their reason, in words: "status 503".
	Failures map[string]int64 `json:"failures,omitempty" is:"max=64,keys=label,loads"`
}

// ProgramRun is what a program did in a phase.
type ProgramRun struct {
	ID     uint32 `json:"id"`
	Name   string `json:"name" is:"path,kind=program"`
	Count  int64  `json:"count" is:"loads"`
	Time   int64  `json:"time" is:"cpu"` // ns, of all CPUs
	Misses int64  `json:"misses,omitempty"`
}

// GroupCPU is what the workload's cgroup was charged in a phase, ns.
type GroupCPU struct {
	Version   int     `json:"version" is:"min=1,max=2"` // of cgroup
	Limit     float64 `json:"limit" is:"cpus"`          // CPUs
	Usage     int64   `json:"usage" is:"cpu"`           // cpuacct.usage or cpu.stat usage_usec
	Ticks     int64   `json:"ticks" is:"cpu,unknown"`   // user and system time by the tick (cpuacct.stat, or /proc/PID/stat of its processes); -1
	Periods   int64   `json:"periods"`                  // of the quota
	Throttled int64   `json:"throttled"`                // of those, in which it was held back
	Held      int64   `json:"held" is:"cpu"`            // ns that it was held back
}

// ProgramMem is what programs and maps occupy.
type ProgramMem struct {
	ID     uint32 `json:"id"`
	Map    bool   `json:"map,omitempty"` // of a map; else of a program
	Name   string `json:"name" is:"path,kind=program"`
	Memory int64  `json:"memory" is:"bytes,unknown"` // bytes
	Used   int64  `json:"used,omitempty"`            // entries in it, where they can be counted
}

// Check says whether the load can have been.
func (s *Sent) Check() error {
	if s.Errors > s.Requests {
		return fmt.Errorf("%d errors of %d requests", s.Errors, s.Requests)
	}
	l := Latency{P50: s.P50, P95: s.P90, P99: s.P99, P999: s.P999} // P90 stands where P95 would
	return l.Check()
}

// Check says whether the group can have been held back so often.
func (g *GroupCPU) Check() error {
	if g.Throttled > g.Periods {
		return fmt.Errorf("%d of %d periods were held back", g.Throttled, g.Periods)
	}
	return nil
}
