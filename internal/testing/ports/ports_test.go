package ports

import (
	"errors"
	"fmt"
	"net"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/testing/must"
)

func TestHeldPortCanBeRequestedExplicitly(t *testing.T) {
	at := fmt.Sprintf("127.0.0.1:%d", Held(t))
	if c, err := net.Dial("tcp4", at); !errors.Is(err, unix.ECONNREFUSED) {
		t.Errorf("%v, %v", c, err)
	}
	for range 2 { // again, while connections of the first are still closing
		l := must.Get(net.Listen("tcp4", at))(t)
		c := must.Get(net.Dial("tcp4", at))(t)
		s := must.Get(l.Accept())(t)
		s.Close()
		c.Close()
		l.Close()
	}
}
