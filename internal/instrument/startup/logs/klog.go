package logs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"
)

// isGlog reports whether a line begins like glog output: "I1121 02:27:17.292309 ".
func isGlog(b []byte) bool {
	if len(b) < 22 || b[5] != ' ' || b[8] != ':' || b[11] != ':' || b[14] != '.' {
		return false
	}
	switch b[0] {
	case 'I', 'W', 'E', 'D', 'F', 'V':
		return isDigit(b[1]) && isDigit(b[2]) && isDigit(b[3]) && isDigit(b[4]) && isDigit(b[6])
	}
	return false
}

// glogLine adds the event of a glog line such as "I1121 02:27:17.292309       1
// cli.go:275] …": level, month and day, time of day, process, source position, text.
func (s *source) glogLine(b []byte, c carrier, long bool) {
	at, message, complete := bytes.Cut(b[len("I1121 02:27:17.292309"):], []byte("] "))
	t, ok := glogTime(b)
	when := s.when(stamp{local: t})
	if !ok || when == 0 {
		return
	}
	e := s.event(s.klogForm(c.ident, message))
	e.Time, e.Level, e.Program, e.Pid, e.Cut = when, level(b[:1]), c.ident, c.pid, long || !complete
	at = bytes.TrimLeft(at, " ")
	if pid := pidOf(at); pid > 0 {
		e.Pid = pid
	}
	if complete {
		e.Source = at[bytes.LastIndexByte(at, ' ')+1:]
	} else {
		message = at
	}
	e.Message = message[:min(len(message), maxMessage)]
	if e.Form == Kubelet {
		e.Pod = podIn(e.Message)
		e.Error, _, _ = bytes.Cut(stringAfter(e.Message, ` err="`), []byte(`" pod`))
	}
}

// podIn returns the pod of a structured line: pod="namespace/name".
func podIn(b []byte) []byte {
	_, b, _ = bytes.Cut(b, []byte(` pod="`))
	b, _, _ = bytes.Cut(b, []byte(`"`))
	return b
}

// klogForm returns the writer of a klog line: kubelet, under any program name, or
// runsc. Structured messages of kubelet begin with a quote.
func (s *source) klogForm(ident, message []byte) Form {
	if form, ok := programOf(ident); ok && form == Kubelet || len(ident) == 0 && (bytes.HasPrefix(message, []byte{'"'}) || s.engine == Kubelet) {
		return Kubelet
	}
	return Runsc
}

// glogTime parses the month, day and time of a glog line.
func glogTime(b []byte) (yearless, bool) {
	month, _ := two(b[1:])
	date, _ := two(b[3:])
	tod, n := clockOf(b[6:])
	return yearless{time.Month(month), date, tod}, isDay(month, date) && n > 0 && len(b) > 6+n && b[6+n] == ' '
}

// klogJSON adds the event of a kubelet line in klog's JSON format, and reports whether
// it was one: {"ts":1700000000000.5,"caller":"kubelet/kubelet.go:2405","msg":"SyncLoop
// ADD","source":"api","pods":["shop/web"]}. It converts the message to klog's text
// format.
func (s *source) klogJSON(f *fields, line []byte) bool {
	if stamp := f.at[keyTS].b; len(stamp) < 10 || len(bytes.Trim(stamp, "0123456789.")) > 0 {
		return false
	}
	var k map[string]any
	if json.Unmarshal(line, &k) != nil {
		return false
	}
	at, _ := k["ts"].(float64)
	caller, ok := k["caller"].(string)
	for at > maxSeconds { // ms or µs, depending on the version
		at /= 1000
	}
	if !ok || at <= 0 {
		return false
	}
	text := fmt.Appendf(nil, "%q", k["msg"])
	for _, key := range slices.Sorted(maps.Keys(k)) {
		switch v := k[key].(type) {
		case string:
			text = fmt.Appendf(text, " %s=%q", key, v)
		case map[string]any:
			if name, ok := v["name"]; ok {
				text = fmt.Appendf(text, ` %s="%v/%v"`, key, v["namespace"], name)
				continue
			}
			value, _ := json.Marshal(v)
			text = fmt.Appendf(text, " %s=%s", key, value)
		default:
			value, _ := json.Marshal(v)
			text = fmt.Appendf(text, " %s=%s", key, value)
		}
	}
	e := s.event(Kubelet)
	e.Time, e.Source, e.Level, e.Message, e.Pod = int64(at*1e6)*1000, []byte(caller), levels["info"], text[:min(len(text), maxMessage)], podIn(text)
	if err, ok := k["err"].(string); ok {
		e.Level, e.Error = levels["error"], []byte(err)
	}
	s.own.anchor = e.Time
	return true
}

// stringAfter returns the bytes after text, or nil if b does not contain it.
func stringAfter(b []byte, text string) []byte {
	_, after, _ := bytes.Cut(b, []byte(text))
	return after
}
