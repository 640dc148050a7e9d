// Package logs reads the logs that engines, runtimes and agents write, whatever
// their form, as one stream of events in order of time.
//
// Every line is looked at by itself: which form it has is told from its first
// bytes, so that a file may mix forms, and a text in which somebody quotes log
// lines is read as well. It holds no more than a block of each file. A line that
// is cut, too long or of no known form costs that line and is counted.
//
// Times without a year or a zone (klog's, classic syslog's) take them from the
// other lines of their source, else from the date of the file and the zone that was asked
// for, see [Source].
package logs

import "github.com/tare-bench/tare/record"

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
	Docker  // dockerd: logfmt or JSON
	Runsc   // glog lines and the boot timing
	Kubelet // klog lines or JSON, by whatever name it runs
	Podman  // its debug log
	Crun    // its debug log
	Isulad
	Kubernetes // its events
	Journal    // plain text in the journal or in a syslog
	forms
)

var formNames = [forms]string{
	"unknown", "kata", "kata-proxy", "kata-agent", "console", "kata-rs",
	"containerd", "cri-o", "docker", "runsc", "kubelet", "podman", "crun", "isulad", "kubernetes", "journal",
}

// String returns the form's name as reports have it.
func (f Form) String() string {
	if f >= forms {
		return formNames[Unknown]
	}
	return formNames[f]
}

// maxMessage is how many bytes of a text an event holds.
const maxMessage = 4 << 10

// Event is one line. Its texts are valid until the next event is asked for.
type Event struct {
	Form Form
	// Time is ns since 1970 on the clock of who wrote the line. Guest says that
	// it is a guest's, and Arrived when the host's program that carried the line
	// wrote it down; 0 otherwise.
	Time    int64
	Arrived int64
	Guest   bool
	// Uptime is how long the guest's kernel had been up, ns, where a console's
	// line says so ("[    3.065807] …"); its Time is 0 then. 0 where it does not.
	Uptime int64
	// Took is how long runsc's boot timing says that a milestone took since the
	// one before it in its timeline, ns; 0 where it does not say.
	Took       int64
	Level      []byte // trace, debug, info, warning, error, fatal; others as they are written
	Message    []byte // unescaped, cut to maxMessage
	Program    []byte // name=: "kata-runtime", "containerd-shim-v2", "kata-agent", …; else the syslog's or journal's identifier
	Source     []byte // source=: "virtcontainers", "agent", …; glog's "file.go:12"
	Subsystem  []byte // subsystem=; of dockerd and containerd the topic= of an event
	Sandbox    []byte // sandbox=, podsandboxid=, sandboxID=
	Container  []byte // container=, containerID=, containerd's id= where it is a container's
	Pod        []byte // pod= of kubelet's: "namespace/name"
	Request    []byte // CRI-O's id= of a request, name= is Program then
	Error      []byte // error=
	Path       []byte // path= or key= of containerd's: a task's folder, a snapshot's name
	Command    []byte // command=: of Kata 1.x's runtime, "create", "start", "state", …; request-url= of dockerd's
	Suppressed int64  // how many messages this line says that the journal, or who reads it, dropped
	Pid        int    // pid=, or that of the syslog prefix or of the journal; 0 not known
	File       int    // index into the sources
	Line       int64  // from 1
	Cut        bool   // the line ended in the middle: some of the fields may be missing
}

// Stats count what was read, as a record has it, and what of it the record does not need.
// Every line is counted in Lines and in one of Read, Empty and Unreadable.
type Stats struct {
	record.Logs
	Read    int64    // lines that gave an event, or that belong to one which several lines make up
	Empty   int64    // lines with nothing but blanks
	Coarse  int64    // have their time in whole seconds since a program began
	Whole   int64    // have a time of day in whole seconds
	Width   int      // bytes of the longest line
	AtWidth int64    // lines as long as that
	Broken  []Broken // sources that ended before their end
}

// Broken is a source that could not be read to its end. What was read of it before
// counts.
type Broken struct {
	File  int // index into the sources
	Lines int64
	Err   error
}
