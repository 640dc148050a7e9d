// Package engines is for tests and for measurements of tare itself: it starts
// real container engines, each under a root and a socket of its own, and
// removes them with all they made.
//
//   - Docker: Debian's containerd with its shim and Debian's dockerd, which is
//     told to use that containerd; runc, crun and runsc.
//   - Podman: no daemon, but a program that runs podman where its storage is,
//     and podman's API service; runc, crun and runsc.
//   - Containerd: Debian's 1.6, or 2.4 built by scripts/install-engines, with
//     the CRI plugin; runc and crun. Containerds are several, for a cluster.
//   - CRIO: CRI-O 1.34 built by scripts/install-engines; runc and crun.
//
// An engine is started once for a test binary, when the first test asks for it,
// and ends with Main, or with Stop:
//
//	func TestMain(m *testing.M) { engines.Main(m) }
//
// It lives under a supervisor, which is this same binary once more, in mount and
// network namespaces of its own: what the engine mounts, its bridges and its
// addresses are not the machine's. Where the machine has cgroup v1 beside v2,
// the supervisor sees v1 only, for crun refuses such a mixture. Process ids and
// cgroups are the machine's own.
//
// The supervisor notices when the process that started it is gone, however it
// went, and then stops the engine, kills the containers and removes the root,
// the cgroups, and the folders that the engines have at fixed places. If it was
// itself killed, the next set-up does that. No other engine is touched.
package engines

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TB is the part of testing.TB that is used here, so that a program which is no
// test can start engines too.
type TB interface {
	Helper()
	Fatalf(format string, args ...any)
	Skipf(format string, args ...any)
}

var _ TB = testing.TB(nil)

// Option changes what an engine is started with.
type Option func(*options)

type options struct {
	runtimes []ociRuntime
	plugins  []plugin
	private  []string // folders at fixed places, beside those that every such engine uses
	missing  error
}

type ociRuntime struct {
	name, path string
	args       []string
	shim       string // its own of containerd, if it has one
}

type plugin struct{ name, path string }

// Runtime registers one more OCI runtime with an engine, beside its own.
func Runtime(name, path string, args ...string) Option {
	return func(o *options) {
		o.runtimes = append(o.runtimes, ociRuntime{name: name, path: path, args: args})
	}
}

// GVisor registers runsc with containerd 2, by gVisor's own shim: that of runc
// makes no second container in its sandboxes.
func GVisor() Option {
	return func(o *options) {
		runsc, err := gvisor("runsc")
		shim, err2 := gvisor("containerd-shim-runsc-v1")
		o.runtimes = append(o.runtimes, ociRuntime{name: "runsc", path: runsc, shim: shim})
		o.missing = errors.Join(err, err2)
	}
}

// Plugin adds a network plugin to the network of containerd's and CRI-O's pods,
// after the bridge. It is handed nothing but what every plugin is.
func Plugin(name, path string) Option {
	return func(o *options) { o.plugins = append(o.plugins, plugin{name, path}) }
}

func collect(opts []Option) options {
	var o options
	for _, f := range opts {
		f(&o)
	}
	return o
}

func (o options) key() string { return fmt.Sprint(o.runtimes, o.plugins) }

