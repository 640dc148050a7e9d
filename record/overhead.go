package record

import (
	"errors"
	"fmt"
	"math"
)

// Types of line in records of "overhead" and other instruments.
const (
	TypeReading Type = "reading"
	TypeSeries  Type = "series"
)

// Roles inside of a sandbox, and roles without processes.
const (
	RoleWorkload   Role = "workload"          // the container's processes, if visible on the host
	RolePause      Role = "pause"             // the pause process of a pod
	RoleSentry     Role = "sentry"            // gVisor's kernel, including the address spaces of its processes
	RoleGofer      Role = "gofer"             // gVisor's file server
	RoleRuntime    Role = "runtime"           // running command of a runtime or engine: runc exec, podman exec
	RoleVCPU       Role = "vcpu"              // vCPU threads: CPU time only, the memory belongs to the VMM
	RoleUnseen     Role = "unseen"            // memory charged to a sandbox's cgroups, but not used by any of its processes
	RoleKernel     Role = "kernel"            // slab, stacks, page tables, sockets
	RoleKernelNode Role = "kernel, uncharged" // kernel memory of the node that is not charged to any sandbox's cgroup
	RoleCache      Role = "cache"             // page cache, reclaimable under memory pressure
	RoleOthers     Role = "others"            // all other processes on the node, including tare
)

// Moment is the time of a reading within a visit.
type Moment string

// Moments of a visit: before the first sandbox, at the beginning and the end of every phase while
// its load runs, and after the removal of all sandboxes.
const (
	MomentBefore Moment = "before"
	MomentBegin  Moment = "begin"
	MomentEnd    Moment = "end"
	MomentAfter  Moment = "after"
)

// Reading is the state of a target and of the node at one moment of a visit. A visit is one round
// of one target.
type Reading struct {
	Type       Type        `json:"type"`
	Time       int64       `json:"time"`           // ns, when the node was read; cgroups and processes are read immediately after
	Took       int64       `json:"took" is:"span"` // duration of the reading, ns
	Round      int         `json:"round" is:"round"`
	Order      int         `json:"order"`
	Target     string      `json:"target" is:"needed,safe"`
	Phase      string      `json:"phase" is:"label,safe"`                         // as in the plan: "idle", "10M", "hold 64MiB", "spin 0.5cpu"; "" before and after
	Sandboxes  int         `json:"sandboxes" is:"max=10000"`                      // number of running sandboxes
	Moment     Moment      `json:"moment" is:"needed,one=before|begin|end|after"` //
	Settled    bool        `json:"settled"`                                       // false: memory usage was still changing
	Work       *Work       `json:"work,omitempty"`                                // load in the sandboxes, at the end of a phase with a load
	Host       Host        `json:"host"`                                          // the whole node
	Groups     []Group     `json:"groups" is:"max=65536"`                         // all cgroups that processes or threads of the target are charged to
	Processes  []Process   `json:"processes" is:"max=65536"`                      // processes of the target: in its sandboxes, their helpers, its daemons
	Engine     []Statistic `json:"engine,omitempty" is:"max=65536"`               // figures reported by the engine
	Pods       []Pod       `json:"pods,omitempty" is:"max=65536"`                 // states of the pods as reported by their cluster
	Problems   Problems    `json:"problems"`                                      // read failures
	Around     []Group     `json:"around,omitempty" is:"max=65536"`               // parents of the sandboxes' cgroups, such as /kata_overhead, even without sandboxes
	Left       []string    `json:"left,omitempty" is:"kind=path"`                 // "after" only: remaining cgroups of the target's sandboxes
	LeftBeside *LeftBeside `json:"left_beside,omitempty"`                         // "after" only: other remains; nil: not checked
	Failure    *Failure    `json:"failure,omitempty"`                             // reason why the phase has no figures
}

// LeftBeside lists remaining processes and mounts that contain the id of a removed sandbox.
type LeftBeside struct {
	Processes []string `json:"processes" is:"kind=program"`    // helper processes, such as shims: "containerd-shim (4711)"
	Mounts    []string `json:"mounts,omitzero" is:"kind=path"` // in the mount namespaces of tare and the daemons; nil: a namespace was unreadable
}

