package starts

import (
	"github.com/tare-bench/tare/internal/instrument/startup/logs"
	"github.com/tare-bench/tare/record"
)

// How much is kept of one start.
const (
	maxPoints = 512
	maxSpans  = 512
	maxCalls  = 64 // under way at once
	maxOfPod  = 64
)

// sandbox is what has been said of one sandbox since its start began.
type sandbox struct {
	id           string
	newer, older *sandbox

	began, last int64 // of its host's lines
	at          place // of the first
	first       edge  // of the host's lane
	lanes       [lanes]lane
	edges       int
	points      []moment
	marked      bool // there is a milestone
	underWay    bool
	ended       int64 // the last container was started; 0: none was
	calls       []call
	once        []once
	head        head
	beginless   headless
	spans       []record.Span
	name        string
	containers  []string

	kept, tail     []record.Gap // tail: after ended
	keptAt, tailAt placesOf
	events, after  int64 // lines, and those of them after ended

	cuts    int64
	cutAt   place
	error   string // the last that was logged
	failure *record.Failure
	doubts  []doubt
	whose   whose
	clock   clock
	// suppressed is how many messages the journal had dropped of all when the
	// start began, and suppressedEnd when it last ended.
	suppressed, suppressedEnd int64
}

// moment is a milestone that has been reached.
type moment struct {
	point     point
	weak      bool
	told      bool // by a weak mark first
	at        int64
	container string
	place     place
}

// whose says who wrote of a sandbox.
type whose uint8

const (
	ofKata whose = 1 << iota
	ofContainerd
	ofCRIO
	ofDocker
	ofRunsc
)

// target is what a start is one of: the engine and the runtime, as far as both
// wrote of it.
func (w whose) target() string {
	engine, runtime := "", ""
	switch {
	case w&ofDocker != 0:
		engine = "docker"
	case w&ofCRIO != 0:
		engine = "cri-o"
	case w&ofContainerd != 0:
		engine = "containerd"
	}
	switch {
	case w&ofKata != 0:
		runtime = "kata"
	case w&ofRunsc != 0:
		runtime = "runsc"
	}
	if engine == "" || runtime == "" {
		return engine + runtime
	}
	return engine + "/" + runtime
}

// said takes notice of a line of the host's about this sandbox, and says whether
// it is an edge.
func (s *sandbox) said(b *Builder, e *logs.Event, at int64, which int, m mark, named bool, in []byte) {
	if s.began == 0 {
		s.began, s.at = at, placeOf(e)
		s.suppressed = b.suppressed
	} else if at < s.began && at > s.began-jitter {
		s.began = at
	}
	s.count(e, at)
	if isError(e) {
		s.wrong(b, e)
	}
	if m.asked || m.point == none && !m.over && !named && !e.Cut || string(e.Source) == "agent-client" {
		for i := range s.lanes {
			s.lanes[i].pass()
		}
		return
	}
	for i := range s.lanes {
		if i != which {
			s.lanes[i].pass()
		}
	}
	x := edge{at: at, text: e.Message, in: in, place: placeOf(e), mark: m.point != none}
	if len(x.text) == 0 {
		x.text = noMessage
	}
	s.edges++
	if s.first.at == 0 && which == host {
		s.first.set(&x)
	}
	s.edge(b, which, &x)
}

var noMessage = []byte("(no message)")

// count counts a line.
func (s *sandbox) count(e *logs.Event, at int64) {
	s.last = max(s.last, at)
	s.events++
	if s.ended != 0 {
		s.after++
	}
	if e.Cut {
		if s.cuts == 0 {
			s.cutAt = placeOf(e)
		}
		s.cuts++
	}
}

// wrong keeps an error, which is one of the calls under way that it can belong to.
func (s *sandbox) wrong(b *Builder, e *logs.Event) {
	text := e.Error
	if len(text) == 0 {
		text = e.Message
	}
	s.error = b.words.keep(text)
	for i := range s.calls {
		if c := &s.calls[i]; len(e.Container) == 0 || c.container == string(e.Container) || string(e.Container) == s.id {
			c.wrong = true
		}
	}
}

