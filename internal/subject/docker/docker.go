// Package docker weighs what runs under Docker: any runtime that a daemon has
// registered, through the Engine API or through the docker command.
//
// With the API each operation is one request of Docker's own Go client, run is
// two, and all lanes share one client, as a program that drives Docker does.
// That client keeps two idle connections by default, so that of a hundred
// callers most would open a new one in the midst of an operation; here every
// lane has one that is open before the release, kept alive as between a kubelet
// or a CI runner and its daemon. Opening one takes a unix socket some 50 µs.
//
// With the command each operation is a process of its own, which opens a
// connection, asks for the API's version and sends the request: what people wait
// for. Preparation and truth go through the API in both cases and are not timed.
//
// The daemon may be elsewhere (tcp://). Its processes and its clock are
// then not this machine's: there are no stamps of the workload.
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

// The ways to drive a daemon.
const (
	viaAPI = "api"
	viaCLI = "cli"
)

// patience is how long New waits for a daemon, and a question for its answer.
const patience = 10 * time.Second

// Target is one runtime under one daemon.
type Target struct {
	*connection
	name    string
	runtime string // as given: "" is the daemon's default
	via     string
	engine  subject.Engine
	network string
	command *cli.Program // nil with the API
	info    system.Info
	version client.ServerVersionResult
	local   bool                // the daemon's processes and clock are this machine's
	afar    string              // why not
	program string              // version of the runtime, "" where it is not known
	client  string              // version of the docker command
	podman  bool                // it is Podman's service that answers
	ulimits []*container.Ulimit // to be asked for, nil for the daemon's own
}

