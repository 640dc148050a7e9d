package load

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
)

// clientConfig is the configuration of a client. In an open loop, request k is due k/QPS
// seconds after the start. The client sends it if k mod Instances is Share.
type clientConfig struct {
	ClientOptions        // of all clients together
	Resolve       string // the address to connect to
	Share         int    // index of the client, from 0
}

// check validates the configuration: any user can execute tare with the hidden argument.
func (c *clientConfig) check() error {
	if _, err := netip.ParseAddr(c.Resolve); err != nil {
		return err
	}
	if c.Share < 0 || c.Share >= c.Instances {
		return fmt.Errorf("client %d of %d", c.Share, c.Instances)
	}
	_, err := c.ClientOptions.check()
	return err
}

// send is the client's process. It writes true when it is ready, and reads the time to begin
// (ns of CLOCK_MONOTONIC). The end of its input ends it at any time.
func send(in *bufio.Reader, out io.Writer) error {
	rename("tare-client")
	var config clientConfig
	if err := read(in, &config); err != nil {
		return fmt.Errorf("read the configuration: %w", err)
	}
	if err := config.check(); err != nil {
		return fmt.Errorf("the configuration: %w", err)
	}
	config.Connections = share(config.Connections, config.Share, config.Instances)
	if err := files(config.Connections); err != nil {
		return err
	}
	s, err := newSender(config)
	if err != nil {
		return err
	}
	if err := write(out, true); err != nil {
		return err
	}
	var begin int64
	if err := read(in, &begin); errors.Is(err, io.EOF) {
		return nil // cancelled
	} else if err != nil {
		return fmt.Errorf("read the time to begin: %w", err)
	}
	go func() {
		_, _ = in.ReadByte()
		os.Exit(1) // tare has ended
	}()
	result, err := s.run(begin)
	if err != nil {
		return err
	}
	return write(out, result)
}
