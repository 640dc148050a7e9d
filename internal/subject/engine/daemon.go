package engine

import (
	"github.com/tare-bench/tare/internal/node/procs"
)

// Listeners are the processes that serve these addresses, where they are unix
// sockets of this machine.
func Listeners(addresses ...string) []int {
	var out []int
	for _, a := range addresses {
		if pid, err := procs.Listener(Socket(a)); err == nil {
			out = append(out, pid)
		}
	}
	return out
}
