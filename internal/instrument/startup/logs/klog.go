package logs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// isGlog reports whether a line begins like glog output: "I1121 02:27:17.292309 ".
func isGlog(b []byte) bool {
	return len(b) >= 22 && strings.IndexByte("IWEDFV", b[0]) >= 0 && b[5] == ' ' && b[8] == ':' && b[11] == ':' && b[14] == '.' &&
		isDigit(b[1]) && isDigit(b[2]) && isDigit(b[3]) && isDigit(b[4]) && isDigit(b[6])
}

// glogLine adds the event of a glog line such as "I1121 02:27:17.292309       1
// cli.go:275] …": level, month and day, time of day, process, source position, text.
func (s *source) glogLine(b []byte, c carrier, long bool) {
	at, message, complete := bytes.Cut(b[len("I1121 02:27:17.292309"):], []byte("] "))
	t, n := local("0102 15:04:05", b[1:], len("1121 "))
	when := s.when(t)
	if n == 0 || when == 0 {
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
		e.Pod = between(e.Message, ` pod="`, `"`)
		e.Error = between(e.Message, ` err="`, `" pod`)
	}
}

// klogForm returns the writer of a klog line: kubelet, under any program name, or
// runsc. Structured messages of kubelet begin with a quote.
func (s *source) klogForm(ident, message []byte) Form {
	if programOf(ident) == Kubelet || len(ident) == 0 && (bytes.HasPrefix(message, []byte{'"'}) || s.engine == Kubelet) {
		return Kubelet
	}
	return Runsc
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
		value, _ := json.Marshal(k[key])
		switch v := k[key].(type) {
		case string:
			value = strconv.AppendQuote(nil, v)
		case map[string]any:
			if name, ok := v["name"]; ok {
				value = fmt.Appendf(nil, `"%v/%v"`, v["namespace"], name)
			}
		}
		text = fmt.Appendf(text, " %s=%s", key, value)
	}
	e := s.event(Kubelet)
	e.Time, e.Source, e.Level, e.Message, e.Pod = int64(at*1e6)*1000, []byte(caller), levels["info"], text[:min(len(text), maxMessage)], between(text, ` pod="`, `"`)
	if err, ok := k["err"].(string); ok {
		e.Level, e.Error = levels["error"], []byte(err)
	}
	s.own.anchor = e.Time
	return true
}

// between returns the bytes after a text, up to another text or the end. It returns
// nil if b does not contain the first text.
func between(b []byte, from, to string) []byte {
	_, b, _ = bytes.Cut(b, []byte(from))
	b, _, _ = bytes.Cut(b, []byte(to))
	return b
}
