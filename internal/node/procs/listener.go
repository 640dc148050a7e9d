package procs

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Listener returns the process that listens on a unix socket. It goes by what a
// connection to it says of its other end (SO_PEERCRED of unix(7): the process
// that called listen), never by a path's text or a program's name: another
// process can have a socket of the same path in a root of its own.
//
// Where that is pid 1, which opens sockets for the daemons that it starts, it is
// the other process that holds the very socket that the file is.
func Listener(path string) (int, error) {
	pid, err := peer(path)
	if err != nil {
		return 0, err
	}
	if pid > 1 {
		if _, err := StatOf(pid); err == nil {
			return pid, nil
		}
	}
	inode, err := socketOf(path)
	if err != nil {
		return 0, fmt.Errorf("%s was opened by process %d for another: %w", path, pid, err)
	}
	link := fmt.Sprintf("socket:[%d]", inode)
	for _, p := range All() {
		if p > 1 && holds(p, link) {
			return p, nil
		}
	}
	if pid == 1 && holds(1, link) {
		return 1, nil
	}
	return 0, fmt.Errorf("no process was found that listens on %s", path)
}

// peer connects, and asks who listens.
func peer(path string) (int, error) {
	c, err := net.DialTimeout("unix", path, time.Second)
	if err != nil {
		return 0, err
	}
	defer func() { _ = c.Close() }()
	raw, err := c.(*net.UnixConn).SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *unix.Ucred
	if controlErr := raw.Control(func(fd uintptr) { cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); controlErr != nil {
		err = controlErr
	}
	if err != nil {
		return 0, fmt.Errorf("ask who listens on %s: %w", path, err)
	}
	return int(cred.Pid), nil
}

// Constants of linux/sock_diag.h and linux/unix_diag.h.
const (
	sockDiagByFamily = 20
	tcpListen        = 10
	udiagShowVFS     = 2
	unixDiagVFS      = 1
	diagSize         = 16 // of struct unix_diag_msg
)

// socketOf finds the inode of the listening socket that the file at path is, by
// asking the kernel for the device and the inode of every listening socket's
// file, see sock_diag(7). Sockets of other network namespaces are not among
// them.
func socketOf(path string) (uint32, error) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return 0, err
	}
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return 0, fmt.Errorf("sock_diag: %w", err)
	}
	defer unix.Close(fd)
	_ = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 2})
	request := make([]byte, unix.NLMSG_HDRLEN+24) // struct unix_diag_req
	order := binary.NativeEndian
	order.PutUint32(request[0:], uint32(len(request)))
	order.PutUint16(request[4:], sockDiagByFamily)
	order.PutUint16(request[6:], unix.NLM_F_REQUEST|unix.NLM_F_DUMP)
	body := request[unix.NLMSG_HDRLEN:]
	body[0] = unix.AF_UNIX
	order.PutUint32(body[4:], 1<<tcpListen)
	order.PutUint32(body[12:], udiagShowVFS)
	if err := unix.Sendto(fd, request, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return 0, fmt.Errorf("sock_diag: %w", err)
	}
	// The kernel writes a device as 12 bits of major and 20 of minor.
	dev := unix.Major(st.Dev)<<20 | unix.Minor(st.Dev)
	buffer := make([]byte, 64<<10)
	for {
		n, _, err := unix.Recvfrom(fd, buffer, 0)
		if err != nil {
			return 0, fmt.Errorf("sock_diag: %w", err)
		}
		for rest := buffer[:n]; len(rest) >= unix.NLMSG_HDRLEN; {
			size := int(order.Uint32(rest))
			if size < unix.NLMSG_HDRLEN || size > len(rest) {
				return 0, errors.New("sock_diag: unknown form")
			}
			switch order.Uint16(rest[4:]) {
			case unix.NLMSG_DONE:
				return 0, os.ErrNotExist
			case unix.NLMSG_ERROR:
				return 0, errors.New("sock_diag: this kernel does not tell of unix sockets")
			}
			if inode, ok := socketWithFile(rest[unix.NLMSG_HDRLEN:size], uint32(st.Ino), dev); ok {
				return inode, nil
			}
			rest = rest[min(len(rest), (size+3)&^3):]
		}
	}
}

// socketWithFile takes one unix_diag_msg apart: the socket's inode at 4, then
// attributes of length, type and value.
func socketWithFile(message []byte, ino, dev uint32) (uint32, bool) {
	order := binary.NativeEndian
	if len(message) < diagSize {
		return 0, false
	}
	for rest := message[diagSize:]; len(rest) >= 4; {
		size := int(order.Uint16(rest))
		if size < 4 || size > len(rest) {
			return 0, false
		}
		if order.Uint16(rest[2:]) == unixDiagVFS && size >= 12 && order.Uint32(rest[4:]) == ino && order.Uint32(rest[8:]) == dev {
			return order.Uint32(message[4:]), true
		}
		rest = rest[min(len(rest), (size+3)&^3):]
	}
	return 0, false
}
