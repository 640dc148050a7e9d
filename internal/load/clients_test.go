package load

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
)

func TestClientAndServerCountsAgree(t *testing.T) {
	for name, o := range map[string]ClientOptions{
		"keep-alive":                     {Connections: 5, KeepAlive: true},
		"one connection per request":     {Connections: 5},
		"one per request, fixed rate":    {Connections: 5, QPS: 500},
		"four clients, fixed rate":       {Connections: 10, KeepAlive: true, Instances: 4, QPS: 1000},
		"uneven rate and connections":    {Connections: 7, Instances: 3, QPS: 333},
		"1000 connections":               {Connections: 1000, KeepAlive: true},
		"host name":                      {Connections: 2, URL: "localhost"},
		"host name resolved per request": {Connections: 2, URL: "localhost", ResolveEach: true},
		"chunked body":                   {Connections: 2, KeepAlive: true, URL: "?size=100000"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newCounting(t)
			switch o.Duration, o.Timeout = 400*time.Millisecond, time.Minute; o.URL {
			case "localhost":
				o.URL = strings.Replace(s.URL, "127.0.0.1", "localhost", 1)
			default:
				o.URL = s.URL + "/" + o.URL
			}
			if o.QPS == 0 {
				o.Duration = time.Second // a client may wait for a CPU before it sends a request
			}
			r := must.Get(sent(t, o))(t)
			if n := s.requests.Load(); n != r.Requests || r.Errors != 0 {
				t.Errorf("server: %d requests; client: %d requests, %d errors: %v", n, r.Requests, r.Errors, r.Failures)
			}
			want := r.Requests
			if o.KeepAlive { // a connection without a request in time is not opened
				want = min(int64(o.Connections), r.Sockets)
			}
			n := s.connections.Load()
			check.That(t, n == want && r.Sockets == want, "server: %d connections; client: %d; want %d", n, r.Sockets, want)
			if want := int64(0.4*o.QPS + 0.999); r.OpenLoop != (o.QPS > 0) || o.QPS > 0 && (r.Requests != want || r.QPS > 1.01*o.QPS) {
				t.Errorf("%d requests in 0.4 s, %g per second, at a rate of %g (open loop: %v)", r.Requests, r.QPS, o.QPS, r.OpenLoop)
			}
			check.That(t, r.CPU > 0 && r.Mean > 0 && r.Mean <= r.Max && r.P50 <= r.P90 && r.P90 <= r.P99 && r.P99 <= r.P999 && r.P999 <= r.Max,
				"inconsistent results: %+v", r.Sent)
		})
	}
}

// The server and other work on the machine delay requests. A reference load runs at the
// same time on a server with a short uniform delay, and shows the effect of other work.
// Disturbances of a single load appear in its maximum.
func TestQuantilesMatchTheServerDelay(t *testing.T) {
	const long, short, off = 300 * time.Millisecond, 10 * time.Millisecond, 250 * time.Millisecond
	for name, c := range map[string]struct {
		every         int64         // every n-th request takes long
		p50, p90, p99 time.Duration // minimum
	}{
		"every request is long":   {1, long, long, long},
		"every fifth is long":     {5, short, long, long},
		"every twentieth is long": {20, short, short, long},
	} {
		for loop, o := range map[string]ClientOptions{"closed": {Connections: 20}, "open": {Connections: 100, QPS: 200}} {
			t.Run(name+", "+loop, func(t *testing.T) {
				t.Parallel()
				o.KeepAlive, o.Duration, o.Timeout = true, 700*time.Millisecond, time.Minute
				control := make(chan Result)
				go func() { control <- delayed(t, o, math.MaxInt64, short, short) }()
				r := delayed(t, o, c.every, long, short)
				others := max(time.Duration((<-control).Max)-short, time.Duration(r.Max)-long)
				for what, v := range map[string][2]time.Duration{
					"p50": {time.Duration(r.P50), c.p50}, "p90": {time.Duration(r.P90), c.p90}, "p99": {time.Duration(r.P99), c.p99},
				} {
					// If other work delays answers by more than the long delay, the two
					// delays cannot be distinguished.
					if v[0] < v[1] || others < long && v[0] > v[1]+others+off && what != "p99" {
						t.Errorf("%s is %s, want %s; other work took up to %s", what, v[0], v[1], others)
					}
				}
			})
		}
	}
}

