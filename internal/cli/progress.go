package cli

import (
	"fmt"
	"io"
	"time"

	"github.com/tare-bench/tare/internal/term"
)

// progress tells how far a run is: one line that is written over on a
// terminal, a plain line now and then elsewhere.
type progress struct {
	w     io.Writer
	over  bool // write over the last line
	quiet bool
	last  time.Time
	what  string // that was told last
	wrote bool
}

const (
	redraw = 100 * time.Millisecond // faster is not read by anyone, and costs CPU while measuring
	remind = 5 * time.Second
)

func newProgress(s *app, quiet bool) *progress {
	return &progress{w: s.Err, over: term.IsTerminal(s.Err), quiet: quiet, last: time.Now()}
}

// line tells what is done, for how long the run has been going, and how long it
// will go on; 0 is not known.
func (p *progress) line(what string, elapsed, left time.Duration) {
	every := remind
	if p.over {
		every = redraw
	}
	// What is new is told at once where it takes the place of the old.
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

// say writes a line that stays.
func (p *progress) say(text string) {
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
