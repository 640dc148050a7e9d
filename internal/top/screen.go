package top

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/tare-bench/tare/internal/term"
)

// screen is what a person sees, and what the keys have changed of it.
type screen struct {
	sel      Selection
	interval time.Duration
	colour   bool
	paused   bool
	help     bool
	typing   bool   // a filter
	before   string // the filter, to go back to

	view     *View
	shown    []Sandbox
	cursor   string // the key of the sandbox that is marked
	at       int    // its place
	offset   int    // the first line of the list that is seen
	expanded map[string]bool
	page     int // lines of the list on the screen
}

// The bounds of the interval that keys set.
const (
	fastest = 100 * time.Millisecond
	slowest = time.Minute
)

func newScreen(o *Options, colour bool) *screen {
	return &screen{sel: o.Selection, interval: o.Interval, colour: colour, expanded: map[string]bool{}, page: 1}
}

// show takes a new view.
func (s *screen) show(v *View) {
	s.view = v
	s.arrange()
}

// arrange orders the sandboxes anew, and keeps the mark on its own.
func (s *screen) arrange() {
	if s.view == nil {
		return
	}
	s.shown = s.sel.of(s.view.Sandboxes)
	if i := slices.IndexFunc(s.shown, func(b Sandbox) bool { return b.key == s.cursor }); i >= 0 {
		s.at = i
	}
	s.mark(s.at)
}

func (s *screen) mark(at int) {
	s.at = max(0, min(at, len(s.shown)-1))
	if len(s.shown) > 0 {
		s.cursor = s.shown[s.at].key
	}
}

// order sets an order; one that is set already is turned round.
func (s *screen) order(by Sort) {
	if s.sel.Sort == by {
		s.sel.Reverse = !s.sel.Reverse
	} else {
		s.sel.Sort, s.sel.Reverse = by, false
	}
	s.cursor = "" // to the first
	s.at, s.offset = 0, 0
	s.arrange()
}

var orderKeys = map[key]Sort{'m': SortMemory, 'c': SortCPU, 'o': SortOverhead, 'p': SortCache, 'i': SortIO, 'n': SortName}

// press obeys a key, and tells whether it ends the program.
func (s *screen) press(k key) (quit bool) {
	if k == keyQuit {
		return true
	}
	if s.typing {
		s.typed(k)
		return false
	}
	if s.help {
		s.help = false
		return k == 'q'
	}
	if by, ok := orderKeys[k]; ok {
		s.order(by)
		return false
	}
	switch k {
	case 'q':
		return true
	case keyEscape:
		if s.sel.Filter == "" {
			return true
		}
		s.sel.Filter = ""
		s.arrange()
	case 'r':
		s.sel.Reverse = !s.sel.Reverse
		s.arrange()
	case '/':
		s.typing, s.before = true, s.sel.Filter
	case keyUp, 'k':
		s.mark(s.at - 1)
	case keyDown, 'j':
		s.mark(s.at + 1)
	case keyPageUp:
		s.mark(s.at - s.page)
	case keyPageDown:
		s.mark(s.at + s.page)
	case keyHome, 'g':
		s.mark(0)
	case keyEnd, 'G':
		s.mark(len(s.shown) - 1)
	case keyEnter, 'e':
		s.expand(!s.expanded[s.cursor])
	case keyRight:
		s.expand(true)
	case keyLeft:
		s.expand(false)
	case ' ':
		s.paused = !s.paused
	case '+':
		s.interval = min(slowest, s.interval*2)
	case '-':
		s.interval = max(fastest, s.interval/2)
	case 'h', '?':
		s.help = true
	}
	return false
}

func (s *screen) expand(roles bool) {
	if len(s.shown) == 0 {
		return
	}
	if roles {
		s.expanded[s.cursor] = true
	} else {
		delete(s.expanded, s.cursor)
	}
}

// typed obeys a key while a filter is typed: it counts at once.
func (s *screen) typed(k key) {
	switch {
	case k == keyEnter:
		s.typing = false
	case k == keyEscape:
		s.typing, s.sel.Filter = false, ""
	case k == keyBackspace:
		text := []rune(s.sel.Filter)
		s.sel.Filter = string(text[:max(0, len(text)-1)])
	case k > 0 && unicode.IsPrint(rune(k)) && len(s.sel.Filter) < 200:
		s.sel.Filter += string(rune(k))
	}
	s.arrange()
}

