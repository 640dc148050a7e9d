package setting

import (
	"errors"
	"strings"

	"github.com/google/shlex"
)

// Words splits a command at unquoted blanks, as a shell does. It expands nothing, and # does
// not start a comment.
func Words(text string) ([]string, error) {
	const hash = "\x00" // not possible in an argument
	if strings.Contains(text, hash) {
		return nil, errors.New("contains a zero byte")
	}
	words, err := shlex.Split(strings.ReplaceAll(text, "#", hash))
	if err != nil {
		return nil, err
	}
	for i := range words {
		words[i] = strings.ReplaceAll(words[i], hash, "#")
	}
	return words, nil
}
