// Package ports reserves ports of this machine for tests.
package ports

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/testing/must"
)

// Held returns a loopback port without a listener. A socket is bound to it until the test
// ends, so the kernel does not assign it as a free port. A server that sets SO_REUSEADDR, as
// servers do, can still listen on it.
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
