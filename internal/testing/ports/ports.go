// Package ports is for tests: it has ports of this machine that nobody else is given.
package ports

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/testing/must"
)

// Held is a port of the loopback at which nobody listens and which, until the test ends,
// the kernel gives to nobody who asks for any: a socket is bound to it that never listens.
// Who asks for this one, with SO_REUSEADDR as servers do, may listen there.
func Held(t testing.TB) int {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	must.OK(t, err)
	t.Cleanup(func() { unix.Close(fd) })
	must.OK(t, unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1))
	must.OK(t, unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	at, err := unix.Getsockname(fd)
	must.OK(t, err)
	return at.(*unix.SockaddrInet4).Port
}
