// Package serve shows the records of a folder to browsers: a list, the report of each,
// two beside each other, and how far a run under way is.
//
// It may run as root on a machine that others use, so it does no more than it has to.
// Nothing can be changed through it; what it reads are files below one folder, and of
// those that are no records no more than their beginning. Nobody is let in without a
// token, not on loopback either: records are for their owner, and every user of a machine
// can connect to its loopback addresses.
//
// The files are the only truth. What is known of them is kept in memory, and read again
// when they change.
package serve

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"net/url"
	"os"
	"time"

	"golang.org/x/net/netutil"

	"github.com/tare-bench/tare/internal/instrument"
	"github.com/tare-bench/tare/internal/serve/confine"
	"github.com/tare-bench/tare/record"
)

// Options say what is served, where and to whom.
type Options struct {
	Dir         string
	Address     string // to listen at, HOST:PORT; port 0 is any that is free
	Token       string
	Instruments instrument.List
	Lines       *record.Lines           // of all instruments
	Alive       func(runID string) bool // whether a run is under way on this machine
	Log         *log.Logger             // of what goes wrong in the server itself
	Confine     bool                    // the process does nothing else, and gives up what that would take
	Marks       string                  // folder below which Alive looks
}

// Records lists the records below a folder in which all words of a filter stand, the newest
// first, and says which bound was met.
func Records(ctx context.Context, o Options, filter string) (rows []Row, bounded string, err error) {
	root, err := os.OpenRoot(o.Dir)
	if err != nil {
		return nil, "", fmt.Errorf("open the folder of records: %w; name another, or measure something first", err)
	}
	defer func() { _ = root.Close() }() // nothing was written
	s := newSite(o, root)
	all, bounded := s.index.list(ctx)
	return s.filtered(all, filter), bounded, nil
}

// Bounds of what clients can take.
const (
	connections = 64
	headerBytes = 16 << 10
	toAnswer    = 2 * time.Minute // and to send it
	toFinish    = 3 * time.Second // pages under way when the server is told to end
)

// Serve serves until ctx ends, which is no error. ready is told the address, without
// the token.
func Serve(ctx context.Context, o Options, ready func(address string)) error {
	root, err := os.OpenRoot(o.Dir)
	if err != nil {
		return fmt.Errorf("open the folder of records: %w; name another, or measure something first", err)
	}
	defer func() { _ = root.Close() }() // nothing was written
	host, _, err := net.SplitHostPort(o.Address)
	if err != nil {
		return fmt.Errorf("listen at %q: %w; write HOST:PORT, such as 127.0.0.1:8080", o.Address, err)
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.Address)
	if err != nil {
		return fmt.Errorf("listen: %w; give another --port, or with --listen an address of this machine, such as 127.0.0.1:8080", err)
	}
	if o.Confine {
		if err := confine.To(o.Dir, o.Marks); err != nil {
			return errors.Join(err, l.Close())
		}
	}
	port := l.Addr().(*net.TCPAddr).Port
	server := &http.Server{
		Handler:           newSite(o, root).guarded(host, port),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      toAnswer,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    headerBytes,
		ErrorLog:          o.Log,
		BaseContext:       func(net.Listener) context.Context { return ctx },
	}
	ready((&url.URL{Scheme: "http", Host: net.JoinHostPort(host, fmt.Sprint(port)), Path: "/"}).String())
	ended := make(chan error, 1)
	go func() {
		<-ctx.Done()
		finish, cancel := context.WithTimeout(context.WithoutCancel(ctx), toFinish)
		defer cancel()
		if err := server.Shutdown(finish); errors.Is(err, context.DeadlineExceeded) {
			err = server.Close() // who is still answered then was told to end, too
			ended <- err
			return
		}
		ended <- nil
	}()
	if err := server.Serve(netutil.LimitListener(l, connections)); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve: %w", err)
	}
	return <-ended
}
