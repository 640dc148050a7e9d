package logs

import (
	"bytes"
	"cmp"
	"slices"
)

// envelope adds the events of log lines inside the strings of a JSON line, whatever
// their keys. Loki, CloudWatch, Kibana, GCP and fluent-bit wrap lines this way. The
// inner lines may be in any order, so their events are sorted by time.
func (s *source) envelope(b []byte) {
	if s.depth > 2 {
		return
	}
	s.depth++
	before, f := len(s.events), fields{arena: &s.arena}
	for {
		i := bytes.IndexByte(b, '"')
		if i < 0 {
			break
		}
		text, end, _ := f.quoted(b[i+1:])
		if end < 0 {
			break
		}
		b = b[i+end+2:]
		for text = bytes.TrimSpace(text); len(text) > 0; {
			var line []byte
			if line, text, _ = bytes.Cut(text, newline); Begins(line) || findRecord(line) >= 0 || isIsula(line) {
				s.line(line, false)
			}
		}
	}
	s.depth--
	if len(s.events) < before+2 {
		return
	}
	slices.SortStableFunc(s.events[before:], func(x, y Event) int { return cmp.Compare(x.Time, y.Time) })
}
