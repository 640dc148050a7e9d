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

// unlock gives the lock back. Closing the file is not enough: a process that is being started
// has a copy of the descriptor until it executes its program.
func unlock(file *os.File) { _ = syscall.Flock(int(file.Fd()), syscall.LOCK_UN) }
