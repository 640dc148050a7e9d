package top

import (
	"io"
	"time"

	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/record"
)

// view is what is there at one moment, and the object that --format json prints.
// Memory is in bytes, CPU in CPUs (1 is one of them all the time), over the
// interval since the moment before.
type view struct {
	Schema    int             `json:"schema"`
	Time      time.Time       `json:"time"`
	Interval  float64         `json:"interval"` // s since the view before; 0: there was none
	Node      node            `json:"node"`
	Own       Own             `json:"own"`
	Count     int             `json:"count"` // of sandboxes, shown or not
	Sum       Figures         `json:"sum"`   // of all of them
	Sandboxes []Sandbox       `json:"sandboxes"`
	Problems  record.Problems `json:"problems"`

	unprivileged bool // not read as root
}

// schemaVersion is of the JSON object: names are added, never changed, within one.
const schemaVersion = 1

// node is the whole machine.
type node struct {
	CPUs      int   `json:"cpus"`
	Total     Maybe `json:"memory_total"`
	Used      Maybe `json:"memory_used"` // without page cache
	Available Maybe `json:"memory_available"`
	Cache     Maybe `json:"cache"`
	CPU       Maybe `json:"cpu"`   // busy CPUs
	Steal     Maybe `json:"steal"` // CPUs that a hypervisor took
	Load1     Maybe `json:"load1"`
	PSICPU    Maybe `json:"psi_cpu"` // share of the time in which some task waited
	PSIMemory Maybe `json:"psi_memory"`
	PSIIO     Maybe `json:"psi_io"`
	Read      Maybe `json:"read_per_second"` // bytes, of all whole disks
	Write     Maybe `json:"write_per_second"`
}

// Own is what tare top itself uses.
type Own struct {
	CPU    Maybe `json:"cpu"`
	Memory Maybe `json:"memory"` // resident
}

// Figures are those of one sandbox, or of all. What a cgroup is charged for is
// by memory.current and memory.stat (usage_in_bytes of version 1), and holds
// what ended processes left; what is beside is by processes.
type Figures struct {
	CPU        Maybe `json:"cpu"` // of its own cgroups, and beside them
	CPUOutside Maybe `json:"cpu_outside"`
	CPUBeside  Maybe `json:"cpu_beside"`

	Memory        Maybe `json:"memory"`         // charged to its own cgroups, without page cache
	MemoryOutside Maybe `json:"memory_outside"` // of Memory, in other groups than the pod's
	Cache         Maybe `json:"cache"`          // page cache, charged to its own cgroups
	CacheOutside  Maybe `json:"cache_outside"`
	BesideRSS     Maybe `json:"beside_rss"` // of its processes whose memory is charged to groups of others
	BesidePSS     Maybe `json:"beside_pss"`

	Read      Maybe `json:"read_per_second"` // bytes, as its own cgroups account for them
	Write     Maybe `json:"write_per_second"`
	Processes int   `json:"processes"`
}

// beside is the memory of processes beside: PSS where it was read.
func (f *Figures) beside() Maybe {
	if f.BesidePSS.OK {
		return f.BesidePSS
	}
	return f.BesideRSS
}

func (f *Figures) overhead() Maybe { return plus(f.MemoryOutside, f.beside()) }
func (f *Figures) io() Maybe       { return plus(f.Read, f.Write) }

// Sandbox is a container, or a pod with its containers.
type Sandbox struct {
	Name      string   `json:"name"`
	Engine    string   `json:"engine"`    // docker, podman, containerd, cri-o, isula, kubernetes, oci; "" where only Isolation is known
	Isolation string   `json:"isolation"` // "kata", "gvisor", "vm" (another VMM) or ""
	Rule      string   `json:"rule"`      // the fact that told the engine
	Pod       string   `json:"pod"`       // the pod's id, "" for a container alone
	IDs       []string `json:"ids"`
	Figures
	Limit  Maybe   `json:"limit"` // bytes, of the pod's own group; null: none, or not read
	Full   Maybe   `json:"full"`  // memory of the pod's own group, without page cache, of Limit
	Groups []Group `json:"groups"`
	Roles  []Role  `json:"roles"` // where they were asked for

	key  string
	text string // what a filter searches, in lower case
}

// engine names both.
func (s *Sandbox) engine() string {
	switch {
	case s.Engine == "":
		return s.Isolation
	case s.Isolation == "":
		return s.Engine
	}
	return s.Engine + "/" + s.Isolation
}

// Group is a cgroup that a sandbox's processes are charged to.
type Group struct {
	Path   string        `json:"path"`
	Charge record.Charge `json:"charge"`
	Nested bool          `json:"nested"` // it is in the figures of another of the list
	CPU    Maybe         `json:"cpu"`
	Memory Maybe         `json:"memory"` // without page cache
	Cache  Maybe         `json:"cache"`
}

// Role is what a sandbox's processes of one role use.
type Role struct {
	Role      record.Role `json:"role"`
	CPU       Maybe       `json:"cpu"` // that of vCPUs is not in that of their VMM
	RSS       Maybe       `json:"rss"` // null for vCPUs, whose memory is the VMM's
	PSS       Maybe       `json:"pss"`
	Processes []Process   `json:"processes"`
}

// Process is one process of a role, or for vCPUs the threads of it.
type Process struct {
	Pid     int                 `json:"pid"`
	Start   uint64              `json:"start"` // clock ticks since boot
	PPid    int                 `json:"ppid"`
	Name    string              `json:"name"` // as the kernel has it, cut to 15 characters
	Rule    string              `json:"rule"` // the fact that decided the role
	Threads []int               `json:"threads,omitempty"`
	Beside  bool                `json:"beside"` // its memory is charged to a group of others
	CPU     Maybe               `json:"cpu"`
	RSS     Maybe               `json:"rss"`
	PSS     Maybe               `json:"pss"`
	Groups  []record.Membership `json:"groups"` // the sets of cgroups that its threads are in, by controller
}

// writeJSON prints the selected sandboxes and all else as one object, indented or
// on one line. Foreign text is as it was; what a terminal would act on is written
// as "\u001b" (bytes that are not UTF-8 are U+FFFD).
func (v *view) writeJSON(w io.Writer, sel *Selection, indented bool) error {
	out := *v
	out.Sandboxes = sel.of(v.Sandboxes)
	for i := range out.Sandboxes {
		if out.Sandboxes[i].Roles == nil {
			out.Sandboxes[i].Roles = []Role{}
		}
	}
	return term.WriteJSON(w, &out, indented)
}
