package cri

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	api "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/containerd"
	"github.com/tare-bench/tare/internal/subject/engine"
)

// patience bounds each query outside of the measurement.
const patience = 10 * time.Second

// lag is how late an engine's list may be: containerd replies to a stop when the process has
// ended, and updates its list afterwards.
const lag = 2 * time.Second

// The engines that serve CRI, by tare's names.
const (
	containerdEngine = "containerd"
	crioEngine       = "cri-o"
	isuladEngine     = "isulad"
	dockerdEngine    = "cri-dockerd"
)

// service is an engine that serves CRI.
type service struct {
	name   string
	socket string // default
	says   string // RuntimeName in its Version, in lower case
	advice string
	old    string // advice for a version without CRI v1; "" for an upgrade
}

var servers = []service{
	{containerdEngine, containerd.DefaultAddress, "containerd", "start containerd with its CRI plugin enabled", ""},
	{crioEngine, "/var/run/crio/crio.sock", "cri-o", "start crio", ""},
	{isuladEngine, "/var/run/isulad.sock", "isulad", "start isulad, built with CRI",
		`build isulad with ENABLE_CRI_API_V1 and set "enable-cri-v1": true in its daemon.json`},
	{dockerdEngine, "/var/run/cri-dockerd.sock", "docker", "start cri-dockerd", ""},
}

// serviceThat returns the first engine that satisfies is.
func serviceThat(is func(service) bool) (s service, found bool) {
	if i := slices.IndexFunc(servers, is); i >= 0 {
		return servers[i], true
	}
	return service{}, false
}

// serviceCalled returns the engine with a RuntimeName.
func serviceCalled(name string) (service, error) {
	s, found := serviceThat(func(s service) bool { return s.says == strings.ToLower(name) })
	if !found {
		return s, fmt.Errorf("unknown CRI engine %q (supported: %s)", name, names())
	}
	return s, nil
}

// Identify returns the name of the engine that serves CRI at a unix socket.
func Identify(ctx context.Context, address string) (name string, err error) {
	socket := engine.Socket(address)
	if socket == "" {
		return "", fmt.Errorf("%q is not the address of a unix socket: give unix:///PATH", address)
	}
	c, err := connect(ctx, socket)
	if err != nil {
		return "", err
	}
	defer c.close()
	v, err := c.version(ctx)
	if err != nil {
		return "", err
	}
	s, err := serviceCalled(v.RuntimeName)
	if err != nil {
		return "", fmt.Errorf("%s: %w", address, err)
	}
	return s.name, nil
}

func names() string {
	var out []string
	for _, s := range servers {
		out = append(out, s.name)
	}
	return strings.Join(out, ", ")
}

// connection is the one gRPC connection that all lanes share, as in a kubelet.
type connection struct {
	socket  string
	conn    *grpc.ClientConn
	runtime api.RuntimeServiceClient
	images  api.ImageServiceClient
}

// connect opens a connection. The error names the problem with the socket.
func connect(ctx context.Context, socket string) (*connection, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	// gRPC would retry silently; a plain connection fails at once.
	probe, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, err // "dial unix SOCKET: …"
	}
	_ = probe.Close()
	conn, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(16<<20))) // a kubelet's limit
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", socket, err)
	}
	return &connection{socket: socket, conn: conn, runtime: api.NewRuntimeServiceClient(conn), images: api.NewImageServiceClient(conn)}, nil
}

func (c *connection) close() { _ = c.conn.Close() }

// errOld means that an engine serves only an older version of CRI.
var errOld = errors.New("serves CRI v1alpha2 only")

// version returns the engine's version. The error wraps errOld if it serves v1alpha2 and not
// v1.
func (c *connection) version(ctx context.Context) (*api.VersionResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	v, err := c.runtime.Version(ctx, &api.VersionRequest{})
	if status.Code(err) != codes.Unimplemented {
		return v, err
	}
	// v1alpha2 has the same messages on the wire.
	old := new(api.VersionResponse)
	if c.conn.Invoke(ctx, "/runtime.v1alpha2.RuntimeService/Version", &api.VersionRequest{}, old) == nil {
		return nil, fmt.Errorf("%s %s %w", old.RuntimeName, old.RuntimeVersion, errOld)
	}
	return nil, fmt.Errorf("%s does not serve CRI: %w", c.socket, err)
}

// open connects to an engine and checks its name.
func open(ctx context.Context, name, engineName string, e subject.Engine) (*connection, *api.VersionResponse, error) {
	k, ok := serviceThat(func(s service) bool { return s.name == engineName })
	if !ok {
		return nil, nil, engine.Unavailable(name, "use one of "+names(), "unknown CRI engine %q", engineName)
	}
	where := cmp.Or(e.Address, k.socket)
	if engineName == containerdEngine {
		where = containerd.Where(e)
	}
	socket := engine.Socket(where)
	if socket == "" {
		return nil, nil, engine.Unavailable(name, "give unix:///PATH", "%q is not the address of a unix socket", where)
	}
	c, err := connect(ctx, socket)
	if err != nil {
		return nil, nil, engine.Unavailable(name, engine.SocketAdvice(err, k.advice+", or give its socket: --cri NAME=unix:///SOCKET", k.advice), "%v", err)
	}
	v, err := c.version(ctx)
	if err == nil && strings.ToLower(v.RuntimeName) != k.says {
		advice := "give the socket of " + engineName
		if other, err := serviceCalled(v.RuntimeName); err == nil {
			advice = "use " + criName(other.name)
		}
		err = engine.Unavailable(name, advice, "%s serves CRI at %s", v.RuntimeName, socket)
	} else if errors.Is(err, errOld) {
		err = engine.Unavailable(name, cmp.Or(k.old, "install a version that serves CRI v1: containerd 1.6, CRI-O 1.23, cri-dockerd 0.3 or newer"), "%v; tare weighs v1", err)
	} else if err != nil {
		err = engine.Unavailable(name, k.advice, "%v", err)
	}
	if err != nil {
		c.close()
		return nil, nil, err
	}
	return c, v, nil
}
