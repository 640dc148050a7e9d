package starts

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/instrument/startup/logs"
	"github.com/tare-bench/tare/record"
)

// once is a command of Kata 1.x's runtime. The process does one thing and exits. Its
// lines have the command and the pid, but none marks the end. The command ran at least
// from its first line to its last.
type once struct {
	who             speaker
	verb, container string
	began, last     int64
	place           place

	// Before a process logs its first line with a container id, it may log others, such as
	// "loaded configuration".
	called bool  // a start can begin with the first of these lines
	lines  int64 // their number
}

// maxEarly is the maximum time until a process logs its container id, in ns.
const maxEarly = 10 * jitter

// leadsTo reports whether a later line of the same process belongs to the same
// command.
func (x *once) leadsTo(verb string, at int64) bool {
	return x.verb == verb && at >= x.began && at-x.began <= maxEarly
}

// askedAtOnce is the maximum time, in ns, between a start and a state query that
// belongs to it. Docker sends one to get the pid.
const askedAtOnce = jitter / 10

var onceVerbs = func() map[string]string {
	names := map[string]string{}
	for verb := range strings.FieldsSeq("create start state run kill delete exec pause resume update events ps") {
		names[verb] = "kata-runtime " + verb
	}
	return names
}()

// onceOf returns the command of a Kata 1.x runtime line, or "" for other lines.
func onceOf(e *logs.Event) string {
	if len(e.Command) == 0 || e.Pid <= 1 || e.Form != logs.Kata || string(e.Program) != "kata-runtime" {
		return ""
	}
	return onceVerbs[string(e.Command)]
}

// isOver reports whether a command only occurs after a start: kill, delete or exec.
func isOver(verb string) bool {
	return verb == "kata-runtime kill" || verb == "kata-runtime delete" || verb == "kata-runtime exec"
}

// nameless records a line of a command that has not logged a container id yet.
func (b *Builder) nameless(e *logs.Event, verb string, at int64) {
	b.Unplaced++
	who := speaker{e.Pid, e.File}
	if first, ok := b.early.m[who]; ok && first.leadsTo(verb, at) {
		first.lines++
		return
	}
	b.early.put(who, &once{who: who, verb: verb, began: at, place: placeOf(e), called: markOf(e).point == called, lines: 1})
}

// follows records a line of a command for this sandbox.
func (s *sandbox) follows(b *Builder, e *logs.Event, verb string, container []byte, at int64) {
	who := speaker{e.Pid, e.File}
	for i := len(s.once) - 1; i >= 0; i-- {
		if o := &s.once[i]; o.who == who && o.verb == verb && at-o.last <= int64(settled) {
			o.last = max(o.last, at)
			return
		}
	}
	if len(s.once) == maxCalls {
		return
	}
	o := once{who: who, verb: verb, container: b.words.keep(container), began: at, last: at, place: placeOf(e)}
	first, ok := b.early.m[who]
	delete(b.early.m, who)
	if ok && first.leadsTo(verb, at) {
		o.began, o.place = first.began, first.place
		b.Unplaced -= first.lines
		s.events += first.lines
		if first.called && o.container == s.id && verb != "kata-runtime state" {
			s.reached(b, mark{point: called, weak: true}, o.began, o.container, o.place)
			if o.began < s.began {
				s.began, s.at = o.began, o.place
			}
		}
	}
	s.once = append(s.once, o)
}

// commands adds the spans of the commands. It extends the start to the end of the
// command that started the container, and of the state query that immediately follows.
func (s *sandbox) commands(b *Builder) {
	if len(s.once) == 0 {
		return
	}
	slices.SortStableFunc(s.once, func(x, y once) int { return cmp.Compare(x.began, y.began) })
	end := s.ended
	for i := range s.once {
		o := &s.once[i]
		switch {
		case o.last == o.began:
			continue
		case o.verb == "kata-runtime start" || o.verb == "kata-runtime run":
			if s.ended == 0 && s.error == "" && s.failure == nil {
				s.reached(b, mark{point: begun, weak: true}, o.began, o.container, o.place)
				s.reached(b, mark{point: started, weak: true}, o.last, o.container, o.place)
				end = s.ended
			} else if end != 0 && o.began <= end {
				end = max(end, o.last)
			}
		case o.verb == "kata-runtime state" && end != 0 && o.began > end && o.began-end <= askedAtOnce:
			s.extend(b, end)
			s.extend(b, o.last)
			end = 0 // later queries are unrelated
		}
		s.span(b, &call{name: o.verb, kind: record.KindCall, container: o.container, at: o.began, place: o.place}, o.last)
	}
	s.extend(b, end)
}

// extend moves the end of the start to a later time.
func (s *sandbox) extend(b *Builder, to int64) {
	if to > s.ended && s.ended != 0 {
		s.upTo(b, started, to)
	}
}
