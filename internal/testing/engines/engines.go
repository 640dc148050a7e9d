// Package engines starts real container engines for tests and for measurements of tare
// itself. Each has its own root and socket and is removed with everything it created.
//
//   - Docker: Debian's containerd with its shim, and Debian's dockerd, which
//     uses that containerd; runc, crun and runsc.
//   - Podman: podman's API service, and a program that runs podman in the namespaces of
//     its storage; runc, crun and runsc. There is no daemon.
//   - Containerd: Debian's 1.6, or 2.4 built by scripts/install-tests, with
//     the CRI plugin; runc and crun. Containerds starts several of them for a cluster.
//   - CRIO: CRI-O 1.34 built by scripts/install-tests; runc and crun.
//
// An engine is started once per test binary, when a test first requests it. It is stopped
// by Main or by Stop:
//
//	func TestMain(m *testing.M) { engines.Main(m) }
//
// It runs under a supervisor, which is another process of the same binary, in its own
// mount and network namespaces. The machine therefore does not have the engine's mounts,
// bridges and addresses. If the machine has cgroup v1 and v2, the supervisor sees only
// v1, because crun does not support hybrid set-ups. Process ids and cgroups are shared
// with the machine.
//
// When the process that started it is gone, for any reason, the supervisor stops the
// engine. It kills the containers and removes the root, the cgroups, and folders of the
// engines at fixed paths. If the supervisor itself was killed, the next set-up cleans up.
// Other engines are not touched.
package engines

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"

	"github.com/tare-bench/tare/internal/testing/need"
)

// TB is the part of testing.TB needed to start engines, also for programs such as with.
type TB = need.TB

var _ TB = testing.TB(nil)

// Option changes how an engine is started.
type Option func(*options)

type options struct {
	runtimes []ociRuntime
	plugins  []plugin
	private  []string // folders at fixed paths, in addition to those common to such engines
	missing  error
}

type ociRuntime struct {
	name, path string
	args       []string
	shim       string // its own containerd shim, if any
}

type plugin struct{ name, path string }

// Runtime registers an additional OCI runtime with an engine.
func Runtime(name, path string, args ...string) Option {
	return func(o *options) {
		o.runtimes = append(o.runtimes, ociRuntime{name: name, path: path, args: args})
	}
}

// GVisor registers runsc with containerd 2 through gVisor's own shim. The shim of runc
// cannot create a second container in a gVisor sandbox.
func GVisor() Option {
	return func(o *options) {
		runsc, err := gvisor("runsc")
		shim, err2 := gvisor("containerd-shim-runsc-v1")
		o.runtimes = append(o.runtimes, ociRuntime{name: "runsc", path: runsc, shim: shim})
		o.missing = errors.Join(err, err2)
	}
}

// Plugin adds a network plugin to the network of containerd's and CRI-O's pods, after the
// bridge. It gets the same input as every plugin.
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

// Stop stops every engine that this process started.
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

// once starts an engine, or returns the running one with this key.
func once[T any](t TB, key string, start func() (T, error)) T {
	t.Helper()
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
