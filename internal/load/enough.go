package load

import (
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/node/machine"
)

// Need is the machine resources that a load needs.
type Need struct {
	Connections int
	KeepAlive   bool
	Instances   int  // clients; 0 counts as 1
	Local       bool // the server is on this machine
}

// Check checks file descriptors, local ports, and the queue of connections of a server. It
// raises the soft limit of descriptors to the hard limit if necessary. The error has the
// command that would provide more.
func (n Need) Check() error {
	clients := max(n.Instances, 1)
	inOne := (n.Connections + clients - 1) / clients
	if n.Local {
		inOne = n.Connections // connections of the server
	}
	if err := files(inOne); err != nil {
		return err
	}
	s := system("/proc/sys/net")
	if err := s.ports(n); err != nil {
		return err
	}
	if !n.Local {
		return nil
	}
	return s.backlog(n.Connections)
}

const spare = 64 // descriptors of a client or server other than connections

// files checks that a process may have that many connections open, and raises its soft limit
// if necessary. Child processes inherit the limit.
func files(connections int) error {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return fmt.Errorf("read how many files may be open: %w", err)
	}
	need := uint64(connections) + spare
	if limit.Cur >= need {
		return nil
	}
	if limit.Max >= need {
		limit.Cur = limit.Max
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
			return fmt.Errorf("raise the limit of open files to %d: %w", limit.Cur, err)
		}
		return nil
	}
	return fmt.Errorf("%d connections need %d open files in one process, but the limit is %d; "+
		"to change it, as root: prlimit --pid $$ --nofile=%d:%d", connections, need, limit.Max, need, need)
}

// system is the folder of the kernel's settings of the network, /proc/sys/net.
type system machine.Root

func (s system) read(name string) (string, error) {
	text, err := machine.Root(s).Read("/"+name, 64<<10)
	if err != nil {
		return "", fmt.Errorf("read a setting of the network: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}

// ports checks that there are enough local ports. Without keep-alive a load needs twice as
// many, because a closing connection keeps its port. Connections in TIME-WAIT do not use up
// local ports, for any value of net.ipv4.tcp_tw_reuse. The side that closes first has this
// state. That is the server, because fortio's client reads to the end. A server accepts a
// new connection from a port in TIME-WAIT.
func (s system) ports(n Need) error {
	text, err := s.read("ipv4/ip_local_port_range")
	if err != nil {
		return err
	}
	var low, high int
	if _, err := fmt.Sscan(text, &low, &high); err != nil || low < 1 || high < low || high > 65535 {
		return fmt.Errorf("the setting ipv4/ip_local_port_range is %.40q, want two ports", text)
	}
	reserved, err := s.read("ipv4/ip_local_reserved_ports")
	if err != nil {
		return err
	}
	free := high - low + 1 - countPorts(reserved, low, high)
	need := n.Connections
	if !n.KeepAlive {
		need *= 2
	}
	if free < need {
		return fmt.Errorf("%d connections need %d local ports, but there are %d (%d to %d); "+
			"to change it, as root: sysctl -w net.ipv4.ip_local_port_range='1024 65535'", n.Connections, need, free, low, high)
	}
	return nil
}

// countPorts counts the ports of a list such as "8080,9000-9010" in a range.
func countPorts(list string, low, high int) int {
	sum := 0
	for part := range strings.SplitSeq(list, ",") {
		first, last, ranged := strings.Cut(part, "-")
		if !ranged {
			last = first
		}
		a, err := strconv.Atoi(first)
		b, bad := strconv.Atoi(last)
		if err == nil && bad == nil {
			sum += max(min(b, high)-max(a, low)+1, 0)
		}
	}
	return sum
}

// backlog checks the queue of a server on this machine. A connection that finds the queue full
// is retried after a second, which looks like a slow server.
func (s system) backlog(connections int) error {
	text, err := s.read("core/somaxconn")
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return fmt.Errorf("the setting core/somaxconn is %.40q, want a number", text)
	}
	if n < connections {
		return fmt.Errorf("%d concurrent connections need a queue of that length, but net.core.somaxconn is %d; "+
			"to change it, as root: sysctl -w net.core.somaxconn=%d", connections, n, connections)
	}
	return nil
}
