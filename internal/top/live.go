package top

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/term"
)

// live shows the machine on a terminal until a key or ctx ends it. The terminal
// is given back on every path.
func live(ctx context.Context, c *Collector, out io.Writer, o Options) error {
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

	s := newScreen(&o, term.Colour(out))
	look := func() error {
		v, err := c.Tick(ctx)
		if err == nil {
			s.show(v)
		}
		return err
	}
	if err := t.draw(s.frame); err != nil {
		return err
	}
	if err := look(); err != nil {
		return err
	}
	// The first rates soon, whatever the interval.
	next := time.NewTimer(min(s.interval, 500*time.Millisecond))
	defer next.Stop()
	for {
		if err := t.draw(s.frame); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-failed:
			return err
		case sig := <-signals:
			if sig == unix.SIGCONT { // whoever had the terminal meanwhile set it
				if err := t.raw(); err != nil {
					return err
				}
			}
		case <-next.C:
			if !s.paused {
				if err := look(); err != nil {
					return err
				}
			}
			next.Reset(s.interval)
		case k := <-keys:
			interval, paused := s.interval, s.paused
			quit := s.press(k)
			if quit {
				return nil
			}
			if s.interval != interval || paused && !s.paused {
				next.Reset(min(s.interval, time.Second))
			}
			if s.tell(c) && !s.paused { // roles are wanted that were not read yet
				next.Reset(0)
			}
		}
	}
}

// tell has the collector read the roles that are shown, and tells whether there
// are new ones.
func (s *screen) tell(c *Collector) (more bool) {
	for k := range c.expanded {
		if !s.expanded[k] {
			c.Expand(k, false)
		}
	}
	for k := range s.expanded {
		more = more || !c.expanded[k]
		c.Expand(k, true)
	}
	return more
}

// draw writes a frame in one piece: from the top left corner, every line with
// what is left of the one before wiped out, and what is below.
func (t *terminal) draw(frame func(width, height int) []string) error {
	width, height := t.size()
	var b bytes.Buffer
	b.WriteString("\x1b[H")
	lines := frame(width, height)
	for i, line := range lines {
		b.WriteString(line)
		b.WriteString("\x1b[K")
		if i < len(lines)-1 {
			b.WriteString("\r\n")
		}
	}
	b.WriteString("\x1b[J")
	_, err := t.out.Write(b.Bytes())
	return err
}

// startKeys reads keys on a goroutine of its own until end is called.
func startKeys(t *terminal) (keys <-chan key, failed <-chan error, end func(), err error) {
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		return nil, nil, nil, fmt.Errorf("make a pipe: %w", err)
	}
	k, f, done, ended := make(chan key), make(chan error, 1), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		defer func() { // so that the terminal is given back before anything is said
			if p := recover(); p != nil {
				f <- fmt.Errorf("read keys: panic: %v", p)
			}
		}()
		if err := t.read(pipe[0], k, done); err != nil {
			f <- err
		}
	}()
	return k, f, func() {
		close(done)
		unix.Close(pipe[1]) // the reading end is readable: it has hung up
		<-ended
		unix.Close(pipe[0])
	}, nil
}
