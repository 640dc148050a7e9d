package record

import (
	"errors"
	"fmt"
	"math"
)

// The types of line that a record of "overhead" holds besides those that all
// records have.
const (
	TypeReading Type = "reading"
	TypeSeries  Type = "series"
)

// More roles than those of a target's own processes: what stands inside a
// sandbox, what a sandbox itself is, and what no process has.
const (
	RoleWorkload   Role = "workload"          // the container's own processes, where the host sees them
	RolePause      Role = "pause"             // the process that holds a pod
	RoleSentry     Role = "sentry"            // gVisor's kernel, and the address spaces of what it runs
	RoleGofer      Role = "gofer"             // gVisor's file server
	RoleRuntime    Role = "runtime"           // a runtime's or engine's command that has not ended: runc exec, podman exec
	RoleVCPU       Role = "vcpu"              // threads of a VMM that run the guest: CPU time only, their memory is the VMM's
	RoleUnseen     Role = "unseen"            // memory that a sandbox's own cgroups are charged for and none of its processes has
	RoleKernel     Role = "kernel"            // slab, stacks, page tables, sockets
	RoleKernelNode Role = "kernel, uncharged" // kernel memory of the node that no cgroup of a sandbox is charged for
	RoleCache      Role = "cache"             // page cache: gives way under pressure
	RoleOthers     Role = "others"            // every other process of the node, tare among them
)

// Moment says when within a visit a reading was taken.
type Moment string

// The moments of a visit: before any sandbox of the target is there; then, for
// every phase, at its begin (what it starts from) and at its end (while its load
// still stands); and after all sandboxes were removed.
const (
	MomentBefore Moment = "before"
	MomentBegin  Moment = "begin"
	MomentEnd    Moment = "end"
	MomentAfter  Moment = "after"
)

// Reading is everything that was read of a target and of the node at one moment
// of a visit. A visit is one round on one target.
type Reading struct {
	Type       Type        `json:"type"`
	Time       int64       `json:"time"`           // ns, when the node was read; groups and processes follow at once
	Took       int64       `json:"took" is:"span"` // ns until all of it was read
	Round      int         `json:"round" is:"round"`
	Order      int         `json:"order"`
	Target     string      `json:"target" is:"needed,safe"`
	Phase      string      `json:"phase" is:"label,safe"`                         // as the plan names it: "idle", "10M", "hold 64MiB", "spin 0.5cpu"; "" before and after
	Sandboxes  int         `json:"sandboxes" is:"max=10000"`                      // that were there
	Moment     Moment      `json:"moment" is:"needed,one=before|begin|end|after"` //
	Settled    bool        `json:"settled"`                                       // false: the node was still changing when it was read
	Work       *Work       `json:"work,omitempty"`                                // what was run inside; at the end of a phase with one
	Host       Host        `json:"host"`                                          // the whole node
	Groups     []Group     `json:"groups" is:"max=65536"`                         // every cgroup that a process or thread of the target is charged to
	Processes  []Process   `json:"processes" is:"max=65536"`                      // of the target: in its sandboxes, beside them, its daemons
	Engine     []Statistic `json:"engine,omitempty" is:"max=65536"`               // what the engine itself reports
	Pods       []Pod       `json:"pods,omitempty" is:"max=65536"`                 // what became of the sandboxes, by a cluster that looks after them
	Problems   Problems    `json:"problems"`                                      // what could not be read
	Around     []Group     `json:"around,omitempty" is:"max=65536"`               // the cgroups in which the sandboxes' own are made, such as /kata_overhead, with or without a sandbox in them
	Left       []string    `json:"left,omitempty" is:"kind=path"`                 // "after" only: cgroups of the target's sandboxes that are still there
	LeftBeside *LeftBeside `json:"left_beside,omitempty"`                         // likewise beside them; nil: not looked for
	Failure    *Failure    `json:"failure,omitempty"`                             // why the phase gives no figures
}

// LeftBeside is what still bears the id of a sandbox that was removed.
type LeftBeside struct {
	Processes []string `json:"processes" is:"kind=program"`    // beside sandboxes, such as shims: "containerd-shim (4711)"
	Mounts    []string `json:"mounts,omitzero" is:"kind=path"` // in tare's mount namespace and the daemons'; nil: one of them could not be read
}

