// Package logs reads the logs that engines, runtimes and agents write, whatever
// their form, as one stream of events in order of time.
//
// It holds no more than a line of each file. A line that is cut, too long or of no
// known form costs that line and is counted.
package logs

// Form is who wrote a line, as far as its form tells.
type Form uint8

// The forms.
const (
	Unknown    Form = iota
	Kata            // the Go runtime, its shim, or Kata 1.x's kata-runtime: logfmt
	KataProxy       // Kata 1.x's proxy
	KataAgent       // the agent in the guest, inside another's line
	Console         // a guest's console, inside another's line
	KataRS          // runtime-rs: JSON, or the journal's fields
	Containerd      // logfmt or JSON
	CRIO
	Docker // dockerd: logfmt or JSON
	Runsc  // glog lines and the boot timing
	Journal
)

// Event is one line. Its texts are valid until the next event is asked for.
type Event struct {
	Form Form
	// Time is ns since 1970 on the clock of who wrote the line. Guest says that
	// it is a guest's, and Arrived when the host's program that carried the line
	// wrote it down; 0 otherwise.
	Time      int64
	Arrived   int64
	Guest     bool
	Level     []byte
	Message   []byte // unescaped, cut to 4 KiB
	Program   []byte // name=: "kata-runtime", "containerd-shim-v2", "kata-agent", …
	Source    []byte // source=: "virtcontainers", "agent", …
	Subsystem []byte
	Sandbox   []byte // sandbox=, podsandboxid=, sandboxID=
	Container []byte // container=, containerID=, containerd's id= where it is a container's
	Request   []byte // CRI-O's id= of a request, name= is Program then
	Error     []byte // error=
	Pid       int    // pid=, or that of the syslog prefix or of the journal; 0 not known
	File      int    // index into the sources
	Line      int64  // from 1
	Cut       bool   // the line ended in the middle: some of the fields may be missing
}

// Stats count what was read.
type Stats struct {
	Bytes      int64
	Lines      int64
	Events     int64
	Forms      map[Form]int64
	Cut        int64 // ended in the middle; what could be read of them counts as an event
	Long       int64 // longer than MaxLine: skipped
	Unreadable int64 // of no known form: skipped
	Suppressed int64 // messages that the journal says it dropped
	Backward   int64 // lines that are older than the one before them in their file
	First      int64 // the number of the first unreadable line, and its file
	FirstFile  int
}
