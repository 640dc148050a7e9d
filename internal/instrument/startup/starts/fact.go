package starts

import (
	"bytes"
	"slices"

	"github.com/tare-bench/tare/internal/instrument/startup/logs"
	"github.com/tare-bench/tare/record"
)

// fact is the meaning of a line.
type fact struct {
	mark
	step step
	kind string // kind of the call; "": engine

	sandbox, container []byte                // ids
	pod                []byte                // "namespace/name"
	key                []byte                // links the beginning and the end of a call; nil: name and container link them
	label              []byte                // name of the container in its pod
	attempt            []byte                // of the container; "0" and nil mean the first
	why                []byte                // reason for a failure
	at                 int64                 // time in the text; 0: none
	took               int64                 // duration of a call that is logged only at its end, ns
	stage              []byte                // stage of a pending call
	hint               []byte                // an id that is used only if a start with it is open
	member             []byte                // a container of the pod
	first              func(s *sandbox) bool // the line belongs to the oldest start that satisfies this condition
	opens              bool                  // the line begins a start of the container, even if an earlier start was already emitted
	made               bool                  // this container belongs to the oldest create request
	request            bool                  // other lines of the call have the same key
	own                bool                  // the line belongs to kubelet's view of the pod's start, which is separate
	oldest             bool                  // of several calls with the same key, the oldest is assumed to end first
}

// step is the kind of event that a line reports for a call or a container.
type step uint8

const (
	says    step = iota
	asks         // the call begins
	answers      // the call ends
	refuses      // the call fails
	binds        // the line links a call to its sandbox
	exits        // a container or a sandbox exited
	stops        // a container or a sandbox was stopped or removed
)

// writers has the name of each writer and its rule: a pure function that appends the
// facts of a line to a list. The [Builder] reads Kata and runsc itself.
var writers = [256]struct {
	name []byte
	rule func(e *logs.Event, all []fact) []fact
}{
	logs.Docker: {[]byte("docker"), docker}, logs.Podman: {[]byte("podman"), podman}, logs.Isulad: {[]byte("isulad"), isulad}, logs.CRIO: {[]byte("cri-o"), crio},
	logs.Containerd: {[]byte("containerd"), containerd}, logs.Kubelet: {[]byte("kubelet"), kubelet}, logs.Kubernetes: {[]byte("kubernetes-events"), kubernetes},
	logs.Crun: {[]byte("crun"), crun}, logs.Runsc: {[]byte("runsc"), nil},
}

// engineMarks maps the milestones that begin or end an engine call to marks.
var engineMarks = [points]mark{
	podCalled: {point: podCalled, call: "RunPodSandbox"}, podReturned: {point: podReturned, call: "RunPodSandbox", ends: true},
	createCalled: {point: createCalled, call: "CreateContainer"}, createReturned: {point: createReturned, call: "CreateContainer", ends: true},
	startCalled: {point: startCalled, call: "StartContainer"}, startReturned: {point: startReturned, call: "StartContainer", ends: true},
	pullCalled: {point: pullCalled, call: pullName}, pullReturned: {point: pullReturned, call: pullName, ends: true},
	execCalled: {point: execCalled, call: execSync}, execReturned: {point: execReturned, call: execSync, ends: true},
	netCalled: {point: netCalled, call: setUp}, netReturned: {point: netReturned, call: setUp, ends: true},
}

// returns maps the milestone that begins a call to the one that ends it.
var returns = [points]point{podCalled: podReturned, createCalled: createReturned, startCalled: startReturned, pullCalled: pullReturned, netCalled: netReturned, execCalled: execReturned}

const (
	pullName = "PullImage"
	setUp    = "CNI set-up" // span over all network plugins of a pod
	execSync = "ExecSync"
)

// does returns the fact for an engine milestone.
func does(p point) fact {
	f := fact{mark: engineMarks[p], step: asks}
	if f.ends {
		f.step = answers
	}
	if p == netCalled || p == netReturned {
		f.kind = record.KindCNI
	}
	return f
}

// fails returns the fact for a failed call.
func fails(call string, why []byte) fact {
	return fact{mark: mark{call: call}, step: refuses, why: why}
}

// joined joins words to the key of a call.
func joined(words ...[]byte) []byte { return bytes.Join(words, []byte(" ")) }

// after returns the bytes between text and end, or nil if either is missing.
func after(b []byte, text string, end byte) []byte {
	_, b, _ = bytes.Cut(b, []byte(text))
	if before, _, ok := bytes.Cut(b, []byte{end}); ok {
		return before
	}
	return nil
}

// wordAfter returns the id after text.
func wordAfter(b []byte, text string) []byte {
	_, b, ok := bytes.Cut(b, []byte(text))
	if !ok {
		return nil
	}
	b = bytes.TrimLeft(b, `" `)
	if n := slices.IndexFunc(b, func(c byte) bool { return !idByte[c] || c == ':' }); n >= 0 {
		b = b[:n]
	}
	return idOr(b, nil)
}

// isError reports whether the level of a line is error or fatal.
func isError(e *logs.Event) bool {
	return string(e.Level) == "error" || string(e.Level) == "fatal"
}

// errorOf returns the error text of a line.
func errorOf(e *logs.Event) []byte {
	if len(e.Error) == 0 {
		return e.Message
	}
	return e.Error
}
