package notes

import (
	"math"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/tare-bench/tare/plan"
	"github.com/tare-bench/tare/record"
)

// How large a table can be that is read.
const (
	maxRows    = 512
	maxColumns = 64
)

// table is a Markdown table. Rows are targets and columns are jobs, or the other
// way round.
type table struct {
	intro string // the line before it
	rows  []row
}

type row struct {
	line  int
	cells []string
}

var (
	rule = regexp.MustCompile(`^:?-{2,}:?$`)
	// "741(370.9MB/s)"
	cellPair = regexp.MustCompile(`^([\d.]{1,20})\s*([kK]?)\s*[(（]\s*([\d.]{1,20})\s*([KMG]?i?)B(?:/s|ps)\s*[)）]$`)
	// "128~129MB/s", "111 MB/s"
	cellRate = regexp.MustCompile(`^(?:([\d.]{1,20})\s*[~～–—-]\s*)?([\d.]{1,20})\s*([kKMG]?i?)B(?:/s|ps)$`)
	// "8600", "12.3k IOPS"
	cellIOPS     = regexp.MustCompile(`^([\d.]{1,20})\s*([kK]?)(\s*(?i:iops))?$`)
	cellBreak    = regexp.MustCompile(`(?i)<br ?/?>`)
	sysbenchRead = regexp.MustCompile(`\bread, MiB/s:\s*([\d.]{1,20})`)
	sysbenchWrit = regexp.MustCompile(`\bwritten, MiB/s:\s*([\d.]{1,20})`)
	sysbenchBoth = regexp.MustCompile(`\bTotal transferred \S+\s+\(([\d.]{1,20})\s?(Ki?|Mi?|Gi?)b/sec\)`)
	sysbenchTime = regexp.MustCompile(`\btotal time:\s*([\d.]{1,20})s\b`)
	iopsWord     = regexp.MustCompile(`(?i)\biops\b`)
)

// tableLine keeps the lines of a table.
func (s *scanner) tableLine(l line) bool {
	if !strings.HasPrefix(l.text, "|") || strings.Count(l.text, "|") < 3 || strings.Contains(l.text, "th=[") || len(l.text) > maxContinued {
		return false
	}
	if s.table == nil {
		s.flush()
		s.table = &table{intro: s.where.intro}
	}
	cells := strings.Split(strings.Trim(l.text, "|"), "|")
	if len(cells) > maxColumns || len(s.table.rows) == maxRows {
		return true
	}
	for i := range cells {
		cells[i] = strings.TrimSpace(cells[i])
	}
	s.table.rows = append(s.table.rows, row{l.number, cells})
	return true
}

// endTable reads the table that has come to its end, if it is one of figures of
// targets.
func (s *scanner) endTable() {
	t := s.table
	s.table = nil
	if t == nil || len(t.rows) < 3 || !rule.MatchString(t.rows[1].cells[0]) {
		return
	}
	head, body := t.rows[0].cells, t.rows[2:]
	iops := s.tellsIOPS(t, head, body)
	if iops {
		s.counted = head
	}
	anyRead := false
	var odd []int
	for _, r := range body {
		for i := 1; i < len(r.cells) && i < len(head); i++ {
			target, ok := labelOf(r.cells[0])
			job := head[i]
			if !ok {
				target, ok = labelOf(head[i])
				job = r.cells[0]
			}
			if !ok || nothing(r.cells[i]) {
				continue
			}
			if s.cell(r.line, target, s.where.column(job, i-1), r.cells[i], iops) {
				anyRead = true
			} else {
				odd = append(odd, r.line)
			}
		}
	}
	if anyRead {
		for _, number := range odd {
			s.unread(number, "a cell of a table")
		}
		s.where.remark.used, s.where.used = true, true
	}
}

// tellsIOPS says whether bare numbers of a table are IOPS: its corner, its title
// or a cell with both figures says so, or it has the columns of one before.
func (s *scanner) tellsIOPS(t *table, head []string, body []row) bool {
	if iopsWord.MatchString(head[0]) || iopsWord.MatchString(t.intro) {
		return true
	}
	for _, r := range body {
		for _, c := range r.cells[1:] {
			if cellPair.MatchString(c) {
				return true
			}
		}
	}
	for i := 1; i < len(head); i++ {
		if i >= len(s.counted) || head[i] != s.counted[i] {
			return false
		}
	}
	return len(head) > 1
}

func nothing(text string) bool {
	switch strings.ToLower(text) {
	case "", "/", "-", "—", "n/a", "无":
		return true
	}
	return false
}

// column is what a heading says.
type column struct {
	job    plan.Job
	volume string
	c      command
	known  bool // c is the one
	exact  bool // the heading says nothing else than c
}

