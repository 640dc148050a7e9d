package starts

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/tare-bench/tare/internal/instrument/startup/logs"
	"github.com/tare-bench/tare/record"
)

// command is the runsc command that wrote a log file. Each command has a separate
// file, and so has the sentry.
type command struct {
	id, verb string // sandbox id and verb
	of       string // container id in the command
	at       int64  // time of the first line
	place    place
	headed   bool             // the header between its two separator lines has ended
	lines    map[string]int64 // last time in each of the sentry's boot timelines, by name
}

var (
	tableProgram = "boot timing" // name of the boot table in package logs
	sentryStep   = "runsc boot: "
)

// runsc processes a gVisor line.
func (b *Builder) runsc(e *logs.Event, at int64) {
	if e.File < 0 || e.File >= len(b.commands) {
		b.Unplaced++
		return
	}
	c, msg := &b.commands[e.File], e.Message
	switch { // header of a command
	case bytes.HasPrefix(msg, []byte("**************** gVisor")):
		if c.headed = c.verb != "" && !c.headed; !c.headed {
			*c = command{at: at, place: placeOf(e)}
		}
		return
	case bytes.HasPrefix(msg, []byte("Args: [")):
		b.runscBegins(c, e, at)
		return
	}
	if c.id == "" && c.verb == "" && (string(e.Program) == tableProgram || bytes.HasPrefix(msg, []byte("Timer for "))) {
		b.runscNameless(c, e, at)
	}
	s := b.open[c.id]
	if c.id == "" || s == nil {
		b.Unplaced++
		return
	}
	b.touch(s)
	if b.settles(s, at) {
		return
	}
	if string(e.Program) == tableProgram {
		b.timing(s, e, at)
		return
	}
	if home, ok := bytes.CutPrefix(msg, []byte("Creating new container, cid: "+c.of+", sandbox: ")); ok && c.verb == "create" {
		s = b.runscJoins(c, s, home)
	}
	s.tell(b, e, at, runscMark(c, msg), c.of)
	if status, ok := bytes.CutPrefix(msg, []byte("Exiting with status: ")); ok && string(status) != "0" && runscDone[c.verb] != none {
		s.fails(cmp.Or(s.error, "runsc "+c.verb+" exited with "+string(cut(status))), at)
	}
	b.midpoint(s, c, e)
}

// runscJoins moves a create into the start of its pod when its log shows that the
// container belongs to a pod.
func (b *Builder) runscJoins(c *command, s *sandbox, home []byte) *sandbox {
	pod := b.open[string(home)]
	if pod == nil || pod == s {
		return s
	}
	b.forget(s)
	b.containers.put(c.of, pod.id)
	pod.events += s.events - 1 // the first line is counted again
	c.id = pod.id
	b.runscCalled(c, pod)
	return pod
}

// runscCalled records a runsc command.
func (b *Builder) runscCalled(c *command, s *sandbox) {
	m := mark{point: runscCalls[c.verb]}
	if c.verb != "boot" {
		m.call = "runsc " + c.verb
	}
	first := logs.Event{Form: logs.Runsc, Message: []byte("runsc " + c.verb), File: c.place.file, Line: c.place.line}
	s.tell(b, &first, c.at, m, c.of)
}

// runscBegins processes the arguments of a runsc command: "Args: [/usr/bin/runsc
// --root=/run create --bundle /b 8bd3…]".
func (b *Builder) runscBegins(c *command, e *logs.Event, at int64) {
	args := strings.Fields(string(bytes.TrimSuffix(e.Message[len("Args: ["):], []byte("]"))))
	if c.at == 0 {
		c.at, c.place = at, placeOf(e)
	}
	c.id, c.verb = "", ""
	if i := slices.IndexFunc(args, func(a string) bool { return slices.Contains(runscVerbs, a) }); i >= 0 {
		c.verb = args[i]
	}
	if c.verb == "" || e.Cut || !isID([]byte(args[len(args)-1])) {
		b.Unplaced++
		return
	}
	id, verb := []byte(args[len(args)-1]), c.verb
	s := b.known(id)
	switch verb {
	case "create", "run", "boot", "restore":
		if s != nil && (verb == "boot" && s.has(sentryRuns) || verb != "boot" && s.has(called)) {
			b.finish(s)
		}
		s = b.sandboxOf(id, true, at)
	case "start": // the log of create may be missing
		if s == nil {
			s = b.sandboxOf(id, true, at)
		}
	case "kill", "delete", "exec", "pause", "checkpoint":
		if s != nil {
			b.finish(s)
		}
		return
	default:
		return
	}
	c.id, c.of = s.id, string(id)
	b.runscCalled(c, s)
}