// delayed sends a load to a server. It answers the first and then every n-th request
// after the long delay, and others after the short one.
func delayed(t *testing.T, o ClientOptions, every int64, long, short time.Duration) Result {
	var n atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		if (n.Add(1)-1)%every == 0 { // includes the first request
			time.Sleep(long)
		} else {
			time.Sleep(short)
		}
	}))
	defer s.Close()
	o.URL = s.URL
	c, err := Start(t.Context(), o)
	if err != nil {
		t.Error(err)
		return Result{}
	}
	r, err := c.Run(t.Context())
	check.Error(t, errors.Join(err, c.Close()), "")
	return r
}

// The server stalls once. In a closed loop each connection has at most one delayed
// request. In an open loop half of all requests are delayed.
func TestOpenLoopMeasuresAFullStall(t *testing.T) {
	const connections, standstill = 4, 500 * time.Millisecond
	for name, c := range map[string]struct {
		qps   float64
		after int64 // number of requests before the stall
	}{
		"open":   {1000, 200},
		"closed": {0, 8},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var gate sync.RWMutex
			var n, held, stood atomic.Int64 // received requests, requests during the stall, and the longest wait of one
			s := serving(t, func(http.ResponseWriter, *http.Request) {
				begun := time.Now()
				if n.Add(1) == c.after {
					gate.Lock()
					time.AfterFunc(standstill, gate.Unlock)
				}
				if !gate.TryRLock() {
					held.Add(1)
					gate.RLock()
				}
				defer gate.RUnlock()
				latest(&stood, int64(time.Since(begun)))
			})
			begun := time.Now()
			r, err := sent(t, ClientOptions{URL: s.URL, Connections: connections, QPS: c.qps, KeepAlive: true, Duration: time.Second, Timeout: time.Minute})
			must.OK(t, err)
			whole := time.Since(begun)
			check.That(t, r.Requests == n.Load() && (c.qps <= 0 || r.Requests == 1000) && r.Unsent == 0 && r.Errors == 0,
				"%d requests, %d received, %d unsent, %d errors", r.Requests, n.Load(), r.Unsent, r.Errors)
			if longest := stood.Load(); r.Max < longest || longest < int64(standstill) || r.Max > int64(whole) {
				t.Errorf("maximum %s, longest on the server %s, total %s", time.Duration(r.Max), time.Duration(longest), whole)
			}
			slow := int64(0)
			for _, b := range r.Histogram {
				if time.Duration(b.To) >= 250*time.Millisecond {
					slow += b.Count
				}
			}
			if c.qps == 0 {
				// The waits of one connection do not overlap. If unsent requests were
				// counted, the sum of waits would exceed the run time.
				if sum := time.Duration(r.Mean * r.Requests); held.Load() > connections || total(r.Missing) > 0 || sum > connections*time.Duration(r.Elapsed) {
					t.Errorf("%d of %d requests met the stall; waits add up to %s in %s", held.Load(), r.Requests, sum, time.Duration(r.Elapsed))
				}
				return
			}
			// The stall starts with the 200th request, after at least 0.2 s. At most 203
			// requests were answered by then, and 1000 per second were due in the next
			// 0.5 s.
			if p90, p999 := time.Duration(r.P90), time.Duration(r.P999); slow < 240 || p90 < 300*time.Millisecond || p999 < 480*time.Millisecond {
				t.Errorf("%d of %d requests took at least 250ms; p90 %s, p99.9 %s; the stall took %s", slow, r.Requests, p90, p999, standstill)
			}
		})
	}
}

// A server keeps up if it answers all due requests. A late last answer must not lower the
// measured rate.
func TestLateLastAnswerDoesNotLowerTheRate(t *testing.T) {
	t.Parallel()
	const takes = time.Second
	s := serving(t, func(http.ResponseWriter, *http.Request) { time.Sleep(takes) })
	begun := time.Now()
	r, err := sent(t, ClientOptions{URL: s.URL, Connections: 60, QPS: 100, KeepAlive: true, Duration: 400 * time.Millisecond, Timeout: time.Minute})
	must.OK(t, err)
	check.That(t, r.Requests == 40 && r.Errors == 0 && math.Abs(r.QPS*float64(r.Elapsed)/1e9-40) <= 1e-6 && time.Duration(r.Elapsed) <= time.Since(begun)-takes,
		"%d requests, %d errors, %g per second in %s", r.Requests, r.Errors, r.QPS, time.Duration(r.Elapsed))
}

