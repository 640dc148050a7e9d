package procs

import (
	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/node/machine"
)

// Descriptors calls look with the number and the link of each descriptor of the process
// until look returns false. The link is valid until look returns. It returns how many
// descriptors it saw.
func (d Dir) Descriptors(look func(fd string, target []byte) bool) (seen int, err error) {
	folder, err := d.open("fd", unix.O_DIRECTORY)
	if err != nil {
		return 0, err
	}
	defer unix.Close(folder)
	var entries, target [4 << 10]byte
	var names []string
	for {
		n, err := machine.Retry(func() (int, error) { return unix.Getdents(folder, entries[:]) })
		if err != nil || n <= 0 {
			return seen, err
		}
		_, _, names = unix.ParseDirent(entries[:n], -1, names[:0])
		for _, fd := range names {
			seen++
			n, err := unix.Readlinkat(folder, fd, target[:])
			if err == nil && !look(fd, target[:n]) { // on an error the descriptor was closed
				return seen, nil
			}
		}
	}
}

// holdsDescriptor reports whether a process has a descriptor with this link, such as
// "socket:[123]".
func holdsDescriptor(pid int, link string) (found bool, err error) {
	return with(pid, func(d Dir) (found bool, err error) {
		_, err = d.Descriptors(func(_ string, target []byte) bool {
			found = string(target) == link
			return !found
		})
		return found, err
	})
}
