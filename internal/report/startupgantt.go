package report

import (
	"fmt"
	"math"
	"strings"
	"unicode"

	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/record"
)

// gantt is a picture as Mermaid's Gantt chart, see mermaid.js.org/syntax/gantt.html:
// times are ms since the start, which "x" takes as ms since 1970, and the axis shows
// their seconds. Beyond a minute it shows all seconds since 1970, which are the
// same in every time zone.
func (p *picture) gantt() []string {
	axis := "%S.%L s"
	if p.length >= 60e9 {
		axis = "%s s"
	}
	lines := []string{"gantt", "    dateFormat x", "    axisFormat " + axis, "    todayMarker off"}
	var kinds []string
	tasks := map[string][]string{}
	task := func(kind, line string) {
		section := sectionOfKind(kind)
		if tasks[section] == nil {
			kinds = append(kinds, section)
		}
		tasks[section] = append(tasks[section], line)
	}
	for i := range p.bars {
		b := &p.bars[i]
		from, to := millis(b.from), max(millis(b.to), millis(b.from)+1)
		tag := ""
		if b.exit != 0 || b.kind == barWait {
			tag = "crit, "
		}
		if b.kind != barFirst {
			task(b.kind, fmt.Sprintf("    %s :%st%d, %d, %d", p.taskName(b), tag, i+1, from, to))
		}
		if b.marked {
			kind := b.kind
			if kind == barFirst {
				kind = record.KindWorkload
			}
			task(kind, fmt.Sprintf("    first instruction :milestone, m%d, %d, 0ms", i+1, millis(p.first)))
		}
	}
	for _, kind := range kinds {
		lines = append(append(lines, "    section "+kind), tasks[kind]...)
	}
	return lines
}

// millis is a time in ms, rounded: what is finer a Gantt chart does not take.
func millis(ns int64) int64 { return int64(math.Round(float64(ns) / 1e6)) }

// taskName is a name with its length and what is to be said of it.
func (p *picture) taskName(b *bar) string {
	text := strings.TrimPrefix(b.name, "· ") + " " + duration(float64(b.to-b.from))
	if b.exit != 0 {
		text += fmt.Sprintf(" exit %d", b.exit)
	}
	if b.open {
		text += " →"
	}
	return tame(text)
}

var kindWords = map[string]string{
	record.KindClient: "client", record.KindDaemon: "daemon", record.KindShim: "shim", record.KindMonitor: "monitor",
	record.KindCall: "runtime calls", record.KindInit: "init", record.KindCNI: "network plugins", record.KindHelper: "helpers",
	record.KindVMM: "sandbox", record.KindVirtiofsd: "file servers", record.KindWorkload: "workload", record.KindOther: "other",
	record.KindEngine: "engine", record.KindPhase: "phases", record.KindGuest: "guest", barWait: "waits",
}

func sectionOfKind(kind string) string {
	if word := kindWords[kind]; word != "" {
		return word
	}
	return "other"
}

// longestTask is where the name of a task is cut.
const longestTask = 60

// tame is a name as Mermaid takes it for nothing else, by the grammar of its Gantt
// charts: what ends a name (: ; #), begins a comment or a directive (%), is HTML or
// may be Markdown becomes a space, and a name that begins with a keyword gets
// something before it.
func tame(name string) string {
	text := strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("._-+/()=@…→µ×", r) {
			return r
		}
		return ' '
	}, term.Clean(name))
	text = cut(strings.Join(strings.Fields(text), " "), longestTask)
	first := strings.ToLower(text)
	for _, word := range ganttWords {
		if strings.HasPrefix(first, word) {
			return "· " + text
		}
	}
	if first == "" || unicode.IsDigit(rune(first[0])) || first[0] == '-' {
		return "· " + text // 2018-08-03 is a date
	}
	return text
}

// ganttWords begin a line that is no task.
var ganttWords = []string{
	"gantt", "dateformat", "axisformat", "tickinterval", "includes", "excludes", "todaymarker", "weekday", "weekend", "title", "section",
	"inclusiveenddates", "topaxis", "accdescr", "acctitle", "click", "href", "call",
}
