package netns

import (
	"errors"
	"net"
	"net/netip"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/internal/testing/need"
	"github.com/tare-bench/tare/internal/thread"
)

func cards(t *testing.T) (names []string) {
	t.Helper()
	links := must.Get(netlink.LinkList())(t)
	for _, l := range links {
		if strings.HasPrefix(l.Attrs().Name, "tfeedbeef") {
			names = append(names, l.Attrs().Name)
		}
	}
	return names
}

func TestNetworkIsReachableAndLeavesNothing(t *testing.T) {
	need.Root(t)
	for range 2 {
		n := New("feedbeef")
		var addresses []string
		for _, lane := range []string{"0", "1"} {
			path, address, err := n.For(lane)
			must.OK(t, err)
			again, same, err := n.For(lane)
			check.That(t, err == nil && again == path && same == address, "second call: %s, %s, %v", again, same, err)
			out, err := exec.Command("nsenter", "--net="+path, "ip", "route").CombinedOutput()
			check.That(t, err == nil && strings.Contains(string(out), "default via"), "%s, %v", out, err)
			// Nothing listens there, so the kernel refuses the connection immediately.
			_, err = net.DialTimeout("tcp", address+":9", time.Minute)
			check.Error(t, err, "refused")
			addresses = append(addresses, address)
		}
		check.That(t, addresses[0] != addresses[1] && len(cards(t)) == 2, "%q, %q", addresses, cards(t))
		must.OK(t, n.Close())
		must.Eventually(t, func() string { return strings.Join(cards(t), ", ") })
	}
}

func TestUsedNetworksAreAvoided(t *testing.T) {
	need.Root(t)
	prefix := func(s string) *net.IPNet {
		_, n, err := net.ParseCIDR(s)
		must.OK(t, err)
		return n
	}
	var here netip.Addr
	err := thread.Apart(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return err
		}
		lo, err := netlink.LinkByName("lo")
		if err == nil {
			err = netlink.LinkSetUp(lo)
		}
		if err == nil { // the first /30 is unused
			err = netlink.AddrAdd(lo, &netlink.Addr{IPNet: &net.IPNet{IP: net.IPv4(198, 18, 0, 9), Mask: net.CIDRMask(24, 32)}})
		}
		for _, r := range []netlink.Route{{Dst: prefix("198.18.1.0/24")}, {Dst: prefix("198.18.2.0/24"), Table: 100}, {Dst: prefix("0.0.0.0/0")}, {Dst: prefix("128.0.0.0/1")}} {
			if r.LinkIndex = lo.Attrs().Index; err == nil {
				err = netlink.RouteAdd(&r)
			}
		}
		if err == nil {
			here, _, err = free()
		}
		return err
	})
	want := netip.MustParseAddr("198.18.3.1")
	check.That(t, err == nil && here == want, "%v %v, want %v", here, err, want)
}

func TestPartialNetworkIsNotReused(t *testing.T) {
	need.Root(t)
	n := New("half")
	err := thread.Apart(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return err
		}
		taken := netlink.NewLinkAttrs()
		taken.Name = "thalf" + strconv.FormatInt(serial.Load()+1, 36)
		if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: taken, PeerName: "other"}); err != nil {
			return err
		}
		if _, _, err := n.For("lane"); err == nil {
			t.Error("an existing interface was created again")
		}
		_, _, err := n.For("lane")
		return errors.Join(err, n.Close())
	})
	must.OK(t, err)
}
