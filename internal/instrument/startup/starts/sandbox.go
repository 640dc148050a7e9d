package starts

import (
	"bytes"
	"container/list"
	"math/bits"
	"slices"
	"strings"

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
	id    string        // "" where none is known
	key   string        // by which it is open: its id, or a text with a blank
	extra string        // why it is a start of its own in its pod: [restart], [added]
	place *list.Element // among the open ones

	began, last int64 // of its host's lines
	at          place // of the first
	first       edge  // of the host's lane
	lanes       [lanes]lane
	edges       int
	points      []moment
	marked      bool  // there is a milestone
	ended       int64 // the last container was started; 0: none was
	calls       []*call
	members     []member
	exit        int64  // when a container exited last
	busy        int64  // when a call ended last
	stage       string // at which a line says that its call stands
	guessed     bool   // which of several starts a line is about is a guess
	died        edge   // the first sign that its VM died, or is stopped, while the agent is dialled
	dead        bool   // it died
	stopped     bool   // on request
	unasked     bool   // it was created, and not asked to start
	once        []once
	head        head
	beginless   headless
	unseen      []*call // that had begun before the first line
	spans       []record.Span
	name        string
	containers  []string

	kept, tail    []kept // tail: after ended
	events, after int64  // lines, and those of them after ended

	cuts    int64
	cutAt   place
	error   string // the first that was logged since the last milestone
	failure *record.Failure
	failed  int64 // when it failed; what is started later has been tried again
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
type whose uint16

// Engines, of which the first that wrote is named, then runtimes.
const (
	ofDocker whose = 1 << iota
	ofPodman
	ofIsulad
	ofCRIO
	ofContainerd
	ofKubelet
	ofEvents
	ofKata
	ofRunsc
	ofCrun
)

var whoseNames = bytes.Fields([]byte("docker podman isulad cri-o containerd kubelet kubernetes-events kata runsc crun"))

// writers are those whose lines have a form.
var writers = [256]whose{
	logs.Containerd: ofContainerd, logs.CRIO: ofCRIO, logs.Docker: ofDocker, logs.Runsc: ofRunsc, logs.Kubelet: ofKubelet,
	logs.Podman: ofPodman, logs.Isulad: ofIsulad, logs.Crun: ofCrun, logs.Kubernetes: ofEvents,
}

// name is that of the first, nil of none.
func (w whose) name() []byte {
	if w == 0 {
		return nil
	}
	return whoseNames[bits.TrailingZeros16(uint16(w))]
}

// target is what a start is one of: the engine and the runtime, as far as both wrote of it.
func (w whose) target() string {
	engines := ofKata - 1
	return strings.Trim(string((w&engines).name())+"/"+string((w&^engines).name()), "/")
}

// said takes notice of a line of the host's about this sandbox, and says whether
// it is an edge.
func (s *sandbox) said(b *Builder, e *logs.Event, at int64, which int, m mark, named bool) {
	if named {
		s.whose |= writers[e.Form]
	}
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
	passes := m.asked || m.point == none && !m.over && !named && !e.Cut || string(e.Source) == "agent-client"
	for i := range s.lanes {
		if i != which || passes {
			s.lanes[i].pass(at)
		}
	}
	if passes {
		return
	}
	x := edge{at: at, text: e.Message, in: inOf(e), place: placeOf(e), mark: m.point != none}
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

// tell takes a line of the engine's or the runtime's by which a milestone is reached, or
// with which a call begins or ends.
func (s *sandbox) tell(b *Builder, e *logs.Event, at int64, m mark, container string) {
	s.said(b, e, at, host, m, true)
	kind := record.KindEngine
	if e.Form == logs.Runsc {
		kind = record.KindCall
	}
	switch {
	case m.ends:
		s.end(b, m.call, container, at)
	case m.call != "":
		s.begin(&call{name: m.call, kind: kind, container: container, at: at, place: placeOf(e)})
	}
	s.reached(b, m, at, container, placeOf(e))
}

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
	if s.error == "" {
		s.error = b.words.keep(errorOf(e))
	}
	for i := range s.calls {
		if c := s.calls[i]; len(e.Container) == 0 || c.container == string(e.Container) || string(e.Container) == s.id {
			c.wrong = true
		}
	}
}

// fails says why a start came to nothing.
func (s *sandbox) fails(why string, at int64) {
	s.failure, s.failed = &record.Failure{Kind: record.FailError, Detail: why}, at
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
		case have.point != m.point || m.point.is(again) && have.at != at || m.point.is(ofContainer) && !m.weak && have.container != container && !have.weak:
		case m.point == called && m.weak:
			return
		case m.point.is(lasts):
			have.at, have.place = at, p
			return
		case m.point.is(ofContainer) && have.container != container:
		case have.weak && !m.weak:
			have.at, have.weak, have.told, have.place = at, false, true, p
			s.upTo(b, m.point, at)
			return
		default:
			return
		}
	}
	if m.point == agentAnswers && !s.has(dialled) {
		return // a request over a connection of which nothing was logged
	}
	if len(s.points) < maxPoints {
		s.points = append(s.points, moment{point: m.point, weak: m.weak, at: at, container: container, place: p})
	}
	s.marked, s.error = true, ""
	s.add(container)
	s.upTo(b, m.point, at)
}

