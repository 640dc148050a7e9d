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

// paths is the PATH of a node's programs.
const paths = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Perform runs the plan in a pod, like tare run with a folder for its document: if a
// measure fails, the others continue. It returns the exit status.
//
// With host the plan runs in the node's mount namespace, where engines' sockets, runtimes
// and their libraries have their usual paths. A mount of the node's file system in the pod
// does not work, because mounts made there are invisible to the node. The process accesses
// the pod's folders through descriptors of this process.
func Perform(ctx context.Context, plan, folder string, host bool) (code int, err error) {
	self := "/proc/self/exe"
	start := func(c *exec.Cmd) error { return c.Start() }
	if host {
		mounts, err := os.Open("/proc/1/ns/mnt")
		if err != nil {
			return 0, fmt.Errorf("open the node's mount namespace: %w; the pod needs hostPID and privileged", err)
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
	c.WaitDelay = 50 * time.Second                  // within the grace period of one minute
	c.Env = []string{"PATH=" + paths, "HOME=/root"} // without the credentials of an object store
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
