package bpflist

import (
	"context"
	"io"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/tare-bench/tare/internal/live"
)

// screen is the live view: what [View.lines] has room for, anew every interval.
type screen struct {
	look          func() (*View, error)
	interval      time.Duration
	view          *View
	width, height int
	err           error // why it ended
}

type looked struct {
	view *View
	err  error
}

// watch draws on a terminal until a key or ctx ends it. A look that is under way then is
// waited for: the meter is closed next.
func watch(ctx context.Context, out io.Writer, s *shown, c *collector) error {
	var one sync.Mutex
	defer one.Lock()
	m := &screen{interval: s.options.Interval, width: 80, height: 24, look: func() (*View, error) {
		one.Lock()
		defer one.Unlock()
		err := s.look(c)
		return s.view, err
	}}
	if err := live.Run(ctx, out, m); err != nil {
		return err
	}
	return m.err
}

// Init implements [tea.Model].
func (s *screen) Init() tea.Cmd { return s.again }

func (s *screen) again() tea.Msg {
	v, err := s.look()
	return looked{v, err}
}

// Update implements [tea.Model].
func (s *screen) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		if msg.Width > 0 && msg.Height > 0 {
			s.width, s.height = msg.Width, msg.Height
		}
	case looked:
		if s.view, s.err = msg.view, msg.err; s.err != nil {
			return s, tea.Quit
		}
		return s, tea.Tick(s.interval, func(time.Time) tea.Msg { return s.again() })
	case tea.KeyPressMsg:
		switch msg.Keystroke() {
		case "q", "esc", "ctrl+c":
			return s, tea.Quit
		}
	}
	return s, nil
}

// View implements [tea.Model].
func (s *screen) View() tea.View {
	lines := []string{"looking …"}
	if s.view != nil {
		lines = append(s.view.lines(s.height-1), "q quit")
	}
	for i := range lines {
		lines[i] = ansi.Truncate(lines[i], s.width, "…")
	}
	return live.Screen(lines)
}
