package netns_test

import (
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/tare-bench/tare/internal/subject/netns"
)

func cards(t *testing.T) (names []string) {
	t.Helper()
	links, err := netlink.LinkList()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range links {
		if strings.HasPrefix(l.Attrs().Name, "tfeedbeef") {
			names = append(names, l.Attrs().Name)
		}
	}
	return names
}

func TestANetworkOfALaneIsReachedByItsAddressAndLeavesNothing(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root for network namespaces")
	}
	for range 2 {
		n := netns.New("feedbeef")
		var addresses []string
		for _, lane := range []string{"0", "1"} {
			path, address, err := n.For(lane)
			if err != nil {
				t.Fatal(err)
			}
			if again, same, err := n.For(lane); err != nil || again != path || same != address {
				t.Errorf("another container has %s, %s, %v", again, same, err)
			}
			if out, err := exec.Command("nsenter", "--net="+path, "ip", "route").CombinedOutput(); err != nil || !strings.Contains(string(out), "default via") {
				t.Errorf("%s, %v", out, err)
			}
			// Nobody listens: that is said by the network's own kernel, and at once.
			began := time.Now()
			if _, err := net.DialTimeout("tcp", address+":9", time.Minute); err == nil || !strings.Contains(err.Error(), "refused") {
				t.Errorf("%s after %v: %v", address, time.Since(began), err)
			}
			addresses = append(addresses, address)
		}
		if addresses[0] == addresses[1] || len(cards(t)) != 2 {
			t.Errorf("%q, %q", addresses, cards(t))
		}
		if err := n.Close(); err != nil {
			t.Error(err)
		}
		for deadline := time.Now().Add(time.Minute); len(cards(t)) > 0 && time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		}
		if left := cards(t); len(left) > 0 {
			t.Errorf("left %q", left)
		}
	}
}
