// Package engines is for tests and for measurements of tare itself: it starts
// real container engines, each under a root and a socket of its own, and
// removes them with all they made.
//
//   - Docker: Debian's containerd with its shim and Debian's dockerd, which is
//     told to use that containerd; runc, crun and runsc.
//   - Podman: no daemon, but a program that runs podman where its storage is,
//     and podman's API service; runc, crun and runsc.
//   - Containerd: Debian's 1.6, or 2.4 built by scripts/install-tests, with
//     the CRI plugin; runc and crun. Containerds are several, for a cluster.
//   - CRIO: CRI-O 1.34 built by scripts/install-tests; runc and crun.
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
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"

	"github.com/tare-bench/tare/internal/testing/need"
)

// TB is what starts engines: a test, or a program such as with.
type TB = need.TB

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
