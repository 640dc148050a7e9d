package notes

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/tare-bench/tare/internal/plan"
)

// People call the sides of a comparison what they like: "my-vm:", "VM 1:",
// "baseline:". A line of a few words that ends in a colon is held until the next
// line that says something. Begins a command or a result there, it is a name and
// all that follows is another target's; else it is prose, and if no other label
// comes before the next result the reader is told, since figures of two machines
// under one name are worse than none.

// held is such a line.
type held struct {
	line int
	text string // as it stands there
	name string // "" where it cannot be one
}

// mostWords is how many words such a line has.
const mostWords = 5

var (
	bullet = regexp.MustCompile(`^(?:[-+•]|\d{1,2}[.)])\s+`)
	fence  = regexp.MustCompile("^(?:```|~~~)")
	// notNames are in lines that tell what comes, and not whose it is.
	notNames = regexp.MustCompile(`(?i)\b(?:(?:rand|seq)?(?:read|write|rw)s?|rnd(?:rd|wr|rw)|seq(?:rd|wr|rewr)|random|sequential|fio|dd|sysbench|fileio|iops|bandwidth|throughput|latency|results?|outputs?|commands?|tests?|testing|run|runs|running|jobs?|notes?|examples?|figures?|summary|direct|buffered|cached?|prepare|cleanup|setup|rootfs|nfs|tmpfs|hostpath|bind|device|disk|file|files|small|large|threads?|blocks?|bs|k|kib|mib|warning|error|environment|hardware|kernel|config|configuration|method|conclusion|date|time|version|log|console|script|usage|step)\b|读|写|测试|结果|命令|文件|顺序|随机|运行|生成`)
)

// heldLine reads a line that may be a name of the writer's own.
func heldLine(l line) (held, bool) {
	text := bullet.ReplaceAllString(strings.TrimRight(strings.Trim(l.text, "*_` "), " "), "")
	text = strings.Trim(text, "*_` ")
	for _, colon := range []string{":", "："} {
		name, ok := strings.CutSuffix(text, colon)
		name = strings.Trim(name, "*_` ")
		words := strings.Fields(name)
		if !ok || len(words) == 0 || len(words) > mostWords || !short(name) || strings.ContainsAny(name, "=/\"{}[]<>|") || notNames.MatchString(name) {
			continue
		}
		h := held{line: l.number, text: name}
		if joined := strings.Join(words, "-"); len(words) <= 3 && targetName.MatchString(joined) {
			h.name = joined
		}
		return h, true
	}
	return held{}, false
}

// hold takes notice of a line between a held one and what it is of, and of lines
// that are to be held.
func (s *scanner) hold(l line) {
	if h, ok := heldLine(l); ok && s.say.Target == "" {
		s.pass()
		s.held = &h
		return
	}
	_, remark := remarkOf(l.text)
	if s.held == nil || remark || fence.MatchString(l.text) || l.text == "{" || strings.HasSuffix(l.text, ":") || strings.HasSuffix(l.text, "：") {
		return // such may stand between a name and its results
	}
	if s.held.name != "" && begins(l.text) {
		s.named(*s.held)
		return
	}
	s.pass()
}

// pass lets go of a held line that nothing came right after.
func (s *scanner) pass() {
	if s.held != nil && s.sysbench == nil { // whose own lines end in colons, too
		s.doubt = s.held
	}
	s.held = nil
}

// named begins another target's part of the text.
func (s *scanner) named(h held) {
	s.held, s.doubt = nil, nil
	s.flush()
	s.fio.told = false
	s.where.setLabel(h.name)
	s.told.names = append(s.told.names, fmt.Sprintf("%s:%d: %s", s.name, h.line, h.name))
}

// settled forgets held lines where a label or a heading says whose things are.
func (s *scanner) settled() { s.held, s.doubt = nil, nil }

// doubted tells of a line that was not taken for a name though a result follows,
// which is kept at its end and known by its first line.
func (s *scanner) doubted(result int) {
	if s.doubt == nil || result < s.doubt.line {
		return
	}
	s.told.doubts = append(s.told.doubts, fmt.Sprintf("%s:%d: %s", s.name, s.doubt.line, s.doubt.text))
	s.doubt = nil
}

// begins says whether a line is a command or begins what a tool printed.
func begins(text string) bool {
	if _, ok := parseCommand(text); ok {
		return true
	}
	if _, ok := runtimeOf(text); ok {
		return true
	}
	if _, _, typed := cutPrompt(text); typed && !heading.MatchString(text) && text[0] != '+' {
		return true
	}
	switch {
	case ddRecords.MatchString(text), sysbenchBanner.MatchString(text), sysbenchPrepare.MatchString(text), fioBanner.MatchString(text),
		fioDescription.MatchString(text), fioHead.MatchString(text), fio2Flow.MatchString(text), fio3Flow.MatchString(text),
		fioGroup2.MatchString(text), fioGroup3.MatchString(text):
		return true
	}
	return strings.Contains(text, " bytes ") && (strings.Contains(text, "copied") || strings.Contains(text, "transferred in")) ||
		strings.HasPrefix(text, "Running the test with following options") || strings.HasPrefix(strings.TrimSpace(strings.TrimPrefix(text, "{")), `"fio version"`) ||
		len(text) > 2 && text[0] >= '2' && text[0] <= '5' && strings.HasPrefix(text[1:], ";"+plan.ToolFio)
}
