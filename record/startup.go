package record

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// Types of line in a record of "startup" only.
const (
	TypeStart Type = "start"
	TypeLogs  Type = "logs"
)

// Start is one start of a container or a pod: observed live, or taken from logs or notes.
// All its times are ns on one clock, see Clock. Package trace interprets them.
type Start struct {
	Type   Type   `json:"type"`
	Round  int    `json:"round" is:"round"`                                             // from 0; in logs the index of the start in order of time
	Order  int    `json:"order"`                                                        // this target's place in the round's random order
	Target string `json:"target" is:"needed,label,safe"`                                // as in the plan; for logs their engine or runtime: "kata", "containerd", "cri-o"
	Method string `json:"method" is:"needed,one=bpf|tracefs|connector|none|logs|notes"` // the source of the data, see the Method constants
	Clock  string `json:"clock" is:"needed,one=monotonic|wall|none"`                    // see the Clock constants
	Began  int64  `json:"began"`                                                        // the call was about to be made; in logs the first event
	Wall   int64  `json:"wall,omitempty"`                                               // live: the time of day at Began, ns since 1970; 0: unknown, or the clock was set during the start
	First  int64  `json:"first,omitempty"`
	// FirstBy is an upper bound of First if that is unknown: tare had read the workload's
	// output by then.
	FirstBy int64 `json:"first_by,omitempty"`
	// Ended is when the call had returned or the command had exited; in logs when the last
	// container of the start ran. 0: the start has no end.
	Ended      int64          `json:"ended,omitempty" is:"zero,after=began"`
	Ready      int64          `json:"ready,omitempty" is:"zero,after=began"`           // live: the first successful poll from outside
	Unready    int64          `json:"unready,omitempty"`                               // begin of the last failed poll; 0: none, and Ready is only an upper bound
	Polls      int64          `json:"polls,omitempty" is:"max=1000000000"`             // number of polls
	Request    int64          `json:"request,omitempty" is:"span"`                     // ns of the successful request
	Dropped    string         `json:"dropped,omitempty" is:"one=node"`                 // live: page cache dropped before, see [DroppedNode]; "" none
	Command    string         `json:"command,omitempty" is:"command"`                  // the timed command, pasteable
	Name       string         `json:"name,omitempty" is:"label,kind=id"`               // of the pod or container in the logs
	Sandbox    string         `json:"sandbox,omitempty" is:"label,kind=id"`            // the id of the pod, or of the container without a pod
	Containers []string       `json:"containers,omitempty" is:"max=256,label,kind=id"` // ids in the order of their appearance
	Processes  []StartProcess `json:"processes,omitempty" is:"max=4096"`               // live, in the order of Born
	Busy       []BusyAt       `json:"busy,omitempty" is:"max=16384"`                   // live, in order of time
	Spans      []Span         `json:"spans,omitempty" is:"max=4096"`                   // of logs and notes, in the order of Began
	Gaps       []Gap          `json:"gaps,omitempty" is:"max=256"`                     // of logs: the longest gaps between consecutive events, the longest first
	Throttled  []Throttled    `json:"throttled,omitempty" is:"max=64"`                 // live: cgroups throttled by a CPU limit, by path
	Guests     []GuestClock   `json:"guests,omitempty" is:"max=64"`                    // of logs: aligned clocks of guests
	Missing    []Missing      `json:"missing,omitempty" is:"max=64"`                   // missing evidence
	Claims     []StartClaim   `json:"claims,omitempty" is:"max=64"`                    // of notes: figures computed by their author
	Events     int64          `json:"events,omitempty"`                                // lines of logs, or kernel events, of the start
	Lost       int64          `json:"lost,omitempty"`                                  // events that the kernel dropped
	Tracing    int64          `json:"tracing,omitempty"`                               // ns of CPU time of the tracing
	Source     string         `json:"source,omitempty" is:"place"`                     // of logs and notes: "kata.log:25"
	Failure    *Failure       `json:"failure,omitempty"`
	Waiting    *Waiting       `json:"waiting,omitempty"` // of logs: the state of a start that has neither ended nor failed
}

// Waiting is the state of a start without an end.
type Waiting struct {
	In     string `json:"in" is:"needed,label"`                   // the pending call: "StartContainer"; else the last milestone
	Since  int64  `json:"since"`                                  // ns, on the start's clock
	Until  int64  `json:"until" is:"after=since"`                 // the last time in the logs; the start waits at least until then
	Stage  string `json:"stage,omitempty" is:"label"`             // of the call, by the engine's log
	Last   string `json:"last,omitempty" is:"command,kind=text"`  // the last line about it
	Error  string `json:"error,omitempty" is:"command,kind=text"` // a later error in the log
	Source string `json:"source,omitempty" is:"place"`            // of the begin of the call
}

