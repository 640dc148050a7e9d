package record

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// Types of line that only records of "startup" have.
const (
	TypeStart Type = "start"
	TypeLogs  Type = "logs"
)

// Start is one start of a container or a pod: observed live, or taken from logs or notes. All
// its times are in ns on one clock, see Clock. Package trace interprets them.
type Start struct {
	Type   Type   `json:"type"`
	Round  int    `json:"round" is:"round"`                                             // from 0; in logs the index of the start in chronological order
	Order  int    `json:"order"`                                                        // position of the target in the round's random order
	Target string `json:"target" is:"needed,label,safe"`                                // as in the plan; in logs the engine or runtime: "kata", "containerd", "cri-o"
	Method string `json:"method" is:"needed,one=bpf|tracefs|connector|none|logs|notes"` // the source of the data, see the Method constants
	Clock  string `json:"clock" is:"needed,one=monotonic|wall|none"`                    // see the Clock constants
	Began  int64  `json:"began"`                                                        // just before the call; in logs the first event
	Wall   int64  `json:"wall,omitempty"`                                               // live: wall-clock time at Began, ns since 1970; 0: unknown, or the clock was set during the start
	First  int64  `json:"first,omitempty"`
	// FirstBy is an upper bound of First if First is unknown: the time at which tare read the
	// workload's output.
	FirstBy int64 `json:"first_by,omitempty"`
	// Ended is the time at which the call returned or the command exited. In logs it is the
	// time at which the last container of the start was running. 0: the start has no end.
	Ended      int64          `json:"ended,omitempty" is:"zero,after=began"`
	Ready      int64          `json:"ready,omitempty" is:"zero,after=began"`           // live: first successful poll from outside
	Unready    int64          `json:"unready,omitempty"`                               // start of the last failed poll; 0: none, and Ready is only an upper bound
	Polls      int64          `json:"polls,omitempty" is:"max=1000000000"`             // number of polls
	Request    int64          `json:"request,omitempty" is:"span"`                     // duration of the successful request, ns
	Dropped    string         `json:"dropped,omitempty" is:"one=node"`                 // live: page cache dropped before the start, see [DroppedNode]; "" if not dropped
	Command    string         `json:"command,omitempty" is:"command"`                  // the timed command, ready to paste
	Name       string         `json:"name,omitempty" is:"label,kind=id"`               // name of the pod or container in the logs
	Sandbox    string         `json:"sandbox,omitempty" is:"label,kind=id"`            // id of the pod, or of the container without a pod
	Containers []string       `json:"containers,omitempty" is:"max=256,label,kind=id"` // ids in order of appearance
	Processes  []StartProcess `json:"processes,omitempty" is:"max=4096"`               // live, ordered by Born
	Busy       []BusyAt       `json:"busy,omitempty" is:"max=16384"`                   // live, in chronological order
	Spans      []Span         `json:"spans,omitempty" is:"max=4096"`                   // from logs and notes, ordered by Began
	Gaps       []Gap          `json:"gaps,omitempty" is:"max=256"`                     // from logs: the longest gaps between consecutive events, longest first
	Throttled  []Throttled    `json:"throttled,omitempty" is:"max=64"`                 // live: cgroups throttled by a CPU limit, ordered by path
	Guests     []GuestClock   `json:"guests,omitempty" is:"max=64"`                    // from logs: aligned clocks of guests
	Missing    []Missing      `json:"missing,omitempty" is:"max=64"`                   // missing evidence
	Claims     []StartClaim   `json:"claims,omitempty" is:"max=64"`                    // from notes: figures computed by their author
	Events     int64          `json:"events,omitempty"`                                // log lines or kernel events of the start
	Lost       int64          `json:"lost,omitempty"`                                  // events dropped by the kernel
	Tracing    int64          `json:"tracing,omitempty"`                               // CPU time of the tracing, ns
	Source     string         `json:"source,omitempty" is:"place"`                     // place in logs or notes: "kata.log:25"
	Failure    *Failure       `json:"failure,omitempty"`
	Waiting    *Waiting       `json:"waiting,omitempty"` // from logs: state of a start that has neither ended nor failed
}

// Waiting is the state of a start without an end.
type Waiting struct {
	In     string `json:"in" is:"needed,label"`                   // pending call, such as "StartContainer", or else the last milestone
	Since  int64  `json:"since"`                                  // ns on the start's clock
	Until  int64  `json:"until" is:"after=since"`                 // last time in the logs; the start waits at least until then
	Stage  string `json:"stage,omitempty" is:"label"`             // stage of the call, from the engine's log
	Last   string `json:"last,omitempty" is:"command,kind=text"`  // last line about the call
	Error  string `json:"error,omitempty" is:"command,kind=text"` // later error in the log
	Source string `json:"source,omitempty" is:"place"`            // place where the call begins
}

