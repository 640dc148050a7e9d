package logs

import (
	"bytes"
	"regexp"
	"time"
)

// crun adds the event of a line in crun's debug log: "2024-09-06T07:58:53.348572Z:
// text".
func (s *source) crun(b []byte, long bool) {
	i := bytes.Index(b[:min(len(b), 40)], []byte(": "))
	if i < 0 {
		return
	}
	ns, _, ok := parseStamp(b[:i])
	if !ok {
		return
	}
	s.own.anchor = ns
	e := s.event(Crun)
	e.Time, e.Cut, e.Message = ns, long, b[i+2:min(len(b), i+2+maxMessage)]
}

// isulaLine matches an iSulad line: program, local time, level (missing for events),
// file, function, line number and text: "  isula 20240829135021.168 ERROR    isulad -
// execution.c:start:12 - text".
var isulaLine = regexp.MustCompile(`^\s*(?:\S+\s+)?(\d{14}\.\d{3,9}) +(?:([A-Z]{4,6}) +)?(?:\S+ - ){0,2}(?:- )?(.*)$`)

// isIsula reports whether a line looks like one from iSulad.
func isIsula(b []byte) bool {
	i := bytes.IndexByte(b[:min(len(b), 64)], '.')
	return i >= 14 && len(bytes.Trim(b[i-14:i], "0123456789")) == 0 && isulaLine.Match(b)
}

// isula adds the event of an iSulad line and reports whether it was one.
func (s *source) isula(b []byte, long bool) bool {
	if !isIsula(b) {
		return false
	}
	m := isulaLine.FindSubmatch(b)
	t, err := time.Parse("20060102150405", string(m[1]))
	if err != nil || t.Year() < 1971 || t.Year() > 2261 {
		return false
	}
	e := s.event(Isulad)
	e.Time, e.Cut, e.Level, e.Message = t.UnixNano()-s.own.zone, long, levels["info"], m[3][:min(len(m[3]), maxMessage)]
	if len(m[2]) > 0 {
		e.Level = level(m[2])
	}
	s.own.anchor = e.Time
	return true
}
