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

// spec is the input of a supervisor.
type spec struct {
	ID      string
	Dir     string
	Parent  string // the cgroup of this engine
	Machine string // the mount namespace of the machine
	Daemons []daemon
	// Folders at fixed paths that are private to this engine, and the files written to
	// them.
	Private []string
	Files   map[string]string
}

// about returns the part of an engine's spec that follows from its folder.
func about(dir string) spec {
	id := filepath.Base(dir)
	machine, _ := os.Readlink("/proc/self/ns/mnt")
	return spec{ID: id, Dir: dir, Parent: "/" + cgroupPrefix + id, Machine: machine}
}

type daemon struct {
	Name   string
	Argv   []string
	Env    []string
	Socket string // the daemon's socket once it is up
}

// news is a line written by a supervisor: Pids when everything is up, otherwise Error.
type news struct {
	Pids  map[string]int
	Error string
}

// instance is a running supervisor and its engine.
type instance struct {
	spec
	cmd  *exec.Cmd
	life io.Closer
	pids map[string]int
}

// folder creates the private root of an engine. It is locked while the returned file is
// open in any process.
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
	// Rename it to its final name only now, because others look for that name.
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		return "", nil, err
	}
	dir = filepath.Join(base, id)
	return dir, lock, os.Rename(fresh, dir)
}

// start creates a root, lets prepare fill it and choose the command, and runs the
// command.
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
	// Do not pass on our streams: go test waits until they are closed.
	cmd.Stderr, cmd.ExtraFiles = log, []*os.File{lock}
	// Use a separate session, so that signals from a terminal end the tests first and
	// then the engine.
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
	if news, ok := told.(*os.File); ok { // StdoutPipe returns an *os.File
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

// tails returns the last lines of every log.
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

// stop ends the supervisor by closing its input, and waits until it has removed
// everything.
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

// inside is a script that runs a program in the engine's namespaces, in the caller's
// working directory.
func (in *instance) inside(env []string, argv ...string) string {
	pid := in.cmd.Process.Pid
	env = append([]string{markEnv + "=" + in.ID, "TMPDIR=" + filepath.Join(in.Dir, "tmp")}, env...)
	return fmt.Sprintf(`#!/bin/sh
export %s
exec nsenter --mount=/proc/%d/ns/mnt --net=/proc/%d/ns/net -- sh -c 'cd "$0" && exec "$@"' "$PWD" %s "$@"
`, quote(env), pid, pid, quote(argv))
}