// column finds the command that a heading is of: the one whose introduction it
// shares most with, then the one at the same place.
func (w *where) column(head string, at int) column {
	var best column
	score := 0
	for i, c := range w.commands {
		if c.prepare {
			continue
		}
		points := 4 * shared(c.intro, head)
		if mode, ok := sysbenchModes[leading(head)]; ok && c.job.RW == mode {
			points += 16
		}
		if i == at {
			points += 2
		}
		if points++; points > score && agrees(head, c.job.RW) {
			score, best = points, column{job: c.job, c: c, known: true}
		}
	}
	before := best.job
	best.volume = volumeOf(head)
	best.job = sized(best.job, head)
	best.exact = same(best.job, before)
	if best.job.Tool == "" {
		best.job.Tool = first(w.tool, "unknown")
	}
	return best
}

// same says whether a heading has left the command's sizes as they are.
func same(a, b plan.Job) bool {
	return a.Size == b.Size && a.FileSize == b.FileSize && a.Count == b.Count
}

// shared is how many characters two texts have in common at their begin.
func shared(a, b string) int {
	n := 0
	other := []rune(b)
	for i, r := range []rune(a) {
		if i >= len(other) || other[i] != r {
			break
		}
		n++
	}
	if n < 2 {
		return 0
	}
	return n
}

func leading(text string) string {
	word, _, _ := strings.Cut(between.Replace(text), " ")
	return word
}

// agrees is false where a heading says reading and the command writes, or the
// other way round.
func agrees(head, rw string) bool {
	says := strings.ToLower(head)
	read, write := strings.Contains(says, "读") || strings.Contains(says, "read"), strings.Contains(says, "写") || strings.Contains(says, "write")
	switch {
	case read == write:
		return true
	case read:
		return rw != "write" && rw != "randwrite"
	}
	return rw != "read" && rw != "randread"
}

var (
	headSize  = regexp.MustCompile(`(?:^|[^\w.])(\d{1,6}[KMGT])i?B?$`)
	headCount = regexp.MustCompile(`\bcount=(\d{1,15})\b`)
)

// sized puts the size of a heading into its job: "大文件10G", "count=10240000".
func sized(j plan.Job, head string) plan.Job {
	if m := headCount.FindStringSubmatch(head); m != nil {
		j.Count = whole(m[1])
	}
	m := headSize.FindStringSubmatch(head)
	if m == nil {
		return j
	}
	n, ok := size(m[1], plan.ToolFio)
	switch {
	case !ok:
	case j.FileSize > 0:
		j.FileSize = n
	default:
		j.Size = n
	}
	return j
}

// cell reads one cell.
func (s *scanner) cell(number int, target string, col column, text string, iops bool) bool {
	keep := func(r Result) {
		r.Line, r.Target, r.table, r.Volume = number, target, true, col.volume
		if col.known {
			job := r.Job
			r = r.of(col.c)
			r.Job = col.job
			if job.Tool != "" {
				r.Job = job
			}
			if !col.exact || col.volume != "" {
				r.Command = "" // the heading says that another was run
			}
		} else {
			r.Job = col.job
		}
		s.told.tables++
		s.add(r)
	}
	if m := cellPair.FindStringSubmatch(text); m != nil {
		count, ok := quantity(m[1], m[2], 1000)
		rate, fits := quantity(m[3], m[4], nearer(m[3], m[4], count*float64(col.job.BS)))
		return ok && fits && s.flow(col, record.Flow{IOPS: count, Bandwidth: rate}, m[3]+m[4]+"B", keep)
	}
	if m := cellRate.FindStringSubmatch(text); m != nil {
		done := true
		for _, number := range m[1:3] {
			if number == "" {
				continue
			}
			rate, ok := quantity(number, m[3], 1000)
			done = ok && s.flow(col, record.Flow{Bandwidth: rate}, number+m[3]+"B", keep) && done
		}
		return done
	}
	if m := cellIOPS.FindStringSubmatch(text); m != nil {
		count, ok := quantity(m[1], m[2], 1000)
		return ok && (iops || m[3] != "") && s.flow(col, record.Flow{IOPS: count}, "", keep)
	}
	return s.sysbenchCell(number, target, text, keep)
}

// nearer is the base of a rate's unit which brings it nearer to what the IOPS
// make with the job's blocks; of 1000 where that is not known.
func nearer(number, prefix string, want float64) float64 {
	thousand, _ := quantity(number, prefix, 1000)
	binary, _ := quantity(number, prefix, 1024)
	if want > 0 && math.Abs(binary-want) < math.Abs(thousand-want) {
		return 1024
	}
	return 1000
}