// Work is what ran inside the sandboxes in a phase.
type Work struct {
	Command string  `json:"command" is:"kind=command"`             // as it was run in each sandbox, pasteable
	Hold    int64   `json:"hold,omitempty" is:"bytes"`             // bytes that each sandbox was told to hold
	Spin    float64 `json:"spin,omitempty" is:"cpus"`              // CPUs that each sandbox was told to use
	Spun    float64 `json:"spun,omitempty" is:"cpus"`              // CPUs that each says it used on average, from its begin to its end: less than Spin where others took them
	Begun   int64   `json:"begun"`                                 // ns, when the first was started
	Ended   int64   `json:"ended,omitempty" is:"zero,after=begun"` // ns, when the last had ended; 0 when the reading was taken while it ran
	Version string  `json:"version,omitempty" is:"safe"`           // of the program, where it is not the probe
	Answers int64   `json:"answers,omitempty" is:"loads"`          // to clients that asked the workloads, all together
	Errors  int64   `json:"errors,omitempty" is:"loads"`           // of the clients' requests: no answer, or one that is no 2xx
	QPS     float64 `json:"qps,omitempty" is:"rate"`               // answers a second of all clients together, each by the time in which it asked
	CPU     int64   `json:"cpu,omitempty"`                         // ns that commands which have ended used, where no cgroup tells: on the host
}

// Host is the node's memory and counters at one moment. Memory is in bytes, from
// /proc/meminfo; Free has the pages on the lists of the CPUs (/proc/zoneinfo)
// added, which MemFree lacks and which can be hundreds of megabytes.
type Host struct {
	Total       int64   `json:"total" is:"bytes"`
	Free        int64   `json:"free" is:"bytes"`
	Listed      int64   `json:"listed" is:"bytes"` // the pages on the lists of the CPUs, in Free
	Available   int64   `json:"available" is:"bytes"`
	Buffers     int64   `json:"buffers" is:"bytes"`
	Cached      int64   `json:"cached" is:"bytes"` // with Shmem in it
	SwapCached  int64   `json:"swap_cached" is:"bytes"`
	Shmem       int64   `json:"shmem" is:"bytes"`
	Anon        int64   `json:"anon" is:"bytes"`
	Slab        int64   `json:"slab" is:"bytes"`
	Stacks      int64   `json:"stacks" is:"bytes"`
	PageTables  int64   `json:"page_tables" is:"bytes"` // and SecPageTables
	Percpu      int64   `json:"percpu" is:"bytes"`
	Huge        int64   `json:"huge" is:"bytes"`                // hugetlb pages in use
	HugeFree    int64   `json:"huge_free,omitempty" is:"bytes"` // hugetlb pages that are kept and that nobody uses; Free lacks them
	SwapUsed    int64   `json:"swap_used" is:"bytes"`
	Busy        int64   `json:"busy"`    // ns of all CPUs since boot, a hundredth of a second exact
	Steal       int64   `json:"steal"`   // ns
	IOWait      int64   `json:"io_wait"` // ns
	Load1       float64 `json:"load1"`
	HavePSI     bool    `json:"have_psi"`
	PSICPU      int64   `json:"psi_cpu"` // ns since boot in which some task waited
	PSIMemory   int64   `json:"psi_memory"`
	PSIIO       int64   `json:"psi_io"`
	ReadBytes   int64   `json:"read_bytes"` // of all whole disks since boot
	WriteBytes  int64   `json:"write_bytes"`
	Others      int64   `json:"others" is:"bytes"` // anonymous memory of all processes that are not the target's, from their RssAnon
	OthersCount int     `json:"others_count" is:"processes"`
	Related     *int    `json:"related,omitempty" is:"processes"`   // of them those that share something with a sandbox; nil: not looked for
	Tasks       int64   `json:"tasks,omitempty" is:"processes"`     // processes and threads of the node, the kernel's too
	MaxTasks    int64   `json:"max_tasks,omitempty" is:"processes"` // how many there can be: the smaller of kernel.pid_max and kernel.threads-max
	OOMKills    *int64  `json:"oom_kills,omitempty"`                // processes that the kernel has killed since boot for want of memory, a cgroup's or the node's; nil: not read
	Refreshed   bool    `json:"refreshed,omitempty"`                // the CPUs' own counters were added up (vm.stat_refresh) just before
}

// Charge tells a group of the sandboxes' own from one they share with others.
type Charge string

// Where the target's processes are charged.
const (
	ChargePod      Charge = "pod"      // the group that was asked for, or one below it
	ChargeOverhead Charge = "overhead" // another group of the sandbox's own: /kata_overhead/ID
	ChargeShared   Charge = "shared"   // a group that holds others too: the daemon's service, the root
)

