package starts

import (
	"bytes"

	"github.com/tare-bench/tare/internal/instrument/startup/logs"
)

// isulaEvents are iSulad's events, "Event: {Object: ID, Type: Starting}", by how their type
// begins. Those of CRI name no object but stand in the type.
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

// isulad says what a line of iSulad's log means.
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
		f := does(v.point)
		if f.step = v.step; v.step == refuses {
			f = fails(f.call, kind)
		} else if v.point == none {
			return append(all, fact{step: stops, container: wordAfter(joined(object, what), lastWord(what, object, isCRI))})
		}
		f.names(v.point, object, what, isCRI)
		return append(all, f)
	}
	return append(all, fact{hint: e.Container})
}

// isulaCreate is the key of CRI's calls of CreateContainer, of which no line says which
// container it makes before it returns.
var isulaCreate = []byte("isulad create")

// lastWord is the text before the id.
func lastWord(what, object []byte, isCRI bool) string {
	if !isCRI {
		return ""
	}
	i := bytes.LastIndexByte(what, ' ')
	return string(joined(object, what[:i+1]))
}

// names sets what an event of iSulad's is about.
func (f *fact) names(p point, object, what []byte, isCRI bool) {
	last := what[bytes.LastIndexByte(what, ' ')+1:]
	switch {
	case !isCRI:
		f.container, f.opens = object, p == createCalled || p == startCalled
		f.key = joined([]byte("isulad"), []byte(f.call), object)
	case p == podCalled:
		f.pod, f.oldest, f.key = what, true, []byte("isulad pod")
	case p == podReturned:
		f.sandbox, f.oldest, f.key = wordAfter(what, ""), true, []byte("isulad pod")
	case p == createCalled:
		f.sandbox, f.oldest, f.key = last, true, isulaCreate
	case p == createReturned:
		f.container, f.oldest, f.key = last, true, isulaCreate
	case p == pullCalled, p == pullReturned:
		f.key = joined([]byte("pull"), last)
	default:
		f.container, f.key = last, joined([]byte("isulad CRI"), last)
	}
}
