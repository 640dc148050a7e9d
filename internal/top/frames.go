package top

import (
	"context"
	"io"
	"os"
	"os/signal"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/term"
)

// Live tells whether out is a terminal that [Watch] can draw on.
func Live(out io.Writer) bool { return term.IsTerminal(out) && addressable(os.Getenv("TERM")) }

// Watch is the live view's screen for others: it calls look at once and every
// interval, and draws the lines that frame makes for a size, at most height of them,
// until ctx ends, look fails, or a person presses q, Escape or Ctrl-C, for which it
// returns nil. Lines are clean and no wider than the screen. The terminal is given
// back on every path, by [Restore] too.
func Watch(ctx context.Context, out io.Writer, interval time.Duration, look func() error, frame func(width, height int) []string) error {
	t, err := openTerminal(out)
	if err != nil {
		return err
	}
	defer t.close()
	keys, failed, end, err := startKeys(t)
	if err != nil {
		return err
	}
	defer end()
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, unix.SIGWINCH, unix.SIGCONT)
	defer signal.Stop(signals)
	ticks := time.NewTicker(interval)
	defer ticks.Stop()
	if err := look(); err != nil {
		return err
	}
	for {
		if err := t.draw(frame); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-failed:
			return err
		case sig := <-signals:
			if sig == unix.SIGCONT {
				if err := t.raw(); err != nil {
					return err
				}
			}
		case <-ticks.C:
			if err := look(); err != nil {
				return err
			}
		case k := <-keys:
			if k == 'q' || k == keyEscape || k == keyQuit {
				return nil
			}
		}
	}
}

// Cut shortens a text to a width, and marks that it did. The result is clean.
func Cut(text string, width int) string { return cut(text, width) }

// Harmless escapes in JSON what a terminal would act on.
func Harmless(text []byte) []byte { return harmless(text) }