// Methods of observing a start.
const (
	MethodBPF       = "bpf"       // BPF programs on kernel tracepoints
	MethodTracefs   = "tracefs"   // trace events of the kernel as text
	MethodConnector = "connector" // process connector of netlink
	MethodNone      = "none"      // not traced, to measure the cost of tracing
	MethodLogs      = "logs"
	MethodNotes     = "notes" // figures in a text, without events
)

// Clocks of a start.
const (
	ClockMonotonic = "monotonic" // CLOCK_MONOTONIC of the host
	ClockWall      = "wall"      // wall clock of the host, ns since 1970
	ClockNone      = "none"      // durations only; the first one begins at 0
)

// Kinds of processes and spans.
const (
	KindClient    = "client"    // the timed command, and children without another kind
	KindDaemon    = "daemon"    // daemon of the engine
	KindShim      = "shim"      // containerd-shim-*
	KindMonitor   = "monitor"   // conmon
	KindCall      = "call"      // command of an OCI runtime: create, state, start, …
	KindInit      = "init"      // the runtime inside the container, before the workload
	KindCNI       = "cni"       // network plugin
	KindHelper    = "helper"    // newuidmap, iptables, pinns, fuse-overlayfs, …
	KindVMM       = "vmm"       // qemu, cloud-hypervisor, firecracker, and gVisor's sentry
	KindVirtiofsd = "virtiofsd" // file servers of a sandbox: virtiofsd, gVisor's gofer
	KindWorkload  = "workload"
	KindOther     = "other"
	KindEngine    = "engine" // spans only: engine time without another kind
	KindPhase     = "phase"  // spans only: time between two milestones of a log
	KindGuest     = "guest"  // spans only: time inside a VM, on its aligned clock
)

// StartProcess is one program that ran during a start. It begins with a fork or an exec and ends
// with the exit or the next exec.
type StartProcess struct {
	Pid       int    `json:"pid" is:"processes"`
	Parent    int    `json:"parent" is:"processes"` // pid
	Kind      string `json:"kind" is:"needed,name,safe"`
	Name      string `json:"name" is:"needed,label,kind=program"`    // display name: "runc create", "runc init", "bridge", "sleep"
	Program   string `json:"program" is:"label,kind=program"`        // name of the executable without its directory
	Verb      string `json:"verb,omitempty" is:"label,safe"`         // command of a call: create, start, …; command of a CNI plugin: ADD, DEL, …
	Container string `json:"container,omitempty" is:"label,kind=id"` // container id from the arguments, if known
	Born      int64  `json:"born"`                                   // time of the fork, or of an exec in the same process
	Exec      int64  `json:"exec,omitempty" is:"zero,after=born"`    // exec of Program; 0: no exec
	Ended     int64  `json:"ended,omitempty" is:"zero,after=born"`   // time of the exit or of the next exec; 0: still running
	CPU       int64  `json:"cpu" is:"cpu,unknown"`                   // ns until Ended, or until the end of the start; -1: unknown
	Exit      *int   `json:"exit,omitempty" is:"min=-1,max=255"`     // exit code, 128+n for signal n; nil if the process still ran or executed another program
	// Used has readings of the CPU time of a process that kept running, in chronological order.
	// If the process is older than the start, they count from the beginning of the start.
	Used []BusyAt `json:"used,omitempty" is:"max=16384"`
}

// BusyAt is the CPU time used by all processes of a start at one moment, in ns since tracing
// began. It includes the engine's daemon.
type BusyAt struct {
	At  int64 `json:"at"`
	CPU int64 `json:"cpu" is:"cpu"`
}

// Throttled is a cgroup that a CPU limit throttled during a start. It is a cgroup of the start's
// processes or an ancestor. Counting begins with the call, or with the creation of the cgroup.
type Throttled struct {
	Group     string  `json:"group" is:"id,needed,rooted,path"`
	CPUs      float64 `json:"cpus,omitempty" is:"cpus"` // CPU limit; 0: removed in the meantime
	Periods   int64   `json:"periods"`                  // periods in which the group was runnable
	Throttled int64   `json:"throttled"`                // periods in which the group was throttled
	Held      int64   `json:"held" is:"span"`           // throttled time, ns
}

