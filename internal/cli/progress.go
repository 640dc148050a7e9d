package cli

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/tare-bench/tare/internal/term"
)

// progress shows the state of a run. On a terminal it redraws one line; otherwise it prints
// a line now and then. line and say may be called concurrently.
type progress struct {
	mu    sync.Mutex
	w     io.Writer
	over  bool // redraw the last line
	quiet bool
	last  time.Time
	what  string // last text
	wrote bool
}

const (
	redraw = 100 * time.Millisecond // faster is unreadable and costs CPU while measuring
	remind = 5 * time.Second
)

func newProgress(s *app, quiet bool) *progress {
	return &progress{w: s.Err, over: term.IsTerminal(s.Err), quiet: quiet, last: time.Now()}
}

// line prints the current step, the elapsed time and the remaining time; 0 is unknown.
func (p *progress) line(what string, elapsed, left time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	every := remind
	if p.over {
		every = redraw
	}
	// Redraw a new text at once. Otherwise limit the rate.
	if again := what == p.what || !p.over; p.quiet || again && time.Since(p.last) < every {
		return
	}
	p.last, p.what = time.Now(), what
	p.wrote = true
	line := fmt.Sprintf("%s, %s so far", term.Clean(what), seconds(elapsed))
	if left > 0 {
		line += ", about " + seconds(left) + " left"
	}
	if !p.over {
		fmt.Fprintln(p.w, line)
		return
	}
	columns, ok := term.Columns(p.w)
	if ok && len(line) >= columns {
		line = line[:max(columns-1, 0)]
	}
	fmt.Fprintf(p.w, "\r%s\x1b[K", line)
}

// say prints a permanent line.
func (p *progress) say(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.quiet {
		p.done()
		fmt.Fprintln(p.w, "tare: "+term.Clean(text))
	}
}

func (p *progress) done() {
	if p.over && p.wrote {
		fmt.Fprintf(p.w, "\r%s\r", "\x1b[K")
	}
}

func seconds(d time.Duration) string { return d.Round(time.Second).String() }
