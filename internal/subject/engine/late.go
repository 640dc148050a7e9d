package engine

import (
	"fmt"
	"strings"
	"time"
)

// Late is how long after n calls were given up their effects may still appear.
// An engine works off what was asked of it at once one after the other: the
// more there was, the longer it takes.
func Late(n int) time.Duration {
	if n == 0 {
		return 0
	}
	return min(time.Second+time.Duration(n)*50*time.Millisecond, 15*time.Second)
}

// Owed says beside the error that kept a session from seeing to it what calls
// that were given up may still make.
func Owed(names []string, err error) error {
	if err == nil || len(names) == 0 {
		return err
	}
	const most = 10
	text := strings.Join(names[:min(most, len(names))], ", ")
	if more := len(names) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Errorf("%d calls were given up, and it could not be confirmed that nothing comes of them: %w; what may appear yet is %s; look for it with: tare clean", len(names), err, text)
}
