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

// Watch is a view that is refreshed every interval until the user or a context ends it.
type Watch[V any] struct {
	// Look returns the function that reads the next value. The view calls the returned
	// function in the background, never twice at once. Its error ends the view. All other
	// functions are called in the foreground.
	Look     func() func(context.Context) (V, error)
	Show     func(V)
	Draw     func(width, height int) []string
	Interval func() time.Duration // until the next reading; 0: none
	// Press handles a key. next is the time until the next reading, or negative for no
	// change.
	Press func(tea.Key) (next time.Duration, end bool)
}

// Run shows the view on out. At the end it cancels a pending reading and waits for it. It
// returns nil if the user ended the view, and ctx's error if ctx ended.
func (w *Watch[V]) Run(ctx context.Context, out io.Writer) error {
	reads, end := context.WithCancel(ctx)
	var one sync.Mutex
	defer one.Lock() // held forever, so that later readings do not start
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

// KeyName returns the text of a key, such as "G", or its name in bubbletea, such as "pgup".
func KeyName(k tea.Key) string {
	if k.Text != "" && k.Text != " " {
		return k.Text
	}
	return k.Keystroke()
}

// loop is a watch as a bubbletea model.
type loop[V any] struct {
	*Watch[V]
	read          func(func(context.Context) (V, error)) tea.Msg
	width, height int
	ascii         bool
	timer         int // number of the current timer
	reading       bool
	err           error // reason of the end
}

// The messages of a loop besides keys and sizes.
type (
	seen[V any] struct {
		view V
		err  error
	}
	due struct{ timer int }
)

// Init implements [tea.Model].
func (l *loop[V]) Init() tea.Cmd { return l.again(0) }

// again schedules a reading and cancels earlier ones.
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
		switch next, end := l.Press(msg.Key()); {
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