// Work is the load in the sandboxes during a phase.
type Work struct {
	Command string  `json:"command" is:"kind=command"`             // as run in each sandbox, ready to paste
	Hold    int64   `json:"hold,omitempty" is:"bytes"`             // requested bytes per sandbox
	Spin    float64 `json:"spin,omitempty" is:"cpus"`              // requested CPUs per sandbox
	Spun    float64 `json:"spun,omitempty" is:"cpus"`              // average CPUs used as reported by each sandbox: less than Spin under contention
	Begun   int64   `json:"begun"`                                 // start of the first one, ns
	Ended   int64   `json:"ended,omitempty" is:"zero,after=begun"` // end of the last one, ns; 0 if the load ran during the reading
	Version string  `json:"version,omitempty" is:"safe"`           // version of a program other than the probe
	Answers int64   `json:"answers,omitempty" is:"loads"`          // responses of all workloads to their clients
	Errors  int64   `json:"errors,omitempty" is:"loads"`           // client requests without a 2xx response
	QPS     float64 `json:"qps,omitempty" is:"rate"`               // responses per second: sum over all clients of their individual rates
	CPU     int64   `json:"cpu,omitempty"`                         // CPU time of ended commands on the host, which lacks a cgroup for them, ns
}

// Host contains the node's memory and counters at one moment. Memory is in bytes, from
// /proc/meminfo. Free includes the pages on the per-CPU lists (/proc/zoneinfo). MemFree excludes
// them, and they can be hundreds of megabytes.
type Host struct {
	Total       int64   `json:"total" is:"bytes"`
	Free        int64   `json:"free" is:"bytes"`
	Listed      int64   `json:"listed" is:"bytes"` // part of Free on the per-CPU lists
	Available   int64   `json:"available" is:"bytes"`
	Buffers     int64   `json:"buffers" is:"bytes"`
	Cached      int64   `json:"cached" is:"bytes"` // including Shmem
	SwapCached  int64   `json:"swap_cached" is:"bytes"`
	Shmem       int64   `json:"shmem" is:"bytes"`
	Anon        int64   `json:"anon" is:"bytes"`
	Slab        int64   `json:"slab" is:"bytes"`
	Stacks      int64   `json:"stacks" is:"bytes"`
	PageTables  int64   `json:"page_tables" is:"bytes"` // including SecPageTables
	Percpu      int64   `json:"percpu" is:"bytes"`
	Huge        int64   `json:"huge" is:"bytes"`                // hugetlb pages in use
	HugeFree    int64   `json:"huge_free,omitempty" is:"bytes"` // unused hugetlb pages; Free excludes them
	SwapUsed    int64   `json:"swap_used" is:"bytes"`
	Busy        int64   `json:"busy"`    // busy time of all CPUs since boot, ns, with a resolution of 10 ms
	Steal       int64   `json:"steal"`   // ns
	IOWait      int64   `json:"io_wait"` // ns
	Load1       float64 `json:"load1"`
	HavePSI     bool    `json:"have_psi"`
	PSICPU      int64   `json:"psi_cpu"` // time since boot in which some task waited, ns
	PSIMemory   int64   `json:"psi_memory"`
	PSIIO       int64   `json:"psi_io"`
	ReadBytes   int64   `json:"read_bytes"` // total of all whole disks since boot
	WriteBytes  int64   `json:"write_bytes"`
	Others      int64   `json:"others" is:"bytes"` // anonymous memory (RssAnon) of all processes outside of the target
	OthersCount int     `json:"others_count" is:"processes"`
	Related     *int    `json:"related,omitempty" is:"processes"`   // number of other processes that share something with a sandbox; nil: not checked
	Tasks       int64   `json:"tasks,omitempty" is:"processes"`     // number of tasks on the node, including threads and kernel threads
	MaxTasks    int64   `json:"max_tasks,omitempty" is:"processes"` // the smaller of kernel.pid_max and kernel.threads-max
	OOMKills    *int64  `json:"oom_kills,omitempty"`                // processes killed by the kernel since boot for lack of memory, in a cgroup or the node; nil: unknown
	Refreshed   bool    `json:"refreshed,omitempty"`                // the per-CPU counters were folded (vm.stat_refresh) just before the reading
}

