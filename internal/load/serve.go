package load

import (
	"bufio"
	"errors"
	"io"
	stdlog "log"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"fortio.org/fortio/fhttp"
)

// serverReady is what it answers.
type serverReady struct {
	Address string `json:"address"` // where it listens
}

// count is the only question to a server; Served is the answer.
type question struct {
	Count bool `json:"count"`
}

// serve is the server's process: fortio's echo handler on a free port of loopback,
// until its input ends.
func serve(in *bufio.Reader, out io.Writer) error {
	rename("tare-server")
	listen(&failures{})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
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
	var ended error // of the conversation
	go func() {
		ended = write(out, serverReady{listener.Addr().String()})
		for ended == nil {
			var q question
			if ended = read(in, &q); ended == nil {
				ended = write(out, Served{requests.Load(), connections.Load()})
			}
		}
		_ = server.Close() // and the listener
	}()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	if errors.Is(ended, io.EOF) {
		return nil
	}
	return ended
}
