// Package ledger closes the books on memory and CPU time: from what was read of
// a target and of the node at two moments it makes rows by role, by cgroup and by
// what the engine reports, sets their sum against the node's own change, and
// states what is left unexplained.
//
// It is pure functions over [record.Reading]. The rules:
//
//   - A page is counted once. Processes are counted by PSS, so that pages which
//     several map are shared out among them; what a cgroup is charged for beyond
//     that is kept apart by kind.
//   - Page cache gives way under pressure and is closed in books of its own, apart
//     from memory that does not: anonymous, shared, kernel.
//   - Where sandboxes have cgroups of their own, the cgroup's charge is the truth
//     for kernel memory and for shared memory that nobody maps; the processes' view
//     is the truth for who has it. Where the two disagree the difference is a row.
//   - What changed in all other processes of the node is no role of the target's,
//     and is taken off the node's change before the residual is stated.
//   - CPU time comes from processes' own clocks, threads' for vCPUs, and cgroups';
//     a row says which.
package ledger

import "github.com/tare-bench/tare/record"

// Memory is an amount by kind, in bytes. Anon, Shmem, Kernel and Swap do not
// give way; Cache does.
type Memory struct {
	Anon, Shmem, Kernel, Swap, Huge int64
	Cache                           int64 // page cache: of a process the file pages it maps (PSS); of the row cache those charged that nobody of the target maps
}

// Sum is what does not give way under pressure: Anon + Shmem + Kernel + Huge.
// Swap is not in the node's memory.
func (m Memory) Sum() int64 { return m.Anon + m.Shmem + m.Kernel + m.Huge }

// Held is Sum and what of it is swapped out, which comes back when it is used: what a
// limit has to allow for.
func (m Memory) Held() int64 { return m.Sum() + m.Swap }

// Row is what one role has.
type Row struct {
	Role      record.Role
	Processes int
	Memory    Memory  // the change from before the sandboxes to the moment of the ledger
	CPU       float64 // CPUs used on average between the phase's begin and its end; NaN-free, 0 where unknown
	CPUKnown  bool
	GuestCPU  bool     // CPU holds the guest's own work: its vCPU threads could not be told apart
	Rules     []string // the facts that decided, each once
}

// GroupRow is what one kind of cgroup was charged for, over all sandboxes.
type GroupRow struct {
	Charge record.Charge
	Paths  []string // of the groups that are summed, nested ones left out; at most 3 and then "…"
	Count  int
	Usage  int64  // bytes
	Memory Memory // the charge by kind
	Peak   int64
	// Highest is the most that was charged in the phase as far as the groups tell:
	// each one's peak where it rose in the phase, else its usage at the end.
	Highest int64
	Limit   int64   // of one of them, 0: none
	CPU     float64 // CPUs on average over the phase
	// CPUKnown is false where a group's time was not read at both ends.
	CPUKnown  bool
	Throttled int64 // ns in the phase
	// Who is charged here: roles with a process or thread in these groups.
	Roles []record.Role
}

// EngineRow is what the engine itself reports, and the truth beside it.
type EngineRow struct {
	Source   string
	Reported int64   // bytes, sum over the sandboxes; -1: not reported
	Truth    int64   // what the sandboxes' own roles have, page cache left out; the daemon's change is not in it
	CPU      float64 // CPUs, -1: not reported
	CPUTruth float64
}

// Ledger is a target's books at the end of one phase of one visit.
type Ledger struct {
	Rows   []Row // in the order of Roles
	Groups []GroupRow
	Engine []EngineRow
	// Places are where the sandboxes' processes are charged, by role.
	Places []Place
	// Cgroups are all groups one by one, as systemd-cgtop lists them.
	Cgroups []Cgroup
	// Reconcile sets what own groups are charged against what processes in them have.
	Reconcile []Reconcile

	Sum         int64  // of all rows but others, cache and uncharged kernel memory, Memory.Sum
	Uncharged   int64  // change of the node's kernel memory that nobody here is charged for
	Node        int64  // change of record.Host.Used since before the sandboxes
	Others      int64  // of it: the change in all other processes
	OthersNode  int64  // the same as the node has it: its change of anonymous memory less the target's; Others where that was not read
	Related     int    // other processes that share something with a sandbox, all of them where that was not recorded
	Residual    int64  // Node − Others − Uncharged − Sum
	ResidualBy  Memory // the residual as far as the node's books know it by kind; the rest is in no kind
	Uncertainty int64  // ± bytes; see Uncertainty
	Cache       CacheBooks

	NodeCPU         float64 // CPUs busy on average over the phase, all of the node
	NodeIO          IO      // bytes per second over the phase
	NodeSteal       float64 // CPUs taken away by the hypervisor on average over the phase
	NodeIOWait      float64 // CPUs idle on average while I/O was outstanding
	Load1           float64
	Available       int64 // MemAvailable at the end
	AvailableChange int64
	PSI             Pressure

	Problems record.Problems
	Complete bool // false: something of the target could not be read, and the sum is too small
}

// othersBound is how far both figures of what others took may differ, in bytes,
// before the difference makes the residual uncertain.
const othersBound = 1 << 20

// OthersUnclear is how far the two figures of what others took differ, 0 within
// [othersBound]. RssAnon counts a page that a fork shares with its parent once
// for each of them, the node counts it once.
func (l *Ledger) OthersUnclear() int64 {
	if d := l.Others - l.OthersNode; max(d, -d) > othersBound {
		return max(d, -d)
	}
	return 0
}

// Place is where memory of one role of the sandboxes is charged: the cgroup that
// its processes are in now. What a process touched before it was moved there
// stays charged where it was; [Reconcile] shows that.
type Place struct {
	Role      record.Role
	Charge    record.Charge
	Path      string // of the first such cgroup
	Count     int
	Processes int
	Memory    int64 // bytes, Memory.Sum
}

// Reconcile is a cgroup's charge and the processes' view of one kind of memory,
// over all groups of one charge.
type Reconcile struct {
	Charge    record.Charge
	Kind      string // "anon", "shmem"
	Group     int64  // bytes that the groups are charged
	Processes int64  // bytes of PSS of the processes in them
}

// CacheBooks close the page cache.
type CacheBooks struct {
	Node    int64 // change of record.Host.Cache
	Charged int64 // to the sandboxes' own groups
	Mapped  int64 // PSS of file pages in the target's processes
}

// IO is bytes per second of all disks.
type IO struct {
	Read, Write float64
}

// Pressure is the share of the phase in which some task waited, 0 to 1.
type Pressure struct {
	Known           bool
	CPU, Memory, IO float64
}

// Visit is the readings of one round on one target, in the order of time.
type Visit struct {
	Round  int
	Target string
	Before *record.Reading // nil: it is lost, as each of the others may be
	Phases []Phase
	After  *record.Reading
}

// Phase is one phase of a visit.
type Phase struct {
	Name      string
	Sandboxes int
	Begin     *record.Reading
	End       *record.Reading
	Series    *record.Series // nil: not there
}

// Roles is the order of rows.
var Roles = []record.Role{
	record.RoleWorkload, record.RolePause, record.RoleShim, record.RoleMonitor, record.RoleRuntime,
	record.RoleVMM, record.RoleVCPU, record.RoleVirtiofs, record.RoleSentry, record.RoleGofer,
	record.RoleUnseen, record.RoleDaemon, record.RoleKernel, record.RoleKernelNode, record.RoleCache, record.RoleOthers,
}
