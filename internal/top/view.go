package top

import (
	"io"
	"time"

	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/record"
)

// view is the state at one moment, and the object that --format json prints. Memory is in
// bytes. CPU is in CPUs over the interval since the last view.
type view struct {
	Schema    int             `json:"schema"`
	Time      time.Time       `json:"time"`
	Interval  float64         `json:"interval"` // s since the last view; 0: none
	Node      node            `json:"node"`
	Own       Own             `json:"own"`
	Count     int             `json:"count"` // of sandboxes, shown or not
	Sum       Figures         `json:"sum"`   // of all sandboxes
	Sandboxes []Sandbox       `json:"sandboxes"`
	Problems  record.Problems `json:"problems"`

	unprivileged bool // read without root
}

// schemaVersion is the version of the JSON object. Within a version names are only added.
const schemaVersion = 1

// node is the whole machine.
type node struct {
	CPUs      int   `json:"cpus"`
	Total     Maybe `json:"memory_total"`
	Used      Maybe `json:"memory_used"` // without page cache
	Available Maybe `json:"memory_available"`
	Cache     Maybe `json:"cache"`
	CPU       Maybe `json:"cpu"`   // busy CPUs
	Steal     Maybe `json:"steal"` // CPUs taken by the hypervisor
	Load1     Maybe `json:"load1"`
	PSICPU    Maybe `json:"psi_cpu"` // share of the time in which some task waited
	PSIMemory Maybe `json:"psi_memory"`
	PSIIO     Maybe `json:"psi_io"`
	Read      Maybe `json:"read_per_second"` // bytes, of all whole disks
	Write     Maybe `json:"write_per_second"`
}

// Own is the usage of tare top.
type Own struct {
	CPU    Maybe `json:"cpu"`
	Memory Maybe `json:"memory"` // resident
}

// Figures are the figures of one sandbox, or of all. Figures of cgroups come from
// memory.current and memory.stat (usage_in_bytes of v1), and include charges of ended
// processes. Figures of processes charged to shared groups come from the processes
// themselves.
type Figures struct {
	CPU        Maybe `json:"cpu"` // of its cgroups and of processes charged to shared groups
	CPUOutside Maybe `json:"cpu_outside"`
	CPUBeside  Maybe `json:"cpu_beside"`

	Memory        Maybe `json:"memory"`         // charged to its cgroups, without page cache
	MemoryOutside Maybe `json:"memory_outside"` // the part of Memory outside of the pod's group
	Cache         Maybe `json:"cache"`          // page cache charged to its cgroups
	CacheOutside  Maybe `json:"cache_outside"`
	BesideRSS     Maybe `json:"beside_rss"` // of its processes with memory charged to shared groups
	BesidePSS     Maybe `json:"beside_pss"`

	Read      Maybe `json:"read_per_second"` // bytes, by its cgroups
	Write     Maybe `json:"write_per_second"`
	Processes int   `json:"processes"`
}

// beside returns the memory of processes charged to shared groups: PSS if it was read.
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
	Engine    string   `json:"engine"`    // docker, podman, containerd, cri-o, isula, kubernetes, oci; "" if only Isolation is known
	Isolation string   `json:"isolation"` // "kata", "gvisor", "vm" (another VMM) or ""
	Rule      string   `json:"rule"`      // fact that identified the engine
	Pod       string   `json:"pod"`       // the pod's id, "" for a single container
	IDs       []string `json:"ids"`
	Figures
	Limit  Maybe   `json:"limit"` // bytes, of the pod's group; null: none, or unknown
	Full   Maybe   `json:"full"`  // memory of the pod's group without page cache, as a share of Limit
	Groups []Group `json:"groups"`
	Roles  []Role  `json:"roles"` // if expanded

	key  string
	text string // for filters, in lower case
}

// engine returns the engine and the isolation.
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
	Nested bool          `json:"nested"` // included in another listed group
	CPU    Maybe         `json:"cpu"`
	Memory Maybe         `json:"memory"` // without page cache
	Cache  Maybe         `json:"cache"`
}

// Role is the usage of a sandbox's processes of one role.
type Role struct {
	Role      record.Role `json:"role"`
	CPU       Maybe       `json:"cpu"` // of a VMM without its vCPUs
	RSS       Maybe       `json:"rss"` // null for vCPUs; the VMM has the memory
	PSS       Maybe       `json:"pss"`
	Processes []Process   `json:"processes"`
}

// Process is one process of a role, or the vCPU threads of a process.
type Process struct {
	Pid     int                 `json:"pid"`
	Start   uint64              `json:"start"` // clock ticks since boot
	PPid    int                 `json:"ppid"`
	Name    string              `json:"name"` // the kernel's name, cut to 15 characters
	Rule    string              `json:"rule"` // fact that decided the role
	Threads []int               `json:"threads,omitempty"`
	Beside  bool                `json:"beside"` // its memory is charged to a shared group
	CPU     Maybe               `json:"cpu"`
	RSS     Maybe               `json:"rss"`
	PSS     Maybe               `json:"pss"`
	Groups  []record.Membership `json:"groups"` // the sets of cgroups of its threads, by controller
}

// writeJSON prints the view with the selected sandboxes as one object, indented or on one line.
// Control characters are escaped as "\u001b"; invalid UTF-8 becomes U+FFFD.
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
