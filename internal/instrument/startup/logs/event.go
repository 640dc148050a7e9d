// Package logs reads the logs of engines, runtimes and agents as one stream of events
// in time order.
//
// The form of each line is detected from its first bytes. A file may therefore mix
// forms, and log lines quoted in other text can be read as well. At most one block per
// file is held in memory. Truncated, overlong and unrecognized lines are counted and
// do not affect other lines.
//
// Times without a year or a zone (klog, classic syslog) take them from other lines of
// the source. If no line has them, they come from the file's date and the requested
// zone; see [Source].
package logs

import "github.com/tare-bench/tare/record"

// Form identifies the writer of a line, as detected from the line's format.
type Form uint8

// Writers of logs.
const (
	Unknown    Form = iota
	Kata            // the Go runtime, its shim, or Kata 1.x's kata-runtime: logfmt
	KataProxy       // Kata 1.x's proxy
	KataAgent       // the agent in the guest, inside another program's line
	Console         // a guest's console, inside another program's line
	KataRS          // runtime-rs: JSON, or the journal's fields
	Containerd      // logfmt or JSON
	CRIO
	Docker  // dockerd: logfmt or JSON
	Runsc   // klog lines or JSON, under any program name
	Kubelet // klog lines or JSON, under any program name
	Podman  // its debug log
	Crun    // its debug log
	Isulad
	Kubernetes // plain text in the journal or a syslog
	Journal    // plain text in the journal or in a syslog
	forms
)

var formNames = [forms]string{
	"unknown", "kata", "kata-proxy", "kata-agent", "console", "kata-rs",
	"containerd", "cri-o", "docker", "runsc", "kubelet", "podman", "crun", "isulad", "kubernetes", "journal",
}

// String returns the display name of the form.
func (f Form) String() string { return formNames[f] }

// maxMessage is the maximum length in bytes of an event's text.
const maxMessage = 4 << 10

// Event is one line. Its texts are valid until the next event.
type Event struct {
	Form Form
	// Time is ns since 1970 on the writer's clock. If Guest is set, this is the guest's
	// clock. Arrived is then the time at which the host logged the line; otherwise it is
	// 0.
	Time    int64
	Arrived int64
	Guest   bool
	// Uptime is the uptime of the guest's kernel, ns, from a console line ("[ 3.065807]
	// …"). Time is then 0. Uptime is 0 for other lines.
	Uptime int64
	// Took is the time since the previous milestone of a timeline in runsc's boot table,
	// ns. It is 0 if missing.
	Took       int64
	Level      []byte // trace, debug, info, warning, error, fatal; other names unchanged
	Message    []byte // unescaped, truncated to maxMessage
	Program    []byte // name=: "kata-runtime", "containerd-shim-v2", "kata-agent", …; else the identifier in the syslog or journal
	Source     []byte // source=: "virtcontainers", "agent", …; glog's "file.go:12"
	Subsystem  []byte // subsystem=; topic= of dockerd and containerd events
	Sandbox    []byte // sandbox=, podsandboxid=, sandboxID=
	Container  []byte // container=, containerID=, containerd's id= if it is a container's
	Pod        []byte // kubelet's pod=: "namespace/name"
	Request    []byte // CRI-O's request id=; Program is then name=
	Error      []byte // error=
	Path       []byte // containerd's path= or key=: a task directory or a snapshot name
	Command    []byte // command= of Kata 1.x's runtime: "create", "start", "state", …; request-url= of dockerd
	Suppressed int64  // messages dropped by the journal or its reader, as reported by this line
	Pid        int    // pid=, or from the syslog prefix or the journal; 0: unknown
	File       int    // index into the sources
	Line       int64  // from 1
	Cut        bool   // the line is truncated: fields may be missing
}

// Stats counts the lines read. It extends the counters of a record. Every line is
// counted in Lines and in one of Read, Empty and Unreadable.
type Stats struct {
	record.Logs
	Read    int64    // lines that are an event, or a part of an event that spans several lines
	Empty   int64    // blank lines
	Coarse  int64    // times in whole seconds since the program began
	Whole   int64    // times of day in whole seconds
	Width   int      // length of the longest line, bytes
	AtWidth int64    // lines of length Width
	Broken  []Broken // sources that failed before their end
}

// Broken is a source that failed before its end. The lines before the failure count.
type Broken struct {
	File  int // index into the sources
	Lines int64
	Err   error
}
