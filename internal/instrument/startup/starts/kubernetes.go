package starts

import (
	"bytes"

	"github.com/tare-bench/tare/internal/instrument/startup/logs"
)

// kubeReasons maps the reason of a Kubernetes pod event to its milestone.
var kubeReasons = map[string]point{"Scheduled": podAdded, "Pulling": pullCalled, "Pulled": pullReturned, "Created": createReturned, "Started": seenStarted}

// kubernetes returns the facts of a Kubernetes event. Events identify containers by
// name.
func kubernetes(e *logs.Event, all []fact) []fact {
	pod := e.Pod
	if name := after(e.Message, "Successfully assigned ", ' '); name != nil && (len(pod) == 0 || bytes.HasSuffix(name, pod)) {
		pod = name[bytes.IndexByte(name, '/')+1:]
	}
	pod = pod[bytes.IndexByte(pod, '/')+1:]
	if len(pod) == 0 {
		return append(all, fact{})
	}
	f := fact{mark: mark{point: kubeReasons[string(e.Source)]}, pod: pod, opens: true, own: true}
	if f.point == seenStarted || f.point == createReturned {
		f.member = e.Message[bytes.LastIndexByte(e.Message, ' ')+1:]
	}
	return append(all, f)
}