// The second request is sent long after the duration ends, and has a full timeout from
// then. Each request has its own connection, because fortio retries unanswered requests
// on a reused one.
func TestLateRequestHasItsFullTimeout(t *testing.T) {
	t.Parallel()
	const timeout = 6 * time.Second
	begun := time.Now()
	var n, first atomic.Int64 // received requests, and the time of the first answer
	gone := make(chan time.Duration, 9)
	s := serving(t, func(_ http.ResponseWriter, r *http.Request) {
		if n.Add(1) == 1 {
			time.Sleep(time.Second)
			first.Store(int64(time.Since(begun)))
			return
		}
		<-r.Context().Done()
		gone <- time.Since(begun) - time.Duration(first.Load())
	})
	r := must.Get(sent(t, ClientOptions{URL: s.URL, Connections: 1, QPS: 20, Duration: 500 * time.Millisecond, Timeout: timeout}))(t)
	must.That(t, r.Requests == 2 && n.Load() == 2 && r.Failures[late] == 1 && r.Errors == 1 && r.Unsent == 8,
		"%d requests, %d received, %d errors, %d unsent: %v", r.Requests, n.Load(), r.Errors, r.Unsent, r.Failures)
	waited := <-gone
	check.That(t, waited >= timeout, "the second request timed out %s after the first answer", waited)
}

// fortio retries a timed-out request on another connection and gets an immediate answer.
// The request still counts as an error.
func TestAnswerAfterTheTimeoutIsAnError(t *testing.T) {
	t.Parallel()
	const timeout = 6 * time.Second
	for name, qps := range map[string]float64{"closed": 0, "open": 50} {
		var n atomic.Int64
		s := serving(t, func(_ http.ResponseWriter, r *http.Request) {
			if n.Add(1) == 2 {
				<-r.Context().Done()
			}
		})
		r, err := sent(t, ClientOptions{URL: s.URL, Connections: 1, QPS: qps, KeepAlive: true, Duration: 2 * time.Second, Timeout: timeout})
		s.Close()
		must.OK(t, err)
		check.That(t, r.Failures[late] >= 1 && r.Errors == r.Failures[late] && n.Load() > r.Requests,
			"%s: %d requests, %d received, %d errors: %v", name, r.Requests, n.Load(), r.Errors, r.Failures)
		check.That(t, r.OpenLoop == (r.Max >= int64(timeout)), "%s: the longest wait was %s", name, time.Duration(r.Max))
	}
}

func TestExcessRequestsAreReportedAsUnsent(t *testing.T) {
	t.Parallel()
	const connections, takes, timeout = 2, 500 * time.Millisecond, 6 * time.Second
	s := serving(t, func(http.ResponseWriter, *http.Request) { time.Sleep(takes) })
	r, err := sent(t, ClientOptions{
		URL: s.URL, Connections: connections, QPS: 500, KeepAlive: true, Duration: 400 * time.Millisecond, Timeout: timeout,
	})
	must.OK(t, err)
	could := connections * (r.Elapsed/int64(takes) + 1)
	check.That(t, r.Requests+r.Unsent == 200 && r.Unsent >= 150 && r.Requests-r.Errors <= could,
		"%d requests, %d errors, %d unsent; at most %d can be answered", r.Requests, r.Errors, r.Unsent, could)
	// The last request was due one timeout before the end. The others were due earlier, so
	// they waited longer.
	p := time.Duration(r.P50)
	check.That(t, p >= timeout+100*time.Millisecond, "p50 is %s, but most requests waited longer", p)
	p = time.Duration(r.P90)
	check.That(t, p >= timeout+300*time.Millisecond, "p90 is %s, but a tenth of the requests waited longer", p)
}

