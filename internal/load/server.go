package load

import (
	"context"
	"fmt"
	"net/netip"
	"time"
)

// Server is fortio's echo server in a separate process. It understands fortio's parameters:
// "?size=1000", "?delay=10ms", "?status=503:10".
type Server struct {
	child *child
	addr  netip.AddrPort
}

// Serve starts a server and waits until it answers. The end of ctx ends it.
func Serve(ctx context.Context) (*Server, error) {
	c, err := begin(ctx, verbServer, "the load's server", nil, nil, nil)
	if err != nil {
		return nil, err
	}
	var address string
	if err := c.hear(&address, time.Now().Add(patience)); err != nil {
		_ = c.close() // err has the reason
		return nil, err
	}
	addr, err := netip.ParseAddrPort(address)
	if err != nil {
		_ = c.close()
		return nil, fmt.Errorf("parse the address of the load's server %.60q: %w", address, err)
	}
	return &Server{child: c, addr: addr}, nil
}

// URL returns the URL of the server.
func (s *Server) URL() string { return "http://" + s.addr.String() + "/" }

// Addr returns the address of the server.
func (s *Server) Addr() netip.AddrPort { return s.addr }

// CPU returns the CPU time of the server's process in ns, or -1 if unknown.
func (s *Server) CPU() int64 { return s.child.cpu() }

// Close ends the server. It returns an error if the server had ended before.
func (s *Server) Close() error { return s.child.close() }