// Methods of observing a start.
const (
	MethodBPF       = "bpf"       // programs on the kernel's tracepoints
	MethodTracefs   = "tracefs"   // the kernel's trace events, as text
	MethodConnector = "connector" // netlink's process connector
	MethodNone      = "none"      // not traced: a round that shows the cost of tracing
	MethodLogs      = "logs"
	MethodNotes     = "notes" // figures in a text, without events
)

// Clocks of a start.
const (
	ClockMonotonic = "monotonic" // CLOCK_MONOTONIC of the host
	ClockWall      = "wall"      // the host's time of day, ns since 1970
	ClockNone      = "none"      // durations only: the first begins at 0
)

// Kinds of processes and spans.
const (
	KindClient    = "client"    // the timed command, and its children of no other kind
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
	KindEngine    = "engine" // spans only: time of the engine without another kind
	KindPhase     = "phase"  // spans only: between two milestones of a log
	KindGuest     = "guest"  // spans only: inside a VM, on its aligned clock
)

// StartProcess is one program that ran during a start: from a fork or an exec to the exit or
// the next exec.
type StartProcess struct {
	Pid       int    `json:"pid" is:"processes"`
	Parent    int    `json:"parent" is:"processes"` // pid
	Kind      string `json:"kind" is:"needed,name,safe"`
	Name      string `json:"name" is:"needed,label,kind=program"`    // for people: "runc create", "runc init", "bridge", "sleep"
	Program   string `json:"program" is:"label,kind=program"`        // the executable's name without its folder
	Verb      string `json:"verb,omitempty" is:"label,safe"`         // of a call: create, start, …; of a CNI plugin ADD, DEL, …
	Container string `json:"container,omitempty" is:"label,kind=id"` // the id among its arguments, if known
	Born      int64  `json:"born"`                                   // forked, or the exec of another program in the same process
	Exec      int64  `json:"exec,omitempty" is:"zero,after=born"`    // the exec of Program; 0: it executed none
	Ended     int64  `json:"ended,omitempty" is:"zero,after=born"`   // exited, or executed another program; 0: still running
	CPU       int64  `json:"cpu" is:"cpu,unknown"`                   // ns until Ended or the end of the start; -1: unknown
	Exit      *int   `json:"exit,omitempty" is:"min=-1,max=255"`     // exit code, 128+n for signal n; nil if it still ran or executed another program
	// Used is the CPU time at moments, in order of time, of a process that kept running. If
	// it ran before the start, it counts from the begin of the start.
	Used []BusyAt `json:"used,omitempty" is:"max=16384"`
}

// BusyAt is the CPU time at a moment of all processes of a start, including the engine's
// daemon, in ns since tracing began.
type BusyAt struct {
	At  int64 `json:"at"`
	CPU int64 `json:"cpu" is:"cpu"`
}

// Throttled is a cgroup of a start's processes, or an ancestor, that was throttled by a CPU
// limit between the call, or the creation of the group, and the end of the start.
type Throttled struct {
	Group     string  `json:"group" is:"id,needed,rooted,path"`
	CPUs      float64 `json:"cpus,omitempty" is:"cpus"` // the limit; 0: removed by then
	Periods   int64   `json:"periods"`                  // periods in which the group had work
	Throttled int64   `json:"throttled"`                // periods in which it was throttled
	Held      int64   `json:"held" is:"span"`           // throttled time, ns
}

// Span is a named interval of a start.
type Span struct {
	Name      string `json:"name" is:"needed,label,safe"`
	Kind      string `json:"kind" is:"needed,name,safe"`
	Container string `json:"container,omitempty" is:"label,kind=id"`
	Of        string `json:"of,omitempty" is:"name,safe"` // of logs: the kind of its process: daemon, shim, vmm
	Began     int64  `json:"began"`
	Ended     int64  `json:"ended" is:"after=began"`
	Source    string `json:"source,omitempty" is:"place"` // of logs: the place of its first event, "kata.log:25"
}