// In an open loop an unanswered request counts with the time that it waited. In a closed
// loop it has no latency, because the load sends no other request during the wait.
func TestOpenLoopCountsTimedOutRequests(t *testing.T) {
	const timeout = 6 * time.Second // longer than an answer takes on a busy machine
	for name, c := range map[string]struct {
		qps float64
		min time.Duration // minimum of p90
	}{
		"open loop: counted":       {100, timeout},
		"closed loop: not counted": {0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var n atomic.Int64
			s := serving(t, func(_ http.ResponseWriter, r *http.Request) {
				if n.Add(1)%3 == 0 {
					<-r.Context().Done()
				}
			})
			r := must.Get(sent(t, ClientOptions{URL: s.URL, Connections: 100, QPS: c.qps, Duration: time.Second, Timeout: timeout}))(t)
			must.That(t, r.Errors != 0 && r.Failures[late] == r.Errors, "%d errors: %v", r.Errors, r.Failures)
			if want := r.Errors; c.qps > 0 && total(r.Missing) != want || c.qps == 0 && total(r.Missing) != 0 {
				t.Errorf("%d of %d errors have a latency", total(r.Missing), want)
			}
			p := time.Duration(r.P90)
			check.That(t, p >= c.min, "p90 is %s, but every third request waited %s", p, timeout)
			p = time.Duration(r.P50)
			check.That(t, p < timeout, "p50 is %s, but two of three requests were answered", p)
		})
	}
}

func TestHostHeaderIsConfigurable(t *testing.T) {
	var host atomic.Value
	s := serving(t, func(_ http.ResponseWriter, r *http.Request) { host.Store(r.Host + r.URL.RequestURI()) })
	must.Get(sent(t, ClientOptions{URL: s.URL + "/a?b=c", Host: "shop.example:8080", Connections: 1, QPS: 20, Duration: 50 * time.Millisecond}))(t)
	got := host.Load()
	check.That(t, got == "shop.example:8080/a?b=c", "the server received %v", got)
	s.Close()
	_, err := sent(t, ClientOptions{URL: s.URL, Host: "shop.example:8080", Connections: 1, QPS: 20, Duration: 50 * time.Millisecond})
	check.That(t, errors.Is(err, ErrNoAnswer) && strings.HasSuffix(err.Error(), "curl -v http://shop.example:8080"), "%v", err)
	for _, bad := range []string{"a\r\nX: y", "a b", "a/b", "x@y", strings.Repeat("a", 300)} {
		_, err := Start(t.Context(), ClientOptions{URL: s.URL, Host: bad, Connections: 1, Duration: time.Second})
		check.That(t, err != nil && strings.Contains(err.Error(), "the load's host"), "host %q was accepted: %v", bad, err)
	}
}

func TestFindResolvesTheURL(t *testing.T) {
	for text, want := range map[string]string{
		"http://127.0.0.1/":         "127.0.0.1:80",
		"http://127.0.0.1:8080/a":   "127.0.0.1:8080",
		"https://127.0.0.1/":        "127.0.0.1:443",
		"http://[::1]:9/":           "[::1]:9",
		"http://[::ffff:7f00:1]:9/": "127.0.0.1:9",
		"http://localhost:8080/":    "127.0.0.1:8080",
		"http://127.0.0.1:0/":       "",
		"http://127.0.0.1:70000/":   "",
		"http://nowhere.invalid/":   "",
		":":                         "",
	} {
		got, err := Find(t.Context(), text)
		check.That(t, (err == nil) == (want != "") && (err != nil || got.String() == want), "%s: got %v, %v; want %s", text, got, err, want)
	}
}

func TestKilledClientFailsTheLoad(t *testing.T) {
	s := echo(t)
	c := started(t, ClientOptions{URL: s.URL(), Connections: 9, Duration: time.Minute, Instances: 3})
	victim := pids(c)[1]
	time.AfterFunc(200*time.Millisecond, func() { unix.Kill(victim, unix.SIGKILL) })
	_, err := c.Run(t.Context())
	check.Error(t, err, fmt.Sprintf("client 2 of 3 (process %d) ended before its time: signal: killed", victim))
	gone(t, pids(c)...)
}

// The client is stopped for longer than its duration.
func TestLateClientRunsForTheFullDuration(t *testing.T) {
	t.Parallel()
	const duration = 300 * time.Millisecond
	s := echo(t)
	c := started(t, ClientOptions{URL: s.URL(), Connections: 2, KeepAlive: true, Duration: duration, Timeout: time.Minute})
	client := pids(c)[0]
	must.OK(t, unix.Kill(client, unix.SIGSTOP))
	time.AfterFunc(4*duration, func() { _ = unix.Kill(client, unix.SIGCONT) })
	r, err := c.Run(t.Context())
	took := time.Duration(r.Elapsed)
	check.That(t, err == nil && r.Requests != 0 && r.Errors == 0 && took >= duration, "%d requests, %d errors in %s: %v", r.Requests, r.Errors, took, err)
}

