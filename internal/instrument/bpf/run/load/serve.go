package load

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	stdlog "log"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"fortio.org/fortio/fhttp"
)

// serverConfig is what a server is told first.
type serverConfig struct {
	Address string `json:"address"`
}

// serverReady is what it answers.
type serverReady struct {
	Address string `json:"address"` // where it listens
}

// count is the only question to a server; Served is the answer.
type question struct {
	Count bool `json:"count"`
}

// serve is the server's process: fortio's echo handler on a listener of its own,
// until its input ends.
func serve(in *bufio.Reader, out io.Writer) error {
	rename("tare-server")
	listen(&failures{})
	var config serverConfig
	if err := read(in, &config); err != nil {
		return fmt.Errorf("read what to serve: %w", err)
	}
	listener, err := net.Listen("tcp", config.Address)
	if err != nil {
		return err
	}
	var requests, connections atomic.Int64
	echo := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		fhttp.EchoHandler(w, r)
	})
	server := http.Server{
		Handler:           http.MaxBytesHandler(echo, 1<<20),
		ReadHeaderTimeout: time.Minute,
		ErrorLog:          stdlog.New(io.Discard, "", 0),
		ConnState: func(_ net.Conn, state http.ConnState) {
			if state == http.StateNew {
				connections.Add(1)
			}
		},
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	defer func() { _ = server.Close() }() // and the listener
	if err := write(out, serverReady{listener.Addr().String()}); err != nil {
		return err
	}
	asked := make(chan error, 1)
	go func() {
		for {
			var q question
			if err := read(in, &q); err != nil {
				asked <- err
				return
			}
			if err := write(out, Served{requests.Load(), connections.Load()}); err != nil {
				asked <- err
				return
			}
		}
	}()
	select {
	case err := <-failed:
		return err
	case err := <-asked:
		if errors.Is(err, io.EOF) {
			return nil
		}
		return err
	}
}
