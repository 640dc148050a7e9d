package tracer

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Constants of linux/connector.h and linux/cn_proc.h.
const (
	cnProc       = 1 // CN_IDX_PROC and CN_VAL_PROC
	cnHeader     = 20
	procListen   = 1
	procNone     = 0
	procFork     = 1
	procExec     = 2
	procExit     = 0x80000000
	procHeader   = 16 // what, cpu, time
	procReceived = 8 << 20
)

// connector is netlink's process connector (CONFIG_PROC_EVENTS). Like tracefs it
// has no arguments; these are read from /proc. It tells of threads, and does not
// say which is a process's last. An exit is told after the parent could know of
// it, so a Take up to when a wait returned may lack it.
type connector struct {
	listener
	fd     int
	buffer []byte
	next   map[uint32]uint32 // CPU → the number that its next message should have
}

func openConnector(_ Options, q *queue) (_ source, err error) {
	if err := initialPids(); err != nil {
		return nil, err
	}
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_CONNECTOR)
	if errors.Is(err, unix.EPROTONOSUPPORT) {
		return nil, fmt.Errorf("the kernel has no connector (CONFIG_CONNECTOR): %w", ErrUnsupported)
	}
	if err != nil {
		return nil, fmt.Errorf("netlink: %w", err)
	}
	c := &connector{fd: fd, buffer: make([]byte, 64<<10), next: map[uint32]uint32{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.close())
		}
	}()
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, procReceived) != nil {
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, procReceived)
	}
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: cnProc}); err != nil {
		return nil, fmt.Errorf("netlink: listen to processes: %w; run tare as root", err)
	}
	if err := c.subscribe(); err != nil {
		return nil, err
	}
	return c, c.listen(q, []int{fd}, c.fill)
}

// subscribe asks to be told, and waits for the answer: a kernel without
// CONFIG_PROC_EVENTS gives none.
func (c *connector) subscribe() error {
	ask := make([]byte, unix.NLMSG_HDRLEN+cnHeader+4)
	native.PutUint32(ask, uint32(len(ask)))
	native.PutUint16(ask[4:], unix.NLMSG_DONE)
	native.PutUint32(ask[12:], uint32(os.Getpid()))
	message := ask[unix.NLMSG_HDRLEN:]
	native.PutUint32(message, cnProc)
	native.PutUint32(message[4:], cnProc)
	native.PutUint16(message[16:], 4)
	native.PutUint32(message[cnHeader:], procListen)
	err := unix.Sendto(c.fd, ask, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK})
	if errors.Is(err, unix.ECONNREFUSED) {
		return errors.New("the kernel tells of processes in the first network namespace only: run tare in the host's")
	}
	if err != nil {
		return fmt.Errorf("netlink: ask for processes: %w", err)
	}
	for deadline := time.Now().Add(500 * time.Millisecond); time.Now().Before(deadline); {
		polled := []unix.PollFd{{Fd: int32(c.fd), Events: unix.POLLIN}}
		if n, err := unix.Poll(polled, 100); n <= 0 || err != nil {
			continue
		}
		answered, errno := false, unix.Errno(0)
		if err := c.receive(func(m procMessage) {
			if m.what == procNone {
				answered, errno = true, m.errno
			}
		}); err != nil {
			return err
		}
		if errno != 0 {
			return fmt.Errorf("netlink: ask for processes: %w", errno)
		}
		if answered {
			return nil
		}
	}
	return fmt.Errorf("the kernel does not answer: it has no process events (CONFIG_PROC_EVENTS): %w", ErrUnsupported)
}

// procMessage is one message of the kernel.
type procMessage struct {
	what, cpu, seq uint32
	errno          unix.Errno // of the answer to a request
	raw            raw        // of a fork, an exec, an exit
}