// Main runs a package's tests, stops the engines that they started, and exits.
func Main(m *testing.M) {
	code := m.Run()
	if err := Stop(); err != nil {
		fmt.Fprintln(os.Stderr, "engines:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

var running = struct {
	sync.Mutex
	byKey map[string]any
	all   []*instance
}{byKey: map[string]any{}}

// Stop ends every engine that this process started.
func Stop() error {
	running.Lock()
	defer running.Unlock()
	var errs []error
	for _, in := range slices.Backward(running.all) {
		errs = append(errs, in.stop())
	}
	running.all = nil
	clear(running.byKey)
	return errors.Join(errs...)
}

// once starts an engine, or returns the one that was started under this key.
func once[T any](t TB, key string, start func() (T, error)) T {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skipf("engines need root")
	}
	running.Lock()
	e, ok := running.byKey[key].(T)
	var err error
	if !ok {
		if e, err = start(); err == nil {
			running.byKey[key] = e
		}
	}
	running.Unlock() // before Fatalf, which does not return
	if err != nil {
		t.Fatalf("start %s: %v", key, err)
	}
	return e
}

// program is the path of a program that an engine is made of.
func program(name string, folders ...string) (string, error) {
	for _, f := range folders {
		if p := filepath.Join(f, name); unix.Access(p, unix.X_OK) == nil {
			return p, nil
		}
	}
	if len(folders) == 0 {
		if p, err := exec.LookPath(name); err == nil {
			return filepath.Abs(p)
		}
		// sbin is often left out of a path.
		for _, f := range []string{"/usr/sbin", "/sbin", "/usr/local/sbin"} {
			if p := filepath.Join(f, name); unix.Access(p, unix.X_OK) == nil {
				return p, nil
			}
		}
	}
	return "", fmt.Errorf("no %s here; run: make engines", name)
}

// built is a folder of programs that scripts/install-engines built.
func built(name string) string {
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = "/root/.cache"
	}
	return filepath.Join(cache, "tare", name, "bin")
}

// debian are folders in which Debian's packages have their programs, so that a
// newer one elsewhere in the path does not stand in for them.
var debian = []string{"/usr/bin", "/usr/sbin", "/bin", "/sbin"}

// Runsc is the path of gVisor's runtime, or "" if it is not here.
func Runsc() string {
	p, _ := gvisor("runsc")
	return p
}

func gvisor(name string) (string, error) {
	if p, err := program(name); err == nil {
		return p, nil
	}
	return program(name, built("")) // where scripts/install-runtimes puts it
}

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
	b, err := json.Marshal(in.spec)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(in.Dir, specName), b, 0o600); err != nil {
		return err
	}
	lifeRead, lifeWrite, err := os.Pipe()
	if err != nil {
		return err
	}
	defer func() { _ = lifeRead.Close() }()
	newsRead, newsWrite, err := os.Pipe()
	if err != nil {
		return errors.Join(err, lifeWrite.Close())
	}
	defer func() { _ = newsRead.Close() }()
	log, err := os.Create(filepath.Join(in.Dir, "log", "supervisor"))
	if err != nil {
		return errors.Join(err, lifeWrite.Close(), newsWrite.Close())
	}
	defer func() { _ = log.Close() }()

	in.life = lifeWrite
	// No stream of ours is handed on: go test waits for those to be closed.
	in.cmd = &exec.Cmd{
		Path: "/proc/self/exe", Args: []string{"tare-engine-" + in.ID},
		Env:    append(environment(in.Dir), superviseEnv+"="+in.Dir),
		Dir:    "/",
		Stdout: log, Stderr: log,
		ExtraFiles: []*os.File{lifeRead, newsWrite, lock},
		// A session of its own: what is typed at a terminal ends the tests,
		// and thereby the engine, in that order.
		SysProcAttr: &syscall.SysProcAttr{Setsid: true, Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWNET},
	}
	err = in.cmd.Start()
	_ = newsWrite.Close()
	if err != nil {
		in.cmd = nil
		return fmt.Errorf("start the supervisor: %w", err)
	}
	_ = newsRead.SetReadDeadline(time.Now().Add(patience + 10*time.Second))
	var n news
	if err := json.NewDecoder(newsRead).Decode(&n); err != nil {
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

// stop ends the supervisor by closing the pipe that it listens to, and waits
// until it has removed everything.
func (in *instance) stop() error {
	if in.life != nil {
		_ = in.life.Close()
	}
	if in.cmd == nil {
		return os.RemoveAll(in.Dir)
	}
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

// output runs a program and returns what it prints, without the last newline.
func output(env []string, argv ...string) (string, error) {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.Output()
	if err != nil {
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			err = fmt.Errorf("%w: %s", err, bytes.TrimSpace(exit.Stderr))
		}
		return "", fmt.Errorf("%s: %w", strings.Join(argv, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}

// list is what a program prints, one word each, and what a test must know.
func list(t TB, argv ...string) []string {
	t.Helper()
	out, err := output(nil, argv...)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return strings.Fields(out)
}

// write puts files into a folder.
func write(dir string, files map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		path := filepath.Join(dir, name)
		mode := os.FileMode(0o644)
		if strings.HasPrefix(files[name], "#!") {
			mode = 0o755
		}
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(files[name]), mode)); err != nil {
			return err
		}
	}
	return nil
}

// mayLowerOOMScore says whether containers may be given a negative
// oom_score_adj, as every CRI sandbox wants.
func mayLowerOOMScore() bool {
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	return unix.Capget(&hdr, &data[0]) == nil && data[0].Effective&(1<<unix.CAP_SYS_RESOURCE) != 0
}

// ulimits are the limits that podman gives its containers, none of them above
// this process's own, for to raise one takes CAP_SYS_RESOURCE.
func ulimits() (string, error) {
	var out []string
	for _, l := range []struct {
		name     string
		resource int
	}{{"nofile", unix.RLIMIT_NOFILE}, {"nproc", unix.RLIMIT_NPROC}} {
		var r unix.Rlimit
		if err := unix.Getrlimit(l.resource, &r); err != nil {
			return "", err
		}
		hard := min(r.Max, 16384)
		out = append(out, fmt.Sprintf("%q", fmt.Sprintf("%s=%d:%d", l.name, min(hard, 8192), hard)))
	}
	return strings.Join(out, ", "), nil
}

// quote makes words of a shell command.
func quote(words []string) string {
	var out []string
	for _, w := range words {
		out = append(out, "'"+strings.ReplaceAll(w, "'", `'\''`)+"'")
	}
	return strings.Join(out, " ")
}
