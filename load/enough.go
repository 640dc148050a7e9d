package load

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Need is what a load needs of the machine.
type Need struct {
	Connections int
	KeepAlive   bool
	Instances   int     // clients; 1 where 0
	QPS         float64 // 0: not known
	Local       bool    // the server is on this machine
}

// Enough checks that this machine has what one client with so many connections to
// a server on the same machine needs.
func Enough(connections int, keepAlive bool) error {
	return Need{Connections: connections, KeepAlive: keepAlive, Local: true}.Check()
}

// Check says what the machine hasn't enough of: file descriptors (whose soft limit
// it raises to the hard one), ports to connect from, room in the queue of
// connections that a server has yet to accept. The error has the command that would
// change it.
func (n Need) Check() error {
	clients := max(n.Instances, 1)
	inOne := (n.Connections + clients - 1) / clients
	if n.Local {
		inOne = n.Connections // the server's
	}
	if err := files(inOne); err != nil {
		return err
	}
	s := system{"/proc/sys/net"}
	if err := s.ports(n); err != nil {
		return err
	}
	if !n.Local {
		return nil
	}
	return s.backlog(n.Connections)
}

// spare are descriptors that a client or a server has besides its connections.
const spare = 64

// files checks that a process may have that many connections open, and raises its
// own soft limit if that is what is missing. What it starts inherits that.
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
	return fmt.Errorf("%d connections need %d open files in one process, and %d are the limit; "+
		"to change it, as root: prlimit --pid $$ --nofile=%d:%d", connections, need, limit.Max, need, need)
}

// system reads settings of the kernel's network from a folder, /proc/sys/net.
type system struct{ root string }

func (s system) read(name string) (string, error) {
	f, err := os.Open(filepath.Join(s.root, name))
	if err != nil {
		return "", fmt.Errorf("read a setting of the network: %w", err)
	}
	defer f.Close()
	b := make([]byte, 64<<10)
	n, err := f.Read(b)
	if n == 0 && err != nil {
		return "", nil // an empty list
	}
	return strings.TrimSpace(string(b[:n])), nil
}

func (s system) number(name string) (int, error) {
	text, err := s.read(name)
	if err != nil {
		return 0, err
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, fmt.Errorf("the setting %s is %.40q, no number", name, text)
	}
	return n, nil
}

// timeWait is how long the kernel remembers a connection that its side closed
// first, TCP_TIMEWAIT_LEN in include/net/tcp.h, s.
const timeWait = 60

// ports checks that there are enough to connect from. One that was closed by the
// client first is not free for 60 s, or for 1 s where net.ipv4.tcp_tw_reuse allows
// it (1: anywhere; 2: on loopback, the default since 4.19).
func (s system) ports(n Need) error {
	text, err := s.read("ipv4/ip_local_port_range")
	if err != nil {
		return err
	}
	var low, high int
	if _, err := fmt.Sscan(text, &low, &high); err != nil || low < 1 || high < low || high > 65535 {
		return fmt.Errorf("the setting ipv4/ip_local_port_range is %.40q, no two ports", text)
	}
	reserved, err := s.read("ipv4/ip_local_reserved_ports")
	if err != nil {
		return err
	}
	free := high - low + 1 - within(reserved, low, high)
	const change = "to change it, as root: sysctl -w net.ipv4.ip_local_port_range='1024 65535'"
	if free < n.Connections {
		return fmt.Errorf("%d connections need as many ports to come from, and there are %d (%d to %d); %s",
			n.Connections, free, low, high, change)
	}
	if n.KeepAlive || n.QPS <= 0 {
		return nil
	}
	reuse, err := s.number("ipv4/tcp_tw_reuse")
	if err != nil {
		return err
	}
	held := timeWait
	if reuse == 1 || reuse == 2 && n.Local {
		held = 1
	}
	if need := n.QPS*float64(held) + float64(n.Connections); need > float64(free) {
		return fmt.Errorf("%g requests per second, each with a connection of its own, need %.0f ports to come from, "+
			"since one is not free for %d s afterwards, and there are %d (%d to %d); %s; or: sysctl -w net.ipv4.tcp_tw_reuse=1",
			n.QPS, need, held, free, low, high, change)
	}
	return nil
}

// within counts the ports of a list like "8080,9000-9010" that lie between two.
func within(list string, low, high int) int {
	sum := 0
	for part := range strings.SplitSeq(list, ",") {
		first, last, ok := strings.Cut(part, "-")
		a, err := strconv.Atoi(first)
		if err != nil {
			continue
		}
		b := a
		if ok {
			if b, err = strconv.Atoi(last); err != nil {
				continue
			}
		}
		if a, b = max(a, low), min(b, high); b >= a {
			sum += b - a + 1
		}
	}
	return sum
}

// backlog checks the queue of a server on this machine: a connection that finds it
// full is tried again after a second, which would look like a slow server.
func (s system) backlog(connections int) error {
	n, err := s.number("core/somaxconn")
	if err != nil {
		return err
	}
	if n < connections {
		return fmt.Errorf("%d connections at once need a queue as long, and net.core.somaxconn is %d; "+
			"to change it, as root: sysctl -w net.core.somaxconn=%d", connections, n, connections)
	}
	return nil
}