// Charge is the relation of a cgroup to sandboxes.
type Charge string

// Values of Charge.
const (
	ChargePod      Charge = "pod"      // the requested cgroup, or a descendant
	ChargeOverhead Charge = "overhead" // another cgroup of a single sandbox: /kata_overhead/ID
	ChargeShared   Charge = "shared"   // a cgroup that includes other processes: the daemon's service, the root
)

// Group is a cgroup: the same path in every hierarchy that contains it. Figures include its
// descendants. A Nested group has an ancestor in the list; skip it when adding up.
type Group struct {
	Path        string       `json:"path" is:"id,needed,rooted,path"`
	Charge      Charge       `json:"charge" is:"needed,name"`
	Lane        int          `json:"lane" is:"lane,unknown"` // lane of the sandbox; -1 if several sandboxes share the cgroup
	Nested      bool         `json:"nested,omitempty"`
	Controllers []string     `json:"controllers" is:"max=100,safe"` // controllers that were read: "memory", "cpuacct", "cpu", "blkio", "io", "pids"
	Memory      *GroupMemory `json:"memory,omitempty"`              // nil: no memory controller
	CPU         *int64       `json:"cpu,omitempty"`                 // ns since its creation; nil: no CPU accounting
	Throttled   int64        `json:"throttled,omitempty"`           // throttled time, ns
	ReadBytes   int64        `json:"read_bytes,omitempty"`
	WriteBytes  int64        `json:"write_bytes,omitempty"`
	Pids        int64        `json:"pids,omitempty"`
}

// GroupMemory is the memory charged to a group, in bytes.
type GroupMemory struct {
	Usage        int64 `json:"usage" is:"bytes"` // memory.usage_in_bytes, memory.current
	Peak         int64 `json:"peak,omitempty" is:"bytes"`
	Limit        int64 `json:"limit,omitempty" is:"bytes"` // lowest limit of the group and its ancestors; 0: none
	Anon         int64 `json:"anon" is:"bytes"`            // v1: total_rss, which includes huge pages
	File         int64 `json:"file" is:"bytes"`            // page cache without shmem
	Mapped       int64 `json:"mapped" is:"bytes"`          // mapped part of File and Shmem
	Shmem        int64 `json:"shmem" is:"bytes"`           // tmpfs, memfd, shared memory
	Kernel       int64 `json:"kernel" is:"bytes"`          // v1: memory.kmem.usage_in_bytes; v2: kernel, else the sum of its parts
	Slab         int64 `json:"slab,omitempty" is:"bytes"`
	Stacks       int64 `json:"stacks,omitempty" is:"bytes"`
	PageTables   int64 `json:"page_tables,omitempty" is:"bytes"`
	Percpu       int64 `json:"percpu,omitempty" is:"bytes"`
	Sock         int64 `json:"sock,omitempty" is:"bytes"` // v1: memory.kmem.tcp.usage_in_bytes
	Swap         int64 `json:"swap,omitempty" is:"bytes"`
	InactiveFile int64 `json:"inactive_file" is:"bytes"` // engines subtract this from usage
}