// Span is a named interval of a start.
type Span struct {
	Name      string `json:"name" is:"needed,label,safe"`
	Kind      string `json:"kind" is:"needed,name,safe"`
	Container string `json:"container,omitempty" is:"label,kind=id"`
	Of        string `json:"of,omitempty" is:"name,safe"` // in logs: kind of the process (daemon, shim, vmm)
	Began     int64  `json:"began"`
	Ended     int64  `json:"ended" is:"after=began"`
	Source    string `json:"source,omitempty" is:"place"` // in logs: place of the first event, "kata.log:25"
}

// Gap is a period of a start without events.
type Gap struct {
	Began  int64  `json:"began"`
	Ended  int64  `json:"ended" is:"after=began"`
	After  string `json:"after" is:"command,kind=text"`  // event before the gap
	Before string `json:"before" is:"command,kind=text"` // event after the gap
	In     string `json:"in" is:"label"`                 // component: "docker", "runc create", "kata_agent"
	CPU    int64  `json:"cpu" is:"cpu,unknown"`          // CPU time of all processes of the start during the gap, ns; -1: unknown
	Others int64  `json:"others,omitempty"`              // lines from other writers during the gap (guest console, agent)
	Wait   *Wait  `json:"wait,omitempty"`
	Source string `json:"source,omitempty" is:"place"`
}

// Wait is a known timer that may explain a gap.
type Wait struct {
	Timer   string `json:"timer" is:"label,safe"`      // "gRPC dial, first back-off"
	Nominal int64  `json:"nominal" is:"span"`          // ns
	Why     string `json:"why" is:"command,kind=text"` // evidence, one line
}

// GuestClock is the offset of a guest's clock from the host's clock. It is derived from events
// seen on both sides. Each event only gives a bound: if the guest writes a line at G and the host
// receives it at H, the guest's clock is at most H-G behind.
type GuestClock struct {
	Name        string `json:"name" is:"label,kind=id"`            // id of the sandbox
	Offset      int64  `json:"offset" is:"any"`                    // ns to add to the guest's times
	Uncertainty int64  `json:"uncertainty,omitempty" is:"unknown"` // ns by which Offset may be too large; -1: no bound from the other direction
	Pairs       int64  `json:"pairs"`                              // events seen on both sides
}

// MissingCall means that a runtime call has no end. The durations of the call and of the engine
// are unknown.
const MissingCall = "open call"

// MissingProcesses means that the record lacks some processes of the start. The start's duration
// cannot be attributed to components.
const MissingProcesses = "too many"

// Missing describes evidence that is absent from the record.
type Missing struct {
	What   string `json:"what" is:"needed,label,safe"` // "suppressed" by the journal, "cut", "too long", "unreadable", "no begin", "no end", "open call", "clock": set back, "outcome", "lost" by the kernel, "unborn": a fork without an event, "too many", "ambiguous"
	Count  int64  `json:"count"`
	Detail string `json:"detail,omitempty" is:"command,kind=text"` // where it is missing, one line
}

// StartClaim is a figure from notes that their author computed from other figures.
type StartClaim struct {
	Name   string `json:"name" is:"label,safe"` // "sum", "credits", or the "wall" time for the credits
	Value  int64  `json:"value" is:"span"`
	Source string `json:"source,omitempty" is:"place"`
}

// Logs are the statistics of imported logs, one line at the end of the record.
type Logs struct {
	Type       Type             `json:"type"`
	Files      []string         `json:"files" is:"max=1000,path"` // file names without directories
	Bytes      int64            `json:"bytes"`
	Lines      int64            `json:"lines"`
	Events     int64            `json:"events"`
	Forms      map[string]int64 `json:"forms" is:"max=64,keys=name,safekeys"` // number of lines per format: "kata", "containerd"
	Cut        int64            `json:"cut,omitempty"`                        // lines that end in the middle
	Long       int64            `json:"long,omitempty"`                       // lines that are too long
	Unreadable int64            `json:"unreadable,omitempty"`                 // lines in an unknown format
	Suppressed int64            `json:"suppressed,omitempty"`                 // messages dropped by the journal
	Backward   int64            `json:"backward,omitempty"`                   // lines with an earlier time than the previous line
	Unplaced   int64            `json:"unplaced,omitempty"`                   // events that belong to no start
	Dropped    int64            `json:"dropped,omitempty"`                    // starts dropped because too many were pending
	First      string           `json:"first,omitempty" is:"place"`           // place of the first unreadable line
	Missing    []Missing        `json:"missing,omitempty"`                    // missing parts of files: "ends in the middle", "not read to the end", "disorder"; Detail is the file name
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
