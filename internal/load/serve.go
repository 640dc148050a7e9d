package load

import (
	"bufio"
	"errors"
	"io"
	stdlog "log"
	"net"
	"net/http"
	"time"

	"fortio.org/fortio/fhttp"
)

// serve is the server's process: fortio's echo handler on a free loopback port until its input
// ends. It writes its address.
func serve(in *bufio.Reader, out io.Writer) error {
	rename("tare-server")
	listen(&failures{})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := http.Server{
		Handler:           http.MaxBytesHandler(http.HandlerFunc(fhttp.EchoHandler), 1<<20),
		ReadHeaderTimeout: time.Minute,
		ErrorLog:          stdlog.New(io.Discard, "", 0),
	}
	if err := write(out, listener.Addr().String()); err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(io.Discard, in)
		_ = server.Close() // and the listener
	}()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
