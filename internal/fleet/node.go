package fleet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/thread"
)

// paths are those of a node's programs, of which an image says nothing.
const paths = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Perform does the plan, within a pod, as tare run with a folder for its document does:
// the other measures go on where one fails. It returns the exit status.
//
// With host it is done among the node's own mounts, as if it were called there: engines'
// sockets, runtimes and their libraries are where they always are. The node's file system
// below some folder would not be the same, for what is mounted there others do not see.
// Its process is born there, and reaches the pod's folders by this one's descriptors.
func Perform(ctx context.Context, plan, folder string, host bool) (code int, err error) {
	self := "/proc/self/exe"
	start := func(c *exec.Cmd) error { return c.Start() }
	if host {
		mounts, err := os.Open("/proc/1/ns/mnt")
		if err != nil {
			return 0, fmt.Errorf("the node's mounts: %w; the pod needs hostPID and privileged", err)
		}
		defer mounts.Close()
		for _, path := range []*string{&plan, &folder} {
			dir, err := os.Open(filepath.Dir(*path))
			if err != nil {
				return 0, err
			}
			defer dir.Close()
			*path = fmt.Sprintf("/proc/%d/fd/%d/%s", os.Getpid(), dir.Fd(), filepath.Base(*path))
		}
		self = fmt.Sprintf("/proc/%d/exe", os.Getpid())
		start = func(c *exec.Cmd) error {
			return thread.InMounts(int(mounts.Fd()), c.Start)
		}
	}
	c := exec.CommandContext(ctx, self, "run", plan, "-o", strings.TrimSuffix(folder, "/")+"/", "--yes")
	c.Stdout, c.Stderr = os.Stdout, os.Stderr
	c.Cancel = func() error { return c.Process.Signal(unix.SIGTERM) }
	c.WaitDelay = 50 * time.Second                  // of the minute that a pod has for its end
	c.Env = []string{"PATH=" + paths, "HOME=/root"} // and no keys of an object store
	if !host {
		c.Env = append(c.Env, "TARE_PRIVATE_DIR="+os.Getenv("TMPDIR")) // the pod's emptyDir
		for _, name := range []string{"TARE_DATA_DIR", "TARE_STATE_DIR", "TMPDIR"} {
			c.Env = append(c.Env, name+"="+os.Getenv(name))
		}
	}
	if err := start(c); err != nil {
		return 0, fmt.Errorf("start the plan: %w", err)
	}
	err = c.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() >= 0 {
		return exit.ExitCode(), nil
	}
	return 0, err
}
