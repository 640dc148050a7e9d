package load

import (
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
)

// raw starts a server and returns its URL. For each connection it calls the function
// with, passing the connection and its number, from 1.
func raw(t *testing.T, with func(net.Conn, int64)) string {
	t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { l.Close() })
	go func() {
		for n := int64(1); ; n++ {
			c, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { c.Close() })
			go with(c, n)
		}
	}()
	return "http://" + l.Addr().String() + "/"
}

// says returns a handler that sends text to every connection and closes it.
func says(text string) func(net.Conn, int64) {
	return func(c net.Conn, _ int64) {
		_, _ = c.Read(make([]byte, 4096))
		_, _ = io.WriteString(c, text)
		c.Close()
	}
}

func TestUnansweredRequestsFailEarlyWithAReason(t *testing.T) {
	// A connection uses this port, and nothing listens on it.
	taken := must.Get(net.Dial("tcp4", strings.Trim(strings.TrimPrefix(raw(t, func(net.Conn, int64) {}), "http:"), "/")))(t)
	t.Cleanup(func() { taken.Close() })
	closed := "http://" + taken.LocalAddr().String()
	// Only the short timeout may expire, even on a busy machine.
	const short, long = 300 * time.Millisecond, 20 * time.Second
	for name, c := range map[string]struct {
		url, want string
		timeout   time.Duration
	}{
		"closed port":       {closed, "connection refused", long},
		"no answer":         {raw(t, func(net.Conn, int64) {}), "no answer in time", short},
		"not accepted":      {full(t), "no connection: i/o timeout", short},
		"closed connection": {raw(t, says("")), "no answer: ", long},
		"error status":      {raw(t, says("HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n")), "status 503 Service Unavailable", long},
		"redirect":          {raw(t, says("HTTP/1.1 302 Found\r\nLocation: http://127.0.0.2/\r\n\r\n")), "status 302 Found", long},
		"truncated body":    {raw(t, says("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")), "cut off", long},
		"truncated headers": {raw(t, says("HTTP/1.1 200 OK\r\nContent-Len")), "cut off", long},
		"other protocol":    {raw(t, says("220 mail ESMTP ready for you\r\n")), "not HTTP", long},
		"one byte of HTTP":  {raw(t, says("H")), "cut off", long},
		"two other bytes":   {raw(t, says("hi")), "not HTTP", long},
		"invalid status":    {raw(t, says("HTTP/1.1 abc OK\r\nContent-Length: 0\r\n\r\n")), "not HTTP", long},
		"negative length":   {raw(t, says("HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nok")), "invalid length", long},
		"oversized answer":  {raw(t, says("HTTP/1.1 200 OK\r\nContent-Length: 300000\r\n\r\n"+strings.Repeat("x", 300000))), "more than 128 KiB", long},
		"endless answer": {raw(t, func(c net.Conn, _ int64) {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
			for {
				if _, err := c.Write([]byte{'x'}); err != nil {
					return
				}
				time.Sleep(20 * time.Millisecond)
			}
		}), "no answer in time", short},
	} {
		for loop, o := range map[string]ClientOptions{
			"closed": {Connections: 4},
			"open":   {Connections: 4, QPS: 100, KeepAlive: true},
		} {
			t.Run(name+", "+loop, func(t *testing.T) {
				t.Parallel()
				o.URL, o.Duration, o.Timeout = c.url, time.Minute, c.timeout
				begun := time.Now()
				r, err := sent(t, o)
				check.That(t, errors.Is(err, ErrNoAnswer) && strings.Contains(err.Error(), c.want), "%v", err)
				d := time.Since(begun)
				check.That(t, d <= o.Duration/2, "failed after %s of %s", d, o.Duration)
				check.That(t, r.Errors != 0 && r.Errors == r.Requests && len(r.Histogram) == 0 && r.P99 == 0, "%+v", r)
			})
		}
	}
}

// full returns the URL of a server whose listen queue is full.
func full(t *testing.T) string {
	t.Helper()
	// This listener never accepts connections.
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { l.Close() })
	raw := shrink(t, l.(*net.TCPListener))
	for {
		var info *unix.TCPInfo
		var failed error
		if err := raw.Control(func(fd uintptr) { info, failed = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO) }); err != nil || failed != nil {
			t.Fatal(err, failed)
		}
		if info.Unacked > info.Sacked { // current and maximum length of the queue: tcp_get_info in net/ipv4/tcp.c
			return "http://" + l.Addr().String() + "/"
		}
		if c, err := net.DialTimeout("tcp", l.Addr().String(), time.Second); err == nil {
			t.Cleanup(func() { c.Close() })
		}
	}
}

func TestStalledServerDoesNotBlockTheLoad(t *testing.T) {
	// The server stalls after this number of answers. A busy machine can answer only a few
	// within the duration.
	const answered, duration, timeout = 8, 2 * time.Second, 6 * time.Second
	for name, o := range map[string]ClientOptions{
		"closed": {Connections: 4, KeepAlive: true},
		"open":   {Connections: 4, KeepAlive: true, QPS: 200},
		"each":   {Connections: 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var n atomic.Int64
			release := make(chan struct{})
			s := serving(t, func(http.ResponseWriter, *http.Request) {
				if n.Add(1) > answered {
					<-release
				}
			})
			defer close(release)
			o.URL, o.Duration, o.Timeout = s.URL, duration, timeout
			begun := time.Now()
			r := must.Get(sent(t, o))(t)
			d := time.Since(begun)
			check.That(t, d <= time.Minute, "ended after %s", d)
			check.That(t, r.Requests-r.Errors == answered && r.Errors >= 4 && r.Failures[late] == r.Errors,
				"%d requests, %d errors: %v", r.Requests, r.Errors, r.Failures)
			check.That(t, o.QPS <= 0 || r.Requests+r.Unsent == 400, "%d requests and %d unsent of 400", r.Requests, r.Unsent)
		})
	}
}

func TestErrorsAndAnswersAreCountedSeparately(t *testing.T) {
	s := echo(t)
	r, err := sent(t, ClientOptions{
		URL: s.URL() + "?status=503:20", Connections: 4, QPS: 1000, KeepAlive: true, Duration: 500 * time.Millisecond, Timeout: time.Minute,
	})
	must.OK(t, err)
	got := r.Failures["status 503 Service Unavailable"]
	check.That(t, r.Requests == 500 && r.Errors >= 50 && r.Errors <= 160 && got == r.Errors && total(r.Histogram) == 500-r.Errors,
		"%d requests, %d errors, %d latencies: %v", r.Requests, r.Errors, total(r.Histogram), r.Failures)
	check.That(t, s.CPU() > 0, "the server used %d ns of CPU time", s.CPU())
}

// shrink sets the queue of a listener to its minimum length and returns its socket.
func shrink(t *testing.T, l *net.TCPListener) syscall.RawConn {
	t.Helper()
	raw := must.Get(l.SyscallConn())(t)
	var failed error
	if err := raw.Control(func(fd uintptr) { failed = unix.Listen(int(fd), 0) }); err != nil || failed != nil {
		t.Fatal(err, failed)
	}
	return raw
}
