package engine

import "time"

// Late returns how long the effects of n abandoned calls may take to appear. An engine works
// through concurrent calls one after the other, so the time grows with n.
func Late(n int) time.Duration {
	if n == 0 {
		return 0
	}
	return min(time.Second+time.Duration(n)*50*time.Millisecond, 15*time.Second)
}
