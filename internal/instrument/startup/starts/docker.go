package starts

import (
	"bytes"
	"time"

	"github.com/tare-bench/tare/internal/instrument/startup/logs"
	"github.com/tare-bench/tare/record"
)

// docker takes a line of dockerd's debug log, and says whether it was one of a start: a
// request of its API ("Calling POST /v1.41/containers/ID/start"; since 28 "handling POST
// request" with the URL beside it), the sandbox key that sets up a container's network,
// or an event of containerd's.
func (b *Builder) docker(e *logs.Event, at int64) bool {
	if method, id := dockerRequest(e); method != nil {
		return b.dockerCalled(e, at, string(method), id)
	}
	if took, id, ok := bytes.Cut(e.Message, []byte(" for container ")); ok && bytes.HasPrefix(took, sandboxKey) {
		d, err := time.ParseDuration(string(took[len(sandboxKey):]))
		if s := b.known(id); s != nil && err == nil && d >= 0 {
			s.said(b, e, at, host, mark{}, true)
			s.span(b, call{name: "sandbox key", kind: record.KindCNI, container: s.id, at: at - int64(d), place: placeOf(e)}, at)
			return true
		}
		return false
	}
	m, ok := dockerTasks[string(e.Subsystem)]
	if !ok {
		return false
	}
	s := b.known(e.Container)
	if s == nil && len(e.Container) == 0 {
		s = b.theOnly() // older ones do not say of which container
	}
	if s == nil || !s.has(startCalled) {
		b.Unplaced++
		return true
	}
	s.tell(b, e, at, m, s.id)
	return true
}

// dockerStart is the request with which a container's start begins, and dockerTasks are
// containerd's events with which it goes on and ends.
var (
	dockerStart = mark{point: startCalled, call: "POST start"}
	dockerTasks = map[string]mark{"/tasks/create": {point: created}, "/tasks/start": {point: started, call: "POST start", ends: true}}
)

var sandboxKey = []byte("sandbox set key processing took ")

// dockerRequest is what a line says that dockerd was asked for: "create", or the verb
// and the container.
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

// dockerCalled takes a request. No create says which container it makes: it is that of
// the start that comes next, if no other create came between the two.
func (b *Builder) dockerCalled(e *logs.Event, at int64, verb string, id []byte) bool {
	switch verb {
	case "create":
		c := b.calls(e, at, "POST create")
		if b.creates++; b.creates == 1 {
			b.create = c
		}
	case "start":
		if s := b.known(id); s != nil && s.has(startCalled) {
			b.finish(s)
		}
		s := b.sandboxOf(id, true, at)
		if c := b.create; b.creates == 1 && at-c.at < int64(settled) {
			first := c.line()
			s.tell(b, &first, c.at, mark{point: createCalled}, s.id)
		}
		b.creates = 0
		s.tell(b, e, at, dockerStart, s.id)
	case "stop", "kill", "restart", "exec", "pause":
		if s := b.known(id); s != nil {
			b.finish(s)
		}
	default:
		return false
	}
	return true
}
