package ports

import (
	"errors"
	"fmt"
	"net"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/testing/must"
)

func TestAHeldPortIsForWhoNamesIt(t *testing.T) {
	at := fmt.Sprintf("127.0.0.1:%d", Held(t))
	if c, err := net.Dial("tcp4", at); !errors.Is(err, unix.ECONNREFUSED) {
		t.Errorf("%v, %v", c, err)
	}
	for range 2 { // and again, when connections of the first are still being wound up
		l, err := net.Listen("tcp4", at)
		must.OK(t, err)
		c, err := net.Dial("tcp4", at)
		must.OK(t, err)
		s, err := l.Accept()
		must.OK(t, err)
		s.Close()
		c.Close()
		l.Close()
	}
}
