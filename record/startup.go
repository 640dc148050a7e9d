package record

import (
	"cmp"
	"fmt"
	"slices"
)

// The types of line that a record of "startup" holds besides those that all
// records have.
const (
	TypeStart Type = "start"
	TypeLogs  Type = "logs"
)

// Start is one start of a container or of a pod: what was seen of it live, or
// what logs or notes tell. All its times are ns on one clock, see Clock; what
// lies between them is for package trace to say.
type Start struct {
	Type   Type   `json:"type"`
	Round  int    `json:"round" is:"round"`                                             // from 0; of logs the start's place in order of time
	Order  int    `json:"order"`                                                        // this target's place in the round's random order
	Target string `json:"target" is:"needed,label,safe"`                                // as in the plan; of logs what they tell of: "kata", "containerd", "cri-o"
	Method string `json:"method" is:"needed,one=bpf|tracefs|connector|none|logs|notes"` // how it was seen, see the Method constants
	Clock  string `json:"clock" is:"needed,one=monotonic|wall|none"`                    // see the Clock constants
	Began  int64  `json:"began"`                                                        // the call was about to be made; of logs the first event
	Wall   int64  `json:"wall,omitempty"`                                               // of a live one: the time of day at Began, ns since 1970; 0: not known, or the clock was set meanwhile
	First  int64  `json:"first,omitempty"`
	// FirstBy is when the workload's first instruction had been executed at the latest,
	// where First is not known: what it said had been read by then.
	FirstBy int64 `json:"first_by,omitempty"`
	// Ended is when the call had returned or the command had exited; of logs when
	// the last container of the start was up. 0: the start has no end.
	Ended      int64          `json:"ended,omitempty" is:"zero,after=began"`
	Ready      int64          `json:"ready,omitempty" is:"zero,after=began"`           // of a live one: it answered as it should when it was asked from outside
	Unready    int64          `json:"unready,omitempty"`                               // when the last poll began that was in vain; 0: there was none, and Ready is the latest that can be
	Polls      int64          `json:"polls,omitempty" is:"max=1000000000"`             // how often it was asked
	Request    int64          `json:"request,omitempty" is:"span"`                     // ns that the request took that had the good answer
	Dropped    string         `json:"dropped,omitempty" is:"one=node"`                 // of a live one: page cache that was dropped before, see [DroppedNode]; "" none
	Command    string         `json:"command,omitempty" is:"command"`                  // what was timed, pasteable
	Name       string         `json:"name,omitempty" is:"label,kind=id"`               // of the pod or container, as the logs have it
	Sandbox    string         `json:"sandbox,omitempty" is:"label,kind=id"`            // the id of the pod, or of the container where there is none
	Containers []string       `json:"containers,omitempty" is:"max=256,label,kind=id"` // ids, in the order of their appearance
	Processes  []StartProcess `json:"processes,omitempty" is:"max=4096"`               // of a live one, in the order of Born
	Busy       []BusyAt       `json:"busy,omitempty" is:"max=16384"`                   // of a live one, in order of time
	Spans      []Span         `json:"spans,omitempty" is:"max=4096"`                   // of logs and notes, in the order of Began
	Gaps       []Gap          `json:"gaps,omitempty" is:"max=256"`                     // of logs: the longest between two events next to each other, the longest first
	Throttled  []Throttled    `json:"throttled,omitempty" is:"max=64"`                 // of a live one: cgroups that their CPU limit held back, by path
	Guests     []GuestClock   `json:"guests,omitempty" is:"max=64"`                    // of logs: the clocks of guests, aligned
	Missing    []Missing      `json:"missing,omitempty" is:"max=64"`                   // evidence that is not there
	Claims     []StartClaim   `json:"claims,omitempty" is:"max=64"`                    // of notes: figures that somebody computed from the others
	Events     int64          `json:"events,omitempty"`                                // lines of logs, or events of the kernel, that it was made of
	Lost       int64          `json:"lost,omitempty"`                                  // events that the kernel could not hand over
	Tracing    int64          `json:"tracing,omitempty"`                               // ns of CPU time that watching took
	Source     string         `json:"source,omitempty" is:"place"`                     // of logs and notes: "kata.log:25"
	Failure    *Failure       `json:"failure,omitempty"`
	Waiting    *Waiting       `json:"waiting,omitempty"` // of logs: where a start stands that has neither ended nor failed
}

// Waiting is where a start without an end stands.
type Waiting struct {
	In     string `json:"in" is:"needed,label"`                   // the call that has not returned: "StartContainer"; else the last milestone
	Since  int64  `json:"since"`                                  // ns, on the start's clock
	Until  int64  `json:"until" is:"after=since"`                 // the last time in the logs: it waits longer than until then
	Stage  string `json:"stage,omitempty" is:"label"`             // at which the engine says that the call stands
	Last   string `json:"last,omitempty" is:"command,kind=text"`  // the last line about it
	Error  string `json:"error,omitempty" is:"command,kind=text"` // the error that was logged after
	Source string `json:"source,omitempty" is:"place"`            // where the call begins
}

