package cluster

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/thread"
)

// Addresses on the loopback interface of the cluster's network namespace. A kubelet does
// not accept 127.0.0.0/8.
const (
	serverAddress  = "10.86.0.1" // of the API server
	kwokAddress    = "10.86.0.2" // of every kwok node
	serviceAddress = "10.96.0.1" // the API server as a service: the first address of its range
	serviceRange   = "10.96.0.0/24"

	apiAddress = serverAddress + ":443" // used as the port of the service and as --secure-port
)

func nodeAddress(i int) string { return "10.86.0." + strconv.Itoa(10+i) }

func (c *Cluster) network(context.Context) error {
	ns, err := netns.GetFromPath(c.place.Network())
	if err != nil {
		return err
	}
	defer func() { _ = ns.Close() }()
	h, err := netlink.NewHandleAt(ns)
	if err != nil {
		return err
	}
	defer h.Close()
	lo, err := h.LinkByName("lo")
	if err != nil {
		return err
	}
	all := []string{serverAddress, kwokAddress, serviceAddress}
	for _, n := range c.Nodes {
		all = append(all, n.address)
	}
	for _, one := range all {
		address := &netlink.Addr{IPNet: &net.IPNet{IP: net.ParseIP(one), Mask: net.CIDRMask(32, 32)}}
		if err := h.AddrAdd(lo, address); err != nil {
			return fmt.Errorf("give lo the address %s: %w", one, err)
		}
	}
	return nil
}

// dial connects to an address in the cluster's network namespace. A socket stays in the
// namespace in which it was created.
func (c *Cluster) dial(address string) (conn net.Conn, err error) {
	ns, err := os.Open(c.place.Network())
	if err != nil {
		return nil, err
	}
	defer func() { _ = ns.Close() }()
	err = thread.Apart(func() error {
		if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("enter the cluster's network: %w", err)
		}
		conn, err = net.Dial("tcp", address)
		return err
	})
	return conn, err
}

// forward relays connections from a local address to the API server until the process
// ends, and returns the address.
func (c *Cluster) forward() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = near.Close() }()
				far, err := c.dial(apiAddress)
				if err != nil {
					return // no listener: the caller's connection is closed
				}
				defer func() { _ = far.Close() }()
				done := make(chan struct{}, 2)
				for _, way := range [][2]net.Conn{{near, far}, {far, near}} {
					go func() {
						_, _ = io.Copy(way[0], way[1])
						done <- struct{}{}
					}()
				}
				<-done
			}()
		}
	}()
	return l.Addr().String(), nil
}
