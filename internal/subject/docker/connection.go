package docker

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/moby/moby/client"

	"github.com/tare-bench/tare/internal/subject/engine"
)

// maxConnections is how many connections are kept open: more than lanes that
// a batch has in practice.
const maxConnections = 512

// connection is Docker's own client over a transport that keeps as many
// connections as there are lanes.
type connection struct {
	*client.Client
	address
	http *http.Transport
	ping *url.URL
	said string // the requests' Host, where it is not that of their URL
}

// keeper hides the transport's type from Docker's client, which would copy it,
// and whose copy could not be warmed up. It bounds the replies, which that
// client reads to their end.
type keeper struct{ *http.Transport }

// The longest replies. A listed container takes some 2 KiB; decoded, a list of
// empty ones takes a hundred times its text.
const (
	maxReply   = 4 << 20
	maxImage   = 32 << 30 // one that is saved into a file
	maxHeaders = 256 << 10
)

// RoundTrip implements http.RoundTripper.
func (k keeper) RoundTrip(r *http.Request) (*http.Response, error) {
	reply, err := k.Transport.RoundTrip(r)
	if err == nil {
		most := maxReply
		if r.Context().Value(saving{}) != nil {
			most = maxImage
		}
		reply.Body = &bounded{ReadCloser: reply.Body, most: most, left: most}
	}
	return reply, err
}

// saving marks the context of a request whose reply is an image.
type saving struct{}

// bounded is a reply that fails where it gets too long: cut off it would be
// taken for whole.
type bounded struct {
	io.ReadCloser
	most, left int
}

func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p[:min(len(p), b.left+1)])
	if n > b.left {
		n, err = b.left, fmt.Errorf("the reply is longer than %d MiB", b.most>>20)
	}
	b.left -= n
	return n, err
}

// connect makes a client. Nothing is sent yet.
func connect(a address) (*connection, error) {
	at, err := client.ParseHostURL(a.host)
	if err != nil {
		return nil, err
	}
	c := &connection{address: a, http: &http.Transport{
		MaxIdleConns: maxConnections, MaxIdleConnsPerHost: maxConnections,
		// A round may take minutes between two operations of a target.
		IdleConnTimeout:    10 * time.Minute,
		DisableCompression: true,
		// Of a reply; the body's bound is keeper's.
		MaxResponseHeaderBytes: maxHeaders,
		TLSClientConfig:        a.secure,
	}}
	dialer := net.Dialer{Timeout: patience}
	switch at.Scheme {
	case "unix":
		path := engine.Socket(a.host)
		if path == "" {
			return nil, fmt.Errorf("the socket's path %q is not absolute", at.Host)
		}
		c.http.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, "unix", path)
		}
		c.said = client.DummyHost
	case "tcp":
		c.http.Proxy = http.ProxyFromEnvironment
		c.http.DialContext = dialer.DialContext
	default:
		return nil, fmt.Errorf("%q is neither unix:// nor tcp://; run tare on the daemon's machine", a.host)
	}
	scheme := "http"
	if a.secure != nil {
		scheme = "https"
	}
	c.Client, err = client.New(client.WithHost(a.host), client.WithScheme(scheme),
		client.WithHTTPClient(&http.Client{Transport: keeper{c.http}, CheckRedirect: client.CheckRedirect}))
	if err != nil {
		return nil, err
	}
	// The pool goes by scheme and host: as the client's own requests have them.
	c.ping = &url.URL{Scheme: scheme, Host: at.Host, Path: strings.TrimSuffix(at.Path, "/") + "/_ping"}
	return c, nil
}

// remote tells that the daemon cannot be on this machine.
func (a address) remote() bool { return engine.Socket(a.host) == "" }

// warm leaves n connections open and idle, so that none has to be made, and
// none is found to be dead, in what is timed. A connection is in use until its
// reply has been read: so n replies are held at once.
func (c *connection) warm(ctx context.Context, n int) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var replies []*http.Response
	defer func() {
		for _, r := range replies {
			_, _ = io.CopyN(io.Discard, r.Body, 512)
			_ = r.Body.Close()
		}
	}()
	for range n {
		reply, err := c.knock(ctx) //nolint:bodyclose // closed above, all together
		if err != nil {
			return fmt.Errorf("the daemon at %s does not answer: %w", c.host, c.plain(err))
		}
		replies = append(replies, reply) //nolint:bodyclose // closed above, all together
		if reply.StatusCode != http.StatusOK {
			return fmt.Errorf("the daemon at %s answered a ping with %s", c.host, reply.Status)
		}
	}
	return nil
}

// knock sends a ping over a connection that is idle, or a new one.
func (c *connection) knock(ctx context.Context) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "/_ping", nil)
	if err != nil {
		return nil, err
	}
	request.URL, request.Host = c.ping, c.said // a socket's path is no host that could be parsed
	return c.http.RoundTrip(request)
}

// plain says of a request without a reply what became of it, and leaves out
// what says nothing to people: the request's URL with the escaped socket.
func (c *connection) plain(err error) error {
	var u *url.Error
	if !errors.As(err, &u) {
		return err
	}
	if errors.Is(u, context.Canceled) || errors.Is(u, context.DeadlineExceeded) {
		return u.Err
	}
	return fmt.Errorf("no reply from the daemon at %s: %w; did it end?", c.host, u.Err)
}

// tlsKind is what the record says of it.
func tlsKind(c *tls.Config) string {
	switch {
	case c == nil:
		return "none"
	case c.InsecureSkipVerify:
		return "unverified"
	}
	return "verified"
}
