package starts

import (
	"bytes"

	"github.com/tare-bench/tare/internal/instrument/startup/logs"
)

// kubelet takes a line of kubelet's that tells of a pod's start, and says whether it was
// one: the pod was added, its containers were seen to have started (by PLEG, which looks
// once a second), and it was observed to run. Its starts bear the pod's name, for it does
// not know the sandbox when it begins.
func (b *Builder) kubelet(e *logs.Event, at int64) bool {
	msg := e.Message
	switch {
	case bytes.HasPrefix(msg, []byte(`"SyncLoop ADD" `)):
		_, pods, _ := bytes.Cut(msg, []byte("pods=["))
		for pod := range bytes.SplitSeq(bytes.TrimSuffix(pods, []byte("]")), []byte(",")) {
			b.kubeletPod(e, at, bytes.Trim(pod, `" `), mark{point: podAdded}, "")
		}
	case bytes.HasPrefix(msg, []byte(`"SyncLoop (PLEG): event for pod" `)):
		if bytes.Contains(msg, []byte(`"Type":"ContainerStarted"`)) {
			b.kubeletPod(e, at, after(msg, `pod="`, '"'), mark{point: started}, b.words.keep(after(msg, `"Data":"`, '"')))
		}
	case bytes.HasPrefix(msg, []byte(`"Observed pod startup duration" `)):
		b.kubeletPod(e, at, after(msg, `pod="`, '"'), mark{point: observed}, "")
	default:
		return false
	}
	return true
}

func (b *Builder) kubeletPod(e *logs.Event, at int64, pod []byte, m mark, container string) {
	if len(pod) == 0 || len(pod) > maxText {
		b.Unplaced++
		return
	}
	key := append([]byte(idless), pod...)
	if s := b.open[string(key)]; s != nil && m.point == podAdded {
		b.finish(s)
	}
	s := b.sandboxOf(key, m.point == podAdded, at)
	if s == nil || b.settles(s, at) {
		return
	}
	s.name, s.whose = string(pod), s.whose|ofKubelet
	s.said(b, e, at, host, m, false)
	s.reached(b, m, at, container, placeOf(e))
}
