package top

import "unicode/utf8"

// key is a character, or one of those below.
type key rune

const (
	keyEnter key = -1 - iota
	keyEscape
	keyBackspace
	keyUp
	keyDown
	keyLeft
	keyRight
	keyPageUp
	keyPageDown
	keyHome
	keyEnd
	keyQuit // Ctrl-C
)

// decoder makes keys out of what a terminal sends. A key may come in pieces.
type decoder struct{ rest []byte }

// longest is more than any key has; what is longer is none.
const longestKey = 32

func (d *decoder) pending() bool { return len(d.rest) > 0 }

// feed returns the keys that are complete.
func (d *decoder) feed(text []byte) []key {
	d.rest = append(d.rest, text...)
	var keys []key
	for len(d.rest) > 0 {
		k, n := decode(d.rest)
		if n == 0 {
			if len(d.rest) <= longestKey {
				break
			}
			k, n = 0, len(d.rest)
		}
		d.rest = d.rest[n:]
		if k != 0 {
			keys = append(keys, k)
		}
	}
	return keys
}

// flush is for when nothing followed: a lone escape character is the key.
func (d *decoder) flush() []key {
	alone := len(d.rest) == 1 && d.rest[0] == 0x1b
	d.rest = nil
	if alone {
		return []key{keyEscape}
	}
	return nil
}

// sequences are what follows an escape character: CSI and SS3, of xterm, the
// Linux console and rxvt.
var sequences = map[string]key{
	"[A": keyUp, "[B": keyDown, "[C": keyRight, "[D": keyLeft, "OA": keyUp, "OB": keyDown, "OC": keyRight, "OD": keyLeft,
	"[5~": keyPageUp, "[6~": keyPageDown, "[H": keyHome, "[F": keyEnd, "OH": keyHome, "OF": keyEnd,
	"[1~": keyHome, "[4~": keyEnd, "[7~": keyHome, "[8~": keyEnd, "OM": keyEnter,
}

// decode takes one key off; n 0: it is not complete. k is 0 for a key that means
// nothing here.
func decode(b []byte) (k key, n int) {
	switch c := b[0]; {
	case c == 0x1b:
		return decodeEscape(b)
	case c == 3:
		return keyQuit, 1
	case c == '\r', c == '\n':
		return keyEnter, 1
	case c == 0x7f, c == 8:
		return keyBackspace, 1
	case c < 0x20:
		return 0, 1
	case !utf8.FullRune(b):
		return 0, 0
	}
	r, size := utf8.DecodeRune(b)
	if r == utf8.RuneError {
		return 0, size
	}
	return key(r), size
}

func decodeEscape(b []byte) (key, int) {
	if len(b) == 1 {
		return 0, 0
	}
	switch b[1] {
	case 'O':
		if len(b) < 3 {
			return 0, 0
		}
		return sequences[string(b[1:3])], 3
	case '[':
		for i := 2; i < len(b); i++ {
			if b[i] >= 0x40 && b[i] <= 0x7e { // the final byte, ECMA-48 5.4
				return sequences[string(b[1:i+1])], i + 1
			}
		}
		return 0, 0
	}
	return keyEscape, 1
}
