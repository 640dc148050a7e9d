package containerd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/containerd/containerd/v2/client"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/engine"
)

// patience bounds every question that is asked of an engine outside of what is
// timed.
const patience = 10 * time.Second

// runtimeV2 is what runs OCI runtimes; it is also containerd's default.
const runtimeV2 = "io.containerd.runc.v2"

// DefaultAddress is where containerd listens unless told otherwise.
const DefaultAddress = "/run/containerd/containerd.sock"

// ownNamespace is where containers are made when none is named.
// containerd's namespaces keep clients apart, so one of tare's own leaves the
// containers, images and snapshots of others out of its reach; "default", which
// ctr takes, is also that of whoever never chose one.
const ownNamespace = "tare"

// address is where an engine is reached and in which of its namespaces things are
// made.
type address struct {
	socket    string
	namespace string
}

// Where is the address of a containerd, of its own API and of CRI.
func Where(e subject.Engine) string {
	return cmp.Or(e.Address, e.Env["CONTAINERD_ADDRESS"], os.Getenv("CONTAINERD_ADDRESS"), DefaultAddress)
}

func addressOf(e subject.Engine) (address, error) {
	where := Where(e)
	p := address{socket: engine.Socket(where), namespace: cmp.Or(e.Namespace, e.Env["CONTAINERD_NAMESPACE"], os.Getenv("CONTAINERD_NAMESPACE"), ownNamespace)}
	if p.socket == "" {
		return p, fmt.Errorf("the address %q is no unix socket's", where)
	}
	return p, nil
}

// Connect returns a client of the containerd at a socket. The error tells what
// is wrong with the socket; nothing was made.
func Connect(ctx context.Context, socket, namespace string) (*client.Client, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	// gRPC would retry in silence; a plain connection says at once what is wrong.
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, err // "dial unix SOCKET: …"
	}
	conn.Close() //nolint:errcheck // it was opened for the answer only
	c, err := client.New(socket, client.WithDefaultNamespace(namespace), client.WithDefaultRuntime(runtimeV2), client.WithTimeout(patience))
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", socket, err)
	}
	return c, nil
}

// adviceFor is the step that makes a socket answer.
func adviceFor(err error) string {
	switch {
	case errors.Is(err, os.ErrNotExist):
		return engine.Starting("containerd", "containerd", "containerd") + ", or name its socket with --containerd-address"
	case errors.Is(err, os.ErrPermission):
		return "run tare as root (sudo tare …)"
	}
	return "see whether containerd is up: ctr version"
}

// oldest is the first version whose answers are known here.
var oldest = version.MustParseGeneric("1.6")

// supported reports whether a version, "1.6.20~ds1" or "v2.4.2", is not too old. What
// cannot be read is given the benefit of the doubt: builds from a tree say "dev" or a hash.
func supported(text string) bool {
	v, err := version.ParseGeneric(text)
	return err != nil || v.AtLeast(oldest)
}

// searchOf is where the daemon finds its shims, and they their runtimes; tare's
// own PATH where the daemon is not to be trusted. letGo ends its use.
func searchOf(socket string) (in search, letGo func()) {
	d, err := DaemonOf(socket)
	if err != nil {
		return search{path: os.Getenv("PATH")}, func() {}
	}
	return d.search(), d.Close
}
