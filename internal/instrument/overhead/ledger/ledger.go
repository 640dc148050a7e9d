// Package ledger accounts for the memory and CPU time of a target. From readings at
// two moments it makes rows by role, by cgroup and by engine report. It compares
// their sum with the change of the node and reports the residual.
//
// It consists of pure functions over [record.Reading]. The rules:
//
//   - A page is counted once. Processes count by PSS, which divides shared pages
//     among the processes that map them. Charges of a cgroup beyond PSS are kept
//     separate by kind.
//   - Page cache is reclaimable and has accounts of its own. Anonymous, shared and
//     kernel memory are not reclaimable.
//   - If sandboxes have their own cgroups, the cgroup's charge decides for kernel
//     memory and for unmapped shared memory. PSS decides which role has the memory.
//     If the two differ, the difference is a row.
//   - The change in all other processes of the node belongs to no role of the
//     target. It is subtracted from the node's change before the residual.
//   - CPU time comes from the clocks of processes, of vCPU threads, or of cgroups.
//     Each row names its source.
package ledger

import (
	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/record"
)

// Memory is an amount of memory by kind, in bytes. Cache is reclaimable; the other
// kinds are not.
type Memory struct {
	Anon, Shmem, Kernel, Swap, Huge int64
	Cache                           int64 // page cache. In rows of processes: PSS of mapped file pages. In the row RoleCache: charged, but not mapped by the target
}

// Sum returns the memory that is not reclaimable: Anon + Shmem + Kernel + Huge.
// Swap is not part of the node's memory.
func (m Memory) Sum() int64 { return m.Anon + m.Shmem + m.Kernel + m.Huge }

// Held returns Sum plus swapped memory, which returns to RAM when it is used. A
// memory limit has to allow for both.
func (m Memory) Held() int64 { return m.Sum() + m.Swap }

// Row is the usage of one role.
type Row struct {
	Role      record.Role
	Processes int
	Memory    Memory  // change from before the sandboxes to the time of the ledger
	CPU       float64 // mean CPUs over the phase; 0 if unknown, never NaN
	CPUKnown  bool
	GuestCPU  bool     // CPU includes the guest's work: its vCPU threads were not distinguishable
	Rules     []string // how the values were obtained, without duplicates
}

// GroupRow is the charge of one kind of cgroup, over all sandboxes.
type GroupRow struct {
	Charge record.Charge
	Paths  []string // the summed groups without nested ones; at most 3, then "…"
	Count  int
	Usage  int64  // bytes
	Memory Memory // the charge by kind
	Limit  int64  // of one group; 0 if unlimited
	// Roles are the roles with a process or thread in these groups.
	Roles []record.Role
	// Over has the other charges as figures: the peak, the highest charge known for the phase,
	// the limit, CPU time if it was read at both ends, and the throttled time.
	Over figure.Set
}

// Ledger is the accounting of one target at the end of one phase of a visit.
type Ledger struct {
	Rows   []Row // in the order of Roles
	Groups []GroupRow
	// Places are the cgroups that the sandboxes' processes are charged to, by role.
	Places []Place
	// Cgroups are all groups, one row for each kind, as systemd-cgtop lists them.
	Cgroups []Cgroup
	// The following are figures by the quantities and labels of the instrument's catalogue.
	// Reconciled compares the charge of own groups with the PSS of their processes. Engine
	// compares what the engine reports with the ledger, without page cache and without the
	// daemon. Host is the load of the node over the phase.
	Reconciled, Engine, Host figure.Set

	Sum         int64  // Memory.Sum of all rows except others, cache and uncharged kernel memory
	Uncharged   int64  // change of the node's kernel memory that is charged to no target
	Node        int64  // change of record.Host.Used since before the sandboxes
	Others      int64  // the part of Node that other processes changed by
	OthersNode  int64  // Others by the node's counters: change of anonymous memory, less the target's; equals Others if they were not read
	Related     int    // other processes that share something with a sandbox; all other processes if not recorded
	Residual    int64  // Node − Others − Uncharged − Sum
	ResidualBy  Memory // the residual by kind, as far as the node's counters have kinds
	Uncertainty int64  // ± bytes, see [Visit.Uncertainty]
	Cache       CacheBooks

	AvailableChange int64

	Problems record.Problems
	Complete bool // false if a part of the target was unreadable, so the sum is too small
}

// othersBound is the difference of Others and OthersNode, in bytes, above which the
// residual is uncertain.
const othersBound = 1 << 20

// OthersUnclear returns the difference of Others and OthersNode, or 0 within
// othersBound. RssAnon counts a page shared by fork in parent and child; the node
// counts it once.
func (l *Ledger) OthersUnclear() int64 {
	if d := l.Others - l.OthersNode; max(d, -d) > othersBound {
		return max(d, -d)
	}
	return 0
}

// Place is the cgroup that the memory of one sandbox role is charged to: the one its
// processes are in now. Memory that a process used before it was moved stays
// charged to the earlier cgroup; Ledger.Reconciled shows that.
type Place struct {
	Role      record.Role
	Charge    record.Charge
	Path      string // of the first such cgroup
	Count     int
	Processes int
	Memory    int64 // bytes, Memory.Sum
}

// CacheBooks is the accounting of the page cache.
type CacheBooks struct {
	Node    int64 // change of record.Host.Cache
	Charged int64 // to the sandboxes' own groups
	Mapped  int64 // PSS of file pages in the target's processes
}

// put appends the value of a quantity.
func put(all *figure.Set, quantity string, v float64, labels ...string) {
	*all = append(*all, figure.Figure{Quantity: quantity, Labels: figure.Of(labels...), Estimate: figure.Exactly(v)})
}

// Visit holds the readings of one round on one target, in chronological order.
type Visit struct {
	Round  int
	Target string
	Before *record.Reading // nil if missing; each of the other readings may be missing, too
	Phases []Phase
	After  *record.Reading
}

// Phase is one phase of a visit.
type Phase struct {
	Name      string
	Sandboxes int
	Begin     *record.Reading
	End       *record.Reading
	Series    *record.Series // nil if missing
	Visit     *Visit

	// Ledger is set by the judgement. Failure is the reason if it is missing.
	Ledger  Ledger
	Failure *record.Failure
}

// Roles is the order of the rows.
var Roles = []record.Role{
	record.RoleWorkload, record.RolePause, record.RoleShim, record.RoleMonitor, record.RoleRuntime,
	record.RoleVMM, record.RoleVCPU, record.RoleVirtiofs, record.RoleSentry, record.RoleGofer,
	record.RoleUnseen, record.RoleDaemon, record.RoleKernel, record.RoleKernelNode, record.RoleCache, record.RoleOthers,
}
