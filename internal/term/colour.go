package term

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// Style is the style of a piece of text: the parameter of an SGR escape sequence (ECMA-48,
// 8.3.117). The eight basic colours follow the user's palette.
type Style string

// The styles of tables. Colour never has a meaning that the text does not have.
const (
	Plain  Style = ""
	Bold   Style = "1"
	Dim    Style = "2"
	Red    Style = "31"
	Green  Style = "32"
	Yellow Style = "33"
)

// Paint returns text in this style, or unchanged if colour is false. It does not clean the
// text.
func (s Style) Paint(text string, colour bool) string {
	if !colour || s == Plain || text == "" {
		return text
	}
	return "\x1b[" + string(s) + "m" + text + "\x1b[0m"
}

// Colour reports whether w supports colour: it is a terminal that is not "dumb", and
// NO_COLOR (https://no-color.org) is unset or empty.
func Colour(w io.Writer) bool { return colour(IsTerminal(w), os.Getenv) }

func colour(terminal bool, getenv func(string) string) bool {
	return terminal && getenv("NO_COLOR") == "" && getenv("TERM") != "dumb"
}

// IsTerminal reports whether w writes directly to a terminal.
func IsTerminal(w io.Writer) bool {
	fd, ok := descriptor(w)
	if !ok {
		return false
	}
	_, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	return err == nil
}

// Columns returns the width of the terminal that w writes to. ok is false if w is not a
// terminal or the width is unknown.
func Columns(w io.Writer) (columns int, ok bool) {
	fd, ok := descriptor(w)
	if !ok {
		return 0, false
	}
	size, err := unix.IoctlGetWinsize(fd, unix.TIOCGWINSZ)
	if err != nil || size.Col == 0 {
		return 0, false
	}
	return int(size.Col), true
}

func descriptor(w io.Writer) (fd int, ok bool) {
	f, ok := w.(interface{ Fd() uintptr })
	if !ok {
		return 0, false
	}
	return int(f.Fd()), true
}
