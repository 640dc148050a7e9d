package containerd

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/containerd/containerd/v2/client"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/engine"
)

// patience bounds each query outside of the measurement.
const patience = 10 * time.Second

// runtimeV2 is the shim for OCI runtimes, and containerd's default.
const runtimeV2 = "io.containerd.runc.v2"

// DefaultAddress is containerd's default socket.
const DefaultAddress = "/run/containerd/containerd.sock"

// ownNamespace is the default namespace for tare's containers. containerd's namespaces isolate
// clients, so tare cannot touch the containers, images and snapshots of others. "default", ctr's
// choice, is shared by all clients that never chose one.
const ownNamespace = "tare"

// address is the socket of an engine and the namespace for tare's objects.
type address struct {
	socket    string
	namespace string
}

// Where returns the address of containerd, for its own API and CRI.
func Where(e subject.Engine) string {
	return cmp.Or(e.Address, e.Env["CONTAINERD_ADDRESS"], os.Getenv("CONTAINERD_ADDRESS"), DefaultAddress)
}

func addressOf(e subject.Engine) (address, error) {
	where := Where(e)
	p := address{socket: engine.Socket(where), namespace: cmp.Or(e.Namespace, e.Env["CONTAINERD_NAMESPACE"], os.Getenv("CONTAINERD_NAMESPACE"), ownNamespace)}
	if p.socket == "" {
		return p, fmt.Errorf("%q is not the address of a unix socket", where)
	}
	return p, nil
}

// Connect returns a client of the containerd at a socket. The error names the problem with the
// socket.
func Connect(ctx context.Context, socket, namespace string) (*client.Client, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	// gRPC would retry silently; a plain connection fails at once.
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, err // "dial unix SOCKET: …"
	}
	conn.Close() //nolint:errcheck // opened only to test the socket
	c, err := client.New(socket, client.WithDefaultNamespace(namespace), client.WithDefaultRuntime(runtimeV2), client.WithTimeout(patience))
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", socket, err)
	}
	return c, nil
}

// adviceFor returns advice on how to get a socket to answer.
func adviceFor(err error) string {
	return engine.SocketAdvice(err, engine.Starting("containerd", "containerd", "containerd")+", or give its socket with --containerd-address", "check containerd with: ctr version")
}

// oldest is the first supported version.
var oldest = version.MustParseGeneric("1.6")

// supported reports whether a version such as "1.6.20~ds1" or "v2.4.2" is new enough. Versions that
// cannot be parsed are accepted: development builds have "dev" or a hash.
func supported(text string) bool {
	v, err := version.ParseGeneric(text)
	return err != nil || v.AtLeast(oldest)
}

// searchOf returns the search path on which the daemon finds its shims and the shims find their
// runtimes. For a daemon that is not trusted it is tare's own PATH. letGo releases the search
// path.
func searchOf(socket string) (in search, letGo func()) {
	d, err := DaemonOf(socket)
	if err != nil {
		return search{path: os.Getenv("PATH")}, func() {}
	}
	return d.search(), d.Close
}
