package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"

	"github.com/moby/moby/api/types/container"

	"github.com/tare-bench/tare/internal/probe/image"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/engine"
)

// dockerClient makes bare requests. Their bodies are encoded before.
type dockerClient struct {
	clientOrders
	http  *http.Transport
	image string
	name  string // of what it holds
}

func newDockerClient(o clientOrders) (*dockerClient, error) {
	i, err := image.Probe()
	if err != nil {
		return nil, err
	}
	socket := engine.Socket(o.Address)
	return &dockerClient{clientOrders: o, image: i.Ref, http: &http.Transport{
		DisableCompression: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		},
	}}, nil
}

func (c *dockerClient) close(context.Context) error {
	c.http.CloseIdleConnections()
	return nil
}

func (c *dockerClient) request(ctx context.Context, method, path string, body []byte) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, method, "http://docker/v"+c.API+"/containers/"+path, bytes.NewReader(body))
	if err == nil && body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	return r, err
}

// exchange sends a request and reads the whole reply.
func (c *dockerClient) exchange(r *http.Request) ([]byte, error) {
	reply, err := c.http.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = reply.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(reply.Body, 1<<20))
	if err == nil && reply.StatusCode >= http.StatusBadRequest {
		err = fmt.Errorf("%s %s: %s: %s", r.Method, r.URL.Path, reply.Status, text)
	}
	return text, err
}

// creation is the body of the request that makes a container.
func (c *dockerClient) creation() ([]byte, error) {
	host := &container.HostConfig{NetworkMode: subject.NetworkNone, Runtime: ociRuntime}
	host.Memory, host.CPUShares, host.PidsLimit = c.Limits.Memory, c.Limits.CPUShares, &c.Limits.Pids
	return json.Marshal(container.CreateRequest{
		Config:     &container.Config{Image: c.image, Cmd: []string{c.name}, Labels: map[string]string{engine.RunLabel: c.RunID}},
		HostConfig: host,
	})
}

func (c *dockerClient) prepare(ctx context.Context, op subject.Op) (call, after func(context.Context) error, err error) {
	method, path := http.MethodPost, ""
	var body []byte
	switch op {
	case subject.Create, subject.Run:
		c.name = engine.NewName(c.RunID, 0)
		if body, err = c.creation(); err != nil {
			return nil, nil, err
		}
		path = "create?name=" + url.QueryEscape(c.name)
	case subject.Start:
		path, after = c.name+"/start", c.heard
	case subject.Stop:
		path = c.name + "/stop"
	case subject.Remove:
		method, path = http.MethodDelete, c.name
	}
	r, err := c.request(ctx, method, path, body)
	return func(ctx context.Context) error {
		reply, err := c.exchange(r)
		if err != nil || op != subject.Run {
			return err
		}
		var made struct{ ID string }
		if err := json.Unmarshal(reply, &made); err != nil {
			return err
		}
		second, err := c.request(ctx, http.MethodPost, made.ID+"/start", nil)
		if err == nil {
			_, err = c.exchange(second)
		}
		return err
	}, after, err
}

// heard waits for the workload's line.
func (c *dockerClient) heard(ctx context.Context) error {
	return until(ctx, "wait for the workload", func() bool {
		r, err := c.request(ctx, http.MethodGet, c.name+"/logs?stdout=1", nil)
		if err != nil {
			return false
		}
		text, err := c.exchange(r)
		return err == nil && bytes.HasSuffix(text, []byte("\n"))
	})
}

func (c *dockerClient) discard(ctx context.Context) error {
	if c.name == "" {
		return nil
	}
	r, err := c.request(ctx, http.MethodDelete, c.name+"?force=1", nil)
	if err != nil {
		return err
	}
	reply, err := c.http.RoundTrip(r)
	if err != nil {
		return err
	}
	defer func() { _ = reply.Body.Close() }()
	_, _ = io.Copy(io.Discard, io.LimitReader(reply.Body, 1<<20))
	if reply.StatusCode >= http.StatusBadRequest && reply.StatusCode != http.StatusNotFound {
		return fmt.Errorf("remove %s: %s", c.name, reply.Status)
	}
	c.name = ""
	return nil
}
