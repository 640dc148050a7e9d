package starts

import (
	"bytes"

	"github.com/tare-bench/tare/internal/instrument/startup/logs"
)

// crioCalls are the calls of a start, with their milestones and the message on
// success. The debug log also has a response.
var crioCalls = map[string]struct {
	point point
	done  string
}{
	"RunPodSandbox": {podCalled, "Ran pod sandbox "}, "CreateContainer": {createCalled, "Created container "},
	"StartContainer": {startCalled, "Started container"}, pullName: {pullCalled, "Pulled image: "}, execSync: {execCalled, "Response: "},
	"StopContainer": {}, "StopPodSandbox": {}, "RemovePodSandbox": {}, // these occur after a start
}

// crio returns the facts of a CRI-O line. The lines of one call have the same request
// id. Their program is the name of the call:
// "/runtime.v1.RuntimeService/RunPodSandbox".
func crio(e *logs.Event, all []fact) []fact {
	method := e.Program[bytes.LastIndexByte(e.Program, '/')+1:]
	f := fact{stage: stageOf(e)}
	call, ok := crioCalls[string(method)]
	switch {
	case len(e.Request) == 0 || len(e.Request) > maxID || len(e.Program) == len(method):
		crioNetwork(e, &f)
		return append(all, f)
	case !ok: // a status query
		return append(all, f)
	case call.point == none:
		return append(all, fact{step: stops, container: crioID(e)})
	default:
		stage := f.stage
		f = does(call.point)
		f.stage, f.request = stage, true
		if bytes.HasPrefix(e.Message, []byte(call.done)) || bytes.HasPrefix(e.Message, []byte("Response: ")) && call.point != pullCalled {
			f = does(returns[call.point])
		}
	}
	f.key = e.Request
	if call.point == execCalled {
		f.label = after(e.Message, "Cmd:[", ']')
	}
	why, ok := bytes.CutPrefix(e.Message, []byte("Response error: "))
	if !ok && isError(e) && f.point == createCalled {
		why, ok = bytes.CutPrefix(e.Message, []byte("Container creation error: "))
	}
	if ok {
		f.step, f.mark, f.why = refuses, mark{call: f.call}, why
	}
	crioNames(e, &f)
	return append(all, f)
}

// crioNames sets the object of a call from a line: "Running pod sandbox: ns/name/POD",
// "Ran pod sandbox ID with infra container: ns/name/POD", "Created container ID:
// ns/pod/name", "Started container ID: ns/pod/name". In the debug log it uses the
// fields of requests.
func crioNames(e *logs.Event, f *fact) {
	id := crioID(e)
	if p := f.point; p == podCalled || p == podReturned {
		f.sandbox = id
	} else {
		f.container = id
	}
	if id := after(e.Message, "PodSandboxId:", ','); isID(id) {
		if f.sandbox = id; string(f.container) == string(id) {
			f.container = nil
		}
	}
	name := e.Message[bytes.LastIndexByte(e.Message, ' ')+1:]
	if bytes.Count(name, []byte("/")) == 2 && !bytes.Contains(name, []byte("//")) && name[0] != '/' && bytes.Contains(e.Message, []byte(": ")) && f.point != pullCalled && f.point != pullReturned {
		last := bytes.LastIndexByte(name, '/')
		f.pod, f.label = name[:last], name[last+1:]
	}
}

// crioNetwork processes "Adding pod ns_p to CNI network" and "Got pod network &{Name:p
// Namespace:ns ID:…". These lines have the pod's id before RunPodSandbox returns.
// CRI-O logs the second one again when it removes the pod.
func crioNetwork(e *logs.Event, f *fact) {
	if rest, ok := bytes.CutPrefix(e.Message, []byte("Adding pod ")); ok {
		name, _, _ := bytes.Cut(rest, []byte(" "))
		space, name, _ := bytes.Cut(name, []byte("_"))
		*f = does(netCalled)
		f.pod = podName(space, name)
		f.key = joined([]byte("net"), f.pod)
	}
	if bytes.HasPrefix(e.Message, []byte("Got pod network &{")) {
		if id := after(e.Message, " ID:", ' '); isID(id) {
			pod := podName(after(e.Message, " Namespace:", ' '), after(e.Message, "{Name:", ' '))
			*f = does(netReturned)
			f.sandbox, f.pod, f.key = id, pod, joined([]byte("net"), pod)
		}
	}
}

// crioID returns the sandbox or container id in a line, or nil.
func crioID(e *logs.Event) []byte {
	for _, v := range [][]byte{e.Container, e.Sandbox} {
		if isID(v) {
			return v
		}
	}
	for _, begin := range []string{
		"Ran pod sandbox ", "Created container ", "Starting container: ", "Started container ", "Stopping container: ", "Stopped container ",
		"Stopping pod sandbox: ", "Stopped pod sandbox: ", "Removing pod sandbox: ", "Removed pod sandbox: ",
	} {
		if rest, ok := bytes.CutPrefix(e.Message, []byte(begin)); ok {
			return wordAfter(rest, "")
		}
	}
	if bytes.HasPrefix(e.Message, []byte("Response: ")) || bytes.HasPrefix(e.Message, []byte("Request: ")) {
		for _, begin := range []string{"ContainerId:", "PodSandboxId:"} {
			if id := after(e.Message, begin, ','); isID(id) {
				return id
			}
		}
	}
	return nil
}

// stageOf returns the stage of a container creation in a line: "Currently at stage
// container creating. Waiting up to …".
func stageOf(e *logs.Event) []byte {
	for _, text := range [][]byte{e.Message, e.Error} {
		if _, stage, ok := bytes.Cut(text, []byte("urrently at stage ")); ok {
			if end := bytes.IndexAny(stage, ".:\""); end >= 0 {
				stage = stage[:end]
			}
			return stage
		}
	}
	return nil
}
