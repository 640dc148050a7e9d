package starts

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/instrument/startup/logs"
	"github.com/tare-bench/tare/record"
)

// asks processes the beginning of a call. c is the previous call with the same key, or
// nil.
func (b *Builder) asks(e *logs.Event, f *fact, c *call, at int64) {
	n := &call{name: f.call, kind: cmp.Or(f.kind, record.KindEngine), point: f.point, at: at, text: b.words.keep(e.Message), place: placeOf(e), form: e.Form,
		pod: string(cut(f.pod)), container: b.words.keep(f.container), label: string(cut(f.label)), key: string(f.key), oldest: f.oldest}
	if f.key == nil {
		n.key = "create at " + b.source(n.place)
		if b.creates = append(b.creates, n); len(b.creates) > maxCalls {
			b.creates = b.creates[1:]
		}
		return
	}
	if c != nil && !c.over && (f.oldest && c.older < maxCalls || c.s == nil && f.point == podCalled) {
		n.first, n.older = c, c.older+1 // c is still pending
	}
	b.calls.put(n.key, n)
	if f.point == podCalled {
		b.repeats(n)
	}
	s := b.home(e, f, n, at)
	if s == nil {
		return
	}
	n.s = s
	if f.point == createCalled {
		b.creating = true
		if n.first = s.creating(n.label); n.first != nil { // a retry: the first call is still pending
			s.said(b, e, at, host, mark{}, true)
			return
		}
	}
	if f.point == startCalled && len(b.creates) == 1 && s.began == 0 && at-b.creates[0].at < int64(settled) {
		b.adopt(s, b.creates[0])
	}
	if f.opens {
		b.creates = nil
	}
	s.unasked = s.unasked && f.point != startCalled
	s.said(b, e, at, host, f.mark, true)
	s.begin(n)
	s.reached(b, f.mark, at, b.nameOf(f.mark, f.container), placeOf(e))
	if f.point == createCalled {
		s.member(n.label, "").at = at
	}
}

// home returns the start of a new call, or nil if it is not known yet.
func (b *Builder) home(e *logs.Event, f *fact, c *call, at int64) *sandbox {
	switch f.point {
	case execCalled:
		s := b.sandboxOf([]byte(execSync+" at "+b.source(c.place)), true, at)
		s.id, s.name, s.extra = c.container, c.label, execSync
		return s
	case createCalled:
		if !f.opens {
			return b.forContainer(f, at)
		}
		if pod := b.calls.m[string(isulaCreate)]; pod != nil && !pod.over && pod.s != nil {
			b.containers.put(string(f.container), pod.s.key)
			return nil // the CRI call records it
		}
		return b.sandboxOf(f.container, true, at)
	case startCalled:
		s := b.known(f.container)
		_, over := b.containers.m[string(f.container)]
		switch {
		case f.opens:
			return b.homeOf(f.container, s, at)
		case s != nil || over: // if it is over, its start was already emitted
			return s
		}
		if s := b.waitsFor(c, true); s != nil && e.Form != logs.CRIO {
			b.containers.put(string(f.container), s.key)
			return s
		}
	case pullCalled:
		return b.waitsFor(c, false)
	case netCalled:
		if f.sandbox != nil {
			return b.sandboxOf(f.sandbox, false, at)
		}
	}
	return nil
}

// homeOf returns the start of a container that an engine starts without CRI. s is the
// known start with this container, or nil.
func (b *Builder) homeOf(container []byte, s *sandbox, at int64) *sandbox {
	switch {
	case s != nil && s.key != string(container):
		return nil // the CRI call records it
	case s != nil && s.has(startCalled):
		b.finish(s)
	case s != nil && !b.settles(s, at):
		return s
	}
	return b.sandboxOf(container, true, at)
}

// forContainer returns the start that a new container belongs to. This is normally the
// start of its pod. A container that is restarted or added later has a separate start.
func (b *Builder) forContainer(f *fact, at int64) *sandbox {
	label, again := string(cut(f.label)), len(f.attempt) > 0 && string(f.attempt) != "0"
	var s *sandbox
	key := string(f.sandbox)
	if f.sandbox != nil {
		s = b.known(f.sandbox)
	} else if f.pod != nil {
		if key = b.pods.m[string(f.pod)]; key == "" {
			key = idless + string(cut(f.pod))
		}
		s = b.open[key]
	}
	was, over := b.done.m[key]
	switch {
	case key == "":
		return nil
	case s != nil && (s.creating(label) != nil || s.takes(label, again, at)):
		b.touch(s)
		return s
	case s == nil && !over && !again:
		s = b.sandboxOf([]byte(key), true, at)
		b.naming(s, string(cut(f.pod)))
		return s
	}
	extra := added
	if again || s != nil && s.hasMember(label) || label != "" && strings.Contains(was.labels, " "+label+" ") {
		extra = restart
	}
	name := was.name
	if s != nil {
		name = s.name
	}
	own := key + " " + label
	if x := b.open[own]; x != nil {
		b.finish(x)
	}
	x := b.sandboxOf([]byte(own), true, at)
	x.id, x.name, x.extra = key, cmp.Or(name, string(cut(f.pod))), extra
	return x
}

