package starts

import (
	"bytes"
	"slices"

	"github.com/tare-bench/tare/internal/instrument/startup/logs"
	"github.com/tare-bench/tare/record"
)

// runtime processes a Kata line of any form, or a line of unknown form.
func (b *Builder) runtime(e *logs.Event, at int64) {
	if e.Form == logs.KataProxy && string(e.Source) == "agent" {
		return // the agent's own line follows
	}
	m, verb := markOf(e), onceOf(e)
	m.over = m.over || isOver(verb)
	container := e.Container
	if e.Form == logs.KataRS && m.call != "" && len(container) == 0 {
		container = after(e.Message, `container_id: "`, '"')
	}
	s, named := b.whose(e, m, container, verb, at)
	if s == nil {
		return
	}
	if at < s.last-jitter { // the log goes back in time
		b.finish(s)
		b.runtime(e, at)
		return
	}
	if b.settles(s, at) {
		b.runtime(e, at)
		return
	}
	if len(container) == 0 || !isID(container) {
		container = []byte(s.id)
	}
	if s.isAgain(m, container, at) {
		id := s.key
		b.finish(s)
		s = b.sandboxOf([]byte(id), true, at)
	}
	if m.point == called && string(container) != s.id && s.ended != 0 && !s.takes("", false, at) && !slices.Contains(s.containers, string(container)) {
		s = b.apart(s, container, at)
	}
	if named {
		b.speaks(e, s)
	}
	if e.Form != logs.Journal && e.Form != logs.Unknown || bytes.HasPrefix(e.Program, []byte("kata")) || bytes.HasPrefix(e.Program, []byte("containerd-shim-kata")) {
		s.whose |= 1 << logs.Kata // other programs in the same journal are not runtimes
	}
	if !b.leaves(s, e, m, container, at) {
		b.goesOn(s, e, m, container, verb, named, at)
	}
}

// leaves processes a line after which the start, or one of its containers, is over. It
// reports whether it did.
func (b *Builder) leaves(s *sandbox, e *logs.Event, m mark, container []byte, at int64) bool {
	if m.over && !m.undone && string(container) != s.id && slices.Contains(s.containers, string(container)) { // an init container was removed
		s.said(b, e, at, host, mark{}, true)
		s.exit = at
		s.reached(b, mark{point: exited}, at, b.words.keep(container), placeOf(e))
		return true
	}
	switch {
	case m.asked, !m.dies && !m.over:
		return false
	case s.has(dialled) && !s.has(agentAnswers) && (m.dies || m.undone && s.error == ""):
		b.dies(s, e, m.dies, at)
	case !m.over:
		return false
	case m.undone && s.ended == 0 && s.error != "" && s.isCalled():
		// The runtime reverts the start before its call returns. The reason is the first error
		// since the last milestone, so errors from which the runtime recovered do not count.
		s.fails(s.error, s.last)
		b.finish(s)
	default:
		b.finish(s)
	}
	return true
}

// whose returns the sandbox of a line, or nil. named reports whether the line has its
// id.
func (b *Builder) whose(e *logs.Event, m mark, container []byte, verb string, at int64) (s *sandbox, named bool) {
	s, named = b.named(idOr(e.Sandbox, nil), idOr(e.Container, nil), m.opens() && (m.point.is(renews) || b.isSandbox(e, container)), at)
	if s != nil || named {
		return s, named
	}
	s = b.unnamed(e)
	if _, ok := b.pids.m[speaker{e.Pid, e.File}]; !ok && verb != "" {
		b.nameless(e, verb, at) // a new process, which will name its container later
		return nil, false
	}
	if s == nil {
		b.Unplaced++
	}
	return s, false
}

