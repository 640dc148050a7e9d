// Package netns makes networks for containers of sandboxes that have a network of their
// own kernel's, where no engine gives them one: gVisor's and Kata's have what is in
// their network namespace when they begin, and nobody can enter what they make of that.
// Each container, or the containers of a lane one after the other, has a namespace with one
// end of a pair of virtual cards; the other is this machine's.
//
// Nothing but tare and the sandboxes hold namespaces: with the last of them they are gone,
// and the cards with them, however a run ends.
package netns

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"sync/atomic"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/thread"
)

// Networks are those of a session.
type Networks struct {
	runID string
	of    map[string]*network
}

type network struct {
	ns        *os.File
	card      string // this machine's
	here, its netip.Addr
}

// New makes networks of a run, none yet.
func New(runID string) *Networks { return &Networks{runID: runID, of: map[string]*network{}} }

// For is the network of a name, for a new container: a path of its namespace, and the
// address that the container has there. The path leads there in any mount namespace that
// has this machine's processes. A sandbox takes the address out of the
// namespace, so that it is put there for each.
func (n *Networks) For(name string) (path, address string, err error) {
	one := n.of[name]
	if one == nil {
		if one, err = n.add(name); err != nil { // half a network is none for the next container
			return "", "", errors.Join(fmt.Errorf("make a network for %s: %w", name, err), n.Remove(name))
		}
	}
	if err := one.furnish(); err != nil {
		return "", "", fmt.Errorf("give the network of %s an address: %w", name, err)
	}
	return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), one.ns.Fd()), one.its.String(), nil
}

// Join has a container be in a namespace that is there, in place of one of its own.
func Join(spec *specs.Spec, path string) {
	for i := range spec.Linux.Namespaces {
		if one := &spec.Linux.Namespaces[i]; one.Type == specs.NetworkNamespace {
			one.Path = path
		}
	}
}

// Close removes them all.
func (n *Networks) Close() error {
	if n == nil {
		return nil
	}
	var errs []error
	for name := range n.of {
		errs = append(errs, n.Remove(name))
	}
	return errors.Join(errs...)
}

// Remove removes the network of a name, if there is one.
func (n *Networks) Remove(name string) error {
	if n == nil || n.of[name] == nil {
		return nil
	}
	one := n.of[name]
	link, err := netlink.LinkByName(one.card)
	if err == nil {
		err = netlink.LinkDel(link)
	}
	if missing := (netlink.LinkNotFoundError{}); errors.As(err, &missing) {
		err = nil
	}
	if err = errors.Join(err, one.ns.Close()); err != nil {
		return fmt.Errorf("remove the network of %s: %w", name, err)
	}
	delete(n.of, name)
	return nil
}

// serial makes cards' names differ among all sessions of this process.
var serial atomic.Int64

// cardIn is the card's name in the namespace.
const cardIn = "eth0"

func (n *Networks) add(name string) (*network, error) {
	one := &network{card: "t" + n.runID + strconv.FormatInt(serial.Add(1), 36)}
	if len(one.card) >= unix.IFNAMSIZ {
		return nil, fmt.Errorf("the name %s is too long for a network card", one.card)
	}
	var err error
	if one.here, one.its, err = free(); err != nil {
		return nil, err
	}
	err = thread.Apart(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("unshare(CLONE_NEWNET): %w; run tare as root", err)
		}
		var err error
		one.ns, err = os.Open("/proc/thread-self/ns/net")
		return err
	})
	if err != nil {
		return nil, err
	}
	n.of[name] = one // from here on there is something to be removed
	pair := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: one.card}, PeerName: cardIn, PeerNamespace: netlink.NsFd(int(one.ns.Fd()))}
	if err := netlink.LinkAdd(pair); err != nil {
		return nil, fmt.Errorf("make a pair of virtual network cards: %w", err)
	}
	link, err := netlink.LinkByName(one.card)
	if err == nil {
		err = netlink.AddrAdd(link, address(one.here))
	}
	if err == nil {
		err = netlink.LinkSetUp(link)
	}
	return one, err
}

// furnish gives the card in the namespace its address and its way out.
func (o *network) furnish() error {
	h, err := netlink.NewHandleAt(netns.NsHandle(o.ns.Fd()))
	if err != nil {
		return err
	}
	defer h.Close()
	for _, name := range []string{"lo", cardIn} {
		link, err := h.LinkByName(name)
		if err == nil && name == cardIn {
			err = h.AddrReplace(link, address(o.its))
		}
		if err == nil {
			err = h.LinkSetUp(link)
		}
		if err == nil && name == cardIn {
			err = h.RouteReplace(&netlink.Route{LinkIndex: link.Attrs().Index, Gw: o.here.AsSlice()})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func address(a netip.Addr) *netlink.Addr {
	return &netlink.Addr{IPNet: &net.IPNet{IP: a.AsSlice(), Mask: net.CIDRMask(30, 32)}}
}

// benchmarks is the range that is set aside for measuring between networks (RFC 2544),
// which no network that anybody uses has.
var benchmarks = netip.MustParsePrefix("198.18.0.0/15")

// free finds two addresses of a network of four that this machine has nothing in.
func free() (here, its netip.Addr, err error) {
	used, err := inUse()
	if err != nil {
		return here, its, err
	}
	for at := benchmarks.Addr(); benchmarks.Contains(at); at = at.Next() {
		net, _ := at.Prefix(30) // the address has that many bits
		if at != net.Addr() {
			continue
		}
		if !slices.ContainsFunc(used, net.Overlaps) {
			here = at.Next()
			return here, here.Next(), nil
		}
	}
	return here, its, fmt.Errorf("this machine has addresses or routes everywhere in %v", benchmarks)
}

// inUse are the networks that this machine has addresses in or a way to, by any of its tables,
// but what leads everywhere: the default, or its two halves, as of a tunnel.
func inUse() (used []netip.Prefix, err error) {
	addresses, err := netlink.AddrList(nil, netlink.FAMILY_V4)
	if err != nil {
		return nil, fmt.Errorf("list this machine's addresses: %w", err)
	}
	routes, err := netlink.RouteListFiltered(netlink.FAMILY_V4, &netlink.Route{Table: unix.RT_TABLE_UNSPEC}, netlink.RT_FILTER_TABLE)
	if err != nil {
		return nil, fmt.Errorf("list this machine's routes: %w", err)
	}
	add := func(n *net.IPNet) {
		if n == nil {
			return
		}
		at, ok := netip.AddrFromSlice(n.IP.To4())
		bits, _ := n.Mask.Size()
		if p := netip.PrefixFrom(at, bits).Masked(); ok && bits > 1 && p.Overlaps(benchmarks) {
			used = append(used, p)
		}
	}
	for _, a := range addresses {
		add(a.IPNet)
	}
	for _, r := range routes {
		add(r.Dst)
	}
	return used, nil
}
