package notes

import (
	"regexp"
	"strings"

	"github.com/tare-bench/tare/internal/instrument/storage/tool"
	"github.com/tare-bench/tare/internal/plan"
	"github.com/tare-bench/tare/record"
)

// maxBlock is how much of one output that takes many lines is kept, in bytes.
const maxBlock = 4 << 20

// block is an output of many lines, kept until its end.
type block struct {
	line  int
	text  strings.Builder
	over  bool // it is longer than is kept
	depth int  // of JSON's braces
}

func (b *block) keep(text string) {
	if b.text.Len()+len(text) > maxBlock {
		b.over = true
		return
	}
	b.text.WriteString(text)
	b.text.WriteByte('\n')
}

// jsonLine reads fio's JSON. It is known by its second line, so a lone brace is
// held back until that comes.
func (s *scanner) jsonLine(l line) bool {
	if s.json == nil {
		if s.brace > 0 && l.text != "" {
			at := s.brace
			s.brace = 0
			if strings.HasPrefix(l.text, `"fio version"`) {
				s.json = &block{line: at}
				s.json.feed("{")
				return s.feedJSON(l)
			}
		}
		switch {
		case l.text == "{":
			s.brace = l.number
			return true
		case strings.HasPrefix(l.text, "{") && strings.HasPrefix(strings.TrimSpace(l.text[1:]), `"fio version"`):
			s.json = &block{line: l.number}
			return s.feedJSON(l)
		}
		return false
	}
	if l.text != "" && !strings.ContainsRune(`"{}[],-0123456789tfn`, rune(l.text[0])) {
		s.unread(s.json.line, "fio's JSON, which breaks off")
		s.json = nil
		return false
	}
	return s.feedJSON(l)
}

// feed adds a line and says whether the outermost object has ended.
func (b *block) feed(text string) bool {
	b.keep(text)
	quoted, escaped := false, false // a string of JSON ends on its line
	for i := range len(text) {
		switch c := text[i]; {
		case escaped:
			escaped = false
		case quoted:
			escaped, quoted = c == '\\', c != '"'
		case c == '"':
			quoted = true
		case c == '{':
			b.depth++
		case c == '}':
			b.depth--
		}
	}
	return b.depth <= 0
}

func (s *scanner) feedJSON(l line) bool {
	if !s.json.feed(l.text) && !s.json.over {
		return true
	}
	b := s.json
	s.json = nil
	claim, o, version, err := tool.ParseFioJSON(b.text.String())
	if err != nil {
		s.unread(b.line, "fio's JSON: "+err.Error())
		return true
	}
	j := plan.Job{Tool: plan.ToolFio, Name: o.Name, RW: fioRW(o.RW), BS: o.BS, Size: o.Size, NumJobs: o.NumJobs, IODepth: o.IODepth, Engine: o.Engine}
	r := Result{Line: b.line, Job: j, Version: version, Claim: claim}
	s.flushFio()
	if o.RW != "" || o.BS > 0 { // JSON of old versions does not say how it was run
		r.Cache = record.CacheBuffered
		if o.Direct {
			r.Cache = record.CacheDirect
		}
	}
	if c, ok := s.command(func(c command) bool {
		return c.job.Tool == plan.ToolFio && directions(c.job.RW, claim.Read.Bytes > 0, claim.Write.Bytes > 0)
	}); ok {
		r = r.of(c)
	}
	s.add(r)
	return true
}

var (
	sysbenchBanner = regexp.MustCompile(`^sysbench v?(\d+\.\d+[\w.-]{0,20}):?(?:\s|$)`)
	// "5368709120 bytes written in 44.82 seconds (114.23 MB/sec)." The unit is of
	// 1024, which only 1.0 writes as MiB.
	sysbenchPrepare = regexp.MustCompile(`\b(\d{1,18}) bytes written in ([\d.]{1,20}) seconds \(([\d.]{1,20}) ?(Ki?|Mi?|Gi?)[Bb]/sec\)`)
)

// sysbenchLine reads sysbench's fileio.
func (s *scanner) sysbenchLine(l line) bool {
	if m := sysbenchPrepare.FindStringSubmatch(l.text); m != nil {
		version := ""
		if s.sysbench != nil {
			version = s.sysbenchVersion
		}
		s.sysbench, s.sysbenchVersion = nil, ""
		s.prepared(l.number, m, version, "")
		return true
	}
	if m := sysbenchBanner.FindStringSubmatch(l.text); m != nil {
		s.endSysbench()
		s.sysbench, s.sysbenchVersion = &block{line: l.number}, "sysbench "+m[1]
		s.sysbench.keep(l.text)
		return true
	}
	if s.sysbench == nil {
		if !strings.HasPrefix(l.text, "Running the test with following options") {
			return false
		}
		s.sysbench = &block{line: l.number}
	}
	if !strings.HasPrefix(l.text, "[ ") { // the state every so often
		s.sysbench.keep(l.text)
	}
	if strings.HasPrefix(l.text, "execution time (avg/stddev)") {
		s.endSysbench()
	}
	return true
}

// prepared is a result of sysbench's writing of its files; of a table, if that
// says whose it is.
func (s *scanner) prepared(number int, m []string, version, target string) {
	bytes := whole(m[1])
	took, ok := quantity(m[2], "", 1)
	rate, fits := quantity(m[3], m[4], 1024)
	if !ok || !fits {
		s.unread(number, "sysbench's prepare: a figure beyond all that can be")
		return
	}
	r := Result{Line: number, Version: version, prepare: true, table: target != "", Target: target,
		Job:   plan.Job{Tool: plan.ToolSysbench, RW: "write", Size: bytes},
		Claim: record.Claim{Write: record.Flow{Bytes: bytes, Bandwidth: rate}, Seconds: took}}
	if target == "" {
		if c, ok := s.command(func(c command) bool { return c.prepare }); ok {
			r.Command = c.text // its size is what was written, whoever kept the command
		}
	}
	s.add(r)
}

// endSysbench reads what has come, at its end or where something else begins.
func (s *scanner) endSysbench() {
	b := s.sysbench
	if b == nil {
		return
	}
	version := s.sysbenchVersion
	s.sysbench, s.sysbenchVersion = nil, ""
	text := b.text.String()
	if !strings.Contains(text, "Operations performed") && !strings.Contains(text, "File operations") && !strings.Contains(text, "fsyncs/s") {
		return // another test of sysbench's, or only its head
	}
	claim, o, said, err := tool.ParseSysbench(text)
	if err != nil {
		s.unread(b.line, "sysbench: "+err.Error())
		return
	}
	r := Result{Line: b.line, Version: first(version, said), Claim: claim, Cache: record.CacheBuffered,
		Job: plan.Job{Tool: plan.ToolSysbench, RW: sysbenchModes[o.Mode]}}
	if o.Direct {
		r.Cache = record.CacheDirect
	}
	if c, ok := s.command(func(c command) bool {
		return c.job.Tool == plan.ToolSysbench && !c.prepare && (c.job.RW == r.Job.RW || r.Job.RW == "" || c.job.RW == "")
	}); ok {
		r = r.of(c)
	}
	r.Job = filled(r.Job, plan.Job{NumJobs: o.Threads, Files: o.Files, Size: o.TotalSize, BS: o.BlockSize, Requests: o.Requests})
	s.add(r)
}
