package oci

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/tare-bench/tare/internal/lane"
	"github.com/tare-bench/tare/internal/node/cgroup"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/child"
	"github.com/tare-bench/tare/internal/subject/engine"
	"github.com/tare-bench/tare/internal/thread"
)

// Exec implements subject.Executor by the runtime's exec. It is detached if the runtime can do
// that: a foreground runtime, a Go program of ten megabytes, would be measured with the command.
// runsc stays in the foreground, because a detached runsc leaves another runsc exec that waits for
// the command, and the command is not a process of the host.
func (s *session) Exec(ctx context.Context, n int, args []string) (subject.Executed, error) {
	if n < 0 || n >= len(s.containers) || s.containers[n].pid == 0 {
		return subject.Executed{}, fmt.Errorf("target %s: lane %d holds no running container", s.name, n)
	}
	ended, err := s.exec(ctx, &s.containers[n], args)
	if err != nil {
		err = fmt.Errorf("target %s: %w", s.name, err)
	}
	return ended, err
}

func (s *session) exec(ctx context.Context, c *container, args []string) (subject.Executed, error) {
	base := filepath.Join(c.dir, fmt.Sprintf("exec-%d", s.executed.Add(1)))
	file, pidFile := base+".json", base+".pid"
	b, err := json.Marshal(process(args...))
	if err == nil {
		err = os.WriteFile(file, b, 0o600)
	}
	if err != nil {
		return subject.Executed{}, fmt.Errorf("describe the command: %w", err)
	}
	defer os.Remove(file)
	command := child.Command{
		Env: lane.Environment(nil), Enter: s.enter(),
		Show: lane.Quote(s.args(s.state, append([]string{"exec", c.id}, args...)...)),
	}
	defer os.Remove(pidFile)
	if !s.flavour.detaches {
		command.Args = s.args(s.state, "exec", "--process", file, c.id)
		if s.flavour.name == "runsc" {
			command.Args = s.args(s.state, "exec", "--process", file, "--internal-pid-file", pidFile, c.id)
			command.End = func() { s.killInside(c, pidFile) }
		}
		return s.execForeground(ctx, command, filepath.Join(c.root, filepath.Clean("/"+args[0])), args[0])
	}
	command.Args = s.args(s.state, "exec", "--detach", "--process", file, "--pid-file", pidFile, c.id)
	ended, err := child.RunDetaching(ctx, child.Detaching{Command: command, Timeout: s.env.Timeout, Started: func(zombie func(int) bool) (int, error) {
		pid, err := readPid(pidFile)
		if err != nil {
			return 0, err
		}
		group := filepath.Join(s.group, c.id)
		// On cgroup v1 the kernel reports the root group for a process that is ending. A moment
		// later the process is a zombie.
		for deadline := time.Now().Add(time.Second); !cgroup.Holds(group, pid) && !zombie(pid); time.Sleep(time.Millisecond) {
			if time.Now().Before(deadline) {
				continue
			}
			return 0, fmt.Errorf("process %d of the runtime's pid file is not in the container's cgroup /%s", pid, group)
		}
		return pid, nil
	}})
	ended.CPU = 0 // measured in its cgroup
	return ended, err
}

// execForeground runs a command with the runtime in the foreground. The runtime's exit code is the
// command's. path is the program on the host.
func (s *session) execForeground(ctx context.Context, command child.Command, path, program string) (subject.Executed, error) {
	// Checked first, since the runtime's own failure is an exit code as well.
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
		return subject.Executed{}, fmt.Errorf("%s: no program %s in the container's root file system", command.Show, program)
	}
	ended, err := child.Run(ctx, command)
	ended.CPU, ended.Fetched = 0, nil // the runtime's
	if err == nil && ended.Exit == runscFailed && s.flavour.name == "runsc" {
		err = fmt.Errorf("%s: exit status %d: %.1000s", command.Show, ended.Exit, strings.TrimSpace(ended.Stderr))
	}
	return ended, err
}

// killInside kills a command in gVisor, which survives the runsc exec that waits for it.
func (s *session) killInside(c *container, pidFile string) {
	pid, err := readPid(pidFile)
	if err != nil {
		return // the command has not started
	}
	for _, which := range []string{"--pgid", "--pid"} {
		_, _ = child.Ask(context.Background(), s.args(s.state, "kill", which, strconv.Itoa(pid), c.id, "KILL")) // fails if it has ended
	}
}

// runscFailed is runsc's exit code for its own failures (util.Fatalf).
const runscFailed = 128

// enter returns a function that moves a thread into the runtime's mount namespace; nil if that is
// tare's.
func (s *session) enter() func() error {
	if s.mounts == nil {
		return nil
	}
	return func() error { return thread.EnterMounts(int(s.mounts.Fd())) }
}

// Sandboxes implements subject.Sandboxed. In gVisor the first process is the sandbox's kernel,
// not the workload.
func (s *session) Sandboxes(context.Context) ([]subject.Sandbox, error) {
	var out []subject.Sandbox
	for n, c := range s.containers {
		if c.id != "" {
			out = append(out, subject.Sandbox{Lane: n, IDs: []string{c.id}, Workload: c.pid, Group: "/" + filepath.Join(s.group, c.id)})
		}
	}
	return out, nil
}

// Reach implements subject.Reachable. The runtime writes its pid file before the workload
// starts, so a container can be reached before the runtime's command returns.
func (s *session) Reach(n int) subject.Reached {
	r := subject.Reached{Guest: s.flavour.guestClock, Address: s.containers[n].address, Log: engine.Said(s.env, n), Plain: true}
	if pid, err := s.process(&s.containers[n]); err == nil {
		group := filepath.Join(s.group, s.containers[n].id)
		r.Pid, r.Own = pid, func(pid int) bool { return cgroup.Holds(group, pid) }
	}
	if r.Guest && r.Address == "" {
		r.Why = "its sandbox has its own network without an address"
	}
	return r
}

// Ended implements subject.Reachable. In gVisor the first process is the sandbox, whose exit
// status is not the workload's.
func (s *session) Ended(_ context.Context, n int) subject.Ended {
	pid, _ := readPid(s.containers[n].pidFile()) // without a pid the end is unknown
	e := engine.EndOf(pid, engine.Said(s.env, n))
	e.Known = e.Known && !s.flavour.guestClock
	return e
}