// Process is a process of a target.
type Process struct {
	Pid        int          `json:"pid" is:"id,min=1,processes"`
	Start      uint64       `json:"start" is:"id"` // clock ticks since boot; together with the pid it identifies the process
	PPid       int          `json:"ppid" is:"processes"`
	Name       string       `json:"name" is:"name,kind=program"` // kernel's name, truncated to 15 characters
	Role       Role         `json:"role" is:"needed,name"`
	Rule       string       `json:"rule" is:"rule"`         // rule that determined the role
	Lane       int          `json:"lane" is:"lane,unknown"` // lane of the sandbox; -1 for a daemon
	Threads    int          `json:"threads" is:"processes"`
	Groups     []Membership `json:"groups" is:"total=131072"` // sets of cgroups of its threads; the first one is the set of the process
	CPU        int64        `json:"cpu"`                      // ns since its start, all threads
	VCPU       int64        `json:"vcpu,omitempty"`           // part of CPU used by vCPU threads
	Waited     int64        `json:"waited,omitempty"`         // CPU time of children it waited for, ns; CPU excludes it
	Ended      bool         `json:"ended,omitempty"`          // the process is a zombie
	RSS        int64        `json:"rss" is:"bytes"`
	Read       bool         `json:"read"` // false: smaps_rollup was unreadable, so PSS is unknown
	PSSAnon    int64        `json:"pss_anon" is:"bytes"`
	PSSFile    int64        `json:"pss_file" is:"bytes"`
	PSSShmem   int64        `json:"pss_shmem" is:"bytes"`
	Swap       int64        `json:"swap,omitempty" is:"bytes"`
	Huge       int64        `json:"huge,omitempty" is:"bytes"` // hugetlb pages, private and shared
	PageTables int64        `json:"page_tables" is:"bytes"`    // VmPTE
}

// Membership is a set of cgroups and the threads in it.
type Membership struct {
	Paths   map[string]string `json:"paths" is:"max=100,keys=name,path,safekeys"`         // controller → path; "" → the v2 hierarchy
	Threads []int             `json:"threads,omitempty" is:"max=4194304,min=1,processes"` // empty: all threads
	Names   []string          `json:"names,omitempty" is:"max=4194304,name,kind=program"` // names of Threads, in the same order
}

// Statistic contains the figures that an engine reports for one sandbox.
type Statistic struct {
	Lane   int      `json:"lane" is:"lane"`
	Time   int64    `json:"time,omitempty"`                // ns: time of the data if known, else of the response
	Source string   `json:"source" is:"needed,label,safe"` // "docker stats", "ctr task metrics", "crictl stats", …
	Memory int64    `json:"memory" is:"bytes,unknown"`     // bytes; -1: not reported
	CPU    int64    `json:"cpu" is:"unknown"`              // ns since the start of the sandbox; -1: not reported
	Rate   *float64 `json:"rate,omitempty" is:"cpus"`      // average CPUs, from a source that does not report CPU; nil: not reported
}

// Pod is the state of a pod as reported by its cluster.
type Pod struct {
	Lane      int  `json:"lane" is:"lane"`
	Restarts  int  `json:"restarts,omitempty"`   // restarts of its containers
	OOMKilled int  `json:"oom_killed,omitempty"` // number of containers whose last exit was an OOM kill
	Evicted   bool `json:"evicted,omitempty"`    // evicted by the kubelet
}

// Problems counts read failures. The figures lack the data that could not be read.
type Problems struct {
	Gone      int      `json:"gone,omitempty"`                  // cgroups and processes that disappeared during the reading
	Reused    int      `json:"reused,omitempty"`                // pids that were reused by another process
	Denied    int      `json:"denied,omitempty"`                // files without read permission, such as smaps_rollup
	Backwards int      `json:"backwards,omitempty"`             // counters that decreased
	Broken    int      `json:"broken,omitempty"`                // malformed files
	Examples  []string `json:"examples,omitempty" is:"max=100"` // first few error texts
}

// Series contains samples at a fixed interval, within one phase.
type Series struct {
	Type      Type               `json:"type"`
	Round     int                `json:"round" is:"round"`
	Target    string             `json:"target" is:"needed,safe"`
	Phase     string             `json:"phase" is:"needed,label,safe"`
	Sandboxes int                `json:"sandboxes" is:"max=10000"`
	Interval  int64              `json:"interval" is:"min=1,span"`                                // ns
	Missed    int                `json:"missed"`                                                  // ticks without a sample
	OwnCPU    int64              `json:"own_cpu"`                                                 // CPU time of the sampler, ns
	Times     []int64            `json:"times" is:"max=1048576"`                                  // ns of CLOCK_MONOTONIC, ascending
	Values    map[string][]int64 `json:"values" is:"max=64,each=1048576,keys=label,any,safekeys"` // by name, see below; as long as Times; -1: unknown
	Problems  Problems           `json:"problems"`
}

