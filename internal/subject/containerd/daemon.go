package containerd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/node/procs"
	"github.com/tare-bench/tare/internal/subject/oci"
)

// Daemon is a process whose word may be taken for what is executed as root: it
// is root itself, in tare's own user namespace. Any user can listen on a socket
// and have a program and a PATH of their own.
type Daemon struct {
	Pid int

	dir *os.File // /proc/PID, which stays that process's when another gets its number
}

// DaemonOf returns the process that serves a socket. The error says why it
// cannot be found or is not to be trusted.
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

// rootAlone tells whether a process is root and was nobody else, by the four
// user ids in its /proc/PID/status.
func rootAlone(status string) bool {
	for line := range strings.Lines(status) {
		if ids, ok := strings.CutPrefix(line, "Uid:"); ok {
			return strings.Join(strings.Fields(ids), " ") == "0 0 0 0"
		}
	}
	return false
}

// shares tells whether the daemon is in tare's own namespace of a kind.
func (d *Daemon) shares(kind string) bool {
	own, err := os.Readlink("/proc/self/ns/" + kind)
	its, other := os.Readlink(d.File("ns/" + kind))
	return err == nil && other == nil && own == its
}

// File is the path of one of its files in /proc, which others may open too.
func (d *Daemon) File(name string) string {
	return fmt.Sprintf("/proc/%d/fd/%d/%s", os.Getpid(), d.dir.Fd(), name)
}

// Close lets go of it.
func (d *Daemon) Close() { _ = d.dir.Close() }

// search is where a daemon finds programs.
type search struct {
	path string // as PATH
	root string // in which the folders are; "" for tare's own
}

// search is by the daemon's PATH, in its own mounts.
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

// look finds a program in the folders of a search path; "" when it is in none.
// The path is as the daemon sees it.
func (s search) look(program string) string {
	for _, dir := range filepath.SplitList(s.path) {
		path := filepath.Join(dir, program)
		if info, err := os.Stat(s.root + path); err == nil && filepath.IsAbs(path) && info.Mode().IsRegular() && unix.Access(s.root+path, unix.X_OK) == nil {
			return path
		}
	}
	return ""
}

// own is the path by which tare itself may execute a program that a daemon
// calls by path. In other mounts another file may be under it: there it has to
// be the one that tare finds by itself. "" means that it must not be executed.
func (s search) own(path string) string {
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

// RuntimeVersion is the version of the OCI runtime that the daemon behind a
// socket calls by a path, or by a name on its PATH; "" where that must not be
// executed, or does not tell.
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
	if called = s.own(called); called == "" {
		return ""
	}
	t, err := oci.New(ctx, filepath.Base(called), called)
	if err != nil {
		return ""
	}
	return t.Info().Version
}
