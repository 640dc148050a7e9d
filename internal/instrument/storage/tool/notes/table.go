package notes

import (
	"math"
	"regexp"
	"strings"

	"github.com/tare-bench/tare/internal/plan"
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
		if col.job.Tool == plan.ToolDD { // which counts no IOPS: the heading is of another command
			col = column{job: plan.Job{Tool: "unknown", RW: col.job.RW}, volume: col.volume}
		}
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
