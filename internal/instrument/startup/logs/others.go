package logs

import "bytes"

// crun makes the event of a line of crun's debug log: "2024-09-06T07:58:53.348572Z: text".
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

// isulaStamp is where iSulad's time stands in one of its lines, -1 in any other's.
func isulaStamp(b []byte) int {
	for at := 0; at+18 < min(len(b), 96); at++ {
		if !isDigit(b[at]) {
			continue
		}
		n := at
		for n < len(b) && isDigit(b[n]) {
			n++
		}
		if n-at == 14 && b[n] == '.' && isDigit(b[n+1]) && (at == 0 || b[at-1] == ' ') {
			return at
		}
		at = n
	}
	return -1
}

// isula makes the event of a line of iSulad's, and reports whether it was one: who, the
// local time, a level but of events, a file, a function and a line, and the text: "  isula
// 20240829135021.168 ERROR    isulad - execution.c:start:12 - text".
func (s *source) isula(b []byte, long bool) bool {
	at := isulaStamp(b)
	if at < 0 {
		return false
	}
	stamp, rest, _ := bytes.Cut(b[at:], blank)
	text := bytes.Join([][]byte{stamp[:4], stamp[4:6], stamp[6:8]}, []byte("-"))
	text = append(append(append(append(append(append(append(text, 'T'), stamp[8:10]...), ':'), stamp[10:12]...), ':'), stamp[12:]...), 'Z')
	ns, _, ok := parseStamp(text)
	if !ok {
		return false
	}
	e := s.event(Isulad)
	e.Time, e.Cut, e.Level = ns-s.own.zone, long, levels["info"]
	s.own.anchor = e.Time
	if word, more, _ := bytes.Cut(bytes.TrimLeft(rest, " "), blank); levels[string(word)] != nil {
		e.Level, rest = level(word), more
	}
	for {
		head, text, ok := bytes.Cut(bytes.TrimPrefix(bytes.TrimLeft(rest, " "), []byte("- ")), []byte(" - "))
		if !ok || bytes.IndexByte(head, ' ') >= 0 {
			break
		}
		e.Source, rest = head, text
	}
	rest = bytes.TrimPrefix(bytes.TrimLeft(rest, " "), []byte("- "))
	e.Message = rest[:min(len(rest), maxMessage)]
	return true
}