// Names of series. Memory is in bytes; the others are counters.
const (
	SeriesPodMemory      = "pod_memory"      // memory charged to the pod cgroups of the sandboxes
	SeriesOverheadMemory = "overhead_memory" // memory charged to the overhead cgroups of the sandboxes
	SeriesPodCPU         = "pod_cpu"         // ns
	SeriesOverheadCPU    = "overhead_cpu"    // ns
	SeriesDaemonCPU      = "daemon_cpu"      // ns
	SeriesNodeUsed       = "node_used"       // Total − Free − page cache, see Host.Used
	SeriesNodeAvailable  = "node_available"
	SeriesNodeCache      = "node_cache"
	SeriesNodeBusy       = "node_busy" // ns
	SeriesNodeRead       = "node_read_bytes"
	SeriesNodeWrite      = "node_write_bytes"
	SeriesNodeLoad       = "node_load1000" // load1 × 1000
)

// Used returns the node's used memory without page cache: anonymous, shared and kernel memory. A
// node can run out of this memory, because it is not reclaimable like page cache.
func (h *Host) Used() int64 { return h.Total - h.Free - h.HugeFree - h.Cache() }

// Cache returns the node's page cache without shmem and tmpfs.
func (h *Host) Cache() int64 { return h.Cached + h.Buffers - h.Shmem }

// Kernel returns the kernel memory of the node, as far as the kernel reports it by kind.
func (h *Host) Kernel() int64 { return h.Slab + h.Stacks + h.PageTables + h.Percpu }

// Check implements Checker.
func (r *Reading) Check() error {
	switch {
	case (len(r.Left) > 0 || r.LeftBeside != nil) && r.Moment != MomentAfter:
		return fmt.Errorf("remaining cgroups, processes or mounts at the moment %q: only %q can have them", r.Moment, MomentAfter)
	case r.Host.Total == 0 && r.Failure == nil:
		return errors.New("host.total is 0, and no failure that would explain it")
	case r.Phase == "" && (r.Moment == MomentBegin || r.Moment == MomentEnd):
		return fmt.Errorf("the %s of a phase without a name", r.Moment)
	}
	return nil
}

// Check implements Checker.
func (h *Host) Check() error {
	if h.Listed > h.Free {
		return fmt.Errorf("listed %d is above free %d, which it is part of", h.Listed, h.Free)
	}
	return nil
}

// Check implements Checker.
func (m *Membership) Check() error {
	if len(m.Names) > 0 && len(m.Names) != len(m.Threads) {
		return fmt.Errorf("%d names of %d threads", len(m.Names), len(m.Threads))
	}
	return nil
}

// Check implements Checker. Counters may decrease: in a recreated cgroup they restart at 0.
func (s *Series) Check() error {
	for i, t := range s.Times {
		if i > 0 && t <= s.Times[i-1] {
			return fmt.Errorf("tick %d at %d is not after the one before it at %d", i, t, s.Times[i-1])
		}
	}
	for name, values := range s.Values {
		if len(values) != len(s.Times) {
			return fmt.Errorf("series %.40q has %d values at %d times", name, len(values), len(s.Times))
		}
		most := int64(math.MaxInt64)
		switch name {
		case SeriesPodMemory, SeriesOverheadMemory, SeriesNodeUsed, SeriesNodeAvailable, SeriesNodeCache:
			most = maxBytes
		}
		one := bound{unknown: true, most: most}
		for i, v := range values {
			if err := one.number(v); err != nil {
				return fmt.Errorf("series %.40q at tick %d %w", name, i, err)
			}
		}
	}
	return nil
}
