package engine

import (
	"github.com/tare-bench/tare/internal/node/procs"
)

// Listeners returns the process that listens on an address, if that is a unix socket of this
// machine.
func Listeners(address string) []int {
	if pid, err := procs.Listener(Socket(address)); err == nil {
		return []int{pid}
	}
	return nil
}
