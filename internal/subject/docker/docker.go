// Package docker measures runtimes under Docker: each runtime that a daemon has registered, through
// the Engine API or the docker command.
//
// With the API each operation is one request of Docker's Go client; run is two. All lanes share one
// client, as in a program that drives Docker. By default the client keeps two idle connections, so
// most of a hundred callers would open one during the operation. Here each lane has a connection
// that is open before the release, as between a kubelet or a CI runner and its daemon. Opening one
// takes about 50 µs on a unix socket.
//
// With the command each operation is a process that opens a connection, queries the API version and
// sends the request: what a user waits for. Preparation and checks use the API in both cases and are
// not timed.
//
// The daemon may be remote (tcp://). Then its processes and clock are not this machine's, and
// workloads have no stamps.
package docker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/system"
	"github.com/moby/moby/client"

	"github.com/tare-bench/tare/internal/node/procs"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/engine"
	"github.com/tare-bench/tare/internal/subject/engine/cli"
	"github.com/tare-bench/tare/internal/subject/oci"
)

// The values of via.
const (
	viaAPI = "api"
	viaCLI = "cli"
)

// patience bounds New and each query.
const patience = 10 * time.Second

// Target is one runtime under one daemon.
type Target struct {
	*connection
	name    string
	runtime string // as given; "" is the daemon's default
	via     string
	engine  subject.Engine
	network string
	command *cli.Program // nil with the API
	info    system.Info
	version client.ServerVersionResult
	local   bool                // the daemon's processes and clock are this machine's
	remote  string              // reason for not being local
	program string              // version of the runtime; "" if unknown
	client  string              // version of the docker command
	podman  bool                // the daemon is Podman's service
	ulimits []*container.Ulimit // explicit limits; nil for the daemon's defaults
}

