package starts

import (
	"bytes"
	"strings"

	"github.com/tare-bench/tare/internal/instrument/startup/logs"
)

// containerd returns the facts of a line written by containerd itself. Shim lines in
// the same log have a different form.
func containerd(e *logs.Event, all []fact) []fact {
	if f, ok := criCall(e); ok {
		return append(all, f)
	}
	f, msg := fact{}, e.Message
	switch {
	case string(msg) == "shim disconnected":
		f.step, f.over = exits, true
	case string(msg) == "begin cni setup":
		f = does(netCalled)
		f.key = joined([]byte("net"), e.Sandbox)
	case bytes.HasPrefix(msg, []byte("cni result")):
		f = does(netReturned)
		f.key = joined([]byte("net"), e.Sandbox)
	case bytes.HasPrefix(msg, []byte(`generated id for sandbox name "`)):
		f.step, f.key = binds, joined([]byte("pod"), bytes.TrimSuffix(msg[len(`generated id for sandbox name "`):], []byte(`"`)))
	case bytes.HasPrefix(msg, []byte("connecting to shim ")) && len(e.Sandbox) == 0 && len(e.Container) == 0:
		f.container, f.point, f.opens = msg[len("connecting to shim "):], shimStarted, true
	case len(e.Path) > 0:
		f.hint = idAtEnd(e.Path)
	}
	return append(all, f)
}

// idAtEnd returns the id at the end of the path of a task directory or a snapshot.
func idAtEnd(path []byte) []byte {
	if id := path[bytes.LastIndexByte(path, '/')+1:]; len(id) == 64 && isID(id) {
		return id
	}
	return nil
}

// criVerbs are the prefixes of CRI messages that quote an object, with their meaning.
// Before containerd 1.6 the spelling was "RunPodsandbox".
var criVerbs = []struct {
	text string
	does point // milestone at the beginning of the call; the next milestone is its end
	step step
	end  byte // byte after the id
}{
	{"RunPodSandbox for ", podCalled, asks, '"'}, {"RunPodsandbox for ", podCalled, asks, '"'},
	{"CreateContainer within sandbox ", createCalled, asks, '"'}, {"StartContainer for ", startCalled, asks, '"'}, {"PullImage ", pullCalled, asks, '"'},
	{"ExecSync for ", execCalled, asks, '"'}, {"Exec for ", none, says, '"'},
	{"StopContainer for ", none, stops, '"'}, {"StopPodSandbox for ", none, stops, '"'}, {"RemovePodSandbox for ", none, stops, '"'}, {"RemovePodSandbox ", none, stops, '"'},
	{"TaskExit event container_id:", none, exits, '"'}, {"received exit event container_id:", none, exits, '"'},
	{"received container exit event container_id:", none, exits, '"'}, {"received sandbox exit event container_id:", none, exits, '"'},
	{"received sandbox container exit event container_id:", none, exits, '"'}, {"TaskExit event in podsandbox handler container_id:", none, exits, '"'},
	{"TaskExit event &TaskExit{ContainerID:", none, exits, ','},
}

// criCall returns the fact of a CRI request, a CRI response or the exit of a
// container.
func criCall(e *logs.Event) (f fact, ok bool) {
	msg := e.Message
	if len(msg) < 9 || !bytes.Contains([]byte("RCSEPTr"), msg[:1]) {
		return fact{}, false
	}
	for i := range criVerbs {
		v := &criVerbs[i]
		rest, ok := bytes.CutPrefix(msg, []byte(v.text))
		if !ok {
			continue
		}
		id := []byte(nil)
		if rest = bytes.TrimPrefix(rest, []byte(`"`)); v.does != podCalled {
			n := bytes.IndexByte(rest, v.end)
			if n < 0 || v.does != pullCalled && !isID(rest[:n]) {
				return fact{}, false
			}
			id, rest = rest[:n], rest[n+1:]
		}
		if v.does == none {
			return fact{step: v.step, container: id, hint: id}, true
		}
		return criAnswer(e, v.does, id, rest), true
	}
	return fact{}, false
}

// criAnswer returns the fact of a call's beginning, success or failure.
func criAnswer(e *logs.Event, p point, id, rest []byte) fact {
	f, meta := does(p), rest
	if answer := bytes.LastIndex(rest, []byte(" returns ")); answer >= 0 {
		f, meta = does(returns[p]), rest[:answer]
	}
	if isError(e) && (p != podCalled || bytes.Contains(rest, []byte(" failed"))) {
		f = fails(f.call, errorOf(e))
	}
	switch p {
	case podCalled:
		f.key, f.pod = joined([]byte("pod"), podKey(meta)), podName(metaOf(meta, "Namespace"), metaOf(meta, "Name"))
		f.sandbox = lastQuoted(rest, " returns sandbox id ")
	case createCalled:
		f.sandbox, f.label, f.attempt = id, metaOf(meta, "Name"), metaOf(meta, "Attempt")
		f.key = joined([]byte("create"), id, f.label)
		f.container = lastQuoted(rest, " returns container id ")
	case pullCalled:
		f.key = joined([]byte("pull"), id)
	case startCalled:
		f.container, f.key = id, joined([]byte("start"), id)
	default:
		f.container, f.key, f.label, f.oldest = id, joined([]byte("exec"), id), after(rest, "with command [", ']'), true
	}
	return f
}

// lastQuoted returns the quoted id at the end of a message, as returned by a call.
func lastQuoted(rest []byte, text string) []byte {
	if i := bytes.LastIndex(rest, []byte(text)); i >= 0 {
		return bytes.Trim(rest[i+len(text):], `"`)
	}
	return nil
}

// podKey returns the key of a pod from its metadata. The metadata is in Go's format,
// "&PodSandboxMetadata{Name:p1,Uid:u1,Namespace:default,Attempt:1,}", or in
// protobuf's, `name:"p1"  uid:"u1"  namespace:"default"  attempt:1`.
func podKey(meta []byte) []byte {
	attempt := metaOf(meta, "Attempt")
	if len(attempt) == 0 {
		attempt = []byte("0")
	}
	key := bytes.Join([][]byte{metaOf(meta, "Name"), metaOf(meta, "Namespace"), metaOf(meta, "Uid"), attempt}, []byte("_"))
	return key[:min(len(key), maxID)]
}

// metaOf returns a field of the metadata.
func metaOf(meta []byte, field string) []byte {
	for _, before := range []string{"{", ","} {
		if v := after(meta, before+field+":", ','); v != nil {
			return v
		}
	}
	key := strings.ToLower(field) + ":"
	if !bytes.HasPrefix(meta, []byte(key)) {
		key = " " + key
	}
	_, v, _ := bytes.Cut(meta, []byte(key))
	if len(v) > 0 && v[0] == '"' {
		v, _, _ = bytes.Cut(v[1:], []byte{'"'})
		return v
	}
	return v[:len(v)-len(bytes.TrimLeft(v, "0123456789"))]
}