// receive reads datagrams until there is none.
func (c *connector) receive(f func(procMessage)) error {
	for {
		n, from, err := unix.Recvfrom(c.fd, c.buffer, 0)
		switch {
		case errors.Is(err, unix.EAGAIN):
			return nil
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.ENOBUFS): // how many is known from the next numbers
			continue
		case err != nil:
			return fmt.Errorf("netlink: %w", err)
		}
		if a, ok := from.(*unix.SockaddrNetlink); !ok || a.Pid != 0 {
			continue // only the kernel is listened to
		}
		if messages(c.buffer[:n], f) != nil {
			c.missed.Add(1)
		}
	}
}

func (c *connector) fill() error {
	return c.receive(func(m procMessage) {
		if next, known := c.next[m.cpu]; known && m.seq != next && m.what != procNone {
			// What is missing, unless the numbers went round or back.
			if gap := int64(int32(m.seq - next)); gap > 0 {
				c.missed.Add(gap)
			}
		}
		if m.what != procNone {
			c.next[m.cpu] = m.seq + 1
		}
		switch m.what {
		case procExec:
			m.raw.look()
		case procFork:
			m.raw.Comm = name(m.raw.by) // which a child has from its parent
		case procExit:
			m.raw.Comm = name(m.raw.Pid)
		default:
			return
		}
		c.held = append(c.held, m.raw)
	})
}

var errMessage = errors.New("unknown form of message")

// messages takes one datagram apart.
func messages(b []byte, f func(procMessage)) error {
	for len(b) > 0 {
		if len(b) < unix.NLMSG_HDRLEN {
			return errMessage
		}
		size := int(native.Uint32(b))
		if size < unix.NLMSG_HDRLEN+cnHeader || size > len(b) {
			return errMessage
		}
		message := b[unix.NLMSG_HDRLEN:size]
		b = b[min((size+3)&^3, len(b)):]
		length := int(native.Uint16(message[16:]))
		if native.Uint32(message) != cnProc || native.Uint32(message[4:]) != cnProc || cnHeader+length > len(message) {
			return errMessage
		}
		m, err := procEvent(message[cnHeader : cnHeader+length])
		if err != nil {
			return err
		}
		m.seq = native.Uint32(message[8:])
		f(m)
	}
	return nil
}

// procEvent takes a struct proc_event apart. Kinds that nobody asked for have
// nothing but their kind.
func procEvent(b []byte) (m procMessage, err error) {
	if len(b) < procHeader+4 {
		return m, errMessage
	}
	m.what, m.cpu = native.Uint32(b), native.Uint32(b[4:])
	body := b[procHeader:]
	word := func(i int) int { return int(native.Uint32(body[4*i:])) }
	m.raw.Event, m.raw.known = Event{Time: int64(native.Uint64(b[8:])), CPU: -1, Busy: -1}, true
	switch m.what {
	case procNone:
		m.errno = unix.Errno(word(0))
		return m, nil
	case procFork: // parent's thread and process, child's thread and process
		if len(body) < 16 {
			return m, errMessage
		}
		m.raw.Kind, m.raw.CPU, m.raw.Pid, m.raw.by = Fork, 0, word(2), word(1)
		if word(2) != word(3) {
			m.raw.thread, m.raw.by = true, word(3)
		}
	case procExec: // thread, process
		if len(body) < 8 {
			return m, errMessage
		}
		m.raw.Kind, m.raw.Pid, m.raw.by = Exec, word(1), word(1)
	case procExit: // thread, process, code, signal to the parent
		if len(body) < 16 {
			return m, errMessage
		}
		m.raw.Kind, m.raw.Pid, m.raw.by, m.raw.Status = Exit, word(0), word(1), status(uint32(word(2)))
	default:
		return m, nil
	}
	if e := m.raw.Event; e.Time < 0 || e.Pid <= 0 || e.Pid > maxPid || m.raw.by < 0 || m.raw.by > maxPid {
		return m, errMessage
	}
	return m, nil
}

func (c *connector) close() error {
	err := c.stop()
	unix.Close(c.fd)
	return err
}