// New returns a runtime of a daemon as a target; "" is the daemon's default runtime. If it cannot
// be measured, the error is a *subject.Unavailable.
func New(ctx context.Context, name, runtime, via string, e subject.Engine) (subject.Target, error) {
	t := &Target{name: name, runtime: runtime, via: via, engine: e, network: cmp.Or(e.Network, subject.NetworkNone)}
	if !slices.Contains([]string{subject.NetworkNone, subject.NetworkBridge, subject.NetworkHost}, t.network) {
		return nil, engine.Unavailable(name, "use none, bridge or host", "unknown network %q", t.network)
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := t.ask(ctx); err != nil {
		return nil, err
	}
	r, registered := t.info.Runtimes[t.oci()]
	if !registered {
		return nil, engine.Unavailable(name, "register it in /etc/docker/daemon.json under \"runtimes\" and reload the daemon",
			"the daemon at %s has no runtime %q (registered: %s)", t.host, runtime, strings.Join(names(t.info), ", "))
	}
	if via == viaCLI {
		if err := t.findCommand(ctx); err != nil {
			return nil, err
		}
	}
	if t.podman && t.runtime != "" && t.runtime != t.info.DefaultRuntime {
		return nil, engine.Unavailable(name, fmt.Sprintf("weigh podman/%s, or start a service for it and give its address: podman --runtime %s system service --time 0 unix:///run/podman/%s.sock", runtime, runtime, filepath.Base(runtime)),
			"Podman's service does not report a container's runtime; its default is %s", t.info.DefaultRuntime)
	}
	t.remote = t.elsewhere()
	t.local = t.remote == ""
	if t.podman && t.local {
		for _, pid := range engine.Listeners(t.host) {
			for _, l := range engine.Lowered(pid) {
				t.ulimits = append(t.ulimits, &container.Ulimit{Name: l.Name, Hard: l.Limit, Soft: l.Limit})
			}
		}
	}
	if t.local && r.Path != "" {
		if file, err := exec.LookPath(r.Path); err == nil {
			t.program = oci.Version(ctx, file)
		}
	}
	return t, nil
}

// Runtimes lists the runtimes of a daemon, its default first, without the daemon's aliases of runc.
// Without a daemon, the error is a *subject.Unavailable.
func Runtimes(ctx context.Context, e subject.Engine) ([]string, error) {
	t := &Target{name: "docker", engine: e}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := t.ask(ctx); err != nil {
		return nil, err
	}
	defer t.http.CloseIdleConnections()
	return names(t.info), nil
}

// names lists the registered runtimes, the default first.
func names(info system.Info) []string {
	_, runc := info.Runtimes["runc"]
	out := slices.DeleteFunc(slices.Sorted(maps.Keys(info.Runtimes)), func(name string) bool {
		alias := runc && (name == "io.containerd.runc.v2" || name == "io.containerd.runtime.v1.linux")
		return alias || name == info.DefaultRuntime
	})
	if _, ok := info.Runtimes[info.DefaultRuntime]; ok {
		out = slices.Insert(out, 0, info.DefaultRuntime)
	}
	return out
}

// ask connects to the daemon and queries its version and configuration.
func (t *Target) ask(ctx context.Context) (err error) {
	at, err := find(t.engine)
	if err == nil {
		t.connection, err = connect(at)
	}
	if err != nil {
		return engine.Unavailable(t.name, "give the daemon's address, or set DOCKER_HOST", "%v", err)
	}
	defer func() {
		if err != nil {
			t.http.CloseIdleConnections()
		}
	}()
	if _, err := t.Ping(ctx, client.PingOptions{NegotiateAPIVersion: true}); err != nil {
		return t.unreachable(ctx, err)
	}
	if t.version, err = t.ServerVersion(ctx, client.ServerVersionOptions{}); err != nil {
		return t.unreachable(ctx, err)
	}
	t.podman = slices.ContainsFunc(t.version.Components, func(c system.ComponentVersion) bool { return c.Name == "Podman Engine" })
	info, err := t.Client.Info(ctx, client.InfoOptions{})
	if err != nil {
		return t.unreachable(ctx, err)
	}
	t.info = info.Info
	if t.info.OSType != "linux" {
		return engine.Unavailable(t.name, "use a daemon for Linux containers", "the daemon at %s runs %q containers", t.host, t.info.OSType)
	}
	if arch := architectures[t.info.Architecture]; arch != runtime.GOARCH {
		return engine.Unavailable(t.name, "run tare for that architecture", "the daemon's machine is %s, the workload of this tare is for %s", t.info.Architecture, runtime.GOARCH)
	}
	return nil
}

// architectures maps the names of uname -m to Go's.
var architectures = map[string]string{"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}

// unreachable returns why a daemon cannot be used, with advice.
func (t *Target) unreachable(ctx context.Context, err error) error {
	where := fmt.Sprintf("%s (%s)", t.host, t.from)
	socket := engine.Socket(t.host)
	_, missing := os.Stat(socket)
	switch {
	case socket != "" && os.IsNotExist(missing):
		return engine.Unavailable(t.name, engine.Starting("dockerd", "docker", "docker.io"), "no Docker daemon at %s", where)
	case socket != "" && (os.IsPermission(missing) || strings.Contains(err.Error(), "permission denied")):
		return engine.Unavailable(t.name, "run tare as root (sudo tare …)", "no permission for the Docker daemon at %s", where)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return engine.Unavailable(t.name, "check it with docker info", "the Docker daemon at %s did not answer within %v", where, patience)
	case cerrdefs.IsInvalidArgument(err) && strings.Contains(err.Error(), "API version"):
		return engine.Unavailable(t.name, "upgrade Docker to 19.03 or later", "the Docker daemon at %s: %v", where, err)
	}
	return engine.Unavailable(t.name, "check it with systemctl status docker", "the Docker daemon at %s: %v", where, t.plain(err))
}

// oci returns the runtime's name in the daemon's configuration.
func (t *Target) oci() string { return cmp.Or(t.runtime, t.info.DefaultRuntime) }

// aliases returns all names of the runtime: its name, program, shim type and version output.
func (t *Target) aliases() []string {
	r := t.info.Runtimes[t.oci()]
	return []string{t.oci(), r.Path, r.Type, t.program}
}

// elsewhere returns why the daemon counts as remote; "" if it is on this machine. A socket may also
// lead into a virtual machine or a tunnel.
func (t *Target) elsewhere() string {
	if engine.Socket(t.host) == "" {
		return "the daemon is reached over the network"
	}
	pid, err := procs.Listener(engine.Socket(t.host))
	if err != nil {
		return err.Error()
	}
	exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	if err != nil {
		return fmt.Sprintf("the daemon's process %d cannot be inspected", pid)
	}
	exe = filepath.Base(strings.TrimSuffix(exe, " (deleted)")) // by an upgrade
	switch {
	case strings.Contains(exe, "dockerd"):
	case t.podman && (exe == "podman" || exe == "systemd"): // systemd listens for the service and starts it on demand
	default:
		return exe + " listens on the daemon's socket, not dockerd"
	}
	if space := procs.Namespace(pid, "pid"); space == "" || space != procs.Namespace(0, "pid") {
		return "the daemon is in another pid namespace"
	}
	return ""
}

// clock returns the clock of the workload's stamps.
func (t *Target) clock() string {
	r := t.info.Runtimes[t.oci()]
	if !t.local {
		return "guest"
	}
	return engine.Clock(t.oci() + " " + filepath.Base(r.Path) + " " + r.Type)
}

// Elsewhere implements subject.Elsewhere.
func (t *Target) Elsewhere() string { return t.remote }
