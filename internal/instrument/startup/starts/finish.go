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

// start returns the record of a start.
func (b *Builder) start(s *sandbox) *record.Start {
	s.commands(b)
	s.settleFailure(b)
	waits := s.waiting(b)
	if waits != nil || s.failure != nil {
		s.ended = 0
	}
	until, events := s.ended, s.events-s.after
	if s.ended == 0 || s.ended < s.began {
		s.ended = 0
		s.join(b.maxGaps)
		until, events = s.lastSaid(), s.events
		s.suppressedEnd = b.suppressed
	}
	out := &record.Start{
		Type: record.TypeStart, Round: b.given, Target: s.whose.target(), Method: record.MethodLogs, Clock: record.ClockWall,
		Began: s.began, Ended: s.ended, Name: s.name, Sandbox: s.id, Containers: slices.Clone(s.containers),
		Events: events, Source: b.source(s.at), Failure: s.failure, Waiting: waits, Guests: s.clock.guests(s.id),
	}
	b.given++
	if isIdless(s.id) {
		out.Sandbox = ""
	}
	if s.extra != "" {
		out.Target += " " + s.extra
	}
	out.Spans = s.allSpans(b, until)
	out.Gaps = s.gaps(b, until)
	out.Missing = s.missing(b)
	return out
}

// settleFailure decides whether the start failed. An error before a successful retry
// is not a failure.
func (s *sandbox) settleFailure(b *Builder) {
	if s.failure != nil && s.failed < s.ended {
		s.failure = nil
	}
	if d := &s.died; d.at != 0 && s.failure == nil && s.ended == 0 && !s.has(agentAnswers) {
		from := s.began
		for _, m := range s.points {
			if m.point == dialled {
				from = m.at
			}
		}
		what, more := "the VM died", s.lastSaid()-d.at
		if !s.dead {
			what = "the sandbox was stopped"
		}
		why := fmt.Sprintf("%s %s after the agent was dialled (%s, %s)", what, seconds(d.at-from), d.text, b.source(d.place))
		if more > jitter {
			why += fmt.Sprintf("; the agent was dialled for %s more", seconds(more))
		} else if !s.dead {
			why = fmt.Sprintf("the agent did not answer within %s (%s, %s)", seconds(d.at-from), d.text, b.source(d.place))
		}
		s.fails(why, d.at)
	}
}

// seconds formats a duration, rounded to milliseconds.
func seconds(ns int64) string { return time.Duration(ns).Round(time.Millisecond).String() }

// waiting returns where a start without an end stopped. It returns nil if the start
// ended or failed. The result is the pending engine call that began last, else the
// last pending runtime call, else the last milestone.
func (s *sandbox) waiting(b *Builder) *record.Waiting {
	if s.failure != nil {
		return nil
	}
	w := &record.Waiting{Until: max(b.now, s.last), Stage: s.stage, Error: s.error}
	if i := slices.IndexFunc(b.pauses, func(at int64) bool { return at >= max(s.last, s.began) }); i >= 0 { // the start waited at most until the pause, since it is not in the session after it
		w.Until = b.pauses[i]
	}
	stands := func(in string, since int64, at place) { w.In, w.Since, w.Source = in, since, b.source(at) }
	if c := s.pending(); c != nil {
		stands(c.name, c.at, c.place)
	}
	if w.In == "" && s.has(podReturned) && !s.has(createCalled) && !s.has(startCalled) && len(s.containers) == 0 && b.creating && !s.stopped && w.Until-s.ended > 5*jitter {
		stands("after "+traits[podReturned].name, s.ended, s.at) // if other pods have containers, a pod without one is assumed to be stuck
	}
	if w.In == "" && s.ended != 0 || !s.marked {
		return nil
	}
	for _, m := range s.points {
		if w.In == "" || strings.HasPrefix(w.In, "after ") && m.at >= w.Since {
			stands("after "+traits[m.point].name, m.at, m.place)
		}
	}
	if last := s.lanes[host].last; last.at > w.Since {
		w.Last = string(last.text)
	}
	return w
}

// pending returns the pending engine call that began last. Without one, it returns the
// last of the containers that were not started and the pending runtime calls.
func (s *sandbox) pending() (last *call) {
	later := func(c *call) {
		if last == nil || last.at <= c.at {
			last = c
		}
	}
	for _, c := range s.calls {
		if c.kind != record.KindCall {
			later(c)
		}
	}
	if last != nil {
		return last
	}
	for _, m := range s.members {
		if m.id != "" && !m.ran {
			later(&call{name: "a created container that is not started", at: m.at, place: s.at})
		}
	}
	for _, c := range s.calls {
		isUp := slices.ContainsFunc(s.points, func(m moment) bool { return m.container == c.container && m.point.is(finishes) })
		if s.ended == 0 || !isUp {
			later(c)
		}
	}
	return last
}

