package lane

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// programFile writes the embedded program to a memory file, so nothing is left on a disk.
func programFile() (*os.File, error) {
	fd, err := unix.MemfdCreate("tare-lane", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("lanes: memfd_create: %w", err)
	}
	f := os.NewFile(uintptr(fd), "tare-lane")
	if _, err := f.Write(program); err != nil {
		f.Close()
		return nil, fmt.Errorf("lanes: write the lane's program: %w", err)
	}
	return f, nil
}
