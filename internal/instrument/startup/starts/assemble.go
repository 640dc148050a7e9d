package starts

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tare-bench/tare/internal/instrument/startup/logs"
	"github.com/tare-bench/tare/record"
)

// take takes a fact.
func (b *Builder) take(e *logs.Event, f *fact, at int64) {
	f.sandbox, f.container = idOr(f.sandbox, e.Sandbox), idOr(f.container, e.Container)
	if e.Cut && f.step == asks { // it may be the answer
		f.step, f.mark = says, mark{}
	}
	c := b.calls.m[string(f.key)]
	for f.oldest && f.step != asks && c != nil && c.first != nil && !c.first.over {
		c = c.first
		if c.s != nil && c.s.extra != execSync {
			c.s.guessed = true
		}
	}
	switch {
	case f.step == exits || f.step == stops:
		b.gone(e, f, at)
	case f.step == asks && (c == nil || c.over || !f.request):
		b.asks(e, f, c, at)
	case c != nil && (f.step == says || f.step == asks || f.step == answers && c.over && f.point != startReturned): // its end may be said twice
		b.lineOf(c, e, f, at)
	case f.step == says:
		b.says(e, f, at)
	default:
		b.ends(e, f, c, at)
	}
}

func idOr(id, other []byte) []byte {
	if id == nil {
		id = other
	}
	if !isID(id) {
		return nil
	}
	return id
}

// says takes an ordinary line, or a milestone.
func (b *Builder) says(e *logs.Event, f *fact, at int64) {
	s, named := b.find(e, f, at)
	if s == nil {
		return
	}
	if i := slices.IndexFunc(b.creates, func(c *call) bool { return c.place.file == e.File }); f.made && i >= 0 && s.began == 0 {
		s.guessed = len(b.creates) > 1
		b.adopt(s, b.creates[i])
		b.creates = slices.Delete(b.creates, i, i+1)
	}
	if f.stage != nil {
		s.stage = b.words.keep(f.stage)
	}
	if f.took > 0 {
		s.span(b, &call{name: f.call, kind: f.kind, container: s.id, at: at - f.took, place: placeOf(e)}, at)
	}
	if f.at == 0 || f.point == observed {
		s.said(b, e, e.Time, host, f.mark, named)
	} else if s.edges++; s.began == 0 || at < s.began {
		s.began, s.at = at, placeOf(e)
	}
	p, container := f.point, ""
	switch {
	case p == none:
		return
	case f.member != nil:
		container = b.words.keep(f.member)
	case f.container != nil:
		container = b.words.keep(f.container)
	case p.is(ofContainer) || p == shimStarted:
		container = s.id
	}
	if f.ends {
		s.end(b, f.call, container, at)
	}
	s.reached(b, f.mark, at, container, placeOf(e))
}

// find returns the start that a fact is about. named reports whether the line names one,
// which may be past its start. A line of none is counted, unless it names one.
func (b *Builder) find(e *logs.Event, f *fact, at int64) (s *sandbox, named bool) {
	switch {
	case f.hint != nil && f.sandbox == nil && f.container == nil && b.known(f.hint) != nil:
		s, named = b.known(f.hint), true
	case f.sandbox != nil || f.container != nil:
		s, named = b.named(f.sandbox, f.container, f.opens, at)
	case f.pod != nil:
		s, named = b.ofPod(f, at), true
	case f.step == says && f.first != nil:
		s = b.oldest(f.first)
		named = s != nil
	}
	if s == nil && !named {
		s = b.unnamed(e)
	}
	switch {
	case s == nil && (!named || f.pod != nil):
		b.Unplaced++
	case s != nil && b.settles(s, at):
		return b.find(e, f, at)
	}
	return s, named
}

// oldest returns the start under way that began first and satisfies a condition. Where
// several do, it is a guess.
func (b *Builder) oldest(is func(s *sandbox) bool) (first *sandbox) {
	guess := false
	for s := range b.underWay {
		if is(s) {
			guess = first != nil
			if first == nil || s.began < first.began {
				first = s
			}
		}
	}
	if first != nil && guess {
		first.guessed = true
	}
	return first
}