// reached adds a milestone. Those of the sandbox are reached once; those of
// containers once for each.
func (s *sandbox) reached(b *Builder, m mark, at int64, container string, p place) {
	if m.point == none {
		return
	}
	for i := range s.points {
		have := &s.points[i]
		switch {
		case have.point != m.point || m.point.ofContainer() && !m.weak && have.container != container && !have.weak:
		case m.point == called && m.weak:
			return
		case m.point.ofContainer() && have.container != container:
		case have.weak && !m.weak:
			have.at, have.weak, have.told, have.place = at, false, true, p
			s.upTo(b, m.point, at)
			return
		default:
			return
		}
	}
	if m.point == agentAnswers && !s.has(dialled) {
		return // a request, and nobody saw how the connection came to be
	}
	if len(s.points) < maxPoints {
		s.points = append(s.points, moment{point: m.point, weak: m.weak, at: at, container: container, place: p})
	}
	s.marked = true
	s.add(container)
	s.upTo(b, m.point, at)
}

// upTo moves the end of the start to a milestone that can be it.
func (s *sandbox) upTo(b *Builder, p point, at int64) {
	switch p {
	case started, startReturned, podReturned:
		if at < s.began || at < s.ended {
			return
		}
		s.join(b.o.Gaps)
		s.ended, s.after, s.suppressedEnd = at, 0, b.suppressed
		b.isUnderWay(s, false)
	default:
		b.isUnderWay(s, true)
	}
}

// ofContainer says whether a milestone is a container's.
func (p point) ofContainer() bool {
	switch p {
	case called, createCalled, createReturned, startCalled, created, begun, started, startReturned:
		return true
	}
	return false
}

// isOf says which container the last milestone of a kind was of.
func (s *sandbox) isOf(p point, container string) {
	for i := len(s.points) - 1; i >= 0; i-- {
		if m := &s.points[i]; m.point == p && m.container == "" {
			m.container = container
			return
		}
	}
}

func (s *sandbox) has(p point) bool {
	for i := range s.points {
		if s.points[i].point == p {
			return true
		}
	}
	return false
}

// add takes notice of a container.
func (s *sandbox) add(id string) {
	if id == "" || len(s.containers) == maxOfPod {
		return
	}
	for _, c := range s.containers {
		if c == id {
			return
		}
	}
	s.containers = append(s.containers, id)
}

// asked puts the call of an engine that led to this sandbox before what is known
// of it.
func (s *sandbox) asked(b *Builder, c *call) {
	if s.name == "" {
		s.name = c.pod
	}
	x := edge{at: c.at, text: []byte(c.text), in: []byte(s.engine()), place: c.place, mark: true}
	s.events++
	s.edges++
	if s.began == 0 {
		s.suppressed = b.suppressed
		s.last = c.at
		s.first.set(&x)
		s.lanes[host].last.set(&x)
		s.lanes[host].milestone.set(&x)
	} else if s.first.at-c.at >= breath {
		s.keep(b, &x, &s.first, 0)
	}
	if s.began == 0 || c.at < s.began {
		s.began, s.at = c.at, c.place
	}
	begun := *c
	begun.container = ""
	s.begin(begun)
	s.reached(b, mark{point: podCalled}, c.at, "", c.place)
}

func (s *sandbox) engine() string {
	if s.whose&ofCRIO != 0 {
		return "cri-o"
	}
	return "containerd"
}

// reset makes a sandbox ready for another id and keeps its memory.
func (s *sandbox) reset() {
	fresh := sandbox{
		points: s.points[:0], calls: s.calls[:0], once: s.once[:0], spans: s.spans[:0], containers: s.containers[:0], kept: s.kept[:0], tail: s.tail[:0], keptAt: s.keptAt[:0], tailAt: s.tailAt[:0],
	}
	for i := range s.lanes {
		l, was := &fresh.lanes[i], &s.lanes[i]
		for _, pair := range [][2]*edge{{&l.last, &was.last}, {&l.milestone, &was.milestone}, {&l.guest, &was.guest}} {
			pair[0].text, pair[0].in = pair[1].text[:0], pair[1].in[:0]
		}
	}
	fresh.first.text, fresh.first.in = s.first.text[:0], s.first.in[:0]
	clear(s.kept)
	clear(s.tail)
	*s = fresh
}
