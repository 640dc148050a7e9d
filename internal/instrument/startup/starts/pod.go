package starts

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/tare-bench/tare/internal/instrument/startup/logs"
)

// runPod takes a call of RunPodSandbox, or its return, which are of the same pod
// if they name it alike. rest is the pod's metadata and what follows it.
func (b *Builder) runPod(e *logs.Event, at int64, rest []byte) {
	if id, ok := returned(rest, " returns sandbox id "); ok {
		if isID(id) {
			if s := b.joined(podKey(rest[:bytes.LastIndex(rest, []byte(" returns "))]), id, at); s != nil {
				s.tell(b, e, at, engineMarks[podReturned], "")
			}
		}
		return
	}
	if i := bytes.LastIndex(rest, []byte(" failed")); i >= 0 && isError(e) {
		b.podFailed(podKey(rest[:i]), e, at)
		return
	}
	c := b.calls(e, at, "RunPodSandbox")
	c.pod, c.key = podName(rest), podKey(rest)
	b.pods.put(c.key, &c)
}

// joined is the sandbox of an id, with the call that led to it.
func (b *Builder) joined(key string, id []byte, at int64) *sandbox {
	c, asked := b.pods.take(key)
	if s, ok := b.open[string(id)]; ok && asked && s.has(podCalled) {
		b.finish(s)
	}
	s := b.sandboxOf(id, asked, at)
	if s != nil && asked {
		s.asked(b, c)
	}
	return s
}

// idless begins what stands for an id where none was told. No id has a blank.
const idless = "pod "

// podFailed ends a start that came to nothing. Its sandbox may never have had an
// id that was told.
func (b *Builder) podFailed(key string, e *logs.Event, at int64) {
	var s *sandbox
	if c, ok := b.pods.take(key); ok {
		s = b.sandboxOf([]byte(idless+key), true, at)
		s.asked(b, c)
	} else {
		for x := range b.newestFirst() {
			if slices.ContainsFunc(x.calls, func(c call) bool { return c.key != "" && c.key == key }) {
				s = x
				break
			}
		}
	}
	if s == nil {
		b.Unplaced++
		return
	}
	s.said(b, e, at, host, mark{}, true)
	s.fails("RunPodSandbox: "+string(cut(errorOf(e))), at)
	b.finish(s)
}

// pod joins a call of RunPodSandbox as soon as the id that it led to is told:
// "generated id for sandbox name "p1_default_u1_1"".
func (b *Builder) pod(s *sandbox, e *logs.Event) {
	const begin = `generated id for sandbox name "`
	if !bytes.HasPrefix(e.Message, []byte(begin)) {
		return
	}
	key := bytes.TrimSuffix(e.Message[len(begin):], []byte(`"`))
	if c, ok := b.pods.take(string(key)); ok {
		s.asked(b, c)
	}
}

// podKey is a pod's name as containerd makes it of its metadata, which it writes
// as Go does, "&PodSandboxMetadata{Name:p1,Uid:u1,Namespace:default,Attempt:1,}",
// or as protobuf does, `name:"p1"  uid:"u1"  namespace:"default"  attempt:1`.
func podKey(meta []byte) string {
	attempt := metaOf(meta, "Attempt")
	if len(attempt) == 0 {
		attempt = []byte("0")
	}
	key := bytes.Join([][]byte{metaOf(meta, "Name"), metaOf(meta, "Namespace"), metaOf(meta, "Uid"), attempt}, []byte("_"))
	return string(key[:min(len(key), maxID)])
}

func podName(meta []byte) string {
	name := metaOf(meta, "Name")
	if space := metaOf(meta, "Namespace"); len(space) > 0 {
		name = append(append(bytes.Clone(space), '/'), name...)
	}
	return string(name[:min(len(name), maxText)])
}

var metas = sync.OnceValue(func() map[string]*regexp.Regexp {
	all := map[string]*regexp.Regexp{}
	for _, field := range []string{"Name", "Namespace", "Uid", "Attempt"} {
		all[field] = regexp.MustCompile(`[{,]` + field + `:([^,]*),|(?:^| )` + strings.ToLower(field) + `:(?:"([^"]*)"|(\d+))`)
	}
	return all
})

// metaOf is one field of such metadata.
func metaOf(meta []byte, field string) []byte {
	if found := metas()[field].FindSubmatch(meta); found != nil {
		return bytes.Join(found[1:], nil)
	}
	return nil
}
