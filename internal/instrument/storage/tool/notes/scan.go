package notes

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/tare-bench/tare/internal/plan"
	"github.com/tare-bench/tare/record"
)

// maxContinued is how long a command on several lines may become, in bytes.
const maxContinued = 16 << 10

// scanner is a text as far as it has been read.
type scanner struct {
	name  string
	say   Options
	notes *Notes
	where where

	continued string // a command whose line ends in a backslash
	fio       fioRun
	json      *block
	brace     int // the line of a lone brace that may begin JSON
	sysbench  *block
	// sysbenchVersion is what the banner of that block says.
	sysbenchVersion string
	records         []string // dd's lines before its last
	recordsAt       int
	table           *table
	counted         []string // the columns of the last table of IOPS
	held, doubt     *held    // lines that may name a target
	told            told
}

// told counts what the findings are about.
type told struct {
	unread    int
	lines     []string // "120: why", the first of them
	over      int      // results beyond the most that are kept
	byOrder   int
	tables    int
	unnamed   int
	direction int
	names     []string // "120: my-vm", lines that were taken for a name
	doubts    []string // and those that were not
}

func newScanner(name string, o Options) *scanner {
	return &scanner{name: name, say: o, notes: &Notes{Name: name}}
}

// line reads the next line of the text.
func (s *scanner) line(l line) {
	if l.text != "" && s.json == nil && s.continued == "" {
		s.hold(l)
	}
	if s.jsonLine(l) {
		return
	}
	if s.tableLine(l) {
		return
	}
	s.endTable()
	if l = s.join(l); l.text == "" {
		return
	}
	if s.context(l) {
		return
	}
	if s.ddLine(l) || s.terseLine(l) || s.fioLine(l) {
		s.endSysbench()
		return
	}
	if s.sysbenchLine(l) {
		return
	}
	s.where.intro = l.text
}

