package live

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
)

// terminal opens a pseudo-terminal and returns both ends. See pts(4).
func terminal(t *testing.T) (person, program *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK, 0)
	check.Error(t, err, "")
	t.Cleanup(func() { person.Close() })
	raw := must.Get(person.SyscallConn())(t)
	n := 0
	if e := raw.Control(func(fd uintptr) {
		if err = unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0); err == nil {
			err = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Col: 60, Row: 12})
		}
		if err == nil {
			n, err = unix.IoctlGetInt(int(fd), unix.TIOCGPTN)
		}
	}); e != nil || err != nil {
		t.Fatal(e, err)
	}
	if program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { program.Close() })
	return person, program
}

// until reads the output until it contains text, and returns it.
func until(t *testing.T, person *os.File, text string) string {
	t.Helper()
	_ = person.SetReadDeadline(time.Now().Add(time.Minute))
	var seen []byte
	buffer := make([]byte, 64<<10)
	for !bytes.Contains(seen, []byte(text)) {
		n, err := person.Read(buffer)
		seen = append(seen, buffer[:n]...)
		must.That(t, err == nil, "no %q on the screen: %v: %q", text, err, seen)
	}
	return string(seen)
}

// sheet returns a view that shows whether it has the size of the test, and the number of
// readings. It sends pressed keys to `told`. The texts for successive numbers have no
// letter in common, because unchanged text is not redrawn. The key q quits, p panics and
// n requests a reading.
func sheet(told chan<- string, read func(context.Context) (int, error)) *Watch[int] {
	reads := 0
	return &Watch[int]{
		Look:     func() func(context.Context) (int, error) { return read },
		Show:     func(n int) { reads = n },
		Interval: func() time.Duration { return time.Hour },
		Draw: func(width, height int) []string {
			size := "........"
			if width == 60 && height == 12 {
				size = "its-size"
			}
			return []string{size, []string{"none", "ONCE", "second"}[min(reads, 2)]}
		},
		Press: func(k tea.Key) (time.Duration, bool) {
			switch k.Keystroke() {
			case "p":
				panic("requested by the test")
			case "n":
				return 0, false
			}
			told <- k.Keystroke()
			return -1, k.Keystroke() == "q"
		},
	}
}

func once(context.Context) (int, error) { return 1, nil }

func TestTerminalIsRestoredOnEveryPath(t *testing.T) {
	t.Setenv("TERM", "xterm")
	for name, c := range map[string]struct {
		key string
		err error
	}{
		"a key":              {"q", nil},
		"a canceled context": {"", context.Canceled},
		"a panic":            {"p", tea.ErrProgramPanic},
	} {
		t.Run(name, func(t *testing.T) {
			person, program := terminal(t)
			before := must.Get(unix.IoctlGetTermios(int(program.Fd()), unix.TCGETS))(t)
			check.That(t, Possible(program), "the terminal is not recognized")
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ended := make(chan error, 1)
			go func() { ended <- sheet(make(chan string, 8), once).Run(ctx, program) }()
			check.Contains(t, "no alternate screen", until(t, person, "its-size"), "\x1b[?1049h")
			check.Equal(t, "local flags of raw mode", must.Get(unix.IoctlGetTermios(int(program.Fd()), unix.TCGETS))(t).Lflag&(unix.ECHO|unix.ICANON|unix.ISIG), 0)
			if c.key == "" {
				cancel()
			} else if _, err := person.WriteString(c.key); err != nil {
				t.Fatal(err)
			}
			until(t, person, "\x1b[?1049l")
			err := <-ended
			check.That(t, errors.Is(err, c.err), "Run returned %v, want %v", err, c.err)
			after, err := unix.IoctlGetTermios(int(program.Fd()), unix.TCGETS)
			check.That(t, err == nil && *after == *before, "the terminal mode is %+v (%v), want %+v", after, err, before)
		})
	}
}

func TestKeysAreReadFromTheOutputTerminal(t *testing.T) {
	t.Setenv("TERM", "xterm")
	person, program := terminal(t)
	ended, told := make(chan error, 1), make(chan string, 8)
	go func() { ended <- sheet(told, once).Run(t.Context(), program) }()
	until(t, person, "its-size")
	for typed, want := range map[string]string{"\x1b[B": "down", "\x1b[5~": "pgup", "\r": "enter", "\x1b": "esc", "ü": "ü"} {
		must.Get(person.WriteString(typed))(t)
		check.Equal(t, typed, <-told, want)
	}
	must.Get(person.WriteString("q"))(t)
	must.OK(t, <-ended)
}

func TestOutputWithoutCursorIsNotAScreen(t *testing.T) {
	_, program := terminal(t)
	for _, kind := range []string{"dumb", ""} {
		t.Setenv("TERM", kind)
		check.That(t, !Possible(program), "TERM=%q passes for a screen", kind)
	}
	t.Setenv("TERM", "xterm")
	check.That(t, !Possible(&bytes.Buffer{}), "a buffer passes for a screen")
}

func TestQuitWaitsForTheReadingInProgress(t *testing.T) {
	t.Setenv("TERM", "xterm")
	person, program := terminal(t)
	n, begun, closed := 0, make(chan bool), false
	w := sheet(make(chan string, 8), func(ctx context.Context) (int, error) {
		if n++; n < 3 {
			return n, nil
		}
		close(begun)
		<-ctx.Done() // a slow reading
		closed = true
		return n, ctx.Err()
	})
	ended := make(chan error, 1)
	go func() { ended <- w.Run(t.Context(), program) }()
	until(t, person, "ONCE")
	for _, shown := range []string{"second", ""} {
		must.Get(person.WriteString("n"))(t)
		until(t, person, shown)
	}
	<-begun
	must.Get(person.WriteString("q"))(t)
	err := <-ended
	check.That(t, err == nil && closed, "error %v, reading ended: %t", err, closed)
}

func TestFailedReadingEndsTheView(t *testing.T) {
	t.Setenv("TERM", "xterm")
	_, program := terminal(t)
	err := sheet(nil, func(context.Context) (int, error) { return 0, os.ErrClosed }).Run(t.Context(), program)
	check.Is(t, err, os.ErrClosed)
}
