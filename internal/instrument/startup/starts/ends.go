package starts

import (
	"cmp"
	"slices"
	"time"

	"github.com/tare-bench/tare/internal/instrument/startup/logs"
)

// ends processes the end of a call, or a line that links a call to its sandbox.
func (b *Builder) ends(e *logs.Event, f *fact, c *call, at int64) {
	if run := b.calls.m[runOf(string(f.pod))]; f.point == netReturned && run != nil && run.s == nil && !run.over {
		b.join(run, f.sandbox, at)
	}
	s := b.startOf(e, f, c, at)
	if f.step == binds || c == nil && f.point == netReturned {
		f.mark = mark{}
		b.says(e, f, at)
		return
	}
	if c != nil {
		c.over = true
	}
	switch {
	case f.step == refuses:
		b.fails(e, f, c, s, at)
	case s != nil:
		b.succeeds(e, f, c, s, at)
	case c != nil && c.s == nil && c.point == createCalled && f.container != nil: // its start is known once the container starts
		c.container, c.end = b.words.keep(f.container), &call{at: at, text: b.words.keep(e.Message), place: placeOf(e), form: e.Form}
		b.calls.put("created "+c.container, c)
	case c == nil || c.name == pullName:
		b.Unplaced += 2
	}
}

// startOf returns the start in progress of a call that ended, or nil.
func (b *Builder) startOf(e *logs.Event, f *fact, c *call, at int64) (s *sandbox) {
	switch {
	case c == nil && f.step != binds && f.point != netReturned && f.point != execReturned:
		s, _ = b.find(e, f, at)
	case c != nil && c.s == nil && !c.over:
		s = b.bind(c, f, at)
	case c != nil && c.s != nil && b.open[c.s.key] == c.s:
		s = c.s
	}
	if s != nil && b.settles(s, at) {
		return nil
	}
	return s
}

// succeeds processes the end of a successful call.
func (b *Builder) succeeds(e *logs.Event, f *fact, c *call, s *sandbox, at int64) {
	b.touch(s)
	if isIdless(s.key) && f.sandbox != nil && b.open[string(f.sandbox)] == nil {
		b.rename(s, string(f.sandbox))
	}
	container := ""
	switch {
	case f.container != nil && f.point.is(ofContainer):
		container = b.words.keep(f.container)
		b.containers.put(string(f.container), s.key)
	case f.point == createReturned:
		return
	case c != nil && f.point.is(ofContainer):
		container = c.container
	}
	s.said(b, e, at, host, f.mark, true)
	b.returned(s, f.mark, c, string(cut(f.label)), container, at, placeOf(e))
	if s.extra == execSync {
		b.finish(s)
	}
}

// returned records the end of a call.
func (b *Builder) returned(s *sandbox, m mark, c *call, label, container string, at int64, p place) {
	if m.point == createReturned {
		s.isCreated(c, label, container)
	}
	if c != nil {
		s.endCall(b, c, at)
	} else {
		s.end(b, m.call, container, at)
	}
	s.reached(b, m, at, container, p)
	if m.point == startReturned {
		s.member("", container).ran = true
	}
}

// bind assigns a call to its start, which was unknown when the call began, and returns
// that start. It returns nil if the start is still unknown.
func (b *Builder) bind(c *call, f *fact, at int64) (s *sandbox) {
	switch c.point {
	case podCalled:
		if f.sandbox != nil {
			return b.join(c, f.sandbox, at)
		}
	case pullCalled:
		s = b.waitsFor(c, false)
	case netCalled:
		s = b.known(f.sandbox)
	case startCalled:
		if f.step == refuses && f.sandbox == nil {
			return nil
		}
		c.container = cmp.Or(c.container, b.words.keep(f.container))
		_, over := b.containers.m[c.container]
		if f.sandbox != nil {
			s = b.known(f.sandbox)
		}
		if made := b.calls.m["created "+c.container]; s != nil && made != nil && made.s == nil {
			b.adopt(s, made)
			line := made.end.line()
			s.said(b, &line, line.Time, host, engineMarks[createReturned], true)
			b.returned(s, engineMarks[createReturned], made, "", made.container, line.Time, made.end.place)
			b.containers.put(made.container, s.key)
		}
		if s == nil && c.container != "" && !over {
			s = b.sandboxOf([]byte(cmp.Or(string(f.sandbox), c.container)), true, at)
		}
	}
	if s == nil || b.settles(s, at) {
		return nil
	}
	b.adopt(s, c)
	return s
}

// fails processes a failed call.
func (b *Builder) fails(e *logs.Event, f *fact, c *call, s *sandbox, at int64) {
	isRetry := c != nil && c.first != nil && !c.oldest
	if s == nil && c != nil && c.s == nil {
		s = b.alone(c)
		if isRetry { // the first call may still return
			b.calls.put(c.key, c.first)
		}
	}
	if s == nil {
		return
	}
	s.said(b, e, at, host, mark{}, true)
	if isRetry && c.point == createCalled {
		s.error = b.words.keep(f.why)
		return
	}
	why := f.call + ": " + string(f.why[:min(len(f.why), maxWhy)])
	if isRetry {
		why = "retry, while the call since " + time.Unix(0, c.first.at).UTC().Format("15:04:05.000") + " has not returned: " + why
	}
	if c != nil {
		s.calls = slices.DeleteFunc(s.calls, func(x *call) bool { return x == c })
		s.members = slices.DeleteFunc(s.members, func(m member) bool { return c.point == createCalled && m.label == c.label && m.id == "" })
	}
	s.fails(why, at)
	if f.call == "RunPodSandbox" || s.extra == execSync {
		b.finish(s)
	}
}

// lineOf processes a line of a call between its beginning and its end.
func (b *Builder) lineOf(c *call, e *logs.Event, f *fact, at int64) {
	if c.pod == "" && f.pod != nil {
		if c.pod = string(cut(f.pod)); c.point == podCalled {
			b.repeats(c)
		}
	}
	if f.stage != nil {
		c.stage = b.words.keep(f.stage)
	}
	switch {
	case c.s != nil || c.over:
	case c.point == podCalled && f.sandbox != nil:
		b.join(c, f.sandbox, at)
	case c.point == createCalled && f.sandbox != nil:
		c.s = b.known(f.sandbox)
	case c.point == startCalled && f.container != nil && c.container == "":
		c.container = b.words.keep(f.container)
		if s := b.known(f.container); s != nil {
			b.adopt(s, c)
		}
	}
	switch s := c.s; {
	case s == nil:
		c.lines++
	case b.open[s.key] == s:
		b.touch(s)
		b.naming(s, c.pod)
		s.stage = cmp.Or(c.stage, s.stage)
		s.said(b, e, at, host, mark{}, true)
	}
}

// gone processes the exit or removal of a container or a sandbox.
func (b *Builder) gone(e *logs.Event, f *fact, at int64) {
	id := f.container
	if id == nil {
		id = f.sandbox
	}
	if id == nil {
		b.says(e, f, at)
		return
	}
	s := b.known(id)
	if s == nil {
		return
	}
	if f.step == exits && (s.isStarting() || string(id) != s.id) {
		s.said(b, e, at, host, mark{}, true)
		container := b.words.keep(id)
		if m := s.find("", container); m != nil && m.ran && !m.gone {
			m.gone, s.exit = true, at
			s.reached(b, mark{point: exited}, at, container, placeOf(e))
		}
		return
	}
	if m := s.find("", string(id)); m == nil || !m.gone {
		s.stopped = true
		b.finish(s)
	}
}
