package command

import (
	"fmt"
	"io"
	"time"

	"github.com/tare-bench/tare/experiment/lifecycle"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/record"
)

// progress tells how far a run is: one line that is written over on a
// terminal, a plain line now and then elsewhere.
type progress struct {
	w     io.Writer
	over  bool // write over the last line
	quiet bool
	last  time.Time
	wrote bool
}

const (
	redraw = 100 * time.Millisecond // faster is not read by anyone, and costs CPU while measuring
	remind = 5 * time.Second
)

func newProgress(s Streams, quiet bool) *progress {
	return &progress{w: s.Err, over: term.IsTerminal(s.Err), quiet: quiet, last: time.Now()}
}

func (p *progress) show(at lifecycle.Progress) {
	every := remind
	if p.over {
		every = redraw
	}
	if p.quiet || time.Since(p.last) < every {
		return
	}
	p.last = time.Now()
	p.wrote = true
	phase := "round"
	if at.Phase == record.PhaseWarmup {
		phase = "warm-up"
	}
	number := fmt.Sprintf("%d/%d", at.Round+1, at.Rounds)
	if at.Round >= at.Rounds {
		number = fmt.Sprintf("%d, for the precision", at.Round+1)
	}
	line := fmt.Sprintf("%s %s, %d at once: %s %s, %s so far", phase, number, at.Lanes, at.Target, at.Op, seconds(at.Elapsed))
	if at.Left > 0 {
		line += ", about " + seconds(at.Left) + " left"
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

func (p *progress) done() {
	if p.over && p.wrote {
		fmt.Fprintf(p.w, "\r%s\r", "\x1b[K")
	}
}

func seconds(d time.Duration) string { return d.Round(time.Second).String() }
