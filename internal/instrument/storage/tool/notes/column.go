package notes

import (
	"regexp"
	"strings"

	"github.com/tare-bench/tare/internal/plan"
)

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
