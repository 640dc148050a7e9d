package starts

import (
	"bytes"

	"github.com/tare-bench/tare/internal/instrument/startup/logs"
	"github.com/tare-bench/tare/record"
)

// point is a milestone of a start.
type point uint8

// The milestones, in order of occurrence. Kata's milestones apply to its Go runtime,
// Kata 1.x and runtime-rs.
const (
	none point = iota
	firstLine
	podCreated
	podAdded
	mountCalled
	mountReturned
	podCalled
	netCalled
	netReturned
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
	vmDied
	agentAnswers
	pullCalled
	pullReturned
	createCalled
	createReturned
	startCalled
	monitorCalled
	created
	begun
	started
	podReturned
	startReturned
	exited
	seenStarted
	seenRunning
	observed
	execCalled
	execReturned
	lastLine
	points
)

// traits describes the milestones.
var traits = [points]struct {
	name string // display name; phases are named after the two milestones around them
	of   string // kind of the process that runs after this milestone; "": unknown
	is   trait
}{
	firstLine:      {name: "first line"},
	podCreated:     {name: "pod created", is: begins},
	podAdded:       {name: "pod added", is: begins},
	mountCalled:    {name: "volume mount called"},
	mountReturned:  {name: "volumes mounted", is: lasts},
	podCalled:      {"RunPodSandbox called", record.KindDaemon, begins | renews},
	netCalled:      {"CNI called", record.KindDaemon, 0},
	netReturned:    {"CNI returned", record.KindDaemon, 0},
	shimStarted:    {"shim started", record.KindShim, begins},
	called:         {"runtime called", record.KindShim, begins | ofContainer},
	vmBegun:        {"VM begun", record.KindShim, begins | renews},
	vmmLaunched:    {"VMM launched", record.KindVMM, begins | renews},
	vmmAnswers:     {"VMM answers", record.KindVMM, 0},
	vmStarted:      {"VM started", record.KindShim, 0},
	sentryLaunched: {"sentry launched", record.KindVMM, 0},
	sentryStarted:  {"sentry started", record.KindVMM, begins},
	sentryRuns:     {"sentry runs", record.KindVMM, 0},
	sentryReady:    {"sentry ready", record.KindVMM, 0},
	proxyStarted:   {"proxy started", record.KindShim, renews},
	dialled:        {"agent dialled", record.KindVMM, 0},
	vmDied:         {"VM died", record.KindShim, 0},
	agentAnswers:   {"agent answers", record.KindShim, 0},
	pullCalled:     {"image pull called", record.KindDaemon, again},
	pullReturned:   {"image pulled", record.KindDaemon, again},
	createCalled:   {"CreateContainer called", record.KindDaemon, begins | ofContainer},
	createReturned: {"CreateContainer returned", record.KindDaemon, ofContainer},
	startCalled:    {"StartContainer called", record.KindDaemon, begins | ofContainer},
	monitorCalled:  {"conmon called", record.KindDaemon, ofContainer},
	created:        {"container created", record.KindShim, ofContainer},
	begun:          {"container's start called", record.KindShim, ofContainer},
	started:        {"container started", record.KindShim, ofContainer | finishes},
	podReturned:    {"RunPodSandbox returned", record.KindDaemon, finishes},
	startReturned:  {"StartContainer returned", record.KindDaemon, ofContainer | finishes},
	exited:         {"container exited", record.KindDaemon, ofContainer},
	seenStarted:    {"container started", record.KindDaemon, ofContainer | finishes},
	seenRunning:    {name: "pod seen running", is: finishes},
	observed:       {name: "pod observed running", is: finishes},
	execCalled:     {"ExecSync called", record.KindDaemon, begins},
	execReturned:   {"ExecSync returned", record.KindDaemon, finishes},
	lastLine:       {name: "last line"},
}

// phaseNames maps pairs of milestones to the names of phases with a common name.
var phaseNames = map[[2]point]string{
	{pullCalled, pullReturned}: "image pull", {netCalled, netReturned}: "CNI", {mountCalled, mountReturned}: "volume mounts", {startReturned, exited}: "init container runs", {started, exited}: "init container runs",
}

