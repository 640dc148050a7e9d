package starts

import (
	"bytes"

	"github.com/tare-bench/tare/internal/instrument/startup/logs"
)

// isulaEvents are iSulad's events, "Event: {Object: ID, Type: Starting}", by prefix of
// the type. The type of CRI events contains their object.
var isulaEvents = []struct {
	isCRI bool
	begin string
	point point
	step  step
}{
	{false, "Creating", createCalled, asks}, {false, "Created", createReturned, answers}, {false, "Starting", startCalled, asks}, {false, "Running", startReturned, answers},
	{false, "Stopping", none, stops}, {false, "Killing", none, stops}, {false, "Deleting", none, stops},
	{true, "Running Pod", podCalled, asks}, {true, "Run Pod", podReturned, answers}, {true, "Creating Container", createCalled, asks}, {true, "Created Container", createReturned, answers},
	{true, "Starting Container", startCalled, asks}, {true, "Started Container", startReturned, answers}, {true, "Pulling image", pullCalled, asks}, {true, "Pulled image", pullReturned, answers},
	{true, "Failed to run pod", podCalled, refuses}, {true, "Failed to create container", createCalled, refuses}, {true, "Failed to start container", startCalled, refuses},
	{true, "Stopping", none, stops}, {true, "Removing", none, stops},
}

// isulad returns the facts of an iSulad line.
func isulad(e *logs.Event, all []fact) []fact {
	_, rest, ok := bytes.Cut(e.Message, []byte("Object: "))
	object, kind, has := bytes.Cut(rest, []byte(", Type: "))
	if !ok || !has {
		return append(all, fact{hint: e.Container})
	}
	kind = bytes.TrimSuffix(kind, []byte("}"))
	isCRI := string(object) == "CRI"
	for _, v := range isulaEvents {
		if v.isCRI != isCRI || !bytes.HasPrefix(kind, []byte(v.begin)) {
			continue
		}
		what := bytes.TrimLeft(kind[len(v.begin):], ": ")
		last := object
		if isCRI {
			whole := bytes.TrimSuffix(what, []byte(" success"))
			last = whole[bytes.LastIndexByte(whole, ' ')+1:]
		}
		f := does(v.point)
		if f.step = v.step; v.step == refuses {
			f = fails(f.call, kind)
		} else if v.point == none {
			return append(all, fact{step: stops, container: last})
		}
		f.names(v.point, last, what, isCRI)
		return append(all, f)
	}
	return append(all, fact{hint: e.Container})
}

// isulaCreate is the key of CRI CreateContainer calls. iSulad logs the container id
// only when the call returns.
var isulaCreate = []byte("isulad create")

// names sets the object and the key of an iSulad event.
func (f *fact) names(p point, id, what []byte, isCRI bool) {
	f.container, f.key = id, joined([]byte("isulad"), []byte(f.call), id)
	switch {
	case !isCRI:
		f.opens = p == createCalled || p == startCalled
	case p == podCalled:
		f.container, f.pod, f.oldest, f.key = nil, what, true, []byte("isulad pod")
	case p == podReturned:
		f.container, f.sandbox, f.oldest, f.key = nil, id, true, []byte("isulad pod")
	case p == createCalled:
		f.container, f.sandbox, f.oldest, f.key = nil, id, true, isulaCreate
	case p == createReturned:
		f.oldest, f.key = true, isulaCreate
	case p == pullCalled || p == pullReturned:
		f.container = nil
	default:
		f.key = joined([]byte("isulad CRI"), id)
	}
}
