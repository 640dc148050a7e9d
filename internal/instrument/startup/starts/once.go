package starts

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/instrument/startup/logs"
	"github.com/tare-bench/tare/record"
)

// once is a command of Kata 1.x's runtime, a process that does one thing and
// exits. Its lines bear the command and its pid, and none says that it ends: it
// went at least from its first to its last.
type once struct {
	who             speaker
	verb, container string
	began, last     int64
	place           place
}

// early is what a process said before it named a container, as that it has loaded
// its configuration.
type early struct {
	once
	called bool // the line is one that a start begins with
	lines  int64
}

// maxEarly is how long a process may take until it names its container, ns.
const maxEarly = 10 * jitter

// leadsTo says whether a line of the same process is of the same command.
func (x *early) leadsTo(verb string, at int64) bool {
	return x.verb == verb && at >= x.began && at-x.began <= maxEarly
}

// askedAtOnce is how soon after a start an engine asks for the state that is still
// waiting for the start, ns: docker does so to learn the process's number.
const askedAtOnce = jitter / 10

var onceVerbs = func() map[string]string {
	names := map[string]string{}
	for verb := range strings.FieldsSeq("create start state run kill delete exec pause resume update events ps") {
		names[verb] = "kata-runtime " + verb
	}
	return names
}()

// onceOf is the command that a line of Kata 1.x's runtime is of, "" of any other.
func onceOf(e *logs.Event) string {
	if len(e.Command) == 0 || e.Pid <= 1 || e.Form != logs.Kata || string(e.Program) != "kata-runtime" {
		return ""
	}
	return onceVerbs[string(e.Command)]
}

// isOver says whether a command is of what comes after a start.
func isOver(verb string) bool {
	return verb == "kata-runtime kill" || verb == "kata-runtime delete" || verb == "kata-runtime exec"
}

// nameless keeps the first line of a command that has named no container yet.
func (b *Builder) nameless(e *logs.Event, verb string, at int64) {
	b.Unplaced++
	who := speaker{e.Pid, e.File}
	if first, ok := b.early.m[who]; ok && first.leadsTo(verb, at) {
		first.lines++
		return
	}
	b.early.put(who, &early{once: once{who: who, verb: verb, began: at, place: placeOf(e)}, called: markOf(e).point == called, lines: 1})
}

// follows takes notice of a line of a command about this sandbox.
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
	if first, ok := b.early.take(who); ok && first.leadsTo(verb, at) {
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

// commands makes spans of the commands, and moves the end of the start to the end
// of what the runtime and the engine did for it: of the command that started the
// container, and of the question for its state that follows at once.
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
			end = 0 // later questions are others'
		}
		s.span(b, &call{name: o.verb, kind: record.KindCall, container: o.container, at: o.began, place: o.place}, o.last)
	}
	s.extend(b, end)
}

// extend moves the end of the start.
func (s *sandbox) extend(b *Builder, to int64) {
	if to > s.ended && s.ended != 0 {
		s.upTo(b, started, to)
	}
}