// trait is a set of properties of a milestone.
type trait uint8

const (
	begins      trait = 1 << iota // a start begins here, so its beginning is certain
	renews                        // a second occurrence means that the sandbox is started again
	ofContainer                   // reached once per container; otherwise once per sandbox
	finishes                      // it can end the start
	again                         // may be reached more than once
	lasts                         // the last occurrence counts
)

func (p point) is(t trait) bool { return traits[p].is&t != 0 }

// The calls of Kata.
const (
	kataCreate = "kata create"
	kataStart  = "kata start"
)

// mark is the meaning of an engine or runtime line.
type mark struct {
	point  point
	call   string // the call that begins or ends here
	ends   bool   // the call ends
	weak   bool   // the line at the end of the call marks the same milestone and takes precedence
	over   bool   // the start of the sandbox is over
	undone bool   // the runtime itself reverts the start, without a request
	dies   bool   // the VM, or a process it needs, has died
	asked  bool   // the line answers a query that may occur at any time
}

var marks = map[string]mark{
	"Create() start": {point: called, call: kataCreate},
	"Create() end":   {point: created, call: kataCreate, ends: true},
	"Start() start":  {point: begun, call: kataStart},
	"Start() end":    {point: started, call: kataStart, ends: true},

	"loaded configuration":         {point: called, weak: true},
	"Starting VM":                  {point: vmBegun},
	"QMP details":                  {point: vmmAnswers},
	"VM started":                   {point: vmStarted},
	"vm started from template":     {point: vmStarted},
	"start vm":                     {point: vmStarted}, // runtime-rs logs this after the VM has started
	"proxy started":                {point: proxyStarted},
	"New client":                   {point: dialled},
	"New client connected":         {point: agentAnswers},
	"Agent started in the sandbox": {point: agentAnswers},
	"sending request":              {point: agentAnswers},
	"Sandbox is started":           {point: started, weak: true},
	"Container is started":         {point: started, weak: true},

	"Kill() start": {over: true}, "Delete() start": {over: true}, "Shutdown() start": {over: true}, "Exec() start": {over: true},
	"virtiofsd quits": {dies: true}, "QMP loop has exited": {dies: true}, "hypervisor exited": {dies: true},
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

// opening is the beginning of messages with a mark.
type opening struct {
	text string
	mark mark
}

var openings = []opening{
	{"launching ", mark{point: vmmLaunched}}, // "launching /usr/bin/qemu-system-x86_64 with: [...]"
	{"new runtime handler", mark{point: called}},
	{"====> task service CreateContainer(", mark{point: called, call: kataCreate}},
	{"<==== task service CreateContainer(", mark{point: created, call: kataCreate, ends: true}},
	{"====> task service StartProcess(", mark{point: begun, call: kataStart}},
	{"<==== task service StartProcess(", mark{point: started, call: kataStart, ends: true}},
	{"====> task service ExecProcess(", mark{over: true}},
	{"====> task service KillProcess(", mark{over: true}},
	{"====> task service DeleteProcess(", mark{over: true}},
	{"====> task service ", mark{asked: true}},
	{"<==== task service ", mark{asked: true}},
}

// markOf returns the meaning of a runtime line.
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
	if !bytes.Contains([]byte("ln=<"), msg[:1]) {
		return mark{}
	}
	m, _ := opened(openings, msg)
	return m
}

// opened returns the mark of a message by its beginning, and the rest of the message.
func opened(all []opening, msg []byte) (m mark, rest []byte) {
	for i := range all {
		if rest, ok := bytes.CutPrefix(msg, []byte(all[i].text)); ok {
			return all[i].mark, rest
		}
	}
	return mark{}, nil
}

// opens reports whether the line can begin another start of an emitted sandbox.
func (m mark) opens() bool {
	return m.point == called && !m.weak || m.point.is(renews)
}

// consoleMessage is the message of Kata's log lines that contain guest console output.
const consoleMessage = "reading guest console"

func fromGuest(e *logs.Event) bool {
	return e.Guest || e.Form == logs.Console || e.Form == logs.KataAgent || string(e.Message) == consoleMessage
}