// flow keeps a figure of the direction that its column has.
func (s *scanner) flow(col column, f record.Flow, printed string, keep func(Result)) bool {
	r := Result{printed: printed}
	switch col.job.RW {
	case "read", "randread":
		r.Claim.Read = f
	case "write", "randwrite":
		r.Claim.Write = f
	default:
		return false // which of the two it is nobody can tell
	}
	keep(r)
	return true
}

// sysbenchCell reads what people copied of sysbench's output into one cell.
func (s *scanner) sysbenchCell(number int, target, text string, keep func(Result)) bool {
	text = cellBreak.ReplaceAllString(text, "\n")
	known := false
	if m := sysbenchPrepare.FindStringSubmatch(text); m != nil {
		known = true
		s.prepared(number, m, "", target)
		s.told.tables++
	}
	r := Result{}
	if m := sysbenchTime.FindStringSubmatch(text); m != nil {
		r.Claim.Seconds, _ = quantity(m[1], "", 1)
	}
	read, write := sysbenchRead.FindStringSubmatch(text), sysbenchWrit.FindStringSubmatch(text)
	if read != nil && write != nil {
		r.Claim.Read.Bandwidth, _ = quantity(read[1], "M", 1024)
		r.Claim.Write.Bandwidth, _ = quantity(write[1], "M", 1024)
		keep(r)
		return true
	}
	if m := sysbenchBoth.FindStringSubmatch(text); m != nil {
		r.total, _ = quantity(m[1], m[2], 1024)
		keep(r)
		return true
	}
	return known
}

// dedupe leaves out what a table repeats of an output in the same text, and
// gives the rest the units of that side's tool. It returns how many were left
// out, and the lines of those that say too little to stand alone.
func (n *Notes) dedupe() (twice int, unread []int) {
	raw := map[string][]*Result{}
	for i := range n.Results {
		if r := &n.Results[i]; !r.table {
			raw[r.Target] = append(raw[r.Target], r)
		}
	}
	kept := n.Results[:0:0]
	for _, r := range n.Results {
		if r.table && repeats(&r, raw[r.Target]) {
			twice++
			continue
		}
		if r.total > 0 {
			unread = append(unread, r.Line)
			continue
		}
		if r.table && r.Job.Tool == plan.ToolDD {
			r.Claim.Write.Bandwidth *= unitOf(r, raw[r.Target])
			r.Claim.Read.Bandwidth *= unitOf(r, raw[r.Target])
		}
		kept = append(kept, r)
	}
	n.Results = kept
	return twice, unread
}

func repeats(r *Result, raw []*Result) bool {
	for _, o := range raw {
		if o.Job.Tool != r.Job.Tool || o.prepare != r.prepare {
			continue
		}
		switch a, b := r.Claim, o.Claim; {
		case r.total > 0:
			if close(r.total, b.Read.Bandwidth+b.Write.Bandwidth) {
				return true
			}
		case r.prepare, a.Read.Bandwidth > 0 && a.Write.Bandwidth > 0:
			if close(a.Read.Bandwidth, b.Read.Bandwidth) && close(a.Write.Bandwidth, b.Write.Bandwidth) && close(a.Seconds, b.Seconds) {
				return true
			}
		case r.Job.RW != o.Job.RW:
		case a.Read.IOPS+a.Write.IOPS > 0:
			if math.Round(a.Read.IOPS) == math.Round(b.Read.IOPS) && math.Round(a.Write.IOPS) == math.Round(b.Write.IOPS) {
				return true
			}
		case r.printed != "" && r.printed == o.printed:
			return true
		}
	}
	return false
}

// close says whether two figures are one, written with four digits or so.
func close(a, b float64) bool { return math.Abs(a-b) <= 0.0002*math.Max(a, b) }

// unitOf is what a table's MB/s has to be multiplied by: busybox' dd means
// powers of 1024 and writes no "i"; whether a side had that shows in its outputs.
func unitOf(r Result, raw []*Result) float64 {
	m := ddPrinted.FindStringSubmatch(r.printed + "/s")
	if m == nil || strings.Contains(m[2], "i") {
		return 1
	}
	for _, o := range raw {
		p := ddPrinted.FindStringSubmatch(o.printed + "/s")
		if o.Job.Tool != plan.ToolDD || p == nil || o.Claim.Seconds <= 0 {
			continue
		}
		real := float64(o.Claim.Read.Bytes+o.Claim.Write.Bytes) / o.Claim.Seconds
		if nearer(p[1], strings.TrimSuffix(p[2], "B"), real) == 1024 {
			binary, _ := quantity(m[1], strings.TrimSuffix(m[2], "B"), 1024)
			thousand, _ := quantity(m[1], strings.TrimSuffix(m[2], "B"), 1000)
			return binary / thousand
		}
	}
	return 1
}

// short says whether a line can be the introduction of a command.
func short(text string) bool { return utf8.RuneCountInString(text) <= 60 }