// Gap is the time between two events without events in between.
type Gap struct {
	Began  int64  `json:"began"`
	Ended  int64  `json:"ended" is:"after=began"`
	After  string `json:"after" is:"command,kind=text"`  // the event before it
	Before string `json:"before" is:"command,kind=text"` // the event after it
	In     string `json:"in" is:"label"`                 // the component: "docker", "runc create", "kata_agent"
	CPU    int64  `json:"cpu" is:"cpu,unknown"`          // ns of all processes of the start during the gap; -1: unknown
	Others int64  `json:"others,omitempty"`              // lines of other writers (a guest's console, an agent) during the gap
	Wait   *Wait  `json:"wait,omitempty"`
	Source string `json:"source,omitempty" is:"place"`
}

// Wait is a known timer that may explain a gap.
type Wait struct {
	Timer   string `json:"timer" is:"label,safe"`      // "gRPC dial, first back-off"
	Nominal int64  `json:"nominal" is:"span"`          // ns
	Why     string `json:"why" is:"command,kind=text"` // the evidence, one line
}

// GuestClock is the offset of a guest's clock from the host's, by events seen on both sides.
// They give bounds only: a line that the guest wrote at G arrived at the host later, at H,
// so the guest's clock is at most H-G behind.
type GuestClock struct {
	Name        string `json:"name" is:"label,kind=id"`            // the sandbox's id
	Offset      int64  `json:"offset" is:"any"`                    // ns to add to the guest's times
	Uncertainty int64  `json:"uncertainty,omitempty" is:"unknown"` // ns by which Offset may be too large; -1: no bound from the other side
	Pairs       int64  `json:"pairs"`                              // events seen on both sides
}

// MissingCall means that a call of the runtime has no end. The durations of the call and of
// the engine are unknown.
const MissingCall = "open call"

// MissingProcesses means that the record lacks some processes of the start. Its time cannot
// be assigned to components.
const MissingProcesses = "too many"

// Missing is missing evidence.
type Missing struct {
	What   string `json:"what" is:"needed,label,safe"` // "suppressed" by the journal, "cut", "too long", "unreadable", "no begin", "no end", "open call", "clock": set back, "outcome", "lost" by the kernel, "unborn": a fork without an event, "too many", "ambiguous"
	Count  int64  `json:"count"`
	Detail string `json:"detail,omitempty" is:"command,kind=text"` // the place, one line
}

// StartClaim is a figure in notes that their author computed from other figures.
type StartClaim struct {
	Name   string `json:"name" is:"label,safe"` // "sum", "credits", or the "wall" behind the credits
	Value  int64  `json:"value" is:"span"`
	Source string `json:"source,omitempty" is:"place"`
}

// Logs are the statistics of the logs, one line at the end of a record of their starts.
type Logs struct {
	Type       Type             `json:"type"`
	Files      []string         `json:"files" is:"max=1000,path"` // names without folders
	Bytes      int64            `json:"bytes"`
	Lines      int64            `json:"lines"`
	Events     int64            `json:"events"`
	Forms      map[string]int64 `json:"forms" is:"max=64,keys=name,safekeys"` // lines of each form: "kata", "containerd"
	Cut        int64            `json:"cut,omitempty"`                        // lines that end in the middle
	Long       int64            `json:"long,omitempty"`                       // lines that are too long
	Unreadable int64            `json:"unreadable,omitempty"`                 // lines of unknown form
	Suppressed int64            `json:"suppressed,omitempty"`                 // messages that the journal dropped
	Backward   int64            `json:"backward,omitempty"`                   // lines older than the one before
	Unplaced   int64            `json:"unplaced,omitempty"`                   // events of no start
	Dropped    int64            `json:"dropped,omitempty"`                    // starts dropped because there were too many at once
	First      string           `json:"first,omitempty" is:"place"`           // of the first unreadable line
	Missing    []Missing        `json:"missing,omitempty"`                    // of files: "ends in the middle", "not read to the end", "disorder"; Detail names the file
}

// Check implements Checker.
func (s *Start) Check() error {
	inOrder := func(b []BusyAt) bool {
		return slices.IsSortedFunc(b, func(a, b BusyAt) int { return cmp.Compare(a.At, b.At) })
	}
	if !inOrder(s.Busy) {
		return errors.New("busy: its times are not in order")
	}
	polled := Sample{Ready: s.Ready, Unready: s.Unready, Polls: s.Polls, Request: s.Request, First: s.First}
	if err := polled.checkReady(0); err != nil { // polling begins just before Began
		return err
	}
	for i := range s.Processes {
		if p := &s.Processes[i]; !inOrder(p.Used) {
			return fmt.Errorf("used of process %d: its times are not in order", p.Pid)
		}
	}
	return nil
}
