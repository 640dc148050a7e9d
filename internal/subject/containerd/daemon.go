package containerd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/node/procs"
	"github.com/tare-bench/tare/internal/subject/oci"
)

// Daemon is a process that is trusted to name programs that tare executes as root. It runs as
// root in tare's own user namespace. Other daemons are not trusted, since any user can listen on
// a socket with a program and a PATH of their own.
type Daemon struct {
	Pid int

	dir *os.File // /proc/PID, which remains that process if the pid is reused
}

// DaemonOf returns the process that serves a socket. It is an error if the process cannot be found
// or is not trusted.
func DaemonOf(socket string) (*Daemon, error) {
	pid, err := procs.Listener(socket)
	if err != nil {
		return nil, err
	}
	return trust(pid)
}

func trust(pid int) (*Daemon, error) {
	dir, err := os.Open(fmt.Sprintf("/proc/%d", pid))
	if err != nil {
		return nil, err
	}
	d := &Daemon{Pid: pid, dir: dir}
	status, err := os.ReadFile(d.File("status"))
	switch {
	case err != nil:
	case !rootAlone(string(status)):
		err = fmt.Errorf("process %d is not root", pid)
	case !d.shares("user"):
		err = fmt.Errorf("process %d is in another user namespace", pid)
	}
	if err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

// rootAlone reports whether all four user ids in a /proc/PID/status are root's.
var rootAlone = regexp.MustCompile(`(?m)^Uid:(?:[ \t]+0){4}[ \t]*$`).MatchString

// shares reports whether the daemon is in tare's namespace of a kind.
func (d *Daemon) shares(kind string) bool {
	own, err := os.Readlink("/proc/self/ns/" + kind)
	its, other := os.Readlink(d.File("ns/" + kind))
	return err == nil && other == nil && own == its
}

// File returns the path of one of the daemon's files in /proc. Child processes can open that
// path, too.
func (d *Daemon) File(name string) string {
	return fmt.Sprintf("/proc/%d/fd/%d/%s", os.Getpid(), d.dir.Fd(), name)
}

// Close releases the process.
func (d *Daemon) Close() { _ = d.dir.Close() }

// search is a search path for programs.
type search struct {
	path string // as PATH
	root string // root of the folders; "" for tare's own
}

// search returns the daemon's PATH, in its own mounts.
func (d *Daemon) search() search {
	s := search{path: os.Getenv("PATH")}
	b, err := os.ReadFile(d.File("environ"))
	if err != nil {
		return s
	}
	if !d.shares("mnt") {
		s.root = d.File("root")
	}
	if path, ok := variable(string(b), "PATH"); ok {
		s.path = path
	}
	return s
}

// look returns the path of a program in the search path, as the daemon sees it; "" for none.
func (s search) look(program string) string {
	for _, dir := range filepath.SplitList(s.path) {
		path := filepath.Join(dir, program)
		if info, err := os.Stat(s.root + path); err == nil && filepath.IsAbs(path) && info.Mode().IsRegular() && unix.Access(s.root+path, unix.X_OK) == nil {
			return path
		}
	}
	return ""
}

// executable returns the path under which tare may execute a program that the daemon calls by
// path. In the daemon's mount namespace that path may name another file, so executable checks
// that tare finds the same file. It returns "" if tare must not execute the program.
func (s search) executable(path string) string {
	if s.root == "" {
		return path
	}
	mine, err := exec.LookPath(filepath.Base(path))
	if err != nil {
		return ""
	}
	a, err1 := os.Stat(mine)
	b, err2 := os.Stat(s.root + path)
	if errors.Join(err1, err2) != nil || !os.SameFile(a, b) {
		return ""
	}
	return mine
}

// RuntimeVersion returns the version of an OCI runtime. called is the path or name by which the
// daemon behind the socket calls the runtime. The version is "" if tare must not execute the
// runtime or if the runtime reports none.
func RuntimeVersion(ctx context.Context, socket, called string) string {
	d, err := DaemonOf(socket)
	if err != nil || called == "" {
		return ""
	}
	defer d.Close()
	s := d.search()
	if !filepath.IsAbs(called) {
		called = s.look(filepath.Base(called))
	}
	if called = s.executable(called); called == "" {
		return ""
	}
	return oci.Version(ctx, called)
}
