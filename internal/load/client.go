package load

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"time"
)

// clientConfig is what a client is told first. Of an open loop's requests, number k
// is due at k/QPS s and is this client's where k mod Of is Share.
type clientConfig struct {
	URL         string        `json:"url"`
	Resolve     string        `json:"resolve"`        // the address to connect to
	Host        string        `json:"host,omitempty"` // that is asked for, where the URL's is another's
	Connections int           `json:"connections"`
	QPS         float64       `json:"qps"` // of all clients; 0: a closed loop
	KeepAlive   bool          `json:"keep_alive"`
	ResolveEach bool          `json:"resolve_each,omitempty"`
	Duration    time.Duration `json:"duration"`
	Timeout     time.Duration `json:"timeout"`
	Share       int           `json:"share"`
	Of          int           `json:"of"`
}

// check refuses what tare doesn't send: anybody can execute it with the hidden
// argument.
func (c *clientConfig) check() error {
	if _, err := netip.ParseAddr(c.Resolve); err != nil {
		return err
	}
	if c.Of < 1 || c.Of > maxInstances || c.Share < 0 || c.Share >= c.Of {
		return fmt.Errorf("client %d of %d", c.Share, c.Of)
	}
	o := ClientOptions{URL: c.URL, Host: c.Host, Connections: c.Connections, QPS: c.QPS, Duration: c.Duration, Timeout: c.Timeout}
	_, err := o.check()
	return err
}

// clientReady is what it answers, and clientGo what it is told then.
type (
	clientReady struct {
		Ready bool `json:"ready"`
	}
	clientGo struct {
		Begin int64 `json:"begin"` // ns of CLOCK_MONOTONIC
	}
)

// send is the client's process. Everything is there and waits until it is told
// when to begin; the end of its input ends it, whatever it does.
func send(in *bufio.Reader, out io.Writer) error {
	rename("tare-client")
	var config clientConfig
	if err := read(in, &config); err != nil {
		return fmt.Errorf("read what to send: %w", err)
	}
	if err := config.check(); err != nil {
		return fmt.Errorf("what to send: %w", err)
	}
	if err := files(config.Connections); err != nil {
		return err
	}
	s, err := newSender(config)
	if err != nil {
		return err
	}
	if err := write(out, clientReady{true}); err != nil {
		return err
	}
	var told clientGo
	if err := read(in, &told); errors.Is(err, io.EOF) {
		return nil // it isn't wanted any more
	} else if err != nil {
		return fmt.Errorf("read when to begin: %w", err)
	}
	go func() {
		_, _ = in.ReadByte()
		os.Exit(1) // nobody is there to hear the result
	}()
	result, err := s.run(told.Begin)
	if err != nil {
		return err
	}
	return write(out, result)
}
