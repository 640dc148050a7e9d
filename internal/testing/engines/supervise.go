package engines

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/mounts"
	"github.com/tare-bench/tare/internal/node/cgroup"
	"github.com/tare-bench/tare/internal/node/procs"
)

const (
	// superviseEnv makes this binary a supervisor. It reads its spec and writes its news.
	// The end of its input means that the process that started it is gone.
	superviseEnv = "TARE_ENGINE_SUPERVISE"
	// markEnv is set in the environment of everything a supervisor starts.
	markEnv  = "TARE_ENGINE"
	lockName = "lock"

	lockFD = 3 // the engine's folder is in use while this is open

	patience = 60 * time.Second // time for a daemon to listen
	grace    = 5 * time.Second  // from SIGTERM to SIGKILL
)

// Every binary that imports this package can be a supervisor.
func init() {
	if os.Getenv(superviseEnv) == "" {
		return
	}
	// Daemons get a signal when the thread that started them exits, so this thread must
	// not exit.
	runtime.LockOSThread()
	if err := supervise(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

type supervisor struct {
	spec
	last    lastOne
	mu      sync.Mutex // protects daemons
	daemons []*child
}

type child struct {
	*exec.Cmd
	name  string
	ended chan struct{}
}

func supervise(in io.Reader, out io.Writer) error {
	_ = os.Unsetenv(superviseEnv)
	unix.CloseOnExec(lockFD)
	terminated := make(chan os.Signal, 1)
	signal.Notify(terminated, unix.SIGTERM)
	signal.Ignore(unix.SIGINT, unix.SIGHUP, unix.SIGQUIT, unix.SIGPIPE)
	var s supervisor
	told := json.NewDecoder(in)
	if err := told.Decode(&s.spec); err != nil {
		return err
	}
	gone := make(chan struct{})
	go func() {
		_, _ = told.Token() // blocks until the end of the input
		close(gone)
	}()
	n := news{Pids: map[string]int{}}
	if err := s.up(gone); err != nil {
		n.Error = err.Error()
	}
	for _, d := range s.daemons {
		n.Pids[d.name] = d.Process.Pid
	}
	_ = json.NewEncoder(out).Encode(n)
	select {
	case <-gone:
	case <-terminated:
	}
	return s.down()
}

// up creates the namespaces, folders and cgroups, and starts the daemons.
func (s *supervisor) up(gone <-chan struct{}) error {
	// Become the parent of orphans, so that their end can be waited for.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become the subreaper: %w", err)
	}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, unix.SIGCHLD)
	go s.reap(ended)
	if err := s.namespaces(); err != nil {
		return err
	}
	var err error
	if s.last, err = first(filepath.Dir(s.Dir)); err != nil {
		return err
	}
	for _, dir := range s.Private {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		if err := unix.Mount("tare-engine", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755"); err != nil {
			return fmt.Errorf("mount a private %s: %w", dir, err)
		}
	}
	if err := write("/", s.Files); err != nil {
		return err
	}
	for _, d := range s.Daemons {
		if err := s.start(d, gone); err != nil {
			return err
		}
	}
	return nil
}

// namespaces makes the cloned namespaces private.
func (s *supervisor) namespaces() error {
	// Later mounts outside, for example of a test, remain visible here.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return fmt.Errorf("make the mounts private: %w", err)
	}
	hs, err := cgroup.Hierarchies()
	if err != nil {
		return err
	}
	if cgroup.ModeOf(hs) == cgroup.Hybrid {
		for _, h := range hs {
			if h.Version == 2 {
				if err := unix.Unmount(h.Mount, unix.MNT_DETACH); err != nil {
					return fmt.Errorf("unmount %s in the private mount namespace: %w", h.Mount, err)
				}
			}
		}
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	lo.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo); err != nil {
		return fmt.Errorf("bring lo up: %w", err)
	}
	return nil
}