// asks takes the begin of a call. c is the last call with its key.
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
		n.first, n.older = c, c.older+1 // which has not returned
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
		if n.first = s.creating(n.label); n.first != nil { // a retry, while the first one has not returned
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

// home finds the start that a call belongs to when it begins, nil where that is not
// known yet.
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
			return nil // the call of CRI's has it
		}
		return b.sandboxOf(f.container, true, at)
	case startCalled:
		if f.opens {
			if s := b.known(f.container); s != nil && s.key != string(f.container) {
				return nil // the call of CRI's has it
			} else if s != nil {
				if !s.has(startCalled) && !b.settles(s, at) {
					return s
				}
				b.finish(s)
			}
			return b.sandboxOf(f.container, true, at)
		}
		if s := b.known(f.container); s != nil {
			return s
		}
		if _, over := b.containers.m[string(f.container)]; over {
			return nil // its start has been given out
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

// forContainer is the start that a new container belongs to: that of its pod, or one of
// its own where it is started again, or added later.
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

// The starts that are not a pod's.
const (
	restart = "restart"
	added   = "added container"
)

// waitsFor guesses the start that a call is for which does not say so: that of the only
// pod that is up and has no container yet.
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

// ends takes the end of a call, or what it is about.
func (b *Builder) ends(e *logs.Event, f *fact, c *call, at int64) {
	var s *sandbox
	if run := b.calls.m[runOf(string(f.pod))]; f.point == netReturned && run != nil && run.s == nil && !run.over {
		b.join(run, f.sandbox, at)
	}
	switch {
	case c == nil && f.step != binds && f.point != netReturned && f.point != execReturned:
		s, _ = b.find(e, f, at)
	case c != nil && c.s == nil && !c.over:
		s = b.bind(c, f, at)
	case c != nil && c.s != nil && b.open[c.s.key] == c.s:
		s = c.s
	}
	if s != nil && b.settles(s, at) {
		s = nil
	}
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
		return
	case s != nil:
	case c != nil && c.s == nil && c.point == createCalled && f.container != nil: // it will be known when the container starts
		c.container, c.end = b.words.keep(f.container), &call{at: at, text: b.words.keep(e.Message), place: placeOf(e), form: e.Form}
		b.calls.put("created "+c.container, c)
		return
	case c == nil || c.name == pullName:
		b.Unplaced += 2
		return
	default:
		return
	}
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

// returned ends a call of a start.
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

// bind finds the start of a call that began before it was known.
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

// adopt gives a start a call that began before the start was known.
func (b *Builder) adopt(s *sandbox, c *call) {
	c.s = s
	if c.container == "" && c.point.is(ofContainer) {
		c.container = s.id
	}
	b.naming(s, c.pod)
	s.unasked = s.began == 0 && (c.form == logs.Docker || c.name == "podman create")
	s.whose |= writers[c.form]
	s.stage = cmp.Or(s.stage, c.stage)
	s.events += 1 + c.lines
	s.edges++
	x := edge{at: c.at, text: []byte(c.text), in: writers[c.form].name(), place: c.place, mark: true}
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
	if c.point != createCalled || c.form != logs.Docker && c.form != logs.Podman { // the create of these has no end
		s.begin(c)
	}
	s.reached(b, mark{point: c.point}, c.at, b.nameOf(mark{point: c.point}, []byte(c.container)), c.place)
}

// join gives a call of RunPodSandbox the start that it led to.
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

// naming remembers the pod that a start is of.
func (b *Builder) naming(s *sandbox, pod string) {
	if pod != "" {
		s.name = cmp.Or(s.name, pod)
		b.pods.put(pod, s.key)
	}
}

// rename gives a start the id of its sandbox.
func (b *Builder) rename(s *sandbox, id string) {
	delete(b.open, s.key)
	for _, c := range s.containers {
		b.containers.put(c, id)
	}
	s.id, s.key = id, id
	b.open[id] = s
	b.naming(s, s.name)
}

// alone makes a start of a call of which nothing else is known.
func (b *Builder) alone(c *call) *sandbox {
	s := b.sandboxOf([]byte(idless+c.key), true, c.at)
	b.adopt(s, c)
	if s.unasked = false; !slices.Contains(s.calls, c) {
		s.begin(c)
	}
	return s
}

// fails takes the failure of a call.
func (b *Builder) fails(e *logs.Event, f *fact, c *call, s *sandbox, at int64) {
	isRetry := c != nil && c.first != nil && !c.oldest
	if s == nil && c != nil && c.s == nil {
		s = b.alone(c)
		if isRetry { // the first one may return yet
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

// lineOf takes a line of a call that is neither its begin nor its end.
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

// gone takes the end of a container or of a sandbox.
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

// podName joins a namespace and a name.
func podName(space, name []byte) []byte {
	if len(space) == 0 {
		return name
	}
	return fmt.Appendf(nil, "%s/%s", space, name)
}

// idless begins the key of a start whose sandbox has no id yet. No id has a blank.
const idless = "pod "

// isIdless reports whether a key is not an id.
func isIdless(key string) bool { return strings.HasPrefix(key, idless) }

// repeats remembers a call of RunPodSandbox by its pod, and which earlier one it repeats.
func (b *Builder) repeats(c *call) {
	if before := b.calls.m[runOf(c.pod)]; before != nil && before != c && !before.over && before.s == nil && !c.oldest {
		c.first = before
	}
	b.calls.put(runOf(c.pod), c)
}

// runOf is a key of the call of RunPodSandbox for a pod.
func runOf(pod string) string { return "run " + pod }
