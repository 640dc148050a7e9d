package floor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/lane"
	"github.com/tare-bench/tare/internal/node/cgroup"
	"github.com/tare-bench/tare/internal/node/procs"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/child"
	"github.com/tare-bench/tare/internal/subject/engine"
)

// namespaces are the namespaces of a container.
const namespaces = unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS

// Exec implements subject.Executor: fork into the container's cgroup and namespaces, and exec.
// No program runs between tare and the command.
func (s *session) Exec(ctx context.Context, n int, args []string) (subject.Executed, error) {
	if n < 0 || n >= len(s.boxes) || s.boxes[n].pid == 0 {
		return subject.Executed{}, fmt.Errorf("target floor: lane %d holds no running container", n)
	}
	b := &s.boxes[n]
	in, err := s.inside(b)
	if err != nil {
		return subject.Executed{}, fmt.Errorf("target floor: enter the container on lane %d: %w", n, err)
	}
	defer in.close()
	ended, err := child.Run(ctx, child.Command{
		Args: args, Env: []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
		Show:  fmt.Sprintf("setns(%d); exec %s", b.pid, lane.Quote(args)),
		Enter: in.enter, Group: in.group,
	})
	ended.CPU = 0 // measured in its cgroup
	if err != nil {
		err = fmt.Errorf("target floor: %w", err)
	}
	return ended, err
}

// inside has the descriptors for entering a container.
type inside struct {
	process int        // pidfd of its first process
	tasks   []*os.File // of its v1 cgroups
	group   *os.File   // of v2; nil without one
	bounded bool       // limit the command's capabilities to caps
	caps    uint64     // bounding set of its first process
}

// inside opens everything that a path of the host names.
func (s *session) inside(b *box) (*inside, error) {
	name := filepath.Join(s.group, b.name)
	in := &inside{}
	var err error
	if in.process, err = unix.PidfdOpen(b.pid, 0); err != nil {
		return nil, fmt.Errorf("pidfd_open(%d): %w", b.pid, err)
	}
	if !cgroup.Holds(name, b.pid) {
		in.close()
		return nil, fmt.Errorf("process %d has ended", b.pid)
	}
	if s.env.Workload.Cargo != nil { // the user's program may have replaced the command's program
		in.bounded = true
		status, err := procs.StatusOf(b.pid)
		if err != nil {
			in.close()
			return nil, err
		}
		in.caps = status.Bounding
	}
	for _, h := range s.hierarchies {
		dir := filepath.Join(h.Mount, name)
		if h.Version == 2 {
			in.group, err = os.Open(dir)
		} else {
			var f *os.File
			if f, err = os.OpenFile(filepath.Join(dir, "tasks"), os.O_WRONLY, 0); err == nil {
				in.tasks = append(in.tasks, f)
			}
		}
		if err != nil {
			in.close()
			return nil, err
		}
	}
	return in, nil
}

// enter moves the calling thread into the container for good, so that its children start there
// and are charged there.
func (in *inside) enter() error {
	// The threads of a process share their root unless they unshare it.
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return fmt.Errorf("unshare(CLONE_FS): %w", err)
	}
	var errs []error
	for _, f := range in.tasks {
		_, err := f.WriteString(strconv.Itoa(unix.Gettid()))
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("join the cgroup: %w", err)
	}
	if err := unix.Setns(in.process, namespaces); err != nil {
		return fmt.Errorf("setns: %w", err)
	}
	if !in.bounded {
		return nil
	}
	return limitCapabilities(in.caps)
}

// limitCapabilities drops all capabilities but caps from what the calling thread executes.
func limitCapabilities(caps uint64) error {
	for c := range uint64(64) {
		if caps>>c&1 != 0 {
			continue
		}
		err := unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(c), 0, 0, 0)
		if errors.Is(err, unix.EINVAL) {
			break // beyond the kernel's last capability
		}
		if err != nil {
			return fmt.Errorf("drop capability %d: %w", c, err)
		}
	}
	// An exec by root adds the inheritable capabilities.
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData
	if err := unix.Capget(&head, &sets[0]); err != nil {
		return fmt.Errorf("capget: %w", err)
	}
	sets[0].Inheritable, sets[1].Inheritable = 0, 0
	if err := unix.Capset(&head, &sets[0]); err != nil {
		return fmt.Errorf("capset: %w", err)
	}
	return nil
}

func (in *inside) close() {
	_ = unix.Close(in.process)
	for _, f := range in.tasks {
		f.Close()
	}
	in.group.Close() // may be nil
}

// Sandboxes implements subject.Sandboxed.
func (s *session) Sandboxes(context.Context) ([]subject.Sandbox, error) {
	var out []subject.Sandbox
	for n, b := range s.boxes {
		if b.name != "" {
			out = append(out, subject.Sandbox{Lane: n, IDs: []string{b.name}, Workload: b.pid, Group: "/" + filepath.Join(s.group, b.name)})
		}
	}
	return out, nil
}

// Reach implements subject.Reachable.
func (s *session) Reach(n int) subject.Reached {
	return subject.Reached{Pid: s.pool.Pid(n), Own: s.pool.Owns, Log: engine.Said(s.env, n), Plain: true}
}

// Ended implements subject.Reachable.
func (s *session) Ended(_ context.Context, n int) subject.Ended {
	return engine.EndOf(s.pool.Pid(n), engine.Said(s.env, n))
}
