package load

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
)

// clientConfig is what each client is told first. Of an open loop's requests, number k is due
// at k/QPS s and is this client's where k mod Instances is Share.
type clientConfig struct {
	ClientOptions        // of all clients together
	Resolve       string // the address to connect to
	Share         int    // which of the clients it is, from 0
}

// check refuses what tare doesn't send: anybody can execute it with the hidden
// argument.
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

// send is the client's process. Everything is there and waits, once it has said true,
// until it is told when to begin (ns of CLOCK_MONOTONIC); the end of its input ends it,
// whatever it does.
func send(in *bufio.Reader, out io.Writer) error {
	rename("tare-client")
	var config clientConfig
	if err := read(in, &config); err != nil {
		return fmt.Errorf("read what to send: %w", err)
	}
	if err := config.check(); err != nil {
		return fmt.Errorf("what to send: %w", err)
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
		return nil // it isn't wanted any more
	} else if err != nil {
		return fmt.Errorf("read when to begin: %w", err)
	}
	go func() {
		_, _ = in.ReadByte()
		os.Exit(1) // nobody is there to hear the result
	}()
	result, err := s.run(begin)
	if err != nil {
		return err
	}
	return write(out, result)
}
