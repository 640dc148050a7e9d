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

	"github.com/tare-bench/tare/internal/cargo"
	"github.com/tare-bench/tare/internal/subject/engine"
)

// maxConnections is the number of idle connections to keep. In practice there are fewer lanes.
const maxConnections = 512

// connection is Docker's client on a transport that keeps one connection per lane.
type connection struct {
	*client.Client
	address
	http *http.Transport
	base *url.URL
	said string // the requests' Host if it differs from their URL
}

// keeper hides the transport's type from Docker's client, which would otherwise copy it, and the
// copy could not be warmed up. It bounds replies, which that client reads completely.
type keeper struct{ *http.Transport }

// Limits of replies. A listed container has about 2 KiB; a list of empty objects needs a hundred
// times its size when decoded.
const (
	maxReply   = 4 << 20
	maxImage   = 32 << 30 // saved to a file
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
		reply.Body = &cargo.Bounded{ReadCloser: reply.Body, Left: most, Err: fmt.Errorf("reply exceeds %d MiB", most>>20)}
	}
	return reply, err
}

// saving is the context key of a request for an image.
type saving struct{}

// connect makes a client. It sends nothing.
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
		// keeper bounds the bodies.
		MaxResponseHeaderBytes: maxHeaders,
		TLSClientConfig:        a.secure,
	}}
	dialer := net.Dialer{Timeout: patience}
	switch at.Scheme {
	case "unix":
		path := engine.Socket(a.host)
		if path == "" {
			return nil, fmt.Errorf("socket path %q is not absolute", at.Host)
		}
		c.http.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, "unix", path)
		}
		c.said = client.DummyHost
	case "tcp":
		c.http.Proxy = http.ProxyFromEnvironment
		c.http.DialContext = dialer.DialContext
	default:
		return nil, fmt.Errorf("unsupported address %q (supported: unix://, tcp://): run tare on the daemon's machine", a.host)
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
	// Use the scheme and host of the client's requests: they are the key of the connection pool.
	c.base = &url.URL{Scheme: scheme, Host: at.Host, Path: "/" + strings.Trim(at.Path, "/")}
	return c, nil
}

// warm leaves n connections open and idle, so that no timed call opens one or meets a dead one. A
// connection is in use until its reply is read, so n replies are held at a time.
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
		reply, err := c.request(ctx, http.MethodGet, "_ping", "") //nolint:bodyclose // closed above, all together
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

// request sends a request without the client, over an idle or a new connection.
func (c *connection) request(ctx context.Context, method, path, body string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, "/", strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.URL, r.Host = c.base.JoinPath(path), c.said // a socket's path cannot be parsed as a host
	r.Header.Set("Content-Type", "application/json")
	return c.http.RoundTrip(r)
}

// plain simplifies the error of a request without a reply: it omits the URL with the escaped
// socket.
func (c *connection) plain(err error) error {
	u, ok := errors.AsType[*url.Error](err)
	if !ok {
		return err
	}
	if errors.Is(u, context.Canceled) || errors.Is(u, context.DeadlineExceeded) {
		return u.Err
	}
	return fmt.Errorf("no reply from the daemon at %s: %w; check that it runs", c.host, u.Err)
}

// tlsKind describes the TLS configuration for the record.
func tlsKind(c *tls.Config) string {
	switch {
	case c == nil:
		return "none"
	case c.InsecureSkipVerify:
		return "unverified"
	}
	return "verified"
}
