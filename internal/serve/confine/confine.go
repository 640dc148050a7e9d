// Package confine drops the privileges that a server of records does not need. It limits
// the damage of a compromised server.
package confine

import (
	"errors"
	"fmt"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// To drops every capability except CAP_DAC_READ_SEARCH. With Landlock (Linux 5.13) it limits
// file access to the folder and the marks of runs. Since Linux 6.7 it also blocks outgoing
// connections. A binary with cgo cannot change all of its threads, so it runs unconfined.
func To(dir, marks string) error {
	if err := restrict(map[string]uint64{
		dir:   unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR,
		marks: unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE, // flock needs a file that is open for writing
	}); err != nil && !errors.Is(err, unix.ENOTSUP) {
		return fmt.Errorf("confine the server to its folder: %w", err)
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var rights [2]unix.CapUserData // 64 bits of each set
	if err := unix.Capget(&header, &rights[0]); err != nil {
		return fmt.Errorf("read the server's capabilities: %w", err)
	}
	read := rights[0].Permitted & (1 << unix.CAP_DAC_READ_SEARCH)
	rights = [2]unix.CapUserData{{Effective: read, Permitted: read}}
	if err := onAllThreads(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&rights[0]))); err != nil && !errors.Is(err, unix.ENOTSUP) {
		return fmt.Errorf("drop the server's capabilities: %w", err)
	}
	return nil
}

// restrict limits file access to the given folders with the given rights. It ignores
// missing folders and returns ENOTSUP if the kernel lacks Landlock.
func restrict(folders map[string]uint64) error {
	abi, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return unix.ENOTSUP // not built in, or disabled
	}
	rules := unix.LandlockRulesetAttr{Handled_access_fs: unix.LANDLOCK_ACCESS_FS_REFER - 1} // all rights of the first version
	for _, later := range []struct {
		since   uintptr
		fs, net uint64
	}{
		{2, unix.LANDLOCK_ACCESS_FS_REFER, 0},
		{3, unix.LANDLOCK_ACCESS_FS_TRUNCATE, 0},
		{4, 0, unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP},
		{5, unix.LANDLOCK_ACCESS_FS_IOCTL_DEV, 0},
	} {
		if abi >= later.since {
			rules.Handled_access_fs, rules.Handled_access_net = rules.Handled_access_fs|later.fs, rules.Handled_access_net|later.net
		}
	}
	set, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&rules)), unsafe.Sizeof(rules), 0)
	if errno != 0 {
		return errno
	}
	defer func() { _ = unix.Close(int(set)) }()
	for path, may := range folders {
		folder, err := unix.Open(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if errors.Is(err, unix.ENOENT) {
			continue
		} else if err != nil {
			return err
		}
		rule := unix.LandlockPathBeneathAttr{Allowed_access: may, Parent_fd: int32(folder)}
		_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, set, unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
		if _ = unix.Close(folder); errno != 0 {
			return errno
		}
	}
	if err := onAllThreads(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1); err != nil { // required without CAP_SYS_ADMIN
		return err
	}
	return onAllThreads(unix.SYS_LANDLOCK_RESTRICT_SELF, set, 0)
}

// onAllThreads makes a system call on every thread of the process.
func onAllThreads(call, a, b uintptr) error {
	if _, _, errno := syscall.AllThreadsSyscall6(call, a, b, 0, 0, 0, 0); errno != 0 {
		return errno
	}
	return nil
}
