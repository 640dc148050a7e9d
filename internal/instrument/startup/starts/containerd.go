package starts

import (
	"bytes"

	"github.com/tare-bench/tare/internal/instrument/startup/logs"
	"github.com/tare-bench/tare/record"
)

// containerd takes a line of containerd's or of dockerd's own. What shims write
// into the same log has a form of its own.
func (b *Builder) containerd(e *logs.Event, at int64) {
	msg := e.Message
	id, verb, rest := quoted(msg)
	switch {
	case verb == "":
	case verb == "RunPodSandbox for ":
		b.runPod(e, at, rest)
		return
	case id == nil:
	case verb == "CreateContainer within sandbox ":
		if s := b.known(id); s != nil || b.isNew(id) {
			b.createContainer(b.sandboxOf(id, false, at), e, at, rest)
		}
		return
	case verb == "StartContainer for ":
		if s := b.known(id); s != nil {
			b.startContainer(s, e, at, id, rest)
		} else {
			b.unplaced++
		}
		return
	default: // it is used, stopped or removed
		if s := b.known(id); s != nil {
			b.over(s)
		}
		return
	}
	if b.pulled(e, at) {
		return
	}
	m := mark{over: string(msg) == "shim disconnected"}
	s, named := b.named(e, false, at)
	if s == nil && !named {
		if s, named = b.shim(msg, at); named {
			m.point = shimStarted
		} else {
			s = b.unnamed(e)
		}
	}
	switch {
	case s == nil:
		if !named {
			b.unplaced++
		}
	case b.settles(s, at):
		b.containerd(e, at)
	case named && m.over:
		b.over(s)
	default:
		if named {
			s.whose |= engineOf(e)
		}
		b.pod(s, e)
		s.said(b, e, at, host, m, named, engineName(e))
		s.reached(b, m, at, s.id, placeOf(e))
		b.network(s, e, at)
	}
}

// shim finds the sandbox of "connecting to shim 6ee9f2…".
func (b *Builder) shim(msg []byte, at int64) (*sandbox, bool) {
	id, ok := bytes.CutPrefix(msg, []byte("connecting to shim "))
	if !ok || !isID(id) {
		return nil, false
	}
	if s := b.known(id); s != nil {
		return s, true
	}
	return b.sandboxOf(id, true, at), true
}

func engineOf(e *logs.Event) whose {
	if e.Form == logs.Docker {
		return ofDocker
	}
	return ofContainerd
}

func engineName(e *logs.Event) []byte {
	if e.Form == logs.Docker {
		return []byte("docker")
	}
	return []byte("containerd")
}

// verbs are how messages of containerd's CRI service begin that name what they
// are about in quotes.
var verbs = []string{
	"RunPodSandbox for ", "CreateContainer within sandbox ", "StartContainer for ",
	"StopContainer for ", "StopPodSandbox for ", "RemoveContainer for ", "RemovePodSandbox for ", "Exec for ", "ExecSync for ",
	"TaskExit event container_id:", "received exit event container_id:", "received container exit event container_id:",
	"received sandbox exit event container_id:", "received sandbox container exit event container_id:", "TaskExit event in podsandbox handler container_id:",
	"TaskExit event &TaskExit{ContainerID:",
}

// quoted splits such a message into its verb, the id that it names, and the rest.
// The id is nil where there is none, as with a pod that has none yet.
func quoted(msg []byte) (id []byte, verb string, rest []byte) {
	if len(msg) < 9 || !bytes.Contains(verbInitials, msg[:1]) {
		return nil, "", nil
	}
	for _, v := range verbs {
		if !bytes.HasPrefix(msg, []byte(v)) {
			continue
		}
		rest = msg[len(v):]
		end := byte('"')
		if v[len(v)-2] == 'D' {
			end = ',' // "&TaskExit{ContainerID:…,ID:…"
		} else if len(rest) > 0 && rest[0] == '"' {
			rest = rest[1:]
		} else {
			return nil, v, rest
		}
		i := bytes.IndexByte(rest, end)
		if i < 0 || !isID(rest[:i]) {
			return nil, v, nil
		}
		return rest[:i], v, rest[i+1:]
	}
	return nil, "", nil
}

var verbInitials = []byte("RCSETr")

// isNew says whether nothing is known of an id.
func (b *Builder) isNew(id []byte) bool {
	_, ok := b.done.m[string(id)]
	return !ok
}

// createContainer takes a call of CreateContainer, or its return, which are the
// same if they name the container alike.
func (b *Builder) createContainer(s *sandbox, e *logs.Event, at int64, rest []byte) {
	if s == nil {
		return
	}
	s.whose |= ofContainerd
	const returns = " returns container id "
	name := string(cut(metaOf(rest, "Name")))
	if i := bytes.LastIndex(rest, []byte(returns)); i >= 0 {
		id := bytes.Trim(rest[i+len(returns):], `"`)
		if !isID(id) {
			return
		}
		b.containers.put(string(id), s.id)
		m := mark{point: createReturned}
		s.said(b, e, at, host, m, true, engineName(e))
		s.end(b, "CreateContainer", name, at, b.words.keep(id))
		s.isOf(createCalled, b.words.keep(id))
		s.reached(b, m, at, b.words.keep(id), placeOf(e))
		return
	}
	if isError(e) {
		s.said(b, e, at, host, mark{}, true, engineName(e))
		return
	}
	m := mark{point: createCalled}
	s.said(b, e, at, host, m, true, engineName(e))
	s.begin(call{name: "CreateContainer", kind: record.KindEngine, container: name, at: at, place: placeOf(e)})
	if len(s.points) < maxPoints { // which container it is will be known when it returns
		s.points = append(s.points, moment{point: createCalled, at: at, place: placeOf(e)})
	}
	s.marked = true
	b.isUnderWay(s, true)
}

// startContainer takes a call of StartContainer, or its return.
func (b *Builder) startContainer(s *sandbox, e *logs.Event, at int64, id, rest []byte) {
	container := b.words.keep(id)
	s.whose |= ofContainerd
	if bytes.Contains(rest, []byte("returns successfully")) {
		m := mark{point: startReturned}
		s.said(b, e, at, host, m, true, engineName(e))
		s.end(b, "StartContainer", container, at, "")
		s.reached(b, m, at, container, placeOf(e))
		return
	}
	if isError(e) {
		s.said(b, e, at, host, mark{}, true, engineName(e))
		return
	}
	m := mark{point: startCalled}
	s.said(b, e, at, host, m, true, engineName(e))
	s.begin(call{name: "StartContainer", kind: record.KindEngine, container: container, at: at, place: placeOf(e)})
	s.reached(b, m, at, container, placeOf(e))
}

// network follows the setting up of a pod's network.
func (b *Builder) network(s *sandbox, e *logs.Event, at int64) {
	switch {
	case bytes.Equal(e.Message, []byte("begin cni setup")):
		s.begin(call{name: setUp, kind: record.KindCNI, at: at, place: placeOf(e)})
	case bytes.HasPrefix(e.Message, []byte("cni result")):
		s.end(b, setUp, "", at, "")
	}
}

// setUp is the span of all of a pod's network plugins.
const setUp = "CNI set-up"