// lastSaid returns the time of the last edge.
func (s *sandbox) lastSaid() int64 {
	last := s.began
	for i := range s.lanes {
		last = max(last, s.lanes[i].last.at)
	}
	return last
}

// allSpans returns the spans of phases, calls and the guest that begin in the start
// and end by the given time.
func (s *sandbox) allSpans(b *Builder, until int64) []record.Span {
	all := s.phases(b, until)
	all = append(all, s.spans...)
	all = append(all, s.clock.spans(b)...)
	all = slices.DeleteFunc(all, func(x record.Span) bool { return x.Began < s.began || x.Ended > until })
	for i := range all {
		all[i].Of = cmp.Or(processOf[all[i].Kind], all[i].Of)
	}
	slices.SortStableFunc(all, func(x, y record.Span) int {
		return cmp.Or(cmp.Compare(x.Began, y.Began), cmp.Compare(y.Ended, x.Ended)) // enclosing spans first
	})
	return all
}

// processOf maps the kind of a span to the kind of its process.
var processOf = map[string]string{
	record.KindCall: record.KindShim, record.KindEngine: record.KindDaemon, record.KindCNI: record.KindDaemon, record.KindGuest: record.KindVMM,
}

// phases divides the start at its milestones, without gaps between the phases.
func (s *sandbox) phases(b *Builder, until int64) []record.Span {
	points := slices.DeleteFunc(slices.Clone(s.points), func(m moment) bool { return m.at < s.began || m.at > until })
	slices.SortStableFunc(points, func(x, y moment) int { return cmp.Compare(x.at, y.at) })
	if len(points) == 0 || points[0].at > s.began {
		points = slices.Insert(points, 0, moment{point: firstLine, at: s.began, place: s.at})
	}
	if last := points[len(points)-1]; last.at < until {
		points = append(points, moment{point: lastLine, at: until})
	}
	var out []record.Span
	for i, to := range points[1:] {
		from := points[i]
		if to.at == from.at {
			continue
		}
		name := traits[from.point].name + " → " + traits[to.point].name
		if own := phaseNames[[2]point{from.point, to.point}]; own != "" {
			name = own
		}
		out = append(out, record.Span{
			Name: name, Kind: record.KindPhase, Container: to.container, Of: traits[from.point].of,
			Began: from.at, Ended: to.at, Source: b.source(from.place),
		})
	}
	return out
}

// missing returns the missing evidence.
func (s *sandbox) missing(b *Builder) (out []record.Missing) {
	add := func(what string, count int64, detail string) {
		if count > 0 {
			out = append(out, record.Missing{What: what, Count: count, Detail: detail})
		}
	}
	add("suppressed", s.suppressedEnd-s.suppressed, "messages dropped by the journal during the start")
	add("cut", s.cuts, "from "+b.source(s.cutAt))
	for _, d := range s.doubts {
		if !s.holds(d) {
			add("outcome", 1, d.call+" ended after an error: "+d.text)
		}
	}
	if s.guessed {
		add("ambiguous", 1, "lines without a container id are assigned to the earliest request")
	}
	if s.hasBegin() {
		add("no begin", s.beginless.Count, s.beginless.Detail)
	} else {
		add("no begin", 1, "the first line is at "+b.source(s.at))
	}
	if open := s.unended(s.ended); len(open) > 0 {
		add(record.MissingCall, int64(len(open)), "of "+open[0].name+", which began at "+b.source(open[0].place)+" or before")
	}
	if s.ended == 0 && s.failure == nil {
		add("no end", 1, "no line reports that a container started")
	}
	return out
}

// hasBegin reports whether the first milestone of a start is a request that begins it.
// With containerd and CRI-O, a request for a container does not begin the start of a
// pod, because a request for the pod precedes it.
func (s *sandbox) hasBegin() bool {
	if len(s.points) == 0 {
		return false
	}
	at := slices.MinFunc(s.points, func(x, y moment) int { return cmp.Compare(x.at, y.at) }).at
	return slices.ContainsFunc(s.points, func(m moment) bool {
		return m.at == at && m.point.is(begins) && (s.extra != "" || m.point != createCalled && m.point != startCalled || !s.whose.has(logs.Containerd) && !s.whose.has(logs.CRIO))
	})
}
