package top

import (
	"context"
	"io"
	"time"

	"github.com/tare-bench/tare/internal/live"
	"github.com/tare-bench/tare/internal/term"
)

// Options are what `tare top` was asked for.
type Options struct {
	Selection
	Interval time.Duration
	Once     bool
	JSON     bool
	PSS      bool
}

// plainWidth is for what is no terminal.
const plainWidth = 120

// Run shows the machine on out: live where that is a terminal with a cursor to move, else
// in blocks until ctx ends; with Once two samples an interval apart, of which the second is
// printed. It returns nil where a person ended it, ctx's error where that did.
func Run(ctx context.Context, out io.Writer, o Options) error {
	c, err := open(config{Full: o.Once, PSS: o.PSS})
	if err != nil {
		return err
	}
	defer c.Close()
	if !o.Once && !o.JSON && live.Possible(out) {
		return newScreen(&o, term.Colour(out)).watch(c.Tick).Run(ctx, out)
	}
	if _, err := c.Tick(ctx, nil); err != nil {
		return err
	}
	ticks := time.NewTicker(o.Interval)
	defer ticks.Stop()
	for blocks := 0; ; blocks++ {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticks.C:
		}
		v, err := c.Tick(ctx, nil)
		if err != nil {
			return err
		}
		if err := o.print(out, v, blocks); err != nil || o.Once {
			return err
		}
	}
}

func (o *Options) print(out io.Writer, v *view, blocks int) error {
	if o.JSON {
		return v.writeJSON(out, &o.Selection, o.Once)
	}
	width, ok := term.Columns(out)
	if !ok {
		width = plainWidth
	}
	text := v.text(&o.Selection, width, !o.Once)
	if blocks > 0 {
		text = "\n" + text
	}
	_, err := io.WriteString(out, text)
	return err
}