// join makes one line of a command that a backslash continues.
func (s *scanner) join(l line) line {
	l.text = s.continued + l.text
	s.continued = ""
	if rest, ok := strings.CutSuffix(l.text, `\`); ok && len(rest) < maxContinued {
		s.continued = strings.TrimSpace(rest) + " "
		l.text = ""
	}
	return l
}

// context reads what says something of the results that follow: commands,
// labels, headings, remarks and prompts.
func (s *scanner) context(l line) bool {
	if len(l.text) > maxContinued {
		return false
	}
	c, isCommand := parseCommand(l.text)
	_, starts := runtimeOf(l.text)
	_, who, prompted := cutPrompt(l.text)
	if heading.MatchString(l.text) && !isCommand && !starts {
		s.flush()
		s.settled()
		s.where.section()
		s.where.heading(l.text)
		return true
	}
	if isCommand || starts || prompted && who != "" {
		s.flush()
		s.fio.told = false
		s.where.prompt(l.text)
		if isCommand {
			s.where.add(c)
		}
		return true
	}
	if target, ok := labelLine(l.text); ok {
		s.flush()
		s.settled()
		s.fio.told = false
		s.where.setLabel(target)
		return true
	}
	if r, ok := remarkOf(l.text); ok && s.sysbench == nil {
		s.flush()
		s.where.setRemark(r)
		return true
	}
	return false
}

// flush ends everything under way.
func (s *scanner) flush() {
	s.endTable()
	s.flushFio()
	s.endSysbench()
	s.records = nil
}

// command is the one that the next result is of.
func (s *scanner) command(fits func(command) bool) (command, bool) {
	c, byOrder, ok := s.where.take(fits)
	if ok && byOrder {
		s.told.byOrder++
	}
	return c, ok
}

// of puts into a result what its command says.
func (r Result) of(c command) Result {
	name := r.Job.Name
	r.Job = filled(c.job, r.Job)
	if name != "" {
		r.Job.Name = name
	}
	r.Command = c.text
	r.said = cacheOf(c)
	return r
}

// filled is a job with what only the other one says.
func filled(j, other plan.Job) plan.Job {
	j.Name, j.Tool, j.RW, j.Engine = first(j.Name, other.Name), first(j.Tool, other.Tool), first(j.RW, other.RW), first(j.Engine, other.Engine)
	for _, both := range []struct {
		to   *int64
		from int64
	}{{&j.BS, other.BS}, {&j.Count, other.Count}, {&j.Requests, other.Requests}} {
		if *both.to == 0 {
			*both.to = both.from
		}
	}
	if j.Size == 0 && j.FileSize == 0 && j.Count == 0 {
		j.Size, j.FileSize = other.Size, other.FileSize
	}
	for _, both := range []struct {
		to   *int
		from int
	}{{&j.Files, other.Files}, {&j.NumJobs, other.NumJobs}, {&j.IODepth, other.IODepth}} {
		if *both.to == 0 {
			*both.to = both.from
		}
	}
	return j
}

// add keeps a result, with what the text said around it.
func (s *scanner) add(r Result) {
	if len(s.notes.Results) >= MaxResults {
		s.told.over++
		return
	}
	if !r.table { // whose rows are of several
		s.doubted(r.Line)
		r.Target = first(s.say.Target, s.where.target())
	}
	unnamed := r.Target == ""
	if unnamed {
		r.Target = nameless(s.name)
	}
	r.Cache = first(s.say.Cache, first(r.Cache, first(s.where.remark.cache, r.said)))
	r.Volume = first(s.say.Volume, first(r.Volume, s.where.remark.volume))
	s.where.remark.used = true
	if utf8.RuneCountInString(r.Job.Name) > 100 {
		r.Job.Name = ""
	}
	if r.said != "" && r.Cache != r.said {
		r.Command = "" // another was run
	}
	if r.Failure == "" && r.total == 0 {
		cell := r.cell(s.name, "x")
		if err := cell.Validate(); err != nil {
			s.unread(r.Line, err.Error())
			return
		}
	}
	if unnamed {
		s.told.unnamed++
	}
	s.notes.Results = append(s.notes.Results, r)
}

// unread counts what looked like a result and is none.
func (s *scanner) unread(number int, why string) {
	s.told.unread++
	if len(s.told.lines) < maxUnread {
		s.told.lines = append(s.told.lines, fmt.Sprintf("%s:%d: %s", s.name, number, strings.Join(strings.Fields(why), " ")))
	}
}

// finish ends what the text leaves open, and says what has to be known.
func (s *scanner) finish() *Notes {
	s.endTable()
	if s.json != nil {
		s.unread(s.json.line, "fio's JSON, which breaks off")
	}
	s.flush()
	twice, unread := s.notes.dedupe()
	for _, number := range unread {
		s.told.tables--
		s.unread(number, "sysbench's sum of both directions, without its output")
	}
	s.findings(twice)
	return s.notes
}

func (s *scanner) findings(twice int) {
	t := s.told
	find := func(n int, code, level, message, advice string) {
		if n > 0 {
			s.notes.Findings = append(s.notes.Findings, record.Finding{Code: code, Level: level, Message: s.name + ": " + message, Advice: advice})
		}
	}
	find(t.unread, FoundUnread, "warning", fmt.Sprintf("%s could not be read: %s%s", plural(t.unread, "thing that looks like a result", "things that look like results"), strings.Join(t.lines, "; "), more(t.unread-len(t.lines))),
		"look at those lines: an output that was cut short has to be completed, or its figures left out")
	find(t.over, FoundLimit, "warning", fmt.Sprintf("%d results were left out: %d are kept of one text", t.over, MaxResults), "split the text into several files")
	find(t.byOrder, FoundByOrder, "note", fmt.Sprintf("%s got a command by order: several commands stand before the results, so the first result after a label was taken for the first command's, and so on", plural(t.byOrder, "result", "results")),
		"compare the command of each result with the text; put each command before its own result if one is wrong")
	find(t.tables-twice, FoundTable, "note", fmt.Sprintf("%s read from tables, which say neither how much was moved nor for how long; jobs were taken from the columns' headings and the commands before, and MB/s for what the tool of that side writes (of 1024 where its output or the IOPS show that, else of 1000)", plural(t.tables-twice, "figure was", "figures were")),
		"import the tools' own output instead where it is kept")
	find(twice, FoundTwice, "note", fmt.Sprintf("%s of tables left out: the text has the output they were taken from", plural(twice, "figure", "figures")), "none needed")
	find(t.unnamed, FoundUnnamed, "note", fmt.Sprintf("%s without a label; they were called %q after the file", plural(t.unnamed, "result is", "results are"), nameless(s.name)),
		"say whose they are: tare import LABEL="+s.name)
	find(len(t.names), FoundName, "warning", fmt.Sprintf("%s taken for the name of a target, since a command or a result comes right after: %s%s",
		plural(len(t.names), "line was", "lines were"), strings.Join(t.names[:min(len(t.names), maxUnread)], "; "), more(len(t.names)-maxUnread)),
		"give each target a text of its own, as tare import LABEL=FILE, if one of them is none")
	find(len(t.doubts), FoundDoubt, "warning", fmt.Sprintf("%s a target, and was not taken for one: the results after it count to the target before: %s%s",
		plural(len(t.doubts), "line may name", "lines may name"), strings.Join(t.doubts[:min(len(t.doubts), maxUnread)], "; "), more(len(t.doubts)-maxUnread)),
		"if it does, write a name such as my-vm: alone on the line right before the command or the result, or give its text as LABEL=FILE")
	find(t.direction, FoundDirection, "note", fmt.Sprintf("%s of dd without its command, taken for writing", plural(t.direction, "result is", "results are")), "put the command before the result if it was reading")
}

func more(n int) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprintf("; and %d more", n)
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
