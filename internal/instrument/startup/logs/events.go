package logs

import (
	"bytes"
	"time"
)

// kubeEvent is a line of `kubectl get events` or of the events in `kubectl describe pod`.
type kubeEvent struct {
	age                     time.Duration // since it was first seen
	reason, object, message []byte
	isWarning               bool
}

// kubeEventOf reads such a line: "[NAMESPACE] LAST-SEEN TYPE REASON OBJECT MESSAGE", or "TYPE
// REASON AGE FROM MESSAGE".
func kubeEventOf(b []byte) (e kubeEvent, ok bool) {
	at := bytes.Index(b[:min(len(b), 96)], []byte("Normal "))
	if at < 0 {
		at = bytes.Index(b[:min(len(b), 96)], []byte("Warning "))
		e.isWarning = at >= 0
	}
	if at < 0 {
		return e, false
	}
	before, rest := bytes.TrimSpace(b[:at]), b[at:]
	word := func() (w []byte) {
		w, rest, _ = bytes.Cut(bytes.TrimLeft(rest, " \t"), blank)
		rest = bytes.TrimLeft(rest, " \t")
		return w
	}
	word()
	e.reason = word()
	age := before
	if len(before) == 0 {
		age = word()
		if bytes.HasPrefix(rest, []byte("(x")) {
			age, rest, _ = bytes.Cut(rest, []byte(")"))
		}
		word()
	} else if e.object = word(); bytes.IndexByte(e.object, '/') < 0 {
		return e, false
	}
	if _, over, has := bytes.Cut(age, []byte("over ")); has {
		age = bytes.TrimSuffix(over, []byte(")"))
	} else {
		age = age[bytes.LastIndexByte(age, ' ')+1:]
	}
	e.message = bytes.TrimSpace(rest)
	for len(age) > 0 {
		n, has := number(age)
		digits := len(age) - len(bytes.TrimLeft(age, "0123456789"))
		if !has || digits == len(age) || n > 1<<20 {
			return e, false
		}
		unit, has := map[byte]time.Duration{'s': time.Second, 'm': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour}[age[digits]]
		if !has {
			return e, false
		}
		e.age, age = e.age+time.Duration(n)*unit, age[digits+1:]
	}
	return e, len(before) > 0 || len(e.message) > 0
}

// eventTime stands for the time of an event of which only the age is known.
func (e *kubeEvent) eventTime() int64 { return max(400*day-int64(e.age), 1) }

// kube makes the event of such a line, and reports whether it was one. `kubectl describe`
// names the pod above its events.
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
	if k.isWarning {
		e.Level = levels["error"]
	}
	if name, ok := bytes.CutPrefix(k.object, []byte("pod/")); ok {
		e.Pod = name
	}
	s.stats.Coarse++
	return true
}

// dockerEvent makes the event of a line of `docker events` behind its time: "container start
// ID (image=busybox, name=web)", and reports whether it was one.
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
