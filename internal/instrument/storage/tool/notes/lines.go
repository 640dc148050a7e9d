package notes

import (
	"bufio"
	"errors"
	"io"
	"regexp"
	"strings"
)

// maxLine is the longest line that is looked at, in bytes: JSON on one line is
// the longest that tools write. The rest of a longer one is passed over.
const maxLine = 1 << 20

// line is one line of a text, cleaned of what consoles and mails put around it.
type line struct {
	number   int    // from 1
	text     string // without quotes, colours and surrounding blanks
	progress bool   // it begins with a carriage return: the state of something unfinished
}

// lines reads a text line by line.
type lines struct {
	in     *bufio.Reader
	number int
	text   []byte
}

func newLines(in io.Reader) *lines {
	return &lines{in: bufio.NewReaderSize(in, 64<<10)}
}

func (l *lines) next() (line, error) {
	l.text = l.text[:0]
	begun := false
	for {
		part, err := l.in.ReadSlice('\n')
		begun = begun || len(part) > 0
		if room := maxLine - len(l.text); len(part) > room {
			part = part[:room]
		}
		l.text = append(l.text, part...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && (!errors.Is(err, io.EOF) || !begun):
			return line{}, err
		}
		l.number++
		return clean(l.number, string(l.text)), nil
	}
}

// escapes are the sequences that colour a console (ECMA-48 CSI, and OSC).
var escapes = regexp.MustCompile("\x1b\\[[0-?]*[ -/]*[@-~]|\x1b\\][^\x07\x1b]*(?:\x07|\x1b\\\\)|\x1b[@-Z\\\\-_]")

func clean(number int, text string) line {
	text = strings.TrimRight(text, "\r\n")
	if strings.IndexByte(text, 0x1b) >= 0 {
		text = escapes.ReplaceAllString(text, "")
	}
	at := strings.LastIndexByte(text, '\r')
	text = strings.ToValidUTF8(text[at+1:], "�")
	text = strings.TrimPrefix(text, "\ufeff")
	for {
		text = strings.TrimSpace(text)
		rest, quoted := strings.CutPrefix(text, ">")
		if !quoted {
			return line{number: number, text: text, progress: at >= 0}
		}
		text = rest
	}
}
