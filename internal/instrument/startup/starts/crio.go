package starts

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/tare-bench/tare/internal/instrument/startup/logs"
	"github.com/tare-bench/tare/record"
)

// request is one that CRI-O serves.
type request struct {
	call
	sandbox string
	given   bool // its begin has been added to the sandbox
	over    bool
}

// step is what happened to a container before its sandbox was told.
type step struct {
	point point
	line  logs.Event
}

// adding is the last pod that CRI-O began to give a network.
type adding struct {
	name  string // "namespace_name"
	at    int64
	place place
}

// maxSteps is how many are kept of one container.
const maxSteps = 8

// crio takes a line of CRI-O's. Those of a call have the request's id in common,
// and the call's name as their program: "/runtime.v1.RuntimeService/RunPodSandbox".
func (b *Builder) crio(e *logs.Event, at int64) {
	method := e.Program[bytes.LastIndexByte(e.Program, '/')+1:]
	if len(e.Request) == 0 || len(e.Request) > maxID || len(e.Program) == len(method) {
		b.crioOther(e, at)
		return
	}
	done, ok := crioDone[string(method)]
	if !ok {
		if !slices.Contains(crioOver, string(method)) { // somebody asks how it is
			b.crioOther(e, at)
		} else if s := b.known(crioID(e)); s != nil {
			b.finish(s)
		}
		return
	}
	r := b.request(e, at, string(method))
	if why, ok := bytes.CutPrefix(e.Message, []byte("Response error: ")); ok {
		if s := b.open[r.sandbox]; s != nil {
			s.fails(string(method)+": "+string(cut(why)), at)
		}
	}
	ends := !r.over && (bytes.HasPrefix(e.Message, []byte(done)) || bytes.HasPrefix(e.Message, []byte("Response: ")) && string(method) != pullName)
	switch string(method) {
	case "RunPodSandbox":
		b.crioRun(r, e, at, ends)
	case "CreateContainer":
		b.crioCreate(r, e, at, ends)
	case "StartContainer":
		b.crioStart(r, e, at, ends)
	default: // "Pulling image: busybox", "Pulled image: busybox@sha256:…"
		if r.over = r.over || ends; ends {
			b.pull(&r.call, e, at)
		} else {
			b.crioLine(r, e, at)
		}
	}
}

// crioDone are the calls that are part of a start, and what is said when they have
// done it; the debug log has a response, too.
var crioDone = map[string]string{
	"RunPodSandbox": "Ran pod sandbox ", "CreateContainer": "Created container ", "StartContainer": "Started container", pullName: "Pulled image: ",
}

// crioOver are the calls that come after a start.
var crioOver = []string{"StopContainer", "StopPodSandbox", "RemoveContainer", "RemovePodSandbox", "Exec", "ExecSync", "Attach"}

// request is the one that a line belongs to.
func (b *Builder) request(e *logs.Event, at int64, name string) *request {
	if r, ok := b.requests.m[string(e.Request)]; ok {
		return r
	}
	r := &request{call: b.calls(e, at, name)}
	b.requests.put(string(e.Request), r)
	return r
}

// crioRun takes a line of RunPodSandbox: "Running pod sandbox: ns/name/POD", "Ran
// pod sandbox ID with infra container: ns/name/POD".
func (b *Builder) crioRun(r *request, e *logs.Event, at int64, ends bool) {
	const running = "Running pod sandbox: "
	if bytes.HasPrefix(e.Message, []byte(running)) {
		name := string(cut(bytes.TrimSuffix(e.Message[len(running):], []byte("/POD"))))
		r.pod = name
		b.pods.put("cri-o "+name, &r.call)
		return
	}
	id := crioID(e)
	if id == nil {
		b.crioLine(r, e, at)
		return
	}
	s := b.crioJoin(r, id, at)
	if s == nil {
		return
	}
	p := none
	if ends {
		p, r.over = podReturned, true
	}
	s.tell(b, e, at, engineMarks[p], "")
}

// crioJoin is the sandbox of an id, with the request that led to it.
func (b *Builder) crioJoin(r *request, id []byte, at int64) *sandbox {
	if r.sandbox == "" {
		delete(b.pods.m, "cri-o "+r.pod)
		if s, ok := b.open[string(id)]; ok && s.has(podCalled) {
			if !slices.ContainsFunc(s.calls, func(c call) bool { return c.at == r.at && c.place == r.place }) {
				b.finish(s)
			} else {
				r.given = true
			}
		}
		r.sandbox = string(id)
	}
	s := b.sandboxOf(id, !r.given, at)
	if s != nil {
		if !r.given {
			s.asked(b, &r.call)
		}
		r.given = true
	}
	return s
}

// crioCreate takes a line of CreateContainer: "Creating container: ns/pod/name",
// "Created container ID: ns/pod/name". Only the debug log says in which sandbox.
func (b *Builder) crioCreate(r *request, e *logs.Event, at int64, ends bool) {
	if id := after(e.Message, "PodSandboxId:", ','); isID(id) && r.sandbox == "" {
		r.sandbox = string(id)
	}
	id := crioID(e)
	if !ends || id == nil {
		b.crioLine(r, e, at)
		return
	}
	r.over = true
	r.container = b.words.keep(id)
	b.stepOf(r, id, step{createCalled, r.line()})
	b.stepOf(r, id, step{createReturned, b.lineOf(e, at)})
}

