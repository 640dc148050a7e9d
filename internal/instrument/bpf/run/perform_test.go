package run

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/instrument/bpf"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
)

// Checks of a local server only apply if its address is local.
func TestServerIsLocalIfItsAddressIs(t *testing.T) {
	for text, want := range map[string]bool{"127.0.0.1": true, "127.9.9.9": true, "::1": true, "0.0.0.0": true, "192.0.2.1": false, "2001:db8::1": false} {
		check.Equal(t, fmt.Sprintf("%s is local", text), here(netip.MustParseAddr(text)), want)
	}
	own, err := net.InterfaceAddrs()
	if err != nil || len(own) == 0 {
		t.Fatalf("%v: %v", own, err)
	}
	for _, a := range own {
		check.That(t, here(netip.MustParsePrefix(a.String()).Addr()), "%s is not a local address", a)
	}
	// 192.0.2.1 is unassigned (RFC 5737), so it is remote. The queue length of the local
	// machine does not matter.
	p := bpf.DefaultsOfLoad()
	text := must.Read(t, "/proc/sys/net/core/somaxconn")
	queue := must.Get(strconv.Atoi(strings.TrimSpace(text)))(t)
	p.Connections, p.KeepAlive = []int{queue + 1}, true
	for _, url := range []string{"", "http://localhost:8080/"} {
		p.URL = url
		if err := enoughFor(context.Background(), &p); err == nil || !strings.HasPrefix(err.Error(), fmt.Sprintf("--connections: %d concurrent connections", queue+1)) {
			t.Errorf("local server (%s): %v", url, err)
		}
	}
	p.URL = "http://192.0.2.1/"
	if err := enoughFor(context.Background(), &p); err != nil && strings.Contains(err.Error(), "somaxconn") {
		t.Errorf("remote server: %v", err)
	}
}