var helpLines = []string{
	"SANDBOX   a container, or a pod with its containers",
	"CPU%      of one CPU: of its own cgroups, and of processes beside",
	"MEMORY    charged to its own cgroups, without page cache",
	"OUTSIDE   of MEMORY, in other cgroups than the pod's (/kata_overhead/ID)",
	"BESIDE    of processes that are charged to groups of others (RSS, PSS with --pss)",
	"CACHE     page cache, charged to its own cgroups",
	"IO/s      bytes read and written, as cgroups account for them",
	"LIMIT     of the pod's memory; FULL%: how much of it is used, without page cache",
	"?         not known, or a counter began anew",
	"",
	"q Esc Ctrl-C     quit (Esc clears a filter first)",
	"m c o p i n      sort by memory, CPU, overhead, page cache, I/O, name; again: reverse",
	"r                reverse",
	"/                filter by name, id, cgroup, process: type, Enter; Esc clears",
	"arrows j k PgUp PgDn Home End   move",
	"Enter e right left   show and hide roles and cgroups",
	"space            hold the view; + - longer and shorter interval",
}

// frame is what the screen shows, a line each, at most height of them. All that
// is foreign in it is clean.
func (s *screen) frame(width, height int) []string {
	width = min(max(width, narrowest), widest)
	var lines []string
	add := func(style term.Style, text string) { lines = append(lines, style.Paint(cut(text, width), s.colour)) }
	if s.help {
		l := layOut(width, s.shown)
		for _, text := range helpText(width, height, l.left()) {
			add(term.Plain, text)
		}
		return lines
	}
	if s.view == nil {
		add(term.Plain, "looking …")
		return lines
	}
	for _, text := range s.view.head(width) {
		add(term.Plain, text)
	}
	for _, text := range s.view.troubles(width) {
		add(term.Yellow, text)
	}
	l := layOut(width, s.shown)
	add(term.Dim, s.state(l.left()))
	add(term.Bold, l.heading(&s.sel))
	room := max(1, height-len(lines)-1)
	lines = append(lines, s.list(&l, room)...)
	if text := s.view.nothing(s.shown); text != "" {
		add(term.Plain, text)
	}
	for len(lines) < height-1 {
		lines = append(lines, "")
	}
	lines = lines[:max(0, min(len(lines), height-1))]
	add(term.Dim, footer(width))
	return lines
}

// state says what the keys have set, and which columns a wider terminal shows.
func (s *screen) state(left []string) string {
	order := s.sel.Sort
	if order == "" {
		order = SortMemory
	}
	parts := []string{fmt.Sprintf("every %s", s.interval), "by " + string(order)}
	if s.sel.Reverse {
		parts[1] += ", reversed"
	}
	if s.paused {
		parts = append(parts, "held")
	}
	if s.sel.Engine != "" {
		parts = append(parts, "engine "+s.sel.Engine)
	}
	switch {
	case s.typing:
		parts = append(parts, "filter: "+s.sel.Filter+"_")
	case s.sel.Filter != "":
		parts = append(parts, "filter: "+s.sel.Filter)
	}
	if left := s.view.Count - len(s.shown); left > 0 {
		parts = append(parts, fmt.Sprintf("%d not shown", left))
	}
	if len(left) > 0 {
		parts = append(parts, "wider: "+strings.Join(left, " "))
	}
	return strings.Join(parts, "   ")
}

// list is the part of the sandboxes, with the roles of those that are expanded,
// that has the mark in it.
func (s *screen) list(l *layout, room int) []string {
	var lines []string
	marked, end := 0, 0
	for i := range s.shown {
		b := &s.shown[i]
		mark := "  "
		style := term.Plain
		if i == s.at {
			mark, style, marked = "> ", term.Bold, len(lines)
		}
		lines = append(lines, style.Paint(l.sandbox(b, mark), s.colour))
		if s.expanded[b.key] {
			for _, text := range l.details(b) {
				lines = append(lines, term.Dim.Paint(text, s.colour))
			}
		}
		if i == s.at {
			end = len(lines)
		}
	}
	s.page = max(1, room-1)
	if end-room > s.offset { // its roles too, where they fit
		s.offset = end - room
	}
	s.offset = max(0, min(s.offset, marked, len(lines)-1))
	return lines[s.offset:min(len(lines), s.offset+room)]
}
