package top

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"

	tea "charm.land/bubbletea/v2"

	"github.com/tare-bench/tare/internal/live"
	"github.com/tare-bench/tare/internal/term"
)

// screen is the live view and its settings by keys.
type screen struct {
	sel      Selection
	interval time.Duration
	colour   bool

	view     *view
	shown    []Sandbox
	cursor   string // key of the marked sandbox
	at       int    // index of the marked sandbox
	offset   int    // first visible line of the list
	page     int    // visible lines of the list
	expanded map[string]bool

	paused, help, typing, ended bool
	next                        time.Duration // until the next reading, see [live.Watch]
}

// Limits of the interval.
const (
	fastest = 100 * time.Millisecond
	slowest = time.Minute
)

func newScreen(o *Options, colour bool) *screen {
	return &screen{sel: o.Selection, interval: o.Interval, colour: colour, expanded: map[string]bool{}, page: 1}
}

// watch returns the live screen.
func (s *screen) watch(tick func(context.Context, map[string]bool) (*view, error)) *live.Watch[*view] {
	looks := 0
	return &live.Watch[*view]{
		Look: func() func(context.Context) (*view, error) {
			expanded := maps.Clone(s.expanded)
			return func(ctx context.Context) (*view, error) { return tick(ctx, expanded) }
		},
		Show: func(v *view) {
			looks++
			s.view = v
			s.arrange()
		},
		Draw: s.frame,
		Interval: func() time.Duration {
			switch {
			case s.paused:
				return 0
			case looks == 1: // show the first rates soon
				return min(s.interval, 500*time.Millisecond)
			}
			return s.interval
		},
		Press: s.press,
	}
}

// arrange sorts the sandboxes and keeps the marked one.
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

// order sets a sort order, or reverses the current one.
func (s *screen) order(by Sort) {
	s.sel.Reverse = s.sel.Sort == by && !s.sel.Reverse
	s.sel.Sort = by
	s.cursor = ""
	s.at, s.offset = 0, 0
	s.arrange()
}

func (s *screen) expand(roles bool) {
	switch {
	case len(s.shown) == 0:
	case roles:
		s.expanded[s.cursor] = true
		s.next = 0
	default:
		delete(s.expanded, s.cursor)
	}
}

func (s *screen) every(interval time.Duration) {
	s.interval = min(slowest, max(fastest, interval))
	s.next = min(s.interval, time.Second)
}

// keys maps bubbletea's key names to actions.
var keys = map[string]func(*screen){
	"ctrl+c": quit, "q": quit,
	"esc": func(s *screen) {
		s.ended = s.sel.Filter == ""
		s.sel.Filter = ""
	},
	"m": by(SortMemory), "c": by(SortCPU), "o": by(SortOverhead), "p": by(SortCache), "i": by(SortIO), "n": by(SortName),
	"r":  func(s *screen) { s.sel.Reverse = !s.sel.Reverse },
	"/":  func(s *screen) { s.typing = true },
	"up": up, "k": up, "down": down, "j": down, "home": home, "g": home, "end": end, "G": end,
	"pgup":   func(s *screen) { s.mark(s.at - s.page) },
	"pgdown": func(s *screen) { s.mark(s.at + s.page) },
	"enter":  toggle, "e": toggle,
	"right": func(s *screen) { s.expand(true) },
	"left":  func(s *screen) { s.expand(false) },
	"space": func(s *screen) {
		s.paused = !s.paused
		s.every(s.interval)
	},
	"+": func(s *screen) { s.every(s.interval * 2) },
	"-": func(s *screen) { s.every(s.interval / 2) },
	"h": help, "?": help,
}

func quit(s *screen)   { s.ended = true }
func up(s *screen)     { s.mark(s.at - 1) }
func down(s *screen)   { s.mark(s.at + 1) }
func home(s *screen)   { s.mark(0) }
func end(s *screen)    { s.mark(len(s.shown) - 1) }
func help(s *screen)   { s.help = true }
func toggle(s *screen) { s.expand(!s.expanded[s.cursor]) }

func by(order Sort) func(*screen) { return func(s *screen) { s.order(order) } }

// press handles a key.
func (s *screen) press(k tea.Key) (next time.Duration, ended bool) {
	name := live.KeyName(k)
	s.next = -1
	what := keys[name]
	switch {
	case s.typing && name != "ctrl+c":
		s.typed(name, k.Text)
	case s.help && name != "ctrl+c" && name != "q":
		s.help = false
	case what != nil:
		what(s)
	}
	s.arrange()
	return s.next, s.ended
}