// The values of extra for starts that are not the start of a pod.
const (
	restart = "restart"
	added   = "added container"
)

// waitsFor guesses the start of a call without an id: the only running pod that has no
// container yet. It returns nil if several pods qualify.
func (b *Builder) waitsFor(c *call, starts bool) (s *sandbox) {
	for x := range b.newestFirst() {
		if !x.has(podReturned) || x.has(createCalled) || starts && x.has(startCalled) || x.ended > c.at || c.at-x.ended > int64(settled) {
			continue
		}
		if s != nil {
			return nil
		}
		s = x
	}
	return s
}

// adopt assigns a call to a start that was unknown when the call began.
func (b *Builder) adopt(s *sandbox, c *call) {
	c.s = s
	if c.container == "" && c.point.is(ofContainer) {
		c.container = s.id
	}
	b.naming(s, c.pod)
	s.unasked = s.began == 0 && (c.form == logs.Docker || c.name == "podman create")
	s.whose |= 1 << c.form
	s.stage = cmp.Or(s.stage, c.stage)
	s.events += 1 + c.lines
	s.edges++
	x := edge{at: c.at, text: []byte(c.text), in: writers[c.form].name, place: c.place, mark: true}
	switch {
	case s.began == 0:
		s.suppressed, s.last = b.suppressed, c.at
		s.first.set(&x)
		s.lanes[host].last.set(&x)
		s.lanes[host].milestone.set(&x)
	case s.first.at-c.at >= breath:
		s.keep(b, &x, &s.first, 0)
	case c.at >= s.lanes[host].last.at:
		s.edge(b, host, &x)
	}
	if s.began == 0 || c.at < s.began {
		s.began, s.at = c.at, c.place
	}
	if c.point != createCalled || c.form != logs.Docker && c.form != logs.Podman { // docker and podman do not log the end of create
		s.begin(c)
	}
	s.reached(b, mark{point: c.point}, c.at, b.nameOf(mark{point: c.point}, []byte(c.container)), c.place)
}

// join assigns a RunPodSandbox call to the sandbox that it created.
func (b *Builder) join(c *call, id []byte, at int64) *sandbox {
	if s, ok := b.open[string(id)]; ok && s.has(podCalled) && !slices.Contains(s.calls, c) {
		b.finish(s)
	}
	s := b.sandboxOf(id, true, at)
	if c.first != nil && !c.oldest {
		b.finish(b.alone(c.first))
	}
	b.adopt(s, c)
	return s
}

// naming records the pod name of a start.
func (b *Builder) naming(s *sandbox, pod string) {
	if pod != "" {
		s.name = cmp.Or(s.name, pod)
		b.pods.put(pod, s.key)
	}
}

// rename sets the sandbox id of a start.
func (b *Builder) rename(s *sandbox, id string) {
	delete(b.open, s.key)
	for _, c := range s.containers {
		b.containers.put(c, id)
	}
	s.id, s.key = id, id
	b.open[id] = s
	b.naming(s, s.name)
}

// alone returns a start that consists of a single call.
func (b *Builder) alone(c *call) *sandbox {
	s := b.sandboxOf([]byte(idless+c.key), true, c.at)
	b.adopt(s, c)
	if s.unasked = false; !slices.Contains(s.calls, c) {
		s.begin(c)
	}
	return s
}

// idless is the key prefix of starts without a sandbox id. Ids have no blank.
const idless = "pod "

// isIdless reports whether a key has no sandbox id.
func isIdless(key string) bool { return strings.HasPrefix(key, idless) }

// repeats records the latest RunPodSandbox call of a pod. It links the call to a
// pending earlier one.
func (b *Builder) repeats(c *call) {
	if before := b.calls.m[runOf(c.pod)]; before != nil && before != c && !before.over && before.s == nil && !c.oldest {
		c.first = before
	}
	b.calls.put(runOf(c.pod), c)
}

// runOf returns the key of a pod's RunPodSandbox call.
func runOf(pod string) string { return "run " + pod }
