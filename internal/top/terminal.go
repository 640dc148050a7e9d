package top

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// terminal is a person's, in raw mode and on its alternate screen.
type terminal struct {
	out   io.Writer
	fd    int // of out
	in    int // the same terminal, opened for reading
	saved unix.Termios

	once sync.Once
}

// What a terminal is sent, see ctlseqs of xterm: the alternate screen with the
// cursor saved, and the cursor hidden; and back.
const (
	enter = "\x1b[?1049h\x1b[?25l"
	leave = "\x1b[?25h\x1b[?1049l"
)

// openTerminal takes over the terminal that out writes to. Keys are read from the
// same one, wherever the standard input comes from.
func openTerminal(out io.Writer) (*terminal, error) {
	f, ok := out.(interface{ Fd() uintptr })
	if !ok {
		return nil, errors.New("the output has no descriptor")
	}
	t := &terminal{out: out, fd: int(f.Fd())}
	var err error
	// The link leads to the terminal also where its name is not to be seen here.
	t.in, err = unix.Open(fmt.Sprintf("/proc/self/fd/%d", t.fd), unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NOCTTY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("open the terminal to read keys: %w", err)
	}
	saved, err := unix.IoctlGetTermios(t.fd, unix.TCGETS)
	if err != nil {
		unix.Close(t.in)
		return nil, fmt.Errorf("read the terminal's mode: %w", err)
	}
	t.saved = *saved
	taken.Store(t)
	if err := t.raw(); err != nil {
		t.close()
		return nil, err
	}
	return t, nil
}

// raw sets the mode and the screen, also again after the process was stopped.
func (t *terminal) raw() error {
	mode := t.saved
	mode.Iflag &^= unix.BRKINT | unix.ICRNL | unix.INLCR | unix.IGNCR | unix.INPCK | unix.ISTRIP | unix.IXON
	mode.Lflag &^= unix.ECHO | unix.ECHONL | unix.ICANON | unix.ISIG | unix.IEXTEN
	mode.Cc[unix.VMIN], mode.Cc[unix.VTIME] = 1, 0
	if err := unix.IoctlSetTermios(t.fd, unix.TCSETS, &mode); err != nil {
		return fmt.Errorf("set the terminal's mode: %w", err)
	}
	_, err := io.WriteString(t.out, enter)
	return err
}

// close gives the terminal back as it was. What was typed and not read is thrown
// away, so that the shell does not get it.
func (t *terminal) close() {
	t.once.Do(func() {
		defer taken.CompareAndSwap(t, nil)
		_, _ = io.WriteString(t.out, leave)
		_ = unix.IoctlSetTermios(t.fd, unix.TCSETSF, &t.saved)
		unix.Close(t.in)
	})
}

// size is in columns and rows.
func (t *terminal) size() (width, height int) {
	size, err := unix.IoctlGetWinsize(t.fd, unix.TIOCGWINSZ)
	if err != nil || size.Col == 0 || size.Row == 0 {
		return 80, 24
	}
	return int(size.Col), int(size.Row)
}

// escapeWait is how long an escape character waits for the rest of a key.
const escapeWait = 50 * time.Millisecond

// read sends keys until stop is readable or the terminal is gone.
func (t *terminal) read(stop int, keys chan<- key, done <-chan struct{}) error {
	var d decoder
	buffer := make([]byte, 256)
	for {
		wait := -1
		if d.pending() {
			wait = int(escapeWait.Milliseconds())
		}
		polled := []unix.PollFd{{Fd: int32(t.in), Events: unix.POLLIN}, {Fd: int32(stop), Events: unix.POLLIN}}
		n, err := unix.Poll(polled, wait)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return fmt.Errorf("wait for keys: %w", err)
		}
		if polled[1].Revents != 0 {
			return nil
		}
		var found []key
		if n == 0 {
			found = d.flush()
		} else {
			n, err := unix.Read(t.in, buffer)
			switch {
			case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EINTR):
				continue
			case err != nil || n == 0:
				return fmt.Errorf("read keys: the terminal is gone: %w", errors.Join(err, os.ErrClosed))
			}
			found = d.feed(buffer[:n])
		}
		for _, k := range found {
			select {
			case keys <- k:
			case <-done:
				return nil
			}
		}
	}
}