// start runs a daemon and waits until it listens.
func (s *supervisor) start(d daemon, gone <-chan struct{}) error {
	log, err := os.Create(filepath.Join(s.Dir, "log", d.Name))
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	cmd := exec.Command(d.Argv[0], d.Argv[1:]...)
	cmd.Dir = "/"
	cmd.Env = append(environment(s.Dir), append(d.Env, markEnv+"="+s.ID)...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: unix.SIGKILL}
	s.mu.Lock()
	if err := cmd.Start(); err != nil {
		s.mu.Unlock()
		return err
	}
	c := &child{Cmd: cmd, name: d.Name, ended: make(chan struct{})}
	s.daemons = append(s.daemons, c)
	s.mu.Unlock()
	go func() {
		_ = cmd.Wait()
		close(c.ended)
	}()
	for deadline := time.Now().Add(patience); ; {
		if conn, err := net.Dial("unix", d.Socket); err == nil {
			return conn.Close()
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s does not listen at %s after %v", d.Name, d.Socket, patience)
		}
		select {
		case <-c.ended:
			return fmt.Errorf("%s ended: %v", d.Name, cmd.ProcessState)
		case <-gone:
			return errors.New("nobody is waiting any more")
		case <-time.After(20 * time.Millisecond):
		}
	}
}

const searchPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// environment returns the variables common to every engine. They do not depend on the
// user who runs the tests.
func environment(dir string) []string {
	return []string{
		"PATH=" + searchPath,
		"HOME=" + filepath.Join(dir, "home"),
		"TMPDIR=" + filepath.Join(dir, "tmp"),
		"LANG=C.UTF-8",
	}
}

// down stops the daemons in reverse order, kills the remaining processes and removes the
// created resources.
func (s *supervisor) down() error {
	for _, d := range slices.Backward(s.daemons) {
		_ = d.Process.Signal(unix.SIGTERM)
		select {
		case <-d.ended:
		case <-time.After(grace):
			_ = d.Process.Kill()
			<-d.ended
		}
	}
	err := s.erase()
	for _, dir := range slices.Backward(s.Private) {
		// The last holder removes the parent folder if it did not exist before.
		_ = unix.Unmount(dir, unix.MNT_DETACH)
	}
	return errors.Join(err, s.last.leave())
}

// erase kills the remaining processes of an engine, and removes its cgroup and root.
func (s *spec) erase() error {
	deadline := time.Now().Add(15 * time.Second)
	for {
		left := s.processes()
		for _, pid := range left {
			_ = cgroup.KillIf(pid, func() bool { return s.owns(pid) }) // it has exited or is found again in the next iteration
		}
		err := removeGroups(s.Parent)
		if len(left) == 0 && err == nil {
			err = mounts.RemoveTree(s.Dir)
		}
		if len(left) == 0 && err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("remove %s: processes %v are left: %w", s.Dir, left, err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// reap waits for exited children inherited by this process.
func (s *supervisor) reap(ended <-chan os.Signal) {
	for range ended {
		for _, pid := range procs.Children(os.Getpid()) {
			s.mu.Lock() // a daemon that exited is reaped by its own waiter
			ours := slices.ContainsFunc(s.daemons, func(d *child) bool { return d.Process.Pid == pid })
			if !ours {
				_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
			}
			s.mu.Unlock()
		}
	}
}

// processes lists the processes of an engine.
func (s *spec) processes() []int {
	return slices.DeleteFunc(procs.All(), func(pid int) bool { return pid <= 1 || !s.owns(pid) })
}

// owns reports whether a process belongs to an engine. Its environment or cgroup may show
// this; in another mount namespace than the machine's, its command line may as well. A
// container's root file system consists of the engine's folder. Other mounts prove
// nothing, because a new mount namespace begins with a copy of all mounts.
func (s *spec) owns(pid int) bool {
	if pid == os.Getpid() || !alive(pid) {
		return false
	}
	if slices.Contains(procs.EnvironmentOf(pid), markEnv+"="+s.ID) {
		return true
	}
	if in, err := procs.GroupsOf(pid); err == nil && slices.ContainsFunc(in.All, func(group string) bool { return procs.InSubtree(group, s.Parent) }) {
		return true
	}
	// A reader of a log also names the folder, but in the machine's mount namespace.
	theirs, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/mnt", pid))
	if err != nil || theirs == s.Machine {
		return false
	}
	if slices.ContainsFunc(procs.ArgsOf(pid), func(arg string) bool { return containsPath(arg, s.Dir) }) {
		return true
	}
	mounted, _ := os.ReadFile(fmt.Sprintf("/proc/%d/mountinfo", pid))
	for line := range strings.Lines(string(mounted)) {
		// See proc_pid_mountinfo(5): the fifth field is the mount point.
		if fields := strings.Fields(line); len(fields) > 4 && fields[4] == "/" && containsPath(line, s.Dir) {
			return true
		}
	}
	return false
}
