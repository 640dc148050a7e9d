package logs

import (
	"bytes"
	"regexp"
	"strconv"
	"time"
)

// kubeEvent is a line of `kubectl get events` or of the events in `kubectl describe pod`.
type kubeEvent struct {
	age                            time.Duration // since it was first seen
	level, reason, object, message []byte
}

// The formats are "[NAMESPACE] LAST-SEEN TYPE REASON OBJECT MESSAGE" and "TYPE REASON
// AGE FROM MESSAGE". An age may be "30s (x4 over 5m)".
var (
	kubeGet      = regexp.MustCompile(`^(?:[a-z0-9-]+\s+)?(\w+(?: \(x\d+ over \w+\))?)\s+(Normal|Warning)\s+(\w+)\s+(\w+/\S+)\s+(.*)$`)
	kubeDescribe = regexp.MustCompile(`^\s*(Normal|Warning)\s+(\w+)\s+(\w+(?: \(x\d+ over \w+\))?)\s+(\S+)\s+(.*)$`)
	kubeAge      = regexp.MustCompile(`(?:(\d+)d)?((?:\d+h)?(?:\d+m)?(?:\d+s)?)\)?$`)
)

// kubeEventOf parses a kubectl event line.
func kubeEventOf(b []byte) (e kubeEvent, ok bool) {
	if head := b[:min(len(b), 128)]; !bytes.Contains(head, []byte("Normal ")) && !bytes.Contains(head, []byte("Warning ")) {
		return e, false
	}
	age := []byte(nil)
	if m := kubeGet.FindSubmatch(b); m != nil {
		age, e.level, e.reason, e.object, e.message = m[1], m[2], m[3], m[4], m[5]
	} else if m := kubeDescribe.FindSubmatch(b); m != nil {
		e.level, e.reason, age, e.message = m[1], m[2], m[3], m[5]
	}
	m := kubeAge.FindSubmatch(age)
	if m == nil || len(m[0]) == 0 {
		return e, false
	}
	days, _ := strconv.Atoi(string(m[1]))
	within, _ := time.ParseDuration("0s" + string(m[2]))
	e.age = time.Duration(days)*24*time.Hour + within
	return e, true
}

// eventTime returns a substitute time for an event that has only an age.
func (e *kubeEvent) eventTime() int64 { return max(400*day-int64(e.age), 1) }

// kube adds the event of a kubectl line and reports whether it was one. `kubectl
// describe` prints the pod's name before its events.
func (s *source) kube(b []byte) bool {
	for _, key := range []string{"Name:", "Namespace:"} {
		if value, ok := bytes.CutPrefix(b, []byte(key)); ok && len(value) < 256 {
			value = bytes.TrimSpace(value)
			if key == "Name:" {
				s.described = append([]byte(nil), value...)
			} else {
				s.described = append(append(append([]byte(nil), value...), '/'), s.described...)
			}
			return false
		}
	}
	k, ok := kubeEventOf(b)
	if !ok {
		return false
	}
	e := s.event(Kubernetes)
	e.Time, e.Source, e.Message, e.Level, e.Pod = k.eventTime(), k.reason, k.message[:min(len(k.message), maxMessage)], levels["info"], s.described
	if string(k.level) == "Warning" {
		e.Level = levels["error"]
	}
	if name, ok := bytes.CutPrefix(k.object, []byte("pod/")); ok {
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
		e.Container, _, _ = bytes.Cut(stringAfter(attributes, "container="), []byte(","))
	}
	return true
}