// crioStart takes a line of StartContainer: "Starting container: ID", "Started
// container" with containerID= and sandboxID=.
func (b *Builder) crioStart(r *request, e *logs.Event, at int64, ends bool) {
	id := crioID(e)
	if id == nil {
		id = []byte(r.container) // "Response: &StartContainerResponse{}"
	}
	if len(id) == 0 {
		b.crioLine(r, e, at)
		return
	}
	if isID(e.Sandbox) {
		r.sandbox = string(e.Sandbox)
	}
	if r.container == "" {
		r.container = b.words.keep(id)
		b.stepOf(r, id, step{startCalled, r.line()})
	}
	if ends {
		r.over = true
		b.stepOf(r, id, step{startReturned, b.lineOf(e, at)})
	}
}

// stepOf adds a step of a container to its sandbox, after those that came before
// it, or keeps it until the sandbox is told.
func (b *Builder) stepOf(r *request, container []byte, x step) {
	if r.sandbox == "" {
		r.sandbox = b.containers.m[string(container)]
	}
	if r.sandbox == "" {
		if steps := b.orphans.m[string(container)]; len(steps) < maxSteps {
			b.orphans.put(string(container), append(steps, x))
		}
		return
	}
	s, ok := b.open[r.sandbox]
	if !ok {
		return
	}
	b.touch(s)
	if _, ok := b.containers.m[string(container)]; !ok {
		b.containers.put(string(container), s.id)
	}
	steps, _ := b.orphans.take(string(container))
	for _, x := range append(steps, x) {
		s.tell(b, &x.line, x.line.Time, engineMarks[x.point], b.words.keep(container))
	}
}

// lineOf is what is kept of a line.
func (b *Builder) lineOf(e *logs.Event, at int64) logs.Event {
	c := b.calls(e, at, "")
	return c.line()
}

// crioLine takes a line of a request that says nothing of its own.
func (b *Builder) crioLine(r *request, e *logs.Event, at int64) {
	if s, ok := b.open[r.sandbox]; ok {
		s.said(b, e, at, host, mark{}, r.place != placeOf(e))
		return
	}
	if r.place != placeOf(e) { // its first line is kept with it
		b.Unplaced++
	}
}

// crioOther takes a line that belongs to no request.
func (b *Builder) crioOther(e *logs.Event, at int64) {
	const adds = "Adding pod "
	if bytes.HasPrefix(e.Message, []byte(adds)) {
		name, _, _ := bytes.Cut(e.Message[len(adds):], []byte(" "))
		b.adding = adding{name: string(cut(name)), at: at, place: placeOf(e)}
	}
	s, named := b.crioPod(e, at)
	if s == nil && !named {
		s, named = b.of(e, at)
	}
	if s != nil {
		s.said(b, e, at, host, mark{}, named)
	}
}

// crioPod reads "Got pod network &{Name:p Namespace:n ID:…", by which a pod's id
// is known before RunPodSandbox returns, and which ends the adding of a network. It is
// said once more when the pod is taken down, then of a start that is over.
func (b *Builder) crioPod(e *logs.Event, at int64) (s *sandbox, named bool) {
	if !bytes.HasPrefix(e.Message, []byte("Got pod network &{")) {
		return nil, false
	}
	id := after(e.Message, " ID:", ' ')
	if !isID(id) {
		return nil, false
	}
	name, space := after(e.Message, "{Name:", ' '), after(e.Message, " Namespace:", ' ')
	if s = b.joined("cri-o "+string(cut(fmt.Appendf(nil, "%s/%s", space, name))), id, at); s == nil {
		return nil, true
	}
	if b.settles(s, at) {
		return b.crioPod(e, at)
	}
	if b.adding.name != "" && b.adding.name == string(cut(fmt.Appendf(nil, "%s_%s", space, name))) {
		s.span(b, call{name: setUp, kind: record.KindCNI, at: b.adding.at, place: b.adding.place}, at)
		b.adding.name = ""
	}
	return s, true
}

// crioID is the id that a line is about, of a sandbox or of a container, as far
// as it says it.
func crioID(e *logs.Event) []byte {
	for _, v := range [][]byte{e.Container, e.Sandbox} {
		if isID(v) {
			return v
		}
	}
	for _, begin := range []string{
		"Ran pod sandbox ", "Created container ", "Starting container: ", "Stopping container: ", "Stopped container ", "Removing container: ",
		"Removed container ", "Stopping pod sandbox: ", "Stopped pod sandbox: ", "Removing pod sandbox: ", "Removed pod sandbox: ",
	} {
		if !bytes.HasPrefix(e.Message, []byte(begin)) {
			continue
		}
		id := e.Message[len(begin):]
		if i := bytes.IndexAny(id, " :("); i >= 0 {
			id = id[:i]
		}
		if isID(id) {
			return id
		}
		return nil
	}
	if bytes.HasPrefix(e.Message, []byte("Response: ")) || bytes.HasPrefix(e.Message, []byte("Request: ")) {
		for _, begin := range []string{"ContainerId:", "PodSandboxId:"} {
			if id := after(e.Message, begin, ','); isID(id) {
				return id
			}
		}
	}
	return nil
}