// upTo moves the end of the start to a milestone that can be it.
func (s *sandbox) upTo(b *Builder, p point, at int64) {
	switch {
	case p == exited:
	case !p.is(finishes):
		if s.extra != execSync {
			b.underWay[s] = true
		}
	case at >= s.began && at >= s.ended:
		s.join(b.maxGaps)
		s.ended, s.after, s.suppressedEnd = at, 0, b.suppressed
		delete(b.underWay, s)
	}
}

// member is a container of a pod, as its engine tells of it.
type member struct {
	id, label string
	at        int64 // it was created
	ran, gone bool
}

// find returns the member of a label or an id, nil where there is none.
func (s *sandbox) find(label, id string) *member {
	for i := range slices.Backward(s.members) {
		if m := &s.members[i]; id != "" && m.id == id || id == "" && label != "" && m.label == label {
			return m
		}
	}
	return nil
}

// member returns the member of a label or an id, and makes one if there is none.
func (s *sandbox) member(label, id string) *member {
	if m := s.find(label, id); m != nil {
		return m
	}
	if len(s.members) == maxOfPod {
		return &member{}
	}
	s.members = append(s.members, member{id: id, label: label})
	return &s.members[len(s.members)-1]
}

// labels are those of all members, with a blank around each.
func (s *sandbox) labels() string {
	text := " "
	for i := range s.members {
		text += s.members[i].label + " "
	}
	return text
}

func (s *sandbox) hasMember(label string) bool { return s.find(label, "") != nil }

// takes reports whether a new container belongs to the start: see the package's comment.
// What kubectl debug adds has a name of its own.
func (s *sandbox) takes(label string, again bool, at int64) bool {
	switch since := max(s.ended, s.exit, s.busy); {
	case s.extra != "":
		return false
	case s.hasMember(label), strings.HasPrefix(label, "debugger-"), again && len(s.members) > 0:
		return false
	case s.ended == 0 || s.isStarting():
		return true
	case s.exit > s.ended || s.whose&ofCRIO != 0: // which logs no exit
		return at-since <= int64(settled)
	default:
		return at-since <= int64(patience)
	}
}

// creating is the call that makes a container and has not returned, nil where there is none.
func (s *sandbox) creating(label string) *call {
	for _, c := range s.calls {
		if c.point == createCalled && c.label == label && label != "" {
			return c
		}
	}
	return nil
}

// isStarting reports whether a call of the engine is under way.
func (s *sandbox) isStarting() bool {
	return slices.ContainsFunc(s.calls, func(c *call) bool { return c.kind != record.KindCall })
}

func (s *sandbox) lacksTask() bool { return s.has(startCalled) && !s.has(created) }

func (s *sandbox) hasTask() bool { return s.has(created) && !s.has(started) }

// isCreated says which container a create was of.
func (s *sandbox) isCreated(c *call, label, container string) {
	if c != nil {
		c.container = container
	}
	s.member(label, "").id = container
	for i := range slices.Backward(s.points) {
		if m := &s.points[i]; m.point == createCalled && m.container == "" && (c == nil || m.place == c.place) {
			m.container = container
			break
		}
	}
}

func (s *sandbox) has(p point) bool {
	return slices.ContainsFunc(s.points, func(m moment) bool { return m.point == p })
}

// add takes notice of a container.
func (s *sandbox) add(id string) {
	if id != "" && len(s.containers) < maxOfPod && !slices.Contains(s.containers, id) {
		s.containers = append(s.containers, id)
	}
}
