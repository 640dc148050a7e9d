package starts

import (
	"bytes"

	"github.com/tare-bench/tare/internal/instrument/startup/logs"
	"github.com/tare-bench/tare/record"
)

// containerd takes a line of containerd's or of dockerd's own. What shims write
// into the same log has a form of its own.
func (b *Builder) containerd(e *logs.Event, at int64) {
	if e.Form == logs.Docker && b.docker(e, at) || b.podRequest(e, at) || b.pulled(e, at) {
		return
	}
	s, named, m := b.told(e, at)
	switch {
	case s == nil:
	case named && m.over:
		b.finish(s)
	default:
		b.pod(s, e)
		s.said(b, e, at, host, m, named)
		s.reached(b, m, at, s.id, placeOf(e))
		switch { // of a pod's network
		case string(e.Message) == "begin cni setup":
			s.begin(call{name: setUp, kind: record.KindCNI, at: at, place: placeOf(e)})
		case bytes.HasPrefix(e.Message, []byte("cni result")):
			s.end(b, setUp, "", at)
		}
	}
}

// told finds the sandbox that a line of containerd's is about: by what it names, be it a
// task's folder or a snapshot of one that is known, as containerd 1.x writes it, or by
// the shim that it connects to, which begins a start; else that of a line without names.
// A shim that is gone ends the gap before it even where it is not said whose it was.
func (b *Builder) told(e *logs.Event, at int64) (s *sandbox, named bool, m mark) {
	m.over = string(e.Message) == "shim disconnected"
	if !isID(e.Sandbox) && !isID(e.Container) {
		if id := e.Path[bytes.LastIndexByte(e.Path, '/')+1:]; len(id) == 64 && isID(id) {
			s = b.known(id)
		}
		if id, ok := bytes.CutPrefix(e.Message, []byte("connecting to shim ")); s == nil && ok && isID(id) {
			m.point = shimStarted
			if s = b.known(id); s == nil {
				s = b.sandboxOf(id, true, at)
			}
		}
		if s != nil && b.settles(s, at) {
			return b.told(e, at)
		} else if s != nil {
			return s, true, m
		}
	}
	s, named = b.of(e, at)
	return s, named, m
}

// podRequest takes a line that tells of a request of CRI's, or of its answer, and says
// whether it was one.
func (b *Builder) podRequest(e *logs.Event, at int64) bool {
	id, verb, rest := quoted(e.Message)
	switch {
	case verb == "RunPodSandbox for ":
		b.runPod(e, at, rest)
	case verb == "" || id == nil:
		return false
	case verb == "CreateContainer within sandbox ":
		_, over := b.done.m[string(id)]
		if s := b.known(id); s != nil || !over {
			b.createContainer(b.sandboxOf(id, false, at), e, at, rest)
		}
	case verb == "StartContainer for ":
		if s := b.known(id); s != nil {
			b.startContainer(s, e, at, id, rest)
		} else {
			b.Unplaced++
		}
	default: // it is used, stopped or removed
		if s := b.known(id); s != nil {
			b.finish(s)
		}
	}
	return true
}

// setUp is the span of all of a pod's network plugins.
const setUp = "CNI set-up"

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
	if len(msg) < 9 || !bytes.Contains([]byte("RCSETr"), msg[:1]) {
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

// createContainer takes a call of CreateContainer, or its return, which are the
// same if they name the container alike.
func (b *Builder) createContainer(s *sandbox, e *logs.Event, at int64, rest []byte) {
	if s == nil {
		return
	}
	name := string(cut(metaOf(rest, "Name")))
	if id, ok := returned(rest, " returns container id "); ok {
		if isID(id) {
			b.containers.put(string(id), s.id)
			container := b.words.keep(id)
			s.isCreated(name, container)
			s.tell(b, e, at, engineMarks[createReturned], container)
		}
		return
	}
	if isError(e) {
		s.said(b, e, at, host, mark{}, true)
		s.fails("CreateContainer: "+string(cut(errorOf(e))), at)
		return
	}
	s.said(b, e, at, host, engineMarks[createCalled], true)
	s.begin(call{name: "CreateContainer", kind: record.KindEngine, container: name, at: at, place: placeOf(e)})
	if len(s.points) < maxPoints { // which container it is will be known when it returns
		s.points = append(s.points, moment{point: createCalled, at: at, place: placeOf(e)})
	}
	s.marked = true
	b.underWay[s] = true
}

// returned is the id that a call returned, which stands last and in quotes.
func returned(rest []byte, returns string) (id []byte, ok bool) {
	i := bytes.LastIndex(rest, []byte(returns))
	if i < 0 {
		return nil, false
	}
	return bytes.Trim(rest[i+len(returns):], `"`), true
}

// startContainer takes a call of StartContainer, or its return.
func (b *Builder) startContainer(s *sandbox, e *logs.Event, at int64, id, rest []byte) {
	p := startCalled
	switch {
	case bytes.Contains(rest, []byte("returns successfully")):
		p = startReturned
	case isError(e):
		p = none
	}
	s.tell(b, e, at, engineMarks[p], b.words.keep(id))
	if p == none {
		s.fails("StartContainer: "+string(cut(errorOf(e))), at)
	}
}

// engineMarks are the milestones with which a call of an engine begins or ends.
var engineMarks = map[point]mark{
	podReturned:  {point: podReturned, call: "RunPodSandbox", ends: true},
	createCalled: {point: createCalled, call: "CreateContainer"}, createReturned: {point: createReturned, call: "CreateContainer", ends: true},
	startCalled: {point: startCalled, call: "StartContainer"}, startReturned: {point: startReturned, call: "StartContainer", ends: true},
}

// pulled takes a line of containerd's about an image: `PullImage "busybox:latest"`,
// `PullImage "busybox:latest" returns image reference "sha256:…"`. It says whether
// it is one.
func (b *Builder) pulled(e *logs.Event, at int64) bool {
	image := after(e.Message, `PullImage "`, '"')
	if image == nil || !bytes.HasPrefix(e.Message, []byte(`PullImage "`)) {
		return false
	}
	key := string(cut(image))
	if !bytes.Contains(e.Message, []byte(`" returns image reference `)) {
		c := b.calls(e, at, pullName)
		b.pulls.put(key, &c)
	} else if c, ok := b.pulls.take(key); ok {
		b.pull(c, e, at)
	} else {
		b.Unplaced++
	}
	return true
}

const pullName = "PullImage"

// calls is an engine's call that begins with a line.
func (b *Builder) calls(e *logs.Event, at int64, name string) call {
	return call{name: name, kind: record.KindEngine, at: at, text: b.words.keep(e.Message), place: placeOf(e), form: e.Form}
}

// pull adds the pulling of an image to the start that waits for it. No engine says
// which that is, so it is done only where one pod alone is up that has no
// container yet.
func (b *Builder) pull(c *call, e *logs.Event, at int64) {
	var s *sandbox
	for x := range b.newestFirst() {
		if !x.has(podReturned) || x.has(createCalled) || x.ended > c.at || c.at-x.ended > int64(settled) {
			continue
		}
		if s != nil {
			s = nil
			break
		}
		s = x
	}
	if s == nil {
		b.Unplaced += 2
		return
	}
	first := c.line()
	s.said(b, &first, c.at, host, mark{}, true)
	s.said(b, e, at, host, mark{}, true)
	s.span(b, *c, at)
}

// line is the line that a call began with.
func (c *call) line() logs.Event {
	return logs.Event{Form: c.form, Time: c.at, Message: []byte(c.text), File: c.place.file, Line: c.place.line}
}
