package record

import (
	"errors"
	"os"
	"syscall"
)

// lock locks a record until the file is closed, and reports whether another writer already holds
// the lock. On a file system without locks it reports false.
func lock(file *os.File) (taken bool) {
	return errors.Is(syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB), syscall.EWOULDBLOCK)
}

// unlock releases the lock. Closing the file is not enough: a process that is being started holds
// a copy of the descriptor until it executes its program.
func unlock(file *os.File) { _ = syscall.Flock(int(file.Fd()), syscall.LOCK_UN) }
