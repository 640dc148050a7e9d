package cri

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
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

// patience bounds every question that is asked of an engine outside of what is
// timed.
const patience = 10 * time.Second

// lag is how long an engine's list may be behind its replies: containerd replies
// to a stop when the process is gone, and takes note of that a moment later.
const lag = 2 * time.Second

// The engines that serve CRI, by their names here.
const (
	containerdEngine = "containerd"
	crioEngine       = "cri-o"
	isuladEngine     = "isulad"
	dockerdEngine    = "cri-dockerd"
)

// known is an engine: where it listens by default, what it calls itself, and
// how to start it.
type known struct {
	name   string
	socket string
	says   string // runtime_name of its Version, in small letters
	advice string
}

var servers = []known{
	{containerdEngine, containerd.DefaultAddress, "containerd", "start containerd with its CRI plugin enabled"},
	{crioEngine, "/var/run/crio/crio.sock", "cri-o", "start crio"},
	{isuladEngine, "/var/run/isulad.sock", "isulad", "start isulad, built with CRI"},
	{dockerdEngine, "/var/run/cri-dockerd.sock", "docker", "start cri-dockerd"},
}

// engineThat is the first of which something holds.
func engineThat(holds func(known) bool) (k known, found bool) {
	if i := slices.IndexFunc(servers, holds); i >= 0 {
		return servers[i], true
	}
	return known{}, false
}

// saying is the engine that calls itself so.
func saying(name string) (known, bool) {
	return engineThat(func(k known) bool { return k.says == strings.ToLower(name) })
}

// Identify tells which engine serves CRI at an address, a unix socket's.
func Identify(ctx context.Context, address string) (name string, err error) {
	socket := engine.Socket(address)
	if socket == "" {
		return "", fmt.Errorf("%q is no address of a unix socket; give unix:///PATH", address)
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
	if k, is := saying(v.RuntimeName); is {
		return k.name, nil
	}
	return "", fmt.Errorf("%s at %s is no engine that tare knows: it knows %s", v.RuntimeName, address, strings.Join(names(), ", "))
}

func names() []string {
	var out []string
	for _, k := range servers {
		out = append(out, k.name)
	}
	return out
}

// connection is the one gRPC connection that all lanes share, as those of a
// kubelet do.
type connection struct {
	socket  string
	conn    *grpc.ClientConn
	runtime api.RuntimeServiceClient
	images  api.ImageServiceClient
}

// connect opens it. The error tells what is wrong with the socket.
func connect(ctx context.Context, socket string) (*connection, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	// gRPC would retry in silence; a plain connection says at once what is wrong.
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

// errOld is an engine that serves an older version of CRI only.
var errOld = errors.New("serves CRI v1alpha2 only")

// version asks what the engine is. The error wraps errOld when it serves
// v1alpha2 and not v1.
func (c *connection) version(ctx context.Context) (*api.VersionResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	v, err := c.runtime.Version(ctx, &api.VersionRequest{})
	if status.Code(err) != codes.Unimplemented {
		return v, err
	}
	// Its messages are the same on the wire.
	old := new(api.VersionResponse)
	if c.conn.Invoke(ctx, "/runtime.v1alpha2.RuntimeService/Version", &api.VersionRequest{}, old) == nil {
		return nil, fmt.Errorf("%s %s %w", old.RuntimeName, old.RuntimeVersion, errOld)
	}
	return nil, fmt.Errorf("%s serves no CRI: %w", c.socket, err)
}

// open connects to the engine of that name and asks what it is.
func open(ctx context.Context, name, engineName string, e subject.Engine) (*connection, *api.VersionResponse, error) {
	k, ok := engineThat(func(k known) bool { return k.name == engineName })
	if !ok {
		return nil, nil, engine.Unavailable(name, "name one of "+strings.Join(names(), ", "), "tare does not know the CRI engine %q", engineName)
	}
	where := cmp.Or(e.Address, k.socket)
	if engineName == containerdEngine {
		where = containerd.Where(e)
	}
	socket := engine.Socket(where)
	if socket == "" {
		return nil, nil, engine.Unavailable(name, "give unix:///PATH", "%q is no address of a unix socket", where)
	}
	c, err := connect(ctx, socket)
	if err != nil {
		return nil, nil, engine.Unavailable(name, adviceFor(err, k), "%v", err)
	}
	v, err := c.version(ctx)
	if err == nil && strings.ToLower(v.RuntimeName) != k.says {
		advice := "name the socket of " + engineName
		if other, is := saying(v.RuntimeName); is {
			advice = "call it " + criName(other.name)
		}
		err = engine.Unavailable(name, advice, "it is %s that serves CRI at %s", v.RuntimeName, socket)
	} else if errors.Is(err, errOld) {
		err = engine.Unavailable(name, oldAdvice(engineName), "%v; tare weighs v1", err)
	} else if err != nil {
		err = engine.Unavailable(name, k.advice, "%v", err)
	}
	if err != nil {
		c.close()
		return nil, nil, err
	}
	return c, v, nil
}

func oldAdvice(engineName string) string {
	if engineName == isuladEngine {
		return `build isulad with ENABLE_CRI_API_V1 and set "enable-cri-v1": true in its daemon.json`
	}
	return "install a version that serves CRI v1: containerd 1.6, CRI-O 1.23, cri-dockerd 0.3 or newer"
}

func adviceFor(err error, k known) string {
	switch {
	case errors.Is(err, os.ErrNotExist):
		return k.advice + ", or give the address of its socket: --cri NAME=unix:///SOCKET"
	case errors.Is(err, os.ErrPermission):
		return "run tare as root (sudo tare …)"
	}
	return k.advice
}
