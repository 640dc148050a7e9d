package starts

import (
	"bytes"
	"time"

	"github.com/tare-bench/tare/internal/instrument/startup/logs"
	"github.com/tare-bench/tare/record"
)

// dockerEvents are the events of docker events, and those of containerd in dockerd's
// log. Older versions do not log the container.
var dockerEvents = map[string]fact{
	"create": {mark: mark{point: createReturned}, opens: true}, "start": {mark: mark{point: started}, opens: true}, "restart": {mark: mark{point: started}, opens: true},
	"die": {step: stops}, "stop": {step: stops}, "kill": {step: stops}, "destroy": {step: stops},
	"/tasks/create": {mark: mark{point: created}, first: (*sandbox).lacksTask},
	"/tasks/start":  {mark: mark{point: started, call: "POST start", ends: true}, first: (*sandbox).hasTask},
	"/tasks/exit":   {step: exits}, "/tasks/delete": {step: exits},
}

// docker returns the facts of a line in dockerd's debug log. Relevant lines are API
// requests, the network set-up of a container, and containerd events. An API request
// is "Calling POST /v1.41/containers/ID/start". Since version 28 it is "handling POST
// request" with the URL as a field. Lines in containerd's form have the same meaning.
func docker(e *logs.Event, all []fact) []fact {
	if f, ok := dockerEvents[string(e.Subsystem)]; ok {
		return append(all, f)
	}
	if string(e.Source) == "docker events" {
		return append(all, fact{hint: e.Container})
	}
	if verb, id := dockerRequest(e); verb != nil {
		switch string(verb) {
		case "create": // the request has no container id
			return append(all, fact{mark: mark{point: createCalled, call: "POST create"}, step: asks})
		case "start":
			return append(all, fact{mark: mark{point: startCalled, call: "POST start"}, step: asks, container: id, key: joined([]byte("POST start"), id), opens: true})
		case "stop", "kill", "restart", "exec", "pause":
			return append(all, fact{step: stops, container: id})
		}
	}
	if took, id, ok := bytes.Cut(e.Message, []byte(" for container ")); ok && bytes.HasPrefix(took, sandboxKey) {
		if d, err := time.ParseDuration(string(took[len(sandboxKey):])); err == nil && d >= 0 && isID(id) {
			return append(all, fact{mark: mark{call: "sandbox key"}, kind: record.KindCNI, hint: id, took: int64(d)})
		}
	}
	if rest, ok := bytes.CutPrefix(e.Message, []byte("Handler for POST ")); ok {
		if url, why, ok := bytes.Cut(rest, []byte(" returned error: ")); ok {
			_, what, _ := bytes.Cut(url, []byte("/containers/"))
			if id, verb, _ := bytes.Cut(what, []byte("/")); string(verb) == "start" && isID(id) {
				f := fails("POST start", why)
				f.container, f.key = id, joined([]byte("POST start"), id)
				return append(all, f)
			}
		}
	}
	if bytes.HasPrefix(e.Message, []byte("container mounted via layerStore")) && isID(e.Container) {
		return append(all, fact{opens: true, made: true})
	}
	return containerd(e, all)
}

var sandboxKey = []byte("sandbox set key processing took ")

// dockerRequest returns the API request in a line: "create", or the verb and the
// container id.
func dockerRequest(e *logs.Event) (verb, id []byte) {
	url := e.Command
	if rest, ok := bytes.CutPrefix(e.Message, []byte("Calling POST ")); ok {
		url = rest
	} else if string(e.Message) != "handling POST request" {
		return nil, nil
	}
	_, what, ok := bytes.Cut(url, []byte("/containers/"))
	what, _, _ = bytes.Cut(what, []byte("?"))
	switch id, verb, both := bytes.Cut(what, []byte("/")); {
	case !ok:
		return nil, nil
	case both && isID(id):
		return verb, id
	case string(what) == "create":
		return what, nil
	}
	return nil, nil
}
