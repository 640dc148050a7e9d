package starts

import (
	"bytes"

	"github.com/tare-bench/tare/internal/instrument/startup/logs"
	"github.com/tare-bench/tare/record"
)

// fact is what one line says.
type fact struct {
	mark
	step step
	kind string // of the call; "": the engine's

	sandbox, container []byte                // ids
	pod                []byte                // "namespace/name"
	key                []byte                // joins the begin of a call with its end; nil: its name and container do
	label              []byte                // the container's name in its pod
	attempt            []byte                // of the container; "0" and nil are the first
	why                []byte                // it failed
	at                 int64                 // where the text has a time of its own
	took               int64                 // of a call of which only the end is logged, ns
	stage              []byte                // the stage at which a call that has not returned stands
	hint               []byte                // an id that counts only where a start of it is open
	member             []byte                // a container of the pod
	first              func(s *sandbox) bool // the line is of the oldest start for which this holds
	opens              bool                  // a start of its container begins here, though one was given out before
	made               bool                  // the container that the oldest request to create one asked for
	request            bool                  // further lines of the same call have its key
	own                bool                  // it is about the start of the pod as kubelet sees it
	oldest             bool                  // of several calls with its key, the oldest ends first: a guess
}

// step is what happens to a call, or to a container.
type step uint8

const (
	says    step = iota
	asks         // the call begins
	answers      // the call ends
	refuses      // the call fails
	binds        // the line says which sandbox a call is about
	exits        // a container, or a sandbox, is gone
	stops        // a container, or a sandbox, is stopped or removed
)

// rules are the pure functions from a line to facts, by writer. Each appends to a list.
var rules = [256]func(e *logs.Event, all []fact) []fact{
	logs.Containerd: containerd, logs.CRIO: crio, logs.Docker: docker, logs.Podman: podman, logs.Kubelet: kubelet, logs.Isulad: isulad, logs.Crun: crun, logs.Kubernetes: kubernetes,
}

// engineMarks are the milestones with which a call of an engine begins or ends.
var engineMarks = [points]mark{
	podCalled: {point: podCalled, call: "RunPodSandbox"}, podReturned: {point: podReturned, call: "RunPodSandbox", ends: true},
	createCalled: {point: createCalled, call: "CreateContainer"}, createReturned: {point: createReturned, call: "CreateContainer", ends: true},
	startCalled: {point: startCalled, call: "StartContainer"}, startReturned: {point: startReturned, call: "StartContainer", ends: true},
	pullCalled: {point: pullCalled, call: pullName}, pullReturned: {point: pullReturned, call: pullName, ends: true},
	execCalled: {point: execCalled, call: execSync}, execReturned: {point: execReturned, call: execSync, ends: true},
	netCalled: {point: netCalled, call: setUp}, netReturned: {point: netReturned, call: setUp, ends: true},
}

// returns are the milestones with which calls end, by those with which they begin.
var returns = [points]point{podCalled: podReturned, createCalled: createReturned, startCalled: startReturned, pullCalled: pullReturned, netCalled: netReturned, execCalled: execReturned}

const (
	pullName = "PullImage"
	setUp    = "CNI set-up" // the span of all of a pod's network plugins
	execSync = "ExecSync"
)

// does is a fact of an engine's milestone.
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

// fails is a fact of a call that failed.
func fails(call string, why []byte) fact {
	return fact{mark: mark{call: call}, step: refuses, why: why}
}

// joined joins words to a key.
func joined(words ...[]byte) []byte { return bytes.Join(words, []byte(" ")) }

// after returns what stands between a text and a byte, nil if there is no such.
func after(b []byte, text string, end byte) []byte {
	_, b, _ = bytes.Cut(b, []byte(text))
	if before, _, ok := bytes.Cut(b, []byte{end}); ok {
		return before
	}
	return nil
}

// wordAfter returns the id that follows a text.
func wordAfter(b []byte, text string) []byte {
	_, b, ok := bytes.Cut(b, []byte(text))
	if !ok {
		return nil
	}
	b = bytes.TrimLeft(b, `" `)
	n := 0
	for n < len(b) && idByte[b[n]] && b[n] != ':' {
		n++
	}
	if n == 0 || n > maxID {
		return nil
	}
	return b[:n]
}

// isError says whether a line tells of an error.
func isError(e *logs.Event) bool {
	return string(e.Level) == "error" || string(e.Level) == "fatal"
}

// errorOf is what a line says of an error.
func errorOf(e *logs.Event) []byte {
	if len(e.Error) == 0 {
		return e.Message
	}
	return e.Error
}
