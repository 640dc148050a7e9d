package starts

import (
	"container/list"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/instrument/startup/logs"
	"github.com/tare-bench/tare/record"
)

// Limits per start.
const (
	maxPoints = 512
	maxSpans  = 512
	maxCalls  = 64 // under way at once
	maxOfPod  = 64
)

// sandbox is the state of a sandbox since its start began.
type sandbox struct {
	id    string        // "" if unknown
	key   string        // key in the map of open sandboxes: the id, or a text that contains a blank
	extra string        // why it is not the start of its pod: [restart], [added]
	place *list.Element // element in the list of open sandboxes

	began, last int64 // times of the first and last host line
	at          place // position of the first line
	first       edge  // first edge of the host lane
	lanes       [lanes]lane
	edges       int
	points      []moment
	marked      bool  // a milestone was reached
	ended       int64 // last time at which a container started; 0: none
	calls       []*call
	members     []member
	exit        int64  // last exit of a container
	busy        int64  // time of the last end of a call
	stage       string // last stage of the call, as logged
	guessed     bool   // some lines may belong to another start
	died        edge   // first sign that the VM died or was stopped while the runtime dialled the agent
	dead        bool   // the VM died
	stopped     bool   // it was stopped on request
	unasked     bool   // the container was created, but its start was not requested
	once        []once
	head        head
	beginless   record.Missing // the calls without a logged beginning
	unseen      []*call        // calls that began before the first line
	spans       []record.Span
	name        string
	containers  []string

	kept, tail    []kept // tail: gaps after ended
	events, after int64  // total number of lines, and number of lines after ended

	cuts    int64
	cutAt   place
	error   string // first error since the last milestone
	failure *record.Failure
	failed  int64 // time of the failure; a later end means that a retry succeeded
	doubts  []doubt
	whose   whose
	clock   clock
	// suppressed is the number of messages that the journal had dropped when the start
	// began. suppressedEnd is the number when it ended.
	suppressed, suppressedEnd int64
}

// moment is a reached milestone.
type moment struct {
	point     point
	weak      bool
	corrected bool // it replaced a milestone from a weak mark
	at        int64
	container string
	place     place
}

// whose is the set of the writers that logged about a sandbox, as bits of their forms.
type whose uint16

func (w whose) has(f logs.Form) bool { return w&(1<<f) != 0 }

// target returns "engine/runtime". A part without lines about the start is omitted.
func (w whose) target() string {
	first := func(of ...logs.Form) string {
		if i := slices.IndexFunc(of, w.has); i >= 0 {
			return string(writers[of[i]].name)
		}
		return ""
	}
	runtime := first(logs.Runsc, logs.Crun)
	if w.has(logs.Kata) {
		runtime = "kata"
	}
	return strings.Trim(first(logs.Docker, logs.Podman, logs.Isulad, logs.CRIO, logs.Containerd, logs.Kubelet, logs.Kubernetes)+"/"+runtime, "/")
}

// said records a host line about this sandbox. The line is an edge of the lane which,
// and the other lanes only count it. Answers to queries, and lines with neither a
// milestone nor an id, are not edges of any lane.
func (s *sandbox) said(b *Builder, e *logs.Event, at int64, which int, m mark, named bool) {
	if named {
		s.whose |= 1 << e.Form
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

// tell records a line of runsc that reaches a milestone, or that begins or ends a call.
func (s *sandbox) tell(b *Builder, e *logs.Event, at int64, m mark, container string) {
	s.said(b, e, at, host, m, true)
	switch {
	case m.ends:
		s.end(b, m.call, container, at)
	case m.call != "":
		s.begin(&call{name: m.call, kind: record.KindCall, container: container, at: at, place: placeOf(e)})
	}
	s.reached(b, m, at, container, placeOf(e))
}

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

// wrong records an error line. It marks all calls in progress that it may belong to.
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

// fails records the failure of the start.
func (s *sandbox) fails(why string, at int64) {
	s.failure, s.failed = &record.Failure{Kind: record.FailError, Detail: why}, at
}

// reached records a milestone. A milestone of the sandbox is recorded once, a
// milestone of containers once per container.
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
			have.at, have.weak, have.corrected, have.place = at, false, true, p
			s.upTo(b, m.point, at)
			return
		default:
			return
		}
	}
	if m.point == agentAnswers && !s.has(dialled) {
		return // a request over a connection that was not logged
	}
	if len(s.points) < maxPoints {
		s.points = append(s.points, moment{point: m.point, weak: m.weak, at: at, container: container, place: p})
	}
	s.marked, s.error = true, ""
	s.add(container)
	s.upTo(b, m.point, at)
}

// upTo extends the start to a milestone that can end it.
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

// member is a container of a pod, as logged by the engine.
type member struct {
	id, label string
	at        int64 // time of creation
	ran, gone bool
}

// find returns the member with the id or, without an id, with the label. It returns
// nil if there is none.
func (s *sandbox) find(label, id string) *member {
	for i := range slices.Backward(s.members) {
		if m := &s.members[i]; id != "" && m.id == id || id == "" && label != "" && m.label == label {
			return m
		}
	}
	return nil
}

// member returns the member with the id or label. It adds the member if it is missing.
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

// labels returns the labels of all members, each surrounded by blanks.
func (s *sandbox) labels() string {
	text := " "
	for i := range s.members {
		text += s.members[i].label + " "
	}
	return text
}

func (s *sandbox) hasMember(label string) bool { return s.find(label, "") != nil }

// takes reports whether a new container belongs to the start, by the rules in the
// package comment. Containers of kubectl debug never do. Their names have a known
// prefix.
func (s *sandbox) takes(label string, again bool, at int64) bool {
	switch since := max(s.ended, s.exit, s.busy); {
	case s.extra != "":
		return false
	case s.hasMember(label), strings.HasPrefix(label, "debugger-"), again && len(s.members) > 0:
		return false
	case s.ended == 0 || s.isStarting():
		return true
	case s.exit > s.ended || s.whose.has(logs.CRIO): // CRI-O logs no exit
		return at-since <= int64(settled)
	default:
		return at-since <= int64(patience)
	}
}

// creating returns the pending call that creates the container with the label, or nil.
func (s *sandbox) creating(label string) *call {
	for _, c := range s.calls {
		if c.point == createCalled && c.label == label && label != "" {
			return c
		}
	}
	return nil
}

// isStarting reports whether an engine call is in progress.
func (s *sandbox) isStarting() bool {
	return slices.ContainsFunc(s.calls, func(c *call) bool { return c.kind != record.KindCall })
}

func (s *sandbox) lacksTask() bool { return s.has(startCalled) && !s.has(created) }

func (s *sandbox) hasTask() bool { return s.has(created) && !s.has(started) }

// isCreated records the container id returned by a create call.
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

// add records a container id.
func (s *sandbox) add(id string) {
	if id != "" && len(s.containers) < maxOfPod && !slices.Contains(s.containers, id) {
		s.containers = append(s.containers, id)
	}
}