func TestCanceledContextEndsClientsAndServer(t *testing.T) {
	for name, after := range map[string]time.Duration{"immediately": 0, "during the load": 200 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			s := must.Get(Serve(ctx))(t)
			c := must.Get(Start(ctx, ClientOptions{URL: s.URL(), Connections: 4, Duration: time.Minute, Instances: 2}))(t)
			time.AfterFunc(after, cancel)
			_, err := c.Run(ctx)
			check.Is(t, err, context.Canceled)
			gone(t, append(pids(c), s.child.cmd.Process.Pid)...)
			check.Error(t, errors.Join(c.Close(), s.Close()), "")
			_, err = Start(ctx, ClientOptions{URL: s.URL(), Connections: 1, Duration: time.Second})
			check.That(t, errors.Is(err, context.Canceled), "Start with a canceled context: %v", err)
		})
	}
}

func TestClosedClientsExit(t *testing.T) {
	c := must.Get(Start(t.Context(), ClientOptions{URL: "http://127.0.0.1:1/", Connections: 4, Duration: time.Minute, Instances: 2}))(t)
	must.OK(t, c.Close())
	gone(t, pids(c)...)
}

func TestClientsAreIdleUntilRun(t *testing.T) {
	s := newCounting(t)
	c := started(t, ClientOptions{URL: s.URL, Connections: 4, QPS: 100, Duration: 50 * time.Millisecond, Instances: 2, Timeout: time.Minute})
	time.Sleep(100 * time.Millisecond)
	used, since := c.all[0].cpu(), time.Now()
	time.Sleep(100 * time.Millisecond)
	used = c.all[0].cpu() - used
	if n := s.connections.Load(); n != 0 || used > time.Since(since).Nanoseconds()/2 { // a busy loop would use all of it
		t.Errorf("before Run: %d connections, %d ns of CPU time", n, used)
	}
	r, err := c.Run(t.Context())
	check.That(t, err == nil && r.Requests != 0, "%+v, %v", r, err)
}

func TestInvalidLoadIsRefused(t *testing.T) {
	good := ClientOptions{URL: "http://127.0.0.1/", Connections: 1, Duration: time.Second}
	for name, change := range map[string]func(*ClientOptions){
		"no URL":                         func(o *ClientOptions) { o.URL = "" },
		"file URL":                       func(o *ClientOptions) { o.URL = "file:///etc/passwd" },
		"URL without host":               func(o *ClientOptions) { o.URL = "http:///x" },
		"URL with line break":            func(o *ClientOptions) { o.URL = "http://127.0.0.1/\r\nHost: other" },
		"URL with password":              func(o *ClientOptions) { o.URL = "http://me:secret@127.0.0.1/" },
		"no connections":                 func(o *ClientOptions) { o.Connections = 0 },
		"too many connections":           func(o *ClientOptions) { o.Connections = 1e6 },
		"fewer connections than clients": func(o *ClientOptions) { o.Instances = 2 },
		"negative rate":                  func(o *ClientOptions) { o.QPS = -1 },
		"too many requests":              func(o *ClientOptions) { o.QPS = 1e300 },
		"less than one request":          func(o *ClientOptions) { o.QPS = 0.5 },
		"no duration":                    func(o *ClientOptions) { o.Duration = 0 },
		"negative timeout":               func(o *ClientOptions) { o.Timeout = -time.Second },
		"too many cgroups":               func(o *ClientOptions) { o.Groups = [][]string{{}, {}} },
		"not a cgroup":                   func(o *ClientOptions) { o.Groups = [][]string{{"/tmp"}} },
		"missing cgroup":                 func(o *ClientOptions) { o.Groups = [][]string{{"/sys/fs/cgroup/nowhere"}} },
	} {
		t.Run(name, func(t *testing.T) {
			o := good
			change(&o)
			c, err := Start(t.Context(), o)
			if err == nil {
				c.Close()
				t.Fatal("the load was started")
			}
			check.That(t, !strings.Contains(err.Error(), "secret"), "the error contains the password: %v", err)
		})
	}
}

func TestSharesAddUpToTheWhole(t *testing.T) {
	for range 200 {
		of := 1 + rand.IntN(50)
		n, sum := of+rand.IntN(3000), 0
		for i := range of {
			part := share(n, i, of)
			must.That(t, part >= n/of && part <= n/of+1, "share %d of %d among %d is %d", i, n, of, part)
			sum += part
		}
		must.That(t, sum == n, "the shares of %d among %d add up to %d", n, of, sum)
	}
}