// New returns a runtime of a daemon as a target; "" is the daemon's default
// runtime. The error is a *subject.Unavailable when it cannot be weighed here.
func New(ctx context.Context, name, runtime, via string, e subject.Engine) (subject.Target, error) {
	t := &Target{name: name, runtime: runtime, via: via, engine: e, network: cmp.Or(e.Network, subject.NetworkNone)}
	if !slices.Contains([]string{subject.NetworkNone, subject.NetworkBridge, subject.NetworkHost}, t.network) {
		return nil, engine.Unavailable(name, "choose none, bridge or host", "there is no network %q", t.network)
	}
	if via != viaAPI && via != viaCLI {
		return nil, engine.Unavailable(name, "choose api or cli", "Docker is not driven via %q", via)
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := t.ask(ctx); err != nil {
		return nil, err
	}
	r, registered := t.info.Runtimes[t.oci()]
	if !registered {
		return nil, engine.Unavailable(name, "register it in /etc/docker/daemon.json under \"runtimes\" and reload the daemon",
			"the daemon at %s has no runtime %q; it has %s", t.host, runtime, strings.Join(names(t.info), ", "))
	}
	if via == viaCLI {
		if err := t.findCommand(ctx); err != nil {
			return nil, err
		}
	}
	if t.podman && t.runtime != "" && t.runtime != t.info.DefaultRuntime {
		return nil, engine.Unavailable(name, fmt.Sprintf("weigh podman/%s, or start a service for it and name its address: podman --runtime %s system service --time 0 unix:///run/podman/%s.sock", runtime, runtime, filepath.Base(runtime)),
			"Podman's service does not tell which runtime a container got; its own is %s", t.info.DefaultRuntime)
	}
	t.locate()
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

// Runtimes lists the runtimes of a daemon, its default first. Further names for
// runc that every daemon has are left out. The error is a *subject.Unavailable
// when there is no daemon.
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

// ask connects to the daemon and has it introduce itself.
func (t *Target) ask(ctx context.Context) error {
	at, err := find(t.engine)
	if err == nil {
		t.connection, err = connect(at)
	}
	if err != nil {
		return engine.Unavailable(t.name, "give the daemon's address, or set DOCKER_HOST", "%v", err)
	}
	err = t.introduce(ctx)
	if err != nil {
		t.http.CloseIdleConnections()
	}
	return err
}

func (t *Target) introduce(ctx context.Context) error {
	if _, err := t.Ping(ctx, client.PingOptions{NegotiateAPIVersion: true}); err != nil {
		return t.unreachable(ctx, err)
	}
	var err error
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
		return engine.Unavailable(t.name, "use one that runs Linux containers", "the daemon at %s runs %q containers", t.host, t.info.OSType)
	}
	if arch := architectures[t.info.Architecture]; arch != runtime.GOARCH {
		return engine.Unavailable(t.name, "run the tare of that architecture", "the daemon's machine is %s, and this tare's workload is a program for %s", t.info.Architecture, runtime.GOARCH)
	}
	return nil
}

// architectures are Go's names of what uname -m says.
var architectures = map[string]string{"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}

// unreachable says why a daemon cannot be used, and what would change that.
func (t *Target) unreachable(ctx context.Context, err error) error {
	where := fmt.Sprintf("%s (%s)", t.host, t.from)
	socket := engine.Socket(t.host)
	_, missing := os.Stat(socket)
	switch {
	case socket != "" && os.IsNotExist(missing):
		return engine.Unavailable(t.name, engine.Starting("dockerd", "docker", "docker.io"), "there is no Docker daemon at %s", where)
	case socket != "" && (os.IsPermission(missing) || strings.Contains(err.Error(), "permission denied")):
		return engine.Unavailable(t.name, "run tare as root (sudo tare …)", "no permission for the Docker daemon at %s", where)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return engine.Unavailable(t.name, "docker info shows whether it answers others", "the Docker daemon at %s did not answer in time (%v at most)", where, patience)
	case cerrdefs.IsInvalidArgument(err) && strings.Contains(err.Error(), "API version"):
		return engine.Unavailable(t.name, "upgrade Docker: 19.03 is the oldest that can be weighed", "the Docker daemon at %s: %v", where, err)
	}
	return engine.Unavailable(t.name, "systemctl status docker tells whether it runs", "the Docker daemon at %s: %v", where, t.plain(err))
}

// oci is the runtime's name in the daemon's configuration.
func (t *Target) oci() string { return cmp.Or(t.runtime, t.info.DefaultRuntime) }

// callings are all by which the runtime may be known: its name, its program, its
// shim's type and its own words.
func (t *Target) callings() []string {
	r := t.info.Runtimes[t.oci()]
	return []string{t.oci(), r.Path, r.Type, t.program}
}

// locate finds out whether the daemon is on this machine: a socket here may
// also lead to a virtual machine or through a tunnel.
func (t *Target) locate() {
	if t.remote() {
		t.afar = "the daemon is reached over the network"
		return
	}
	pid, err := procs.Listener(engine.Socket(t.host))
	if err != nil {
		t.afar = err.Error()
		return
	}
	exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	if err != nil {
		t.afar = fmt.Sprintf("the daemon's process %d cannot be looked at", pid)
		return
	}
	exe = filepath.Base(strings.TrimSuffix(exe, " (deleted)")) // by an upgrade
	switch {
	case strings.Contains(exe, "dockerd"):
	case t.podman && (exe == "podman" || exe == "systemd"): // which listens for a service that it starts when it is asked
	default:
		t.afar = exe + " listens on the daemon's socket, which is no dockerd"
		return
	}
	if space := procs.Namespace(pid, "pid"); space == "" || space != procs.Namespace(0, "pid") {
		t.afar = "the daemon has a pid namespace of its own"
		return
	}
	t.local = true
}

// clock says whose clock the workload's stamps are of.
func (t *Target) clock() string {
	r := t.info.Runtimes[t.oci()]
	if !t.local || engine.GuestClock(t.oci()) || engine.GuestClock(filepath.Base(r.Path)) || engine.GuestClock(r.Type) {
		return "guest"
	}
	return "host"
}

// Elsewhere implements subject.Elsewhere.
func (t *Target) Elsewhere() string { return t.afar }
