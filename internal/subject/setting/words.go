package setting

import (
	"errors"
	"strings"

	"github.com/google/shlex"
)

// Words takes a command apart as a shell would: at blanks that are not quoted. There is no
// shell, so nothing is expanded, and # begins no comment.
func Words(text string) ([]string, error) {
	const hash = "\x00" // which no argument can have
	if strings.Contains(text, hash) {
		return nil, errors.New("there is a zero byte in it")
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
