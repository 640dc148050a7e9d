package record

import (
	"errors"
	"os"
	"syscall"
)

// lock locks a record for other writers until the file is closed, and reports whether
// another writer has the lock. Some file systems have no locks.
func lock(file *os.File) (taken bool) {
	return errors.Is(syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB), syscall.EWOULDBLOCK)
}
