package procs

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Listener returns the process that listens on a unix socket. It asks a connection for
// its peer (SO_PEERCRED of unix(7): the process that called listen). Paths and program
// names are not evidence: a process in another root can have a socket of the same path.
//
// The peer may be pid 1, which opens sockets for daemons that it starts. The peer may
// also have left the socket to a child, or its pid may be reused. In these cases
// Listener returns the process that holds the socket of the file. It trusts the peer's
// pid if the holder is unknown: in another network namespace, and without root for
// root's daemons.
func Listener(path string) (int, error) {
	pid, err := peer(path)
	if err != nil {
		return 0, err
	}
	inode, unseen := socketOf(path)
	link := fmt.Sprintf("socket:[%d]", inode)
	if pid > 1 {
		_, gone := StatOf(pid)
		held, err := holdsDescriptor(pid, link)
		if gone == nil && (held || unseen != nil || errors.Is(err, os.ErrPermission)) {
			return pid, nil
		}
	}
	if unseen != nil {
		return 0, fmt.Errorf("%s was opened by process %d for another: %w", path, pid, unseen)
	}
	for _, p := range All() {
		if held, _ := holdsDescriptor(p, link); held && p > 1 {
			return p, nil
		}
	}
	if held, _ := holdsDescriptor(1, link); held && pid == 1 {
		return 1, nil
	}
	return 0, fmt.Errorf("no process was found that listens on %s", path)
}

// peer returns the pid that called listen on a socket.
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
	controlErr := raw.Control(func(fd uintptr) { cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	if err := errors.Join(controlErr, err); err != nil {
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

// socketOf returns the inode of the listening socket of the file at path. It compares
// the file's device and inode with those of every listening socket, see sock_diag(7).
// The kernel does not list sockets of other network namespaces.
func socketOf(path string) (uint32, error) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return 0, err
	}
	order := binary.NativeEndian
	body := make([]byte, 24) // struct unix_diag_req
	body[0] = unix.AF_UNIX
	order.PutUint32(body[4:], 1<<tcpListen)
	order.PutUint32(body[12:], udiagShowVFS)
	request := nl.NewNetlinkRequest(sockDiagByFamily, unix.NLM_F_DUMP)
	request.AddRawData(body)
	sockets, err := request.Execute(unix.NETLINK_SOCK_DIAG, 0)
	if err != nil {
		return 0, fmt.Errorf("sock_diag: %w", err)
	}
	// The kernel writes a device as 12 bits of major and 20 of minor.
	dev := unix.Major(st.Dev)<<20 | unix.Minor(st.Dev)
	for _, socket := range sockets {
		if len(socket) < diagSize {
			return 0, errors.New("sock_diag: unknown form")
		}
		attributes, err := nl.ParseRouteAttr(socket[diagSize:])
		if err != nil {
			return 0, fmt.Errorf("sock_diag: %w", err)
		}
		for _, a := range attributes {
			file := a.Value
			if a.Attr.Type == unixDiagVFS && len(file) >= 8 && order.Uint32(file) == uint32(st.Ino) && order.Uint32(file[4:]) == dev {
				return order.Uint32(socket[4:]), nil
			}
		}
	}
	return 0, os.ErrNotExist
}
