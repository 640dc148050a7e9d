// Package serve shows the records of a folder to browsers: a list, reports, comparisons of
// two records, and the progress of active runs.
//
// It may run as root on a shared machine, so it has minimal access. It is read-only and
// reads only files below one folder; of files that are not records it reads only the start.
// Every request needs a token, also on loopback: records are private to their owner, but
// every user of a machine can connect to its loopback addresses.
//
// The files are the only source. Data about them is cached and refreshed when they change.
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

// Options configure the server.
type Options struct {
	Dir         string
	Address     string // listen address, HOST:PORT; port 0 is any free port
	Token       string
	Instruments instrument.List
	Lines       *record.Lines           // of all instruments
	Alive       func(runID string) bool // reports whether a run is active on this machine
	Log         *log.Logger             // for errors of the server itself
	Confine     bool                    // drop privileges; the process does nothing else
	Marks       string                  // folder that Alive reads
}

// Records lists the records below a folder that contain all words of a filter, newest
// first. bounded names an exceeded limit.
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

// Limits on clients.
const (
	connections = 64
	headerBytes = 16 << 10
	toAnswer    = 2 * time.Minute // to generate and send an answer
	toFinish    = 3 * time.Second // for open requests at shutdown
)

// Serve serves until ctx ends; it then returns nil. It calls ready with the address,
// without the token.
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
			err = server.Close() // cancel the remaining requests
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
