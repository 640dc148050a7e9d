package podman

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/tare-bench/tare/internal/subject/engine"
)

// client speaks podman's own REST API ("libpod") on a unix socket.
type client struct {
	http    *http.Transport
	address string
	version string // of the API, as the service says: "4.3.1"
}

// mostIdle is how many connections are kept: more than lanes that a batch has in
// practice.
const mostIdle = 512

// connect asks the service for its version.
func connect(ctx context.Context, address string) (*client, error) {
	path := engine.Socket(address)
	if path == "" {
		return nil, fmt.Errorf("%q is no unix socket, and podman's API is weighed on the machine itself only", address)
	}
	dialer := net.Dialer{Timeout: patience}
	c := &client{address: address, http: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, "unix", path)
		},
		MaxIdleConns: mostIdle, MaxIdleConnsPerHost: mostIdle,
		// A round may take minutes between two operations of a target.
		IdleConnTimeout: 10 * time.Minute, DisableCompression: true,
	}}
	reply, err := c.http.RoundTrip(request(ctx, http.MethodGet, "/_ping", nil))
	if err != nil {
		return nil, fmt.Errorf("the service at %s does not answer: %w", address, err)
	}
	defer reply.Body.Close()
	_, _ = io.CopyN(io.Discard, reply.Body, 512)
	c.version = reply.Header.Get("Libpod-Api-Version")
	if reply.StatusCode != http.StatusOK || c.version == "" || strings.Trim(c.version, "0123456789.") != "" {
		return nil, fmt.Errorf("what answers at %s is not podman's service: a ping gave %s, version %q", address, reply.Status, c.version)
	}
	return c, nil
}

func request(ctx context.Context, method, path string, body []byte) *http.Request {
	r := (&http.Request{
		Method: method, URL: &url.URL{Scheme: "http", Host: "podman", Path: path}, Host: "podman",
		Header: http.Header{},
	}).WithContext(ctx)
	if body != nil {
		r.Body = io.NopCloser(bytes.NewReader(body))
		r.ContentLength = int64(len(body))
		r.Header.Set("Content-Type", "application/json")
	}
	return r
}

// path is that of an endpoint, "/containers/NAME/start" for instance.
func (c *client) path(endpoint string) string { return "/v" + c.version + "/libpod" + endpoint }

// APIError is a reply with an unexpected status.
type APIError struct {
	Request string // "POST /libpod/containers/create"
	Status  int
	Message string
}

func (e *APIError) Error() string {
	if e.Message == "" {
		return fmt.Sprintf("%s: status %d", e.Request, e.Status)
	}
	return fmt.Sprintf("%s: status %d: %s", e.Request, e.Status, e.Message)
}

// notFound reports whether podman does not know what it was asked about.
func notFound(err error) bool {
	var e *APIError
	return errors.As(err, &e) && e.Status == http.StatusNotFound
}

// mostReply is the most that is read of a reply.
const mostReply = 32 << 20

// do sends a request, whose context is ctx, and reads the reply.
func (c *client) do(ctx context.Context, r *http.Request, want int) ([]byte, error) {
	reply, err := c.http.RoundTrip(r.WithContext(ctx))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", named(r), err)
	}
	defer reply.Body.Close()
	body, err := io.ReadAll(io.LimitReader(reply.Body, mostReply))
	if reply.StatusCode == want {
		if err != nil {
			err = fmt.Errorf("%s: read the reply: %w", named(r), err)
		}
		return body, err
	}
	return nil, &APIError{Request: named(r), Status: reply.StatusCode, Message: message(body)}
}

func named(r *http.Request) string { return r.Method + " " + r.URL.RequestURI() }

// message is what an error reply says: {"cause","message","response"}, or text.
func message(body []byte) string {
	var e struct {
		Message string `json:"message"`
	}
	text := string(body)
	if json.Unmarshal(body, &e) == nil && e.Message != "" {
		text = e.Message
	}
	if len(text) > 1024 {
		text = text[:1024] + " …"
	}
	return strings.TrimSpace(text)
}

// call is a request that is not measured. query may be nil.
func (c *client) call(ctx context.Context, method, endpoint string, query url.Values) ([]byte, error) {
	r := request(ctx, method, c.path(endpoint), nil)
	r.URL.RawQuery = query.Encode()
	return c.do(ctx, r, http.StatusOK)
}

// warm leaves n connections open and idle, so that none has to be made, and
// none is found to be dead, in what is timed. A connection is in use until its
// reply has been read: so n replies are held at once.
func (c *client) warm(ctx context.Context, n int) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for range n {
		reply, err := c.http.RoundTrip(request(ctx, http.MethodGet, "/_ping", nil))
		if err != nil {
			return fmt.Errorf("the service at %s does not answer: %w", c.address, err)
		}
		defer func() {
			_, _ = io.CopyN(io.Discard, reply.Body, 512)
			reply.Body.Close()
		}()
		if reply.StatusCode != http.StatusOK {
			return fmt.Errorf("the service at %s answered a ping with %s", c.address, reply.Status)
		}
	}
	return nil
}