// Group is one cgroup, the same path in every hierarchy where it is there.
// Figures are those of the group and all below it. A group whose parent is
// listed too is Nested, and is left out of sums.
type Group struct {
	Path        string       `json:"path" is:"id,needed,rooted,path"`
	Charge      Charge       `json:"charge" is:"needed,name"`
	Lane        int          `json:"lane" is:"lane,unknown"` // of its sandbox; -1 for one that several share
	Nested      bool         `json:"nested,omitempty"`
	Controllers []string     `json:"controllers" is:"max=100,safe"` // that were read here: "memory", "cpuacct", "cpu", "blkio", "io", "pids"
	Memory      *GroupMemory `json:"memory,omitempty"`              // nil: no memory controller here
	CPU         *int64       `json:"cpu,omitempty"`                 // ns used since it was made; nil: not accounted here
	Throttled   int64        `json:"throttled,omitempty"`           // ns
	ReadBytes   int64        `json:"read_bytes,omitempty"`
	WriteBytes  int64        `json:"write_bytes,omitempty"`
	Pids        int64        `json:"pids,omitempty"`
}

// GroupMemory is what a group is charged for, in bytes.
type GroupMemory struct {
	Usage        int64 `json:"usage" is:"bytes"` // memory.usage_in_bytes, memory.current
	Peak         int64 `json:"peak,omitempty" is:"bytes"`
	Limit        int64 `json:"limit,omitempty" is:"bytes"` // the lowest of the group and those above; 0: none
	Anon         int64 `json:"anon" is:"bytes"`            // v1: total_rss, which holds huge pages too
	File         int64 `json:"file" is:"bytes"`            // page cache without shmem
	Mapped       int64 `json:"mapped" is:"bytes"`          // of File and Shmem, what processes map
	Shmem        int64 `json:"shmem" is:"bytes"`           // tmpfs, memfd, shared memory
	Kernel       int64 `json:"kernel" is:"bytes"`          // v1: memory.kmem.usage_in_bytes; v2: kernel, else the sum of its parts
	Slab         int64 `json:"slab,omitempty" is:"bytes"`
	Stacks       int64 `json:"stacks,omitempty" is:"bytes"`
	PageTables   int64 `json:"page_tables,omitempty" is:"bytes"`
	Percpu       int64 `json:"percpu,omitempty" is:"bytes"`
	Sock         int64 `json:"sock,omitempty" is:"bytes"` // v1: memory.kmem.tcp.usage_in_bytes
	Swap         int64 `json:"swap,omitempty" is:"bytes"`
	InactiveFile int64 `json:"inactive_file" is:"bytes"` // what engines subtract from usage
}

// Process is one process of a target.
type Process struct {
	Pid        int          `json:"pid" is:"id,min=1,processes"`
	Start      uint64       `json:"start" is:"id"` // clock ticks since boot: tells it from a later one with its pid
	PPid       int          `json:"ppid" is:"processes"`
	Name       string       `json:"name" is:"name,kind=program"` // as the kernel has it, cut to 15 characters
	Role       Role         `json:"role" is:"needed,name"`
	Rule       string       `json:"rule" is:"rule"`         // the fact that decided the role
	Lane       int          `json:"lane" is:"lane,unknown"` // of its sandbox; -1 for a daemon
	Threads    int          `json:"threads" is:"processes"`
	Groups     []Membership `json:"groups" is:"total=131072"` // the sets of cgroups that its threads are in; the first is the process's own
	CPU        int64        `json:"cpu"`                      // ns since it began, of all its threads
	VCPU       int64        `json:"vcpu,omitempty"`           // ns of them in threads that run a guest
	Waited     int64        `json:"waited,omitempty"`         // ns of children that ended and that it waited for, not in CPU
	Ended      bool         `json:"ended,omitempty"`          // it has exited and was not waited for (a zombie)
	RSS        int64        `json:"rss" is:"bytes"`
	Read       bool         `json:"read"` // false: smaps_rollup could not be read, and PSS is unknown
	PSSAnon    int64        `json:"pss_anon" is:"bytes"`
	PSSFile    int64        `json:"pss_file" is:"bytes"`
	PSSShmem   int64        `json:"pss_shmem" is:"bytes"`
	Swap       int64        `json:"swap,omitempty" is:"bytes"`
	Huge       int64        `json:"huge,omitempty" is:"bytes"` // hugetlb pages, private and shared
	PageTables int64        `json:"page_tables" is:"bytes"`    // VmPTE
}

// Membership is one set of cgroups and the threads that are in it.
type Membership struct {
	Paths   map[string]string `json:"paths" is:"max=100,keys=name,path,safekeys"`         // controller → path; "" → the v2 hierarchy
	Threads []int             `json:"threads,omitempty" is:"max=4194304,min=1,processes"` // absent: all
	Names   []string          `json:"names,omitempty" is:"max=4194304,name,kind=program"` // of the threads, in their order
}

