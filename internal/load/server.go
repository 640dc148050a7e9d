package load

import (
	"context"
	"fmt"
	"net/netip"
	"time"
)

// Server is fortio's echo server in a process of its own. What a URL asks of it is
// fortio's: "?size=1000", "?delay=10ms", "?status=503:10".
type Server struct {
	child *child
	addr  netip.AddrPort
}

// Serve starts a server, which answers when Serve returns. The end of ctx ends it.
func Serve(ctx context.Context) (*Server, error) {
	c, err := begin(ctx, verbServer, "the load's server", nil, nil, nil)
	if err != nil {
		return nil, err
	}
	var address string
	if err := c.hear(&address, time.Now().Add(patience)); err != nil {
		_ = c.close() // why it ended is said already
		return nil, err
	}
	addr, err := netip.ParseAddrPort(address)
	if err != nil {
		_ = c.close()
		return nil, fmt.Errorf("the load's server says that it listens at %.60q: %w", address, err)
	}
	return &Server{child: c, addr: addr}, nil
}

// URL is what it serves.
func (s *Server) URL() string { return "http://" + s.addr.String() + "/" }

// Addr is where it listens.
func (s *Server) Addr() netip.AddrPort { return s.addr }

// CPU is the CPU time of its process so far in ns, -1 where it isn't known.
func (s *Server) CPU() int64 { return s.child.cpu() }

// Close ends it. A server that has ended before is an error.
func (s *Server) Close() error { return s.child.close() }