var runscVerbs = []string{
	"create", "run", "boot", "start", "restore", "kill", "delete", "exec", "pause", "checkpoint",
	"state", "wait", "events", "list", "ps", "gofer", "umount", "resume", "spec", "features", "debug",
}

// runscNameless processes the boot of a sentry whose log has no container id. The file
// name replaces the id.
func (b *Builder) runscNameless(c *command, e *logs.Event, at int64) {
	name := "runsc"
	if e.File < len(b.names) {
		name = b.names[e.File]
	}
	s := b.sandboxOf([]byte(name), true, at)
	c.id, c.of, c.verb = s.id, s.id, "boot"
	s.whose |= 1 << logs.Runsc
	if s.began == 0 {
		s.began, s.at, s.suppressed = at, placeOf(e), b.suppressed
	}
}

// runscDone maps commands to the milestones reached at their successful end,
// runscCalls to those reached at their beginning.
var (
	runscDone  = map[string]point{"create": created, "start": started}
	runscCalls = map[string]point{"create": called, "run": called, "start": begun}
)

// runscMark returns the meaning of a runsc line.
func runscMark(c *command, msg []byte) mark {
	done := runscDone[c.verb]
	switch {
	case bytes.HasPrefix(msg, []byte("Starting sandbox: ")):
		return mark{point: sentryLaunched}
	case done != none && bytes.HasPrefix(msg, []byte("Exiting with status: 0")):
		return mark{point: done, call: "runsc " + c.verb, ends: true}
	}
	return mark{}
}

// sentryPoints maps the boot steps of the sentry to milestones.
var sentryPoints = map[string]point{
	"Go code running": sentryRuns, "notifying parent": sentryReady, "start signal received": begun, "kernel started": started,
}

// midpoint processes a timed step of the sentry's boot: "Timer for runsc boot:
// Timeline runsc boot reached midpoint spec read at 02:27:17.307568314 (unix nanos:
// 1795228037307568314)".
func (b *Builder) midpoint(s *sandbox, c *command, e *logs.Event) {
	if !bytes.HasPrefix(e.Message, []byte("Timer for ")) {
		return
	}
	name, rest, ok := bytes.Cut(e.Message, []byte(" reached midpoint "))
	_, name, named := bytes.Cut(name, []byte(": Timeline "))
	i := bytes.LastIndex(rest, []byte(" (unix nanos: "))
	if !ok || !named || i < 0 {
		return
	}
	at, err := strconv.ParseInt(string(bytes.TrimSuffix(rest[i+len(" (unix nanos: "):], []byte(")"))), 10, 64)
	step := rest[:i]
	if j := bytes.LastIndex(step, []byte(" at ")); j >= 0 {
		step = step[:j]
	}
	if err != nil || at < s.began-jitter || at > e.Time+jitter {
		return
	}
	if last := c.lines[string(cut(name))]; last != 0 {
		s.span(b, &call{name: sentryStep + string(cut(step)), kind: record.KindVMM, at: last, place: placeOf(e)}, at)
	}
	if c.lines == nil || len(c.lines) == maxOfPod {
		c.lines = map[string]int64{}
	}
	c.lines[string(cut(name))] = at
	s.reached(b, mark{point: sentryPoints[string(step)]}, at, s.id, placeOf(e))
}

// timing processes a row of runsc's boot table. The table repeats earlier lines and
// adds the steps before the log was opened.
func (b *Builder) timing(s *sandbox, e *logs.Event, at int64) {
	s.count(e, at)
	s.edges++
	step := string(cut(e.Message))
	switch {
	case e.Took == 0 && step == "runsc boot":
		s.spans = slices.DeleteFunc(s.spans, func(x record.Span) bool { return strings.HasPrefix(x.Name, sentryStep) })
		if at < s.began {
			s.began = at
		}
		s.reached(b, mark{point: sentryStarted}, at, s.id, placeOf(e))
	case e.Took > 0 && step != "END" && e.Took <= at:
		s.span(b, &call{name: sentryStep + step, kind: record.KindVMM, at: at - e.Took, place: placeOf(e)}, at)
		s.reached(b, mark{point: sentryPoints[step]}, at, s.id, placeOf(e))
	}
}
