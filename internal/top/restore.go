package top

import (
	"sync/atomic"
	"time"
)

// taken is the terminal that is in raw mode now; nil: none.
var taken atomic.Pointer[terminal]

// longestRestore is how long a terminal may take to be given back: one that takes
// no output would hold up the end of the process for ever.
const longestRestore = 500 * time.Millisecond

// Restore gives the terminal back as it was before the live view took it, and does
// nothing where there is none. It is for a process that ends without its view being
// able to return. It may be called at any time, from any goroutine, and again.
func Restore() {
	t := taken.Load()
	if t == nil {
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		t.close()
	}()
	select {
	case <-done:
	case <-time.After(longestRestore):
	}
}
