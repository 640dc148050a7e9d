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

// terminal opens a pseudo-terminal, see pts(4), and returns both sides.
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

// until reads the drawn output up to a text.
func until(t *testing.T, person *os.File, text string) string {
	t.Helper()
	_ = person.SetReadDeadline(time.Now().Add(time.Minute))
	var seen []byte
	buffer := make([]byte, 64<<10)
	for !bytes.Contains(seen, []byte(text)) {
		n, err := person.Read(buffer)
		seen = append(seen, buffer[:n]...)
		must.That(t, err == nil, "%q is not drawn: %v: %q", text, err, seen)
	}
	return string(seen)
}

// sheet is a view that shows its size, the number of readings and the pressed keys. The
// number is spelled so that no letter stays the same, because unchanged text is not
// redrawn. q quits, p fails and n requests a reading.
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
				panic("as a test wants it")
			case "n":
				return 0, false
			}
			told <- k.Keystroke()
			return -1, k.Keystroke() == "q"
		},
	}
}

func once(context.Context) (int, error) { return 1, nil }

func TestTheTerminalIsGivenBackOnEveryPath(t *testing.T) {
	t.Setenv("TERM", "xterm")
	for name, c := range map[string]struct {
		key string
		err error
	}{
		"a key":          {"q", nil},
		"a context":      {"", context.Canceled},
		"a fault of its": {"p", tea.ErrProgramPanic},
	} {
		t.Run(name, func(t *testing.T) {
			person, program := terminal(t)
			before := must.Get(unix.IoctlGetTermios(int(program.Fd()), unix.TCGETS))(t)
			check.That(t, Possible(program), "a terminal is not taken for one")
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ended := make(chan error, 1)
			go func() { ended <- sheet(make(chan string, 8), once).Run(ctx, program) }()
			check.Contains(t, "the alternate screen is not taken", until(t, person, "its-size"), "\x1b[?1049h")
			check.Equal(t, "not raw", must.Get(unix.IoctlGetTermios(int(program.Fd()), unix.TCGETS))(t).Lflag&(unix.ECHO|unix.ICANON|unix.ISIG), 0)
			if c.key == "" {
				cancel()
			} else if _, err := person.WriteString(c.key); err != nil {
				t.Fatal(err)
			}
			until(t, person, "\x1b[?1049l")
			err := <-ended
			check.That(t, errors.Is(err, c.err), "it ended with %v, want %v", err, c.err)
			after, err := unix.IoctlGetTermios(int(program.Fd()), unix.TCGETS)
			check.That(t, err == nil && *after == *before, "the terminal's mode is %+v (%v), was %+v", after, err, before)
		})
	}
}

func TestKeysComeFromTheTerminalThatIsDrawnOn(t *testing.T) {
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

func TestWhatHasNoCursorIsNoScreen(t *testing.T) {
	_, program := terminal(t)
	for _, kind := range []string{"dumb", ""} {
		t.Setenv("TERM", kind)
		check.That(t, !Possible(program), "TERM=%q is drawn on", kind)
	}
	t.Setenv("TERM", "xterm")
	check.That(t, !Possible(&bytes.Buffer{}), "a buffer is drawn on")
}

func TestAReadingIsWantedAndWaitedFor(t *testing.T) {
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
	check.That(t, err == nil && closed, "%v; the reading has ended: %t", err, closed)
}

func TestAReadingThatFailsEndsTheView(t *testing.T) {
	t.Setenv("TERM", "xterm")
	_, program := terminal(t)
	err := sheet(nil, func(context.Context) (int, error) { return 0, os.ErrClosed }).Run(t.Context(), program)
	check.Is(t, err, os.ErrClosed)
}
