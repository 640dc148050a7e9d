// Package tracer tells of the birth, the programs and the death of every process
// of the machine, on the host's CLOCK_MONOTONIC.
//
// It asks the kernel by the best means there is: BPF programs on raw tracepoints,
// else the trace events of tracefs in an instance of its own, else netlink's
// process connector. [Tracer.Method] says which, and [Tracer.Without] why not a
// better one. Whose a process is, is not decided here.
package tracer

// Kind is what happened.
type Kind uint8

// What can happen.
const (
	Fork Kind = iota + 1 // a process, not a thread, was born
	Exec                 // a process executed a program
	Exit                 // the last thread of a process ended
)

// Event is one thing that happened to a process. Pids are those of the process
// (tgid) in the tracer's own pid namespace.
type Event struct {
	Kind   Kind
	Time   int64 // ns, CLOCK_MONOTONIC
	Pid    int
	Parent int      // who forked it; of Exec and Exit the parent at that time, 0 where it is not known
	Comm   string   // the thread's name, up to 15 bytes; of Exec the new one
	File   string   // of Exec: what was executed, as it was called
	Args   []string // of Exec: the arguments, cut as Cut says
	CNI    CNI      // of Exec: what a network plugin is told by its environment; nothing else of it is kept
	Cut    bool     // Args are not complete
	CPU    int64    // of Exec and Exit: ns of CPU time that the process has used so far; -1 not known
	Status int      // of Exit: exit code, 128+n for signal n; -1 not known
	Busy   int64    // ns of CPU time that the tracked processes have used since Open; -1 not known
}

// CNI is what a plugin's environment says. See the CNI specification, section 2.
type CNI struct {
	Command   string // ADD, DEL, CHECK, VERSION, GC, STATUS
	Container string // CNI_CONTAINERID
	Interface string // CNI_IFNAME
}

// Options say how to trace.
type Options struct {
	// Instance names what the tracer makes on the machine: "tare-RUNID".
	Instance string
	// Only are the methods that may be used, see record's Method constants; empty: all.
	Only []string
}
