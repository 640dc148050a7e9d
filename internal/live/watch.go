package live

import (
	"context"
	"io"
	"strings"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/tare-bench/tare/internal/term"
)

// Watch is a view that is read anew every interval, until a person or a context ends it.
type Watch[V any] struct {
	// Look says what is to be read now. Only what it returns runs beside the rest, one at
	// a time; its error ends the view.
	Look     func() func(context.Context) (V, error)
	Show     func(V)
	Draw     func(width, height int) []string
	Interval func() time.Duration // to the next reading; 0: none is wanted
	// Press obeys a key, and says when to read next for it, less than 0: as it was. nil:
	// q, Escape and Ctrl-C end the view.
	Press func(tea.Key) (next time.Duration, end bool)
}

// Run shows the view on out. What is being read when it ends is ended, and waited for. It
// returns nil where a person ended it, ctx's error where that did.
func (w *Watch[V]) Run(ctx context.Context, out io.Writer) error {
	reads, end := context.WithCancel(ctx)
	var one sync.Mutex
	defer one.Lock() // for good: who comes later has nothing to read any more
	defer end()
	l := &loop[V]{Watch: w, width: 80, height: 24, ascii: term.IsASCII(out), read: func(read func(context.Context) (V, error)) tea.Msg {
		one.Lock()
		defer one.Unlock()
		v, err := read(reads)
		return seen[V]{v, err}
	}}
	if err := run(ctx, out, l); err != nil {
		return err
	}
	return l.err
}

// loop is a watch as bubbletea has it.
type loop[V any] struct {
	*Watch[V]
	read          func(func(context.Context) (V, error)) tea.Msg
	width, height int
	ascii         bool
	timer         int // the number of the one that counts
	reading       bool
	err           error // why it ended
}

// What comes to a loop beside keys and sizes.
type (
	seen[V any] struct {
		view V
		err  error
	}
	due struct{ timer int }
)

// Init implements [tea.Model].
func (l *loop[V]) Init() tea.Cmd { return l.again(0) }

// again has a reading made after a time, and no earlier wish is obeyed.
func (l *loop[V]) again(after time.Duration) tea.Cmd {
	l.timer++
	now := due{l.timer}
	return tea.Tick(after, func(time.Time) tea.Msg { return now })
}

// Update implements [tea.Model].
func (l *loop[V]) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		if msg.Width > 0 && msg.Height > 0 {
			l.width, l.height = msg.Width, msg.Height
		}
	case due:
		if msg.timer == l.timer && !l.reading && l.Interval() > 0 {
			l.reading = true
			read := l.Look()
			return l, func() tea.Msg { return l.read(read) }
		}
	case seen[V]:
		l.reading = false
		if msg.err != nil {
			l.err = msg.err
			return l, tea.Quit
		}
		l.Show(msg.view)
		return l, l.again(l.Interval())
	case tea.KeyPressMsg:
		next, end := time.Duration(-1), false
		if name := msg.Keystroke(); l.Press != nil {
			next, end = l.Press(msg.Key())
		} else {
			end = name == "q" || name == "esc" || name == "ctrl+c"
		}
		switch {
		case end:
			return l, tea.Quit
		case next >= 0:
			return l, l.again(next)
		}
	}
	return l, nil
}

// View implements [tea.Model].
func (l *loop[V]) View() tea.View {
	text := strings.Join(l.Draw(l.width, l.height), "\n")
	if l.ascii {
		text = term.ASCII(text)
	}
	v := tea.NewView(text)
	v.AltScreen = true
	return v
}
