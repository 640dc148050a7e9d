package starts

import (
	"bytes"

	"github.com/tare-bench/tare/internal/instrument/startup/logs"
)

// point is a milestone of a start.
type point uint8

// The milestones, in the order in which they come. Kata's are those of its Go
// runtime, of Kata 1.x and of runtime-rs, where they mean the same.
const (
	none point = iota
	firstLine
	podAdded
	podCalled
	shimStarted
	called
	vmBegun
	vmmLaunched
	vmmAnswers
	vmStarted
	sentryLaunched
	sentryStarted
	sentryRuns
	sentryReady
	proxyStarted
	dialled
	agentAnswers
	createCalled
	createReturned
	startCalled
	created
	begun
	started
	podReturned
	startReturned
	observed
	lastLine
)

// names are for people. A phase is named by the two that it lies between.
var names = [...]string{
	firstLine: "first line", podAdded: "pod added", observed: "pod observed running", podCalled: "RunPodSandbox called", shimStarted: "shim started", called: "runtime called",
	vmBegun: "VM begun", vmmLaunched: "VMM launched", vmmAnswers: "VMM answers", vmStarted: "VM started",
	sentryLaunched: "sentry launched", sentryStarted: "sentry started", sentryRuns: "sentry runs", sentryReady: "sentry ready",
	proxyStarted: "proxy started", dialled: "agent dialled", agentAnswers: "agent answers",
	createCalled: "CreateContainer called", createReturned: "CreateContainer returned", startCalled: "StartContainer called",
	created: "container created", begun: "container's start called", started: "container started",
	podReturned: "RunPodSandbox returned", startReturned: "StartContainer returned", lastLine: "last line",
}

// mark is what a line of a runtime means.
type mark struct {
	point  point
	call   string // the runtime's call that begins or ends with it
	ends   bool   // the call ends
	weak   bool   // the same will be said once more, by the end of the call
	over   bool   // the sandbox is past its start
	undone bool   // by the runtime itself, where nobody asked it to
	asked  bool   // it answers somebody who asks at any time
}

var marks = map[string]mark{
	"Create() start": {point: called, call: "create"},
	"Create() end":   {point: created, call: "create", ends: true},
	"Start() start":  {point: begun, call: "start"},
	"Start() end":    {point: started, call: "start", ends: true},

	"loaded configuration":         {point: called, weak: true},
	"Starting VM":                  {point: vmBegun},
	"QMP details":                  {point: vmmAnswers},
	"VM started":                   {point: vmStarted},
	"vm started from template":     {point: vmStarted},
	"start vm":                     {point: vmStarted}, // runtime-rs says so when it has started
	"proxy started":                {point: proxyStarted},
	"New client":                   {point: dialled},
	"New client connected":         {point: agentAnswers},
	"Agent started in the sandbox": {point: agentAnswers},
	"sending request":              {point: agentAnswers},
	"Sandbox is started":           {point: started, weak: true},
	"Container is started":         {point: started, weak: true},

	"Kill() start": {over: true}, "Delete() start": {over: true}, "Shutdown() start": {over: true}, "Exec() start": {over: true},
	"Stopping Sandbox": {over: true, undone: true}, "Stopping VM": {over: true, undone: true}, "Stopping sandbox in the VM": {over: true, undone: true},
	"begin stop sandbox": {over: true, undone: true}, "sandbox stopped": {over: true, undone: true}, "delete hypervisor": {over: true, undone: true}, "resource clean up": {over: true, undone: true},
	"shim disconnected": {over: true},

	"State() start": {asked: true}, "State() end": {asked: true}, "Stats() start": {asked: true}, "Stats() end": {asked: true},
	"Pids() start": {asked: true}, "Pids() end": {asked: true}, "Connect() start": {asked: true}, "Connect() end": {asked: true},
	"Wait() start": {asked: true}, "Wait() end": {asked: true},
}

// longestMark is the length of the longest message in marks, in bytes.
var longestMark = func() (n int) {
	for m := range marks {
		n = max(n, len(m))
	}
	return n
}()

// openings are the beginnings of messages that go on with something else.
var openings = []struct {
	text string
	mark mark
}{
	{"launching ", mark{point: vmmLaunched}}, // "launching /usr/bin/qemu-system-x86_64 with: [...]"
	{"new runtime handler", mark{point: called}},
	{"====> task service CreateContainer(", mark{point: called, call: "create"}},
	{"<==== task service CreateContainer(", mark{point: created, call: "create", ends: true}},
	{"====> task service StartProcess(", mark{point: begun, call: "start"}},
	{"<==== task service StartProcess(", mark{point: started, call: "start", ends: true}},
	{"====> task service ExecProcess(", mark{over: true}},
	{"====> task service KillProcess(", mark{over: true}},
	{"====> task service DeleteProcess(", mark{over: true}},
	{"====> task service ", mark{asked: true}},
	{"<==== task service ", mark{asked: true}},
}

// markOf says what a runtime's line means.
func markOf(e *logs.Event) mark {
	msg := e.Message
	if len(msg) == 0 {
		return mark{}
	}
	if len(msg) <= longestMark {
		if m, ok := marks[string(msg)]; ok {
			return m
		}
	}
	switch msg[0] {
	case 'l', 'n', '=', '<':
	default:
		return mark{}
	}
	for i := range openings {
		if o := &openings[i]; bytes.HasPrefix(msg, []byte(o.text)) {
			return o.mark
		}
	}
	return mark{}
}

// renews says whether a milestone that is there already means that the sandbox
// is started again.
func (p point) renews() bool {
	return p == vmBegun || p == vmmLaunched || p == proxyStarted || p == podCalled
}

// opens says whether a line can begin a start of a sandbox whose start has been.
func (m mark) opens() bool {
	return m.point == called && !m.weak || m.point.renews()
}

// consoleMessage is what Kata says of every line of a guest's console.
const consoleMessage = "reading guest console"

func fromGuest(e *logs.Event) bool {
	return e.Guest || e.Form == logs.Console || e.Form == logs.KataAgent || string(e.Message) == consoleMessage
}

// isError says whether a line tells of an error.
func isError(e *logs.Event) bool {
	return string(e.Level) == "error" || string(e.Level) == "fatal"
}
