package logs

import (
	"bytes"
	"regexp"
	"strconv"
	"time"
)

// The formats are "[NAMESPACE] LAST-SEEN TYPE REASON OBJECT MESSAGE" and "TYPE REASON
// AGE FROM MESSAGE". An age may be "30s (x4 over 5m)".
var (
	kubeGet      = regexp.MustCompile(`^(?:[a-z0-9-]+\s+)?(\w+(?: \(x\d+ over \w+\))?)\s+(Normal|Warning)\s+(\w+)\s+(\w+/\S+)\s+(.*)$`)
	kubeDescribe = regexp.MustCompile(`^\s*(Normal|Warning)\s+(\w+)\s+(\w+(?: \(x\d+ over \w+\))?)\s+(\S+)\s+(.*)$`)
	kubeAge      = regexp.MustCompile(`(?:(\d+)d)?((?:\d+h)?(?:\d+m)?(?:\d+s)?)\)?$`)
)

// kube adds the event of a line of `kubectl get events` or of the events in `kubectl
// describe pod`, and reports whether it was one. `kubectl describe` prints the pod's
// name before its events. An event has only an age, so its time is made up.
func (s *source) kube(b []byte) bool {
	if name, ok := bytes.CutPrefix(b, []byte("Name:")); ok && len(name) < 256 {
		s.described = bytes.Clone(bytes.TrimSpace(name))
	} else if space, ok := bytes.CutPrefix(b, []byte("Namespace:")); ok && len(space) < 256 {
		s.described = bytes.Join([][]byte{bytes.TrimSpace(space), s.described}, []byte("/"))
	}
	if head := b[:min(len(b), 128)]; !bytes.Contains(head, []byte("Normal ")) && !bytes.Contains(head, []byte("Warning ")) {
		return false
	}
	var age, kind, reason, object, message []byte
	if m := kubeGet.FindSubmatch(b); m != nil {
		age, kind, reason, object, message = m[1], m[2], m[3], m[4], m[5]
	} else if m := kubeDescribe.FindSubmatch(b); m != nil {
		kind, reason, age, message = m[1], m[2], m[3], m[5]
	}
	m := kubeAge.FindSubmatch(age)
	if m == nil || len(m[0]) == 0 {
		return false
	}
	days, _ := strconv.Atoi(string(m[1]))
	below, _ := time.ParseDuration("0s" + string(m[2]))
	e := s.event(Kubernetes)
	e.Time = max(int64(400-days)*day-int64(below), 1)
	e.Source, e.Message, e.Level, e.Pod = reason, message[:min(len(message), maxMessage)], levels["info"], s.described
	if string(kind) == "Warning" {
		e.Level = levels["error"]
	}
	if name, ok := bytes.CutPrefix(object, []byte("pod/")); ok {
		e.Pod = name
	}
	s.stats.Coarse++
	return true
}

// dockerEvent adds the event of a `docker events` line and reports whether it was one.
// b is the line after its time: "container start ID (image=busybox, name=web)".
func (s *source) dockerEvent(ns int64, b []byte) bool {
	what, rest, _ := bytes.Cut(bytes.TrimLeft(b, " "), blank)
	verb, rest, ok := bytes.Cut(rest, blank)
	if !ok || ns == 0 || string(what) != "container" && string(what) != "network" && string(what) != "image" {
		return false
	}
	id, attributes, _ := bytes.Cut(rest, blank)
	if len(attributes) == 0 || attributes[0] != '(' {
		return false
	}
	e := s.event(Docker)
	e.Time, e.Level, e.Source, e.Message = ns, levels["info"], []byte("docker events"), b[1:min(len(b), maxMessage)]
	if e.Subsystem = verb; string(what) == "container" {
		e.Container = id
	} else {
		e.Container = between(attributes, "container=", ",")
	}
	return true
}
