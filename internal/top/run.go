package top

import (
	"context"
	"io"
	"sync"
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
	c, err := Open(Config{Full: o.Once, PSS: o.PSS})
	if err != nil {
		return err
	}
	defer c.Close()
	if !o.Once && !o.JSON && live.Possible(out) {
		return o.live(ctx, out, c)
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

// live shows the machine on a terminal until a key or ctx ends it. A look that is under
// way then is ended, and waited for: the collector is closed next.
func (o *Options) live(ctx context.Context, out io.Writer, c *Collector) error {
	looks, end := context.WithCancel(ctx)
	var one sync.Mutex
	defer one.Lock()
	defer end()
	s := newScreen(o, term.Colour(out), func(expanded map[string]bool) (*View, error) {
		one.Lock()
		defer one.Unlock()
		return c.Tick(looks, expanded)
	})
	if err := live.Run(ctx, out, s); err != nil {
		return err
	}
	return s.err
}

func (o *Options) print(out io.Writer, v *View, blocks int) error {
	if o.JSON {
		return v.WriteJSON(out, &o.Selection, o.Once)
	}
	width, ok := term.Columns(out)
	if !ok {
		width = plainWidth
	}
	text := v.Text(&o.Selection, width, !o.Once)
	if blocks > 0 {
		text = "\n" + text
	}
	_, err := io.WriteString(out, text)
	return err
}
