package engines

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// spec is what a supervisor is told.
type spec struct {
	ID      string
	Dir     string
	Parent  string // the cgroup that is this engine's
	Machine string // the mount namespace outside
	Daemons []daemon
	// Folders at fixed places that the engine uses and that are this engine's
	// alone, and the files that are put there.
	Private []string
	Files   map[string]string
}

// about is what is known of an engine by its folder alone.
func about(dir string) spec {
	id := filepath.Base(dir)
	machine, _ := os.Readlink("/proc/self/ns/mnt")
	return spec{ID: id, Dir: dir, Parent: "/" + cgroupPrefix + id, Machine: machine}
}

type daemon struct {
	Name   string
	Argv   []string
	Env    []string
	Socket string // the daemon listens there when it is up
}

// news is a line that a supervisor writes: Pids when all is up, else Error.
type news struct {
	Pids  map[string]int
	Error string
}

// instance is a running supervisor and what it looks after.
type instance struct {
	spec
	cmd  *exec.Cmd
	life io.Closer
	pids map[string]int
}

// folder makes the private root of an engine. It is locked by the returned file
// as long as somebody has that open.
func folder() (dir string, lock *os.File, err error) {
	base, err := baseDir()
	if err != nil {
		return "", nil, err
	}
	if err := sweep(base); err != nil {
		return "", nil, err
	}
	id := newID()
	fresh := filepath.Join(base, "."+id)
	if err := os.Mkdir(fresh, 0o755); err != nil {
		return "", nil, err
	}
	if lock, err = os.OpenFile(filepath.Join(fresh, lockName), os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return "", nil, err
	}
	// Only then it gets the name by which others find it.
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		return "", nil, err
	}
	dir = filepath.Join(base, id)
	return dir, lock, os.Rename(fresh, dir)
}

// start makes a root, lets prepare fill it and say what to run, and runs that.
func start(prepare func(s *spec) error) (*instance, error) {
	dir, lock, err := folder()
	if err != nil {
		return nil, fmt.Errorf("make a folder for an engine: %w", err)
	}
	defer func() { _ = lock.Close() }()
	in := &instance{spec: about(dir)}
	if err := prepare(&in.spec); err != nil {
		_ = os.RemoveAll(dir)
		return nil, err
	}
	if err := in.supervise(lock); err != nil {
		return nil, errors.Join(err, in.stop())
	}
	running.all = append(running.all, in)
	return in, nil
}

func (in *instance) supervise(lock *os.File) error {
	for _, d := range []string{"log", "home", "tmp"} {
		if err := os.MkdirAll(filepath.Join(in.Dir, d), 0o755); err != nil {
			return err
		}
	}
	log, err := os.Create(filepath.Join(in.Dir, "log", "supervisor"))
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = []string{"tare-engine-" + in.ID}
	cmd.Env, cmd.Dir = append(environment(in.Dir), superviseEnv+"=1"), "/"
	// No stream of ours is handed on: go test waits for those to be closed.
	cmd.Stderr, cmd.ExtraFiles = log, []*os.File{lock}
	// A session of its own: what is typed at a terminal ends the tests, and thereby
	// the engine, in that order.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWNET}
	life, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	told, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start the supervisor: %w", err)
	}
	in.cmd, in.life = cmd, life
	if news, ok := told.(*os.File); ok { // which StdoutPipe's is
		if err := news.SetReadDeadline(time.Now().Add(patience + 10*time.Second)); err != nil {
			return err
		}
	}
	var n news
	if err := errors.Join(json.NewEncoder(life).Encode(in.spec), json.NewDecoder(told).Decode(&n)); err != nil {
		return fmt.Errorf("the supervisor says nothing: %w%s", err, in.tails())
	}
	if n.Error != "" {
		return fmt.Errorf("%s%s", n.Error, in.tails())
	}
	in.pids = n.Pids
	return nil
}

// tails are the last lines of every log.
func (in *instance) tails() string {
	var b strings.Builder
	logs, _ := filepath.Glob(filepath.Join(in.Dir, "log", "*"))
	for _, f := range logs {
		text, _ := os.ReadFile(f)
		lines := strings.Split(strings.TrimSpace(string(text)), "\n")
		lines = lines[max(0, len(lines)-15):]
		fmt.Fprintf(&b, "\n%s:\n  %s", filepath.Base(f), strings.Join(lines, "\n  "))
	}
	return b.String()
}

// stop ends the supervisor by closing what it reads, and waits
// until it has removed everything.
func (in *instance) stop() error {
	if in.cmd == nil {
		return os.RemoveAll(in.Dir)
	}
	_ = in.life.Close()
	slow := time.AfterFunc(time.Minute, func() { _ = in.cmd.Process.Kill() })
	defer slow.Stop()
	err := in.cmd.Wait()
	if err == nil {
		return nil
	}
	err = fmt.Errorf("stop the engine in %s: the supervisor: %w%s", in.Dir, err, in.tails())
	return errors.Join(err, sweep(filepath.Dir(in.Dir)))
}

// inside is a script that runs a program where the engine does, in the caller's
// working directory.
func (in *instance) inside(env []string, argv ...string) string {
	pid := in.cmd.Process.Pid
	env = append([]string{markEnv + "=" + in.ID, "TMPDIR=" + filepath.Join(in.Dir, "tmp")}, env...)
	return fmt.Sprintf(`#!/bin/sh
export %s
exec nsenter --mount=/proc/%d/ns/mnt --net=/proc/%d/ns/net -- sh -c 'cd "$0" && exec "$@"' "$PWD" %s "$@"
`, quote(env), pid, pid, quote(argv))
}