// Statistic is what an engine reports of one sandbox.
type Statistic struct {
	Lane   int      `json:"lane" is:"lane"`
	Time   int64    `json:"time,omitempty"`                // ns, of what is reported where that is told, else when the answer was there
	Source string   `json:"source" is:"needed,label,safe"` // "docker stats", "ctr task metrics", "crictl stats", …
	Memory int64    `json:"memory" is:"bytes,unknown"`     // bytes; -1: not reported
	CPU    int64    `json:"cpu" is:"unknown"`              // ns since its start; -1: not reported
	Rate   *float64 `json:"rate,omitempty" is:"cpus"`      // CPUs, of a source that tells an average of its own choice instead; nil: not reported
}

// Pod is what became of a pod since it was made, as its cluster says.
type Pod struct {
	Lane      int  `json:"lane" is:"lane"`
	Restarts  int  `json:"restarts,omitempty"`   // of its containers
	OOMKilled int  `json:"oom_killed,omitempty"` // of its containers, those that last ended for want of memory
	Evicted   bool `json:"evicted,omitempty"`    // by the kubelet, for want of something on the node
}

// Problems count what could not be read and is missing in the figures.
type Problems struct {
	Gone      int      `json:"gone,omitempty"`                  // cgroups and processes that vanished while they were read
	Reused    int      `json:"reused,omitempty"`                // pids that another process had by then
	Denied    int      `json:"denied,omitempty"`                // files that may not be read, such as smaps_rollup
	Backwards int      `json:"backwards,omitempty"`             // counters that went back
	Broken    int      `json:"broken,omitempty"`                // files of an unknown form
	Examples  []string `json:"examples,omitempty" is:"max=100"` // the first few of them, in words
}

// Series is what was sampled within one phase at a fixed cadence.
type Series struct {
	Type      Type               `json:"type"`
	Round     int                `json:"round" is:"round"`
	Target    string             `json:"target" is:"needed,safe"`
	Phase     string             `json:"phase" is:"needed,label,safe"`
	Sandboxes int                `json:"sandboxes" is:"max=10000"`
	Interval  int64              `json:"interval" is:"min=1,span"`                                // ns
	Missed    int                `json:"missed"`                                                  // ticks at which nothing could be read in time
	OwnCPU    int64              `json:"own_cpu"`                                                 // ns that the sampler used
	Times     []int64            `json:"times" is:"max=1048576"`                                  // ns of CLOCK_MONOTONIC, ascending
	Values    map[string][]int64 `json:"values" is:"max=64,each=1048576,keys=label,any,safekeys"` // by the names below, each as long as Times; -1: not read at that tick
	Problems  Problems           `json:"problems"`
}

// The names of series. Memory in bytes, the rest counters.
const (
	SeriesPodMemory      = "pod_memory"      // charged to the sandboxes' pod groups
	SeriesOverheadMemory = "overhead_memory" // charged to their overhead groups
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

// Used is the node's memory that is in use and is no page cache: anonymous,
// shared, the kernel's. It is what a node runs out of.
func (h *Host) Used() int64 { return h.Total - h.Free - h.HugeFree - h.Cache() }

// Cache is the node's page cache, without shmem and tmpfs.
func (h *Host) Cache() int64 { return h.Cached + h.Buffers - h.Shmem }

// Kernel is the node's kernel memory as far as it is accounted by kind.
func (h *Host) Kernel() int64 { return h.Slab + h.Stacks + h.PageTables + h.Percpu }

// Check says whether the reading can be true.
func (r *Reading) Check() error {
	switch {
	case (len(r.Left) > 0 || r.LeftBeside != nil) && r.Moment != MomentAfter:
		return fmt.Errorf("cgroups, processes or mounts were left at the moment %q: only %q can tell", r.Moment, MomentAfter)
	case r.Host.Total == 0 && r.Failure == nil:
		return errors.New("host.total is 0, and no failure that would explain it")
	case r.Phase == "" && (r.Moment == MomentBegin || r.Moment == MomentEnd):
		return fmt.Errorf("the %s of a phase without a name", r.Moment)
	}
	return nil
}

// Check says whether the pages on lists can be among the free ones.
func (h *Host) Check() error {
	if h.Listed > h.Free {
		return fmt.Errorf("listed %d is above free %d, which it is part of", h.Listed, h.Free)
	}
	return nil
}

// Check says whether every name can be a thread's.
func (m *Membership) Check() error {
	if len(m.Names) > 0 && len(m.Names) != len(m.Threads) {
		return fmt.Errorf("%d names of %d threads", len(m.Names), len(m.Threads))
	}
	return nil
}

// Check says whether the series can be true. Counters may go back: a cgroup
// that was made anew begins at 0.
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