// How a start was seen.
const (
	MethodBPF       = "bpf"       // programs on the kernel's tracepoints
	MethodTracefs   = "tracefs"   // the kernel's trace events, as text
	MethodConnector = "connector" // netlink's process connector
	MethodNone      = "none"      // not watched: a round that shows what watching costs
	MethodLogs      = "logs"
	MethodNotes     = "notes" // figures in a text, without events
)

// The clocks of a start.
const (
	ClockMonotonic = "monotonic" // CLOCK_MONOTONIC of the host
	ClockWall      = "wall"      // the host's time of day, ns since 1970
	ClockNone      = "none"      // durations only: the first begins at 0
)

// The kinds of process and span.
const (
	KindClient    = "client"    // the command that was started, and what it called that is nothing else
	KindDaemon    = "daemon"    // of the engine
	KindShim      = "shim"      // containerd-shim-*
	KindMonitor   = "monitor"   // conmon
	KindCall      = "call"      // an OCI runtime's command: create, state, start, …
	KindInit      = "init"      // the runtime inside the container, before the workload
	KindCNI       = "cni"       // a network plugin
	KindHelper    = "helper"    // newuidmap, iptables, pinns, fuse-overlayfs, …
	KindVMM       = "vmm"       // qemu, cloud-hypervisor, firecracker, and gVisor's sentry
	KindVirtiofsd = "virtiofsd" // file servers of a sandbox: virtiofsd, gVisor's gofer
	KindWorkload  = "workload"
	KindOther     = "other"
	KindEngine    = "engine" // of spans only: time that belongs to the engine, none of the others being there
	KindPhase     = "phase"  // of spans only: between two milestones of a log
	KindGuest     = "guest"  // of spans only: inside a VM, on its aligned clock
)

// StartProcess is one program that ran during a start: from a fork, or from the exec
// that made it of another, to its exit or to the next exec.
type StartProcess struct {
	Pid       int    `json:"pid" is:"processes"`
	Parent    int    `json:"parent" is:"processes"` // pid
	Kind      string `json:"kind" is:"needed,name,safe"`
	Name      string `json:"name" is:"needed,label,kind=program"`    // for people: "runc create", "runc init", "bridge", "sleep"
	Program   string `json:"program" is:"label,kind=program"`        // the executable's name without its folder
	Verb      string `json:"verb,omitempty" is:"label,safe"`         // of a call: create, start, …; of a CNI plugin ADD, DEL, …
	Container string `json:"container,omitempty" is:"label,kind=id"` // the id that it is about, as far as it is known
	Born      int64  `json:"born"`                                   // forked, or the exec of another program in the same process
	Exec      int64  `json:"exec,omitempty" is:"zero,after=born"`    // it became Program; 0: it never executed one of its own
	Ended     int64  `json:"ended,omitempty" is:"zero,after=born"`   // exited, or executed another program; 0: it was still there
	CPU       int64  `json:"cpu" is:"cpu,unknown"`                   // ns until Ended, or until the start had ended; -1: not known
	Exit      *int   `json:"exit,omitempty" is:"min=-1,max=255"`     // exit code, 128+n for signal n; nil while it was there, or where it executed another
	// Used is how much CPU time the process had used by moments, where it stayed: of one
	// that was there before, since the start began. In order of time.
	Used []BusyAt `json:"used,omitempty" is:"max=16384"`
}

// BusyAt is how much CPU time all processes of a start, the engine's daemon
// included, had used by a moment, in ns since the watch began.
type BusyAt struct {
	At  int64 `json:"at"`
	CPU int64 `json:"cpu" is:"cpu"`
}

// Throttled is a cgroup of a start's processes, or one above, that its CPU limit held back
// from the call, or from when the group was made, until the start had ended.
type Throttled struct {
	Group     string  `json:"group" is:"id,needed,rooted,path"`
	CPUs      float64 `json:"cpus,omitempty" is:"cpus"` // the limit; 0: it was lifted by then
	Periods   int64   `json:"periods"`                  // of the limit, in which the group had work
	Throttled int64   `json:"throttled"`                // of these, in which it was held back
	Held      int64   `json:"held" is:"span"`           // ns
}

// Span is a named interval of a start.
type Span struct {
	Name      string `json:"name" is:"needed,label,safe"`
	Kind      string `json:"kind" is:"needed,name,safe"`
	Container string `json:"container,omitempty" is:"label,kind=id"`
	Of        string `json:"of,omitempty" is:"name,safe"` // of logs: the kind of the process whose it is: daemon, shim, vmm
	Began     int64  `json:"began"`
	Ended     int64  `json:"ended" is:"after=began"`
	Source    string `json:"source,omitempty" is:"place"` // of logs: where its first event stands, "kata.log:25"
}

