package bpflist

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/live"
	"github.com/tare-bench/tare/internal/term"
)

// screen is the live view and its settings by keys.
type screen struct {
	Selection
	view      *View
	top, page int // the first visible program, and how many are visible
}

// watch returns the live view of a collector.
func (s *shown) watch(c *collector) *live.Watch[*View] {
	at := &screen{Selection: s.options.Selection}
	at.Sort = cmp.Or(at.Sort, "core")
	return &live.Watch[*View]{
		Look: func() func(context.Context) (*View, error) {
			return func(context.Context) (*View, error) {
				err := s.look(c)
				return s.view, err
			}
		},
		Show:     func(v *View) { at.view = v },
		Interval: func() time.Duration { return s.options.Interval },
		Press:    at.press,
		Draw: func(width, height int) []string {
			lines := at.lines(height)
			for i := range lines {
				lines[i] = ansi.Truncate(lines[i], width, "…")
			}
			return lines
		},
	}
}

// press handles a key.
func (s *screen) press(k tea.Key) (next time.Duration, ended bool) {
	switch live.KeyName(k) {
	case "q", "esc", "ctrl+c":
		return -1, true
	case "<", "left":
		s.sortBy(-1)
	case ">", "right":
		s.sortBy(1)
	case "r":
		s.Reverse = !s.Reverse
	case "up", "k":
		s.top--
	case "down", "j":
		s.top++
	case "pgup":
		s.top -= s.page
	case "pgdown", "space":
		s.top += s.page
	case "home", "g":
		s.top = 0
	case "end", "G":
		s.top = math.MaxInt32 // lines limits it
	}
	return -1, false
}

// sortBy moves the sort order by so many columns.
func (s *screen) sortBy(by int) {
	all := ColumnNames()
	s.Sort = all[(slices.Index(all, s.Sort)+by+len(all))%len(all)]
	s.top = 0
}

// lines returns the totals, the visible programs and the keys: at most height lines.
func (s *screen) lines(height int) []string {
	if s.view == nil {
		return []string{"looking …"}
	}
	var head page.Table
	s.view.head(&head, term.Plain)
	s.view.notes(&head)
	rows := s.table(s.view.Programs)
	lines, list := written(&head), written(&rows)
	titles := 1
	if len(s.view.Programs) == 0 {
		list, titles = nil, 0
	}
	s.page = max(1, height-len(lines)-titles-1)
	s.top = max(0, min(s.top, len(list)-titles-s.page))
	lines = append(lines, list[:titles]...)
	end := min(len(list), titles+s.top+s.page)
	lines = append(lines, list[titles+s.top:end]...)
	keys := fmt.Sprintf("q quit  < > sort: %s  r reverse  arrows PgUp PgDn scroll", s.Sort)
	if n := len(list) - titles; n > s.page {
		keys = fmt.Sprintf("%d to %d of %d  %s", s.top+1, end-titles, n, keys)
	}
	return append(lines[:min(len(lines), max(0, height-1))], keys)
}

// written returns the lines of a table.
func written(t *page.Table) []string {
	var b strings.Builder // its Write never fails
	_ = t.Write(&b, page.Options{})
	return strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
}
