package notes

import (
	"regexp"
	"strings"

	"github.com/tare-bench/tare/internal/instrument/storage/tool"
	"github.com/tare-bench/tare/internal/plan"
)

var (
	ddRecords = regexp.MustCompile(`^\d{1,18}\+\d{1,18} records (?:in|out)$`)
	ddPrinted = regexp.MustCompile(`([\d.]{1,20}) ?([kKMGTP]?i?B)/s(?:ec)?\s*$`)
)

// ddLine reads dd's last lines, or the very last alone.
func (s *scanner) ddLine(l line) bool {
	if ddRecords.MatchString(l.text) {
		if len(s.records) == 2 || len(s.records) == 0 {
			s.records, s.recordsAt = nil, l.number
		}
		s.records = append(s.records, l.text)
		return true
	}
	if !strings.Contains(l.text, " bytes ") || !strings.Contains(l.text, "copied") && !strings.Contains(l.text, "transferred in") {
		return false
	}
	if l.progress {
		return true // not its end
	}
	text, at := strings.Join(append(s.records, l.text), "\n"), l.number
	if len(s.records) > 0 {
		at = s.recordsAt
	}
	s.records = nil
	c, ok := s.command(func(c command) bool { return c.job.Tool == plan.ToolDD })
	way := c.job.RW
	if !ok {
		way = "write"
	}
	claim, _, err := tool.ParseDD(text, way)
	if err != nil {
		s.unread(l.number, "dd: "+err.Error())
		return true
	}
	if !ok {
		s.told.direction++
	}
	r := Result{Line: at, Job: plan.Job{Tool: plan.ToolDD, RW: way}, Claim: claim}
	if m := ddPrinted.FindStringSubmatch(l.text); m != nil {
		r.printed = m[1] + m[2]
	}
	if ok {
		r = r.of(c)
	}
	s.add(r)
	return true
}
