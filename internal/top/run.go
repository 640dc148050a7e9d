package top

import (
	"context"
	"io"
	"time"

	"github.com/tare-bench/tare/internal/live"
	"github.com/tare-bench/tare/internal/term"
)

// Options are the options of `tare top`.
type Options struct {
	Selection
	Interval time.Duration
	Once     bool
	JSON     bool
	PSS      bool
}

const plainWidth = 120 // without a terminal

// Run shows the machine on out: live on a terminal with cursor control, else in blocks until
// ctx ends. With Once it takes two samples an interval apart and prints the second. It returns
// nil if the user quits, and the error of ctx if ctx ends.
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
