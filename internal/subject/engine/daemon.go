package engine

import (
	"github.com/tare-bench/tare/internal/node/procs"
)

// Listeners returns the processes that listen on these addresses. It skips addresses that
// are not unix sockets of this machine.
func Listeners(addresses ...string) []int {
	var out []int
	for _, a := range addresses {
		if pid, err := procs.Listener(Socket(a)); err == nil {
			out = append(out, pid)
		}
	}
	return out
}