// goesOn processes a line of a start in progress.
func (b *Builder) goesOn(s *sandbox, e *logs.Event, m mark, container []byte, verb string, named bool, at int64) {
	if string(e.Message) == "sending request" && s.has(agentAnswers) {
		m.point = none
	}
	which := laneOf(e.Program, e.Form == logs.KataProxy)
	s.said(b, e, at, which, m, named)
	if s.head.at == 0 && which == host && !m.asked && (m.call == "" || m.ends) {
		s.head = head{at, placeOf(e)}
	}
	if m.call != "" {
		b.called(s, m, container, e, at)
	}
	if verb != "" {
		s.follows(b, e, verb, container, at)
	}
	s.reached(b, m, at, b.nameOf(m, container), placeOf(e))
	s.clock.caused(e, m, container, at)
}

// isSandbox reports whether a line is about the sandbox itself, not about one of its
// other containers.
func (b *Builder) isSandbox(e *logs.Event, container []byte) bool {
	if len(container) == 0 {
		return true
	}
	if isID(e.Sandbox) {
		return bytes.Equal(container, e.Sandbox)
	}
	home, ok := b.containers.m[string(container)]
	return !ok || home == string(container)
}

// nameOf returns the container of a milestone, or "" if it is a milestone of the
// sandbox.
func (b *Builder) nameOf(m mark, container []byte) string {
	if !m.point.is(ofContainer) {
		return ""
	}
	return b.words.keep(container)
}

// called begins or ends a runtime call.
func (b *Builder) called(s *sandbox, m mark, container []byte, e *logs.Event, at int64) {
	id := b.words.keep(container)
	if m.ends {
		s.endsKata(b, m.call, id, at)
		return
	}
	if m.call == kataStart && s.head.at != 0 && len(s.unseen) < maxCalls && !s.knows(kataCreate, id) {
		s.unseen = append(s.unseen, &call{name: kataCreate, place: s.head.place})
	}
	s.begin(&call{name: m.call, kind: record.KindCall, container: id, at: at, place: placeOf(e)})
}

// isAgain reports whether a line begins another start of the same sandbox.
func (s *sandbox) isAgain(m mark, container []byte, at int64) bool {
	if !m.opens() {
		return false
	}
	for i := range s.points {
		have := &s.points[i]
		if have.point != m.point {
			continue
		}
		if m.point.is(renews) {
			return at-have.at > breath || at < have.at-jitter
		}
		if string(container) == s.id && (have.container == s.id || have.weak) && (!have.weak || at-have.at > jitter || at < have.at-jitter) {
			return true
		}
	}
	return false
}

// inOf returns the name of a line's writer: the engine, or the subsystem, source or
// program of the runtime.
func inOf(e *logs.Event) []byte {
	switch name := writers[e.Form].name; {
	case name != nil:
		return name
	case len(e.Subsystem) > 0:
		return e.Subsystem
	case len(e.Source) > 0 && !bytes.Equal(e.Source, e.Sandbox):
		return e.Source
	case len(e.Program) > 0:
		return e.Program
	case e.Form == logs.KataProxy:
		return []byte("proxy")
	}
	return []byte("kata")
}

// apart returns a separate start for a container that was added to a pod long after
// the pod's start.
func (b *Builder) apart(s *sandbox, container []byte, at int64) *sandbox {
	key := s.key + " " + string(container)
	x := b.sandboxOf([]byte(key), true, at)
	x.id, x.name, x.extra = s.id, s.name, added
	b.containers.put(string(container), key)
	return x
}

// dies records that the VM died, or that its sandbox was stopped, while the runtime
// dials the agent. The runtime dials until a timeout and then removes the sandbox.
func (b *Builder) dies(s *sandbox, e *logs.Event, isDead bool, at int64) {
	s.said(b, e, at, host, mark{}, true)
	if s.died.at == 0 {
		s.dead = isDead
		s.died.set(&edge{at: at, text: e.Message, place: placeOf(e)})
		s.reached(b, mark{point: vmDied}, at, "", placeOf(e))
	} else if at-s.died.at > jitter {
		b.finish(s)
	}
}
