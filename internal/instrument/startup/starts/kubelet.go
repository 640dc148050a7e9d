package starts

import (
	"bytes"
	"time"

	"github.com/tare-bench/tare/internal/instrument/startup/logs"
)

// kubelet returns the facts of a kubelet line. kubelet identifies pods by name. It
// logs when a pod was added, when its volumes were mounted, when its containers were
// seen started (by PLEG, once a second), and when the pod was observed running. The
// last of these lines contains several times.
func kubelet(e *logs.Event, all []fact) []fact {
	msg, pod := e.Message, e.Pod
	add := func(p point, pod, member []byte) {
		all = append(all, fact{mark: mark{point: p}, pod: pod, member: member, opens: p == podAdded || p == seenStarted, own: true})
	}
	switch {
	case bytes.HasPrefix(msg, []byte("SyncLoop (ADD")): // up to 1.20: SyncLoop (ADD, "api"): "web_shop(uid), db_shop(uid)"
		_, pods, _ := bytes.Cut(msg, []byte(`): "`))
		for old := range bytes.SplitSeq(pods, []byte(", ")) {
			add(podAdded, oldName(old), nil)
		}
	case bytes.HasPrefix(msg, []byte(`SyncLoop (PLEG): "`)):
		if bytes.Contains(msg, []byte(`Type:"ContainerStarted"`)) {
			add(seenStarted, oldName(msg[len(`SyncLoop (PLEG): "`):]), after(msg, `Data:"`, '"'))
		}
	case bytes.Contains(msg[:min(len(msg), 16)], []byte("SyncLoop ADD")):
		_, pods, _ := bytes.Cut(msg, []byte("pods=["))
		for pod := range bytes.SplitSeq(bytes.TrimSuffix(pods, []byte("]")), []byte(",")) {
			add(podAdded, bytes.Trim(pod, `" `), nil)
		}
	case bytes.Contains(msg[:min(len(msg), 48)], []byte("SyncLoop (PLEG): event for pod")):
		if bytes.Contains(msg, []byte(`"Type":"ContainerStarted"`)) {
			add(seenStarted, pod, after(msg, `"Data":"`, '"'))
		}
	case bytes.Contains(msg[:min(len(msg), 32)], []byte("Observed pod startup duration")):
		all = observedStart(msg, pod, all)
	case bytes.Contains(msg[:min(len(msg), 64)], []byte("MountVolume started")):
		add(mountCalled, pod, nil)
	case bytes.Contains(msg[:min(len(msg), 32)], []byte("MountVolume.SetUp succeeded")):
		add(mountReturned, pod, nil)
	case len(pod) > 0:
		all = append(all, fact{pod: pod, stage: stageOf(e)})
	}
	if len(all) == 0 {
		all = append(all, fact{})
	}
	return all
}

// oldName converts "name_namespace(uid)" to "namespace/name".
func oldName(b []byte) []byte {
	name, rest, _ := bytes.Cut(b, []byte("_"))
	space, _, _ := bytes.Cut(rest, []byte("("))
	return podName(space, name)
}

// observedStart returns the facts from kubelet's line about a pod's start. The times
// in the line replace the time of the line.
func observedStart(msg, pod []byte, all []fact) []fact {
	stamp := func(key string) int64 {
		text, _, _ := bytes.Cut(after(msg, key+`="`, '"'), []byte(" m="))
		t, err := time.Parse("2006-01-02 15:04:05.999999999 -0700 MST", string(text))
		if err != nil || t.Year() < 1971 {
			return 0
		}
		return t.UnixNano()
	}
	add := func(p point, at int64) {
		if at != 0 {
			all = append(all, fact{mark: mark{point: p}, pod: pod, at: at, opens: true, own: true})
		}
	}
	created := max(stamp("podCreationTimestamp"), stamp("pod.CreationTimestamp"))
	add(podCreated, created)
	add(pullCalled, stamp("firstStartedPulling"))
	add(pullReturned, stamp("lastFinishedPulling"))
	add(seenRunning, stamp("observedRunningTime"))
	end := fact{mark: mark{point: observed}, pod: pod, opens: true, own: true, at: stamp("watchObservedRunningTime")}
	if took, err := time.ParseDuration(string(after(msg, `podStartE2EDuration="`, '"'))); err == nil && created != 0 {
		end.at = created + int64(took)
	}
	return append(all, end)
}
