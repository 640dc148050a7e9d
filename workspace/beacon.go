package workspace

import (
	"fmt"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// A run that is alive listens on an abstract socket named after it. Unlike a
// lock file, that is found whatever folders the run was given, and it ends
// with the process however that ends.

func beaconName(id string) string { return "@tare-run-" + id }

func light(id string) (*net.UnixListener, error) {
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: beaconName(id), Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("announce run %s: %w", id, err)
	}
	return l, nil
}

// alive reports whether a run of that id is under way. Anyone may take a name;
// only root and ourselves are believed.
func alive(id string) bool {
	c, err := net.DialTimeout("unix", beaconName(id), time.Second)
	if err != nil {
		return false
	}
	defer func() { _ = c.Close() }()
	raw, err := c.(*net.UnixConn).SyscallConn()
	if err != nil {
		return false
	}
	believed := false
	_ = raw.Control(func(fd uintptr) {
		peer, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
		believed = err == nil && (peer.Uid == 0 || int(peer.Uid) == os.Geteuid())
	})
	return believed
}
