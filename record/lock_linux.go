package record

import (
	"errors"
	"os"
	"syscall"
)

// lock keeps other writers away from a record as long as the file is open, and reports
// whether another one has it. File systems without locks keep nobody away.
func lock(file *os.File) (taken bool) {
	return errors.Is(syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB), syscall.EWOULDBLOCK)
}
