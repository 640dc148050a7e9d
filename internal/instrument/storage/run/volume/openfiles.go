package volume

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/node/disk"
	"github.com/tare-bench/tare/internal/term"
)

// passing is the period in which an open device is checked again. After writes, including tare's own,
// udev briefly opens a device that was closed.
const passing = 2 * time.Second

// openAnywhere returns the processes that have devices open, such as user-space file
// systems, virtual machines and databases. The kernel counts none of these as a claim.
func openAnywhere(parts []string) []string {
	for began := time.Now(); ; time.Sleep(passing / 20) {
		users := openIn(parts)
		if len(users) == 0 || time.Since(began) > passing {
			return users
		}
	}
}

func openIn(parts []string) []string {
	folders, err := filepath.Glob("/proc/[0-9]*/fd")
	if err != nil || len(folders) == 0 {
		return []string{"the open files of processes could not be read"}
	}
	own := strconv.Itoa(os.Getpid())
	var users []string
	for _, folder := range folders {
		process := filepath.Dir(folder)
		pid := filepath.Base(process)
		if pid == own || !opens(folder, parts) {
			continue
		}
		comm, _ := os.ReadFile(filepath.Join(process, "comm"))
		users = append(users, fmt.Sprintf("open in %s (process %s)", term.Clean(strings.TrimSpace(string(comm))), pid))
	}
	return users
}

// opens reports whether a process has one of the devices open. A process that has
// exited has none.
func opens(folder string, parts []string) bool {
	entries, _ := os.ReadDir(folder)
	for _, e := range entries {
		path := filepath.Join(folder, e.Name())
		// Most descriptors are sockets and pipes, which have no path.
		if to, err := os.Readlink(path); err != nil || !strings.HasPrefix(to, "/") {
			continue
		}
		var st unix.Statx_t
		if unix.Statx(unix.AT_FDCWD, path, unix.AT_STATX_DONT_SYNC, unix.STATX_TYPE, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFBLK {
			continue
		}
		if slices.Contains(parts, disk.Name(int(st.Rdev_major), int(st.Rdev_minor))) {
			return true
		}
	}
	return false
}