// typed handles a key while a filter is typed. The filter applies at once.
func (s *screen) typed(name, text string) {
	switch {
	case name == "enter":
		s.typing = false
	case name == "esc":
		s.typing, s.sel.Filter = false, ""
	case name == "backspace":
		filter := []rune(s.sel.Filter)
		s.sel.Filter = string(filter[:max(0, len(filter)-1)])
	case len(s.sel.Filter) < 200 && !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }):
		s.sel.Filter += text
	}
}

// frame returns the lines of the screen, at most height. Foreign text is cleaned.
func (s *screen) frame(width, height int) []string {
	width = min(max(width, narrowest), widest)
	var lines []string
	add := func(style term.Style, texts ...string) {
		for _, text := range texts {
			lines = append(lines, style.Paint(cut(text, width), s.colour))
		}
	}
	l := layOut(width, s.shown, &s.sel)
	switch {
	case s.help:
		return helpText(width, height, l.left)
	case s.view == nil:
		return []string{"looking …"}
	}
	add(term.Plain, s.view.head(width)...)
	if text := s.view.troubles(); text != "" {
		add(term.Yellow, text)
	}
	add(term.Dim, s.state(l.left))
	add(term.Bold, l.heading(&s.sel))
	lines = append(lines, s.list(&l, max(1, height-len(lines)-1))...)
	if text := s.view.nothing(s.shown); text != "" {
		add(term.Plain, text)
	}
	lines = append(lines, make([]string, max(0, height-1-len(lines)))...)
	lines = lines[:max(0, height-1)]
	add(term.Dim, flow(footer, width, "  ")[0])
	return lines
}

// state describes the settings and the hidden columns.
func (s *screen) state(left []string) string {
	parts := []string{fmt.Sprintf("every %s", s.interval), "by " + string(s.sel.order())}
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

// list returns the part of the list with the marked sandbox, including expanded roles.
func (s *screen) list(l *layout, room int) []string {
	var lines []string
	marked, end := 0, 0
	for i := range s.shown {
		b := &s.shown[i]
		mark, style := "  ", term.Plain
		if i == s.at {
			mark, style, marked = "> ", term.Bold, len(lines)
		}
		lines = append(lines, style.Paint(l.sandbox(b, mark), s.colour))
		if s.expanded[b.key] {
			for _, text := range details(b, l.width) {
				lines = append(lines, term.Dim.Paint(text, s.colour))
			}
		}
		if i == s.at {
			end = len(lines)
		}
	}
	s.page = max(1, room-1)
	s.offset = max(s.offset, end-room) // with its roles, if they fit
	s.offset = max(0, min(s.offset, marked, len(lines)-1))
	return lines[s.offset:min(len(lines), s.offset+room)]
}

// footer lists keys for the last line, most important first. The help lists all keys.
var footer = []string{"h help", "q quit", "mcopin sort", "r reverse", "/ filter", "e roles", "space hold", "+- rate"}

var helpLines = []string{
	"SANDBOX   a container, or a pod with its containers",
	"CPU%      of one CPU: of its own cgroups and of processes charged to shared groups",
	"MEMORY    charged to its own cgroups, without page cache",
	"OUTSIDE   of MEMORY, in other cgroups than the pod's (/kata_overhead/ID)",
	"BESIDE    memory of processes charged to shared groups (RSS, PSS with --pss)",
	"CACHE     page cache, charged to its own cgroups",
	"IO/s      bytes read and written, as cgroups account for them",
	"LIMIT     of the pod's memory; FULL%: how much of it is used, without page cache",
	"?         unknown, or a counter was reset",
	"",
	"q Esc Ctrl-C     quit (Esc clears a filter first)",
	"m c o p i n      sort by memory, CPU, overhead, page cache, I/O, name; again: reverse",
	"r                reverse",
	"/                filter by name, id, cgroup, process: type, Enter; Esc clears",
	"arrows j k PgUp PgDn Home End   move",
	"Enter e right left   show and hide roles and cgroups",
	"space            hold the view; + - longer and shorter interval",
}

const goesBack = "press any key to return"

// helpText returns the lines of the help, at most height. The last line always shows how to
// leave it.
func helpText(width, height int, left []string) (lines []string) {
	for _, text := range helpLines {
		lines = append(lines, wrap(text, width)...)
	}
	if len(left) > 0 {
		lines = append(lines, wrap("wider     shows "+strings.Join(left, " ")+" too", width)...)
	}
	lines = append(lines, "")
	return append(lines[:max(0, min(len(lines), height-1))], cut(goesBack, width))
}
