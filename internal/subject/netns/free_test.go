package netns

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"strconv"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/thread"
)

func TestACardTakesNoAddressOfANetworkThatIsInUse(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root for network namespaces")
	}
	prefix := func(s string) *net.IPNet {
		_, n, err := net.ParseCIDR(s)
		if err != nil {
			t.Fatal(err)
		}
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
		if err == nil { // the network's first four addresses are not this machine's
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
	if want := netip.MustParseAddr("198.18.3.1"); err != nil || here != want {
		t.Errorf("%v %v, want %v", here, err, want)
	}
}

func TestHalfANetworkIsNoneForTheNextContainer(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root for network namespaces")
	}
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
			t.Error("a card was made that is there already")
		}
		_, _, err := n.For("lane")
		return errors.Join(err, n.Close())
	})
	if err != nil {
		t.Error(err)
	}
}
