package engine

import "time"

// Late is how long after n calls were given up their effects may still appear.
// An engine works off what was asked of it at once one after the other: the
// more there was, the longer it takes.
func Late(n int) time.Duration {
	if n == 0 {
		return 0
	}
	return min(time.Second+time.Duration(n)*50*time.Millisecond, 15*time.Second)
}
