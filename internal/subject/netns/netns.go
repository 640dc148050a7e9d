// Package netns makes networks for containers whose sandboxes have a guest network, where no
// engine makes one: gVisor and Kata use the interfaces in their network namespace at the start,
// and nothing outside can enter what they make of them. Each container, or the containers of a
// lane one after the other, gets a namespace with one end of a veth pair; the other end is this
// machine's.
//
// Only tare and the sandboxes hold the namespaces. With the last of them namespaces and
// interfaces disappear, however a run ends.
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

// Networks are the networks of a session.
type Networks struct {
	runID string
	of    map[string]*network
}

type network struct {
	ns        *os.File
	card      string // on this machine
	here, its netip.Addr
}

// New returns no networks yet for a run.
func New(runID string) *Networks { return &Networks{runID: runID, of: map[string]*network{}} }

// For returns a network for a new container: the path of its namespace, and the container's
// address. The path is valid in any mount namespace with this machine's /proc. A sandbox
// removes the address from the namespace, so it is set for each container.
func (n *Networks) For(name string) (path, address string, err error) {
	one := n.of[name]
	if one == nil {
		if one, err = n.add(name); err != nil { // no partial network for the next container
			return "", "", errors.Join(fmt.Errorf("make a network for %s: %w", name, err), n.Remove(name))
		}
	}
	if err := one.configure(); err != nil {
		return "", "", fmt.Errorf("configure the network of %s: %w", name, err)
	}
	return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), one.ns.Fd()), one.its.String(), nil
}

// Join puts a container into an existing network namespace instead of a new one.
func Join(spec *specs.Spec, path string) {
	for i := range spec.Linux.Namespaces {
		if one := &spec.Linux.Namespaces[i]; one.Type == specs.NetworkNamespace {
			one.Path = path
		}
	}
}

// Close removes all networks.
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

// serial makes interface names unique among the sessions of this process.
var serial atomic.Int64

// cardIn is the interface in the namespace.
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
	n.of[name] = one // from here on Remove has work
	pair := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: one.card}, PeerName: cardIn, PeerNamespace: netlink.NsFd(int(one.ns.Fd()))}
	if err := netlink.LinkAdd(pair); err != nil {
		return nil, fmt.Errorf("make a veth pair: %w", err)
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

// configure sets the address, the loopback and the default route in the namespace.
func (o *network) configure() error {
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

// benchmarks is the range for benchmarks between networks (RFC 2544), which no ordinary network uses.
var benchmarks = netip.MustParsePrefix("198.18.0.0/15")

// free returns two addresses of a /30 network that this machine does not use.
func free() (here, its netip.Addr, err error) {
	used, err := inUse()
	if err != nil {
		return here, its, err
	}
	for at := benchmarks.Addr(); benchmarks.Contains(at); at = at.Next() {
		net, _ := at.Prefix(30)
		if at != net.Addr() {
			continue
		}
		if !slices.ContainsFunc(used, net.Overlaps) {
			here = at.Next()
			return here, here.Next(), nil
		}
	}
	return here, its, fmt.Errorf("no free network in %v: all are in use by addresses or routes", benchmarks)
}

// inUse returns the networks of this machine's addresses and routes in all tables, except
// default routes and their two halves, as of tunnels.
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