// Gap is time between two events in which nothing was told.
type Gap struct {
	Began  int64  `json:"began"`
	Ended  int64  `json:"ended" is:"after=began"`
	After  string `json:"after" is:"command,kind=text"`  // the event before it
	Before string `json:"before" is:"command,kind=text"` // the event after it
	In     string `json:"in" is:"label"`                 // whose it is: "docker", "runc create", "kata_agent"
	CPU    int64  `json:"cpu" is:"cpu,unknown"`          // ns used meanwhile by all processes of the start; -1: not known
	Others int64  `json:"others,omitempty"`              // lines that others (a guest's console, an agent) wrote meanwhile
	Wait   *Wait  `json:"wait,omitempty"`
	Source string `json:"source,omitempty" is:"place"`
}

// Wait is a known timer that a gap looks like.
type Wait struct {
	Timer   string `json:"timer" is:"label,safe"`      // "gRPC dial, first back-off"
	Nominal int64  `json:"nominal" is:"span"`          // ns
	Why     string `json:"why" is:"command,kind=text"` // the evidence, one line
}

// GuestClock is how a guest's clock stands to the host's, from events that were
// seen on both sides. Nothing is known of it but bounds: a line that the guest
// wrote at G arrived at the host later, at H, so its clock is not more than H-G
// behind.
type GuestClock struct {
	Name        string `json:"name" is:"label,kind=id"`            // the sandbox's id
	Offset      int64  `json:"offset" is:"any"`                    // ns to add to the guest's times
	Uncertainty int64  `json:"uncertainty,omitempty" is:"unknown"` // ns by which Offset may be too large; -1: no bound from the other side
	Pairs       int64  `json:"pairs"`                              // events that were seen on both sides
}

// MissingCall is the evidence that a start lacks where a call of its runtime has no end:
// how long that took, and so how long the engine did, is not known.
const MissingCall = "open call"

// MissingProcesses is the evidence that a start lacks of which not all processes are
// kept: whose its time is is not known.
const MissingProcesses = "too many"

// Missing is evidence that is not there.
type Missing struct {
	What   string `json:"what" is:"needed,label,safe"` // "suppressed" by the journal, "cut", "too long", "unreadable", "no begin", "no end", "open call", "clock": it was set back, "outcome", "lost" by the kernel, "unborn": a birth was not told, "too many", "ambiguous"
	Count  int64  `json:"count"`
	Detail string `json:"detail,omitempty" is:"command,kind=text"` // where, one line
}

// StartClaim is a figure of notes that follows from the others.
type StartClaim struct {
	Name   string `json:"name" is:"label,safe"` // "sum", "credits", "wall" as it was used for the credits
	Value  int64  `json:"value" is:"span"`
	Source string `json:"source,omitempty" is:"place"`
}

// Logs is what was read of logs, one line at the end of a record of starts that
// come from them.
type Logs struct {
	Type       Type             `json:"type"`
	Files      []string         `json:"files" is:"max=1000,path"` // names without folders
	Bytes      int64            `json:"bytes"`
	Lines      int64            `json:"lines"`
	Events     int64            `json:"events"`
	Forms      map[string]int64 `json:"forms" is:"max=64,keys=name,safekeys"` // lines of each form: "kata", "containerd"
	Cut        int64            `json:"cut,omitempty"`                        // lines that end in the middle
	Long       int64            `json:"long,omitempty"`                       // lines that are too long to be read
	Unreadable int64            `json:"unreadable,omitempty"`                 // lines of no known form
	Suppressed int64            `json:"suppressed,omitempty"`                 // messages that the journal dropped
	Backward   int64            `json:"backward,omitempty"`                   // lines older than the one before
	Unplaced   int64            `json:"unplaced,omitempty"`                   // events that belong to no start
	Dropped    int64            `json:"dropped,omitempty"`                    // starts that were forgotten: too many at once
	First      string           `json:"first,omitempty" is:"place"`           // where the first unreadable line stands
	Missing    []Missing        `json:"missing,omitempty"`                    // of files: "ends in the middle", "not read to the end", "disorder"; Detail names the file
}

// Check says whether the times of use are in order.
func (s *Start) Check() error {
	for i := range s.Busy {
		if i > 0 && s.Busy[i].At < s.Busy[i-1].At {
			return fmt.Errorf("busy: %d stands after %d", s.Busy[i].At, s.Busy[i-1].At)
		}
	}
	polled := Sample{Ready: s.Ready, Unready: s.Unready, Polls: s.Polls, Request: s.Request, First: s.First}
	if err := polled.checkReady(0); err != nil { // its polls begin with the release, a moment before it
		return err
	}
	for i := range s.Processes {
		if used := s.Processes[i].Used; !slices.IsSortedFunc(used, func(a, b BusyAt) int { return cmp.Compare(a.At, b.At) }) {
			return fmt.Errorf("used of process %d: its times are not in order", s.Processes[i].Pid)
		}
	}
	return nil
}
